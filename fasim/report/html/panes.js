// --- panes: registers, fragments, rows, what happened -----------------------------------------------------------------------------------

function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== "") made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null).map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

/** 32 texts in lines of 8, or of 32 if they are short. marks: class by lane. */
function laneTable(texts, {caption = "", marks = () => ""} = {}) {
  const longest = Math.max(...texts.map((text) => text.length)), across = longest <= 1 ? 32 : longest <= 18 ? 8 : 4;
  const rows = [];
  for (let first = 0; first < 32; first += across) {
    rows.push(el("tr", {}, el("th", {}, first), ...LANES.slice(first, first + across).map((lane) => el("td", {class: marks(lane), title: `lane ${lane}`}, texts[lane]))));
  }
  return el("table", {class: "lanes"}, el("caption", {}, ...[caption].flat()), ...rows);
}

function registerTable(name, type, values, form, what, changed = 0) {
  const texts = values.map((value) => laneText(value, type, form));
  const marks = (lane) => [hasLane(changed, lane) ? "new" : "", texts[lane].includes("nan") ? "nan" : ""].join(" ").trim();
  const made = laneTable(texts, {caption: [el("b", {}, name), ` ${type} `, el("span", {class: "quiet"}, what)], marks});
  made.dataset.register = name;
  return made;
}

function registersPane(store, event, warp, form, pinned) {
  const parts = [], shown = new Set(), own = event.warp === warp;
  for (const [name, type, bank, row, lanes] of own ? event.changed ?? [] : []) {
    shown.add(name);
    parts.push(registerTable(name, type, store.row(warp, bank, row), form, "written", maskOf(lanes)));
  }
  const live = new Map(store.live(warp).map((register) => [register[0], register]));
  for (const name of pinned) {
    if (shown.has(name)) continue;
    const register = live.get(name);
    shown.add(name);
    if (register) parts.push(registerTable(name, register[1], store.row(warp, register[2], register[3]), form, "shown always"));
    else parts.push(el("p", {class: "quiet"}, `${name}: holds no value here`));
  }
  for (const {name, type, values} of own ? store.reads : []) {
    if (!name.startsWith("~")) parts.push(registerTable(name, type, values, form, "read: as it was before"));
  }
  return parts.length ? parts : [el("p", {class: "quiet"}, "this instruction has no registers")];
}

/** The matrix of an operand; those that are read as they were before the instruction. */
function fragmentPane(store, event, warp, chosen, choose) {
  const code = store.facts.code[event.pc];
  if (!code.fragments.length) return {parts: [el("p", {class: "quiet"}, "neither ldmatrix, stmatrix nor mma: stop at mma.sync finds one")], buttons: []};
  const at = chosen % code.fragments.length, [operand, number, names] = code.fragments[at], layout = store.facts.layouts[number];
  const buttons = code.fragments.map(([name], i) => el("button", {class: i === at ? "chosen" : "", onclick: () => choose(i)}, name));
  const written = new Map((event.changed ?? []).map(([name, , bank, row]) => [name, store.row(warp, bank, row)]));
  const read = new Map(store.reads.map(({name, values}) => [name, values]));
  const output = operand.startsWith("D") || !names.some((name) => read.has(name));
  const held = names.map((name) => (output ? written.get(name) : read.get(name)));
  const cells = Array.from({length: layout.rows * layout.matrices}, () => Array.from({length: layout.columns}, () => ({text: "?", title: ""})));
  for (const [matrix, row, column, lane, register, low] of layout.cells) {
    const text = held[register] ? elementText(held[register][lane], low, layout.element_bits, layout.type) : "?";
    cells[matrix * layout.rows + row][column] = {text, title: `lane ${lane}, ${names[register]}${low ? `, bits ${low} and up` : ""}`};
  }
  const caption = `${operand}: ${layout.matrices > 1 ? `${layout.matrices} of ` : ""}${layout.rows} x ${layout.columns} ${layout.type} in ${names.join(", ")}`;
  const rows = cells.map((row, i) => el("tr", {}, el("th", {}, i), ...row.map(({text, title}) => el("td", {title, class: text.includes("nan") ? "nan" : ""}, text))));
  const table = el("table", {class: "matrix"}, el("caption", {}, caption), el("tr", {}, el("th", {}, ""), ...cells[0].map((_, i) => el("th", {}, i))), ...rows);
  return {parts: [table], buttons};
}

