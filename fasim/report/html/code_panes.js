// --- code: all lines are there, one is marked --------------------------------------------------------------------------------------------

const LINE_PIXELS = 16.2;

class CodePane {
  constructor(box) {
    this.box = box;
    this.shown = null;
    this.marked = [];
  }

  show(key, lines, first) {
    if (this.shown === key) return;
    this.shown = key;
    this.box.replaceChildren(...lines.map((line, i) => el("div", {}, el("i", {}, i + first), line || " ")));
  }

  /** marks: [line number from 0, class]; the first of them is brought into sight, and `also` with it where both fit. */
  mark(marks, also = null) {
    for (const line of this.marked) line.className = "";
    this.marked = marks.map(([number, name]) => [this.box.children[number], name]).filter(([line]) => line).map(([line, name]) => {
      line.className = name;
      return line;
    });
    const line = this.marked[0], other = this.box.children[also] ?? line;
    if (line) this.bring(Math.min(line.offsetTop, other.offsetTop), Math.max(line.offsetTop, other.offsetTop));
  }

  bring(top, bottom) {
    const {box} = this;
    if (top < box.scrollTop + 20 || bottom > box.scrollTop + box.clientHeight - 50) box.scrollTop = (top + bottom + LINE_PIXELS - box.clientHeight) / 2;
  }

  /** How many lines are in sight. */
  get room() {
    return Math.floor(this.box.clientHeight / LINE_PIXELS);
  }
}

/** panes: source, inner, ptx (CodePane each) and the box of `inner` with its heading. */
function showCode(store, event, {source, inner, ptx, box, heading}) {
  const {files, code} = store.facts, {path} = code[event.pc] ?? NOWHERE, here = event.failed ? "failed" : "here";
  box.hidden = true;
  if (path.length) {
    const [file, line] = path[0], [innerFile, innerLine] = path.at(-1);
    source.show(file, files[file].lines, 1);
    const near = innerFile === file && Math.abs(innerLine - line) < source.room - 3;
    if (path.length > 1 && !near) {
      box.hidden = false;
      const called = path.slice(0, -1).reverse().map(([each, at]) => `${files[each].path.split("/").at(-1)}:${at}`);
      heading.textContent = `in ${files[innerFile].path.split("/").at(-1)}:${innerLine}, inlined at ${called.join(", at ")}`;
      inner.show(innerFile, files[innerFile].lines, 1);
      inner.mark([[innerLine - 1, here]]);
    }
    source.mark([[line - 1, here], ...path.slice(1).filter(([each]) => each === file).map(([, at]) => [at - 1, "called"])], near ? innerLine - 1 : null);
  } else if (event.pc === null) {
    const waiting = store.state.splits.flat().map(([pc]) => code[pc].path[0]).filter(Boolean), file = waiting[0]?.[0];
    if (file !== undefined) source.show(file, files[file].lines, 1);
    source.mark(waiting.filter(([each]) => each === file).map(([, line]) => [line - 1, "failed"]));
  } else if (files.length === 0) {
    source.show("none", ["the compiler gave no source lines"], 1);
  } else source.mark([]);
  ptx.show("ptx", code.map((each) => each.text), 0);
  ptx.mark(event.pc === null ? store.state.splits.flat().map(([pc]) => [pc, "failed"]) : [[event.pc, here]]);
}