function rowsPane(store, warp) {
  const {rows} = store.facts;
  if (!rows.length) return [el("p", {class: "quiet"}, "this kernel does not say which lines hold values of a row; show a register always instead")];
  const held = store.state.rows[warp];
  const columns = rows.map(({pcs}, row) => {
    const found = pcs.map((_, result) => held[`${row},${result}`]);
    return found.every(Boolean) ? found.flat() : [];
  });
  const count = Math.max(...columns.map((column) => column.length));
  if (!count) return [el("p", {class: "quiet"}, `not computed yet: ${rows.map(({label}) => label).join(", ")}`)];
  const text = (value) => (value === undefined ? "-" : short(value === "nan" ? NaN : Number(value.replace("inf", "Infinity"))));
  const lines = Array.from({length: count}, (_, i) => el("tr", {}, el("th", {}, i), ...columns.map((column) => el("td", {}, text(column[i])))));
  return [el("table", {}, el("tr", {}, el("th", {}, "row"), ...rows.map(({label}) => el("th", {}, label))), ...lines)];
}

function eventPane(store, event) {
  const code = store.facts.code[event.pc], lines = [], active = lanesOf(maskOf(event.active));
  if (code.inserted) lines.push("a jump that is not in the PTX: the code is laid out in another order");
  lines.push(active.length ? `lanes ${ranges(active)} executed it` : "no lane executed it: its guard is false");
  if (!event.executed) lines.push("it waits there for others");
  for (const [file, line] of code.path) {
    const {path, lines: text} = store.facts.files[file];
    lines.push(`${path.split("/").at(-1)}:${line}  ${(text[line - 1] ?? "").trim()}`);
  }
  const {access, barrier} = event;
  if (access) {
    const verb = [access.reads ? "reads" : "", access.writes ? "writes" : ""].filter(Boolean).join(" and ");
    lines.push(`${verb} ${access.bytes_per_lane} B a lane, ${access.space}${access.buffers ? `: ${access.buffers.join(", ")}` : ""}`);
  }
  if (barrier) lines.push(`barrier ${barrier.number}: ${barrier.operation}${barrier.opened ? ", which opened it" : ""}`);
  if (event.copy) lines.push(copyText(store.facts, event));
  if (event.nan_lanes) lines.push(`NaN in lanes ${ranges(lanesOf(maskOf(event.nan_lanes)))}${event.new_nan_lanes ? " (new here)" : ""}`);
  if (event.printed) lines.push(`printed: ${event.printed.trimEnd()}`);
  const parts = [el("pre", {class: "text"}, el("b", {}, `warp ${event.warp}: ${code.text}`), `\n${lines.join("\n")}`)];
  for (const hazard of event.hazards ?? []) parts.push(el("pre", {class: "text bad"}, `${hazard.severity}: ${hazard.text}`));
  return parts;
}

// --- code: all lines are there, one is marked --------------------------------------------------------------------------------------------

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

  /** marks: [line number from 0, class]; the first of them is brought into sight. */
  mark(marks) {
    for (const line of this.marked) line.className = "";
    this.marked = marks.map(([number, name]) => [this.box.children[number], name]).filter(([line]) => line).map(([line, name]) => {
      line.className = name;
      return line;
    });
    const line = this.marked[0], box = this.box;
    if (line && (line.offsetTop < box.scrollTop + 30 || line.offsetTop > box.scrollTop + box.clientHeight - 60)) box.scrollTop = line.offsetTop - box.clientHeight / 2;
  }
}

function showCode(store, event, sourcePane, ptxPane) {
  const {files, code} = store.facts, {path} = code[event.pc];
  if (path.length) {
    const [file, line] = path[0];
    sourcePane.show(file, files[file].lines, 1);
    sourcePane.mark([[line - 1, "here"], ...path.slice(1).filter(([inner]) => inner === file).map(([, inner]) => [inner - 1, "called"])]);
  } else if (files.length === 0) {
    sourcePane.show("none", ["the compiler gave no source lines"], 1);
  } else sourcePane.mark([]);
  ptxPane.show("ptx", code.map((each) => (each.inserted ? `(jump inserted) ${each.text}` : each.text)), 0);
  ptxPane.mark([[event.pc, "here"]]);
}
