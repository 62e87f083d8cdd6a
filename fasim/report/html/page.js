// --- page: where one is, and how one moves ----------------------------------------------------------------------------------------------

const MOVES = [["event", "n", "p"], ["line", "l", "L"], ["step", "s", "S"], ["tile", "t", "T"], ["barrier", "b", "B"]];
const HELP = `forward / back
n  right  /  p  left    one warp instruction (of the chosen warp)
l         /  L          source line
s         /  S          step of the algorithm (//@ in the source; else line)
t         /  T          tile: a round of the kernel's main loop
b         /  B          barrier of the CTA
c         /  C          to where the field "stop at" says (Enter in the field: on to it)
home end                first, last

stop at (c goes on to it, C back), as in the terminal:
  ${GRAMMAR.replaceAll(" | ", "\n  ")}
  barrier
  a text of the PTX, or else of the source (also /TEXT)
reg means the warp that is shown: where it changes; with lane 3 wherever that lane writes it. mem, read and hazard look at all warps, the others at the chosen warp.

f number format     o other operand of the fragment     w next warp, or all
g go to a number     x  /  the field "stop at"     ? this help     esc closes it

The page shows an instruction that has been executed, and what it did. Instructions are counted
from 0 for the whole CTA. The terminal stands before the next one: there N executed means that the
last one was N - 1. A fault is the last, red one.
#N after the address of the page opens it at warp instruction N.`;
const $ = (id) => document.getElementById(id);

class Page {
  constructor(store) {
    Object.assign(this, {store, at: 0, warp: null, form: "value", cells: "lanes", operand: 0, group: null, pinned: [], from: 0, met: null});
    this.code = {source: new CodePane($("source")), inner: new CodePane($("inner")), ptx: new CodePane($("ptx")), box: $("inner-box"), heading: $("inner-title")};
    this.timeline = new Timeline(store, $("timeline"), $("ticks"), $("cursor"), $("tip"), (i) => this.go(i));
    this.controls();
    this.heading();
    this.legend();
  }

  heading() {
    const {facts, end} = this.store, options = Object.entries({...facts.options, ...facts.defines}).map(([name, value]) => `${name}=${value}`);
    document.title = $("title").textContent = `${facts.kernel}, CTA ${facts.cta.join(",")}`;
    if (facts.isa === "sass") document.querySelector("#ptx-pane h2").textContent = "Machine code";
    $("launch").textContent = [options.join(" "), `grid (${facts.grid.join(", ")})`, `block (${facts.block.join(", ")})`, facts.source, facts.arch,
      facts.compiler, `fasim ${facts.version}`].filter(Boolean).join("; ");
    if (end.fault) {
      $("fault").hidden = false;
      $("fault").textContent = end.fault.message;
    }
    if (end.hazards.length) {
      $("hazards-pane").hidden = false;
      // what a finding says grows with what it finds: kind and places tell it
      const key = ({kind, first, second}) => JSON.stringify([kind, first, second]);
      const first = (hazard) => this.store.withHazards.find((i) => this.store.event(i).hazards.some((each) => key(each) === key(hazard)));
      $("hazards").replaceChildren(...end.hazards.map((hazard) => {
        const i = first(hazard), text = `${hazard.severity}: ${hazard.text}`;
        return el("p", {}, i === undefined ? "" : el("button", {onclick: () => this.go(i)}, `at ${this.store.position[i]}`), " ", text);
      }));
    }
  }

  /** The steps with their colours; a click goes on to the next of them. */
  legend() {
    const on = (step) => this.seek(1, (i) => this.store.newStep[i] && this.store.code(i).step === step) || this.refuse(`no further ${step}`);
    $("legend").append(...this.timeline.steps.map((step) => el("span", {onclick: () => on(step), title: `on to ${step}`},
      this.timeline.swatch(step), step)));
  }

  controls() {
    const {store} = this, slider = $("slider");
    slider.max = store.count - 1;
    $("index").max = store.position[store.count - 1];
    slider.addEventListener("input", () => this.go(Number(slider.value)));
    $("index").addEventListener("change", () => this.goToPosition(Number($("index").value)));
    for (const [what, on, back] of MOVES) {
      if (what === "tile" && !store.facts.has_tiles) continue;
      $("moves").append(el("button", {title: `back (${back})`, onclick: () => this.move(what, -1)}, "◂"), ` ${what} `,
        el("button", {title: `on (${on})`, onclick: () => this.move(what, 1)}, "▸"), " ");
    }
    fill($("warp"), ["all", ...Array.from({length: store.facts.warps}, (_, warp) => warp)]);
    $("warp").addEventListener("change", () => this.choose($("warp").value));
    fill($("form"), FORMS);
    $("form").addEventListener("change", () => { this.form = $("form").value; this.show(); });
    fill($("cells"), CELLS);
    $("cells").addEventListener("change", () => { this.cells = $("cells").value; this.show(); });
    $("from-byte").addEventListener("change", () => { this.from = Math.max(0, Number($("from-byte").value) || 0); this.show(); });
    $("pin").addEventListener("change", () => {
      const name = $("pin").value.trim();
      if (name) this.pinned = this.pinned.includes(name) ? this.pinned.filter((each) => each !== name) : [...this.pinned, name];
      $("pin").value = "";
      this.show();
    });
    $("stop-list").append(...STOPS.map((text) => el("option", {value: text})));
    $("stop-next").addEventListener("click", () => this.stop(1));
    $("stop-back").addEventListener("click", () => this.stop(-1));
    $("stop").addEventListener("keydown", (key) => { if (key.key === "Enter") { this.stop(key.shiftKey ? -1 : 1); $("stop").blur(); } });
    $("banks-pane").hidden = !store.facts.shared_bytes;
    $("rows-pane").hidden = !store.facts.rows.length;
    $("registers").addEventListener("scroll", () => this.below());
    $("registers-below").addEventListener("click", () => $("registers").scrollBy(0, $("registers").clientHeight - 40));
    new ResizeObserver(() => {
      if (this.width !== $("registers").clientWidth) this.show();
    }).observe($("registers"));
    $("all-registers").addEventListener("toggle", () => this.show());
    $("help").append(el("pre", {}, HELP), el("form", {method: "dialog"}, el("button", {}, "close")));
    $("help-button").addEventListener("click", () => this.help());
    document.addEventListener("keydown", (key) => this.key(key));
    window.addEventListener("hashchange", () => this.goToHash());
  }

  key(key) {
    if (key.ctrlKey || key.metaKey || key.altKey || $("help").open) return;
    if (key.target.matches("input, select")) {
      if (key.key === "Escape") key.target.blur();
      if (key.target.id !== "slider") return;
    }
    const move = MOVES.find(([, on, back]) => key.key === on || key.key === back);
    const others = {
      ArrowRight: () => this.move("event", 1), ArrowLeft: () => this.move("event", -1), Home: () => this.go(0), End: () => this.go(this.store.count - 1),
      c: () => this.stop(1), C: () => this.stop(-1), "?": () => this.help(), x: () => this.fillIn("stop"), "/": () => this.fillIn("stop"),
      g: () => this.fillIn("index"), o: () => { this.operand += 1; this.show(); },
      f: () => { $("form").value = this.form = FORMS[(FORMS.indexOf(this.form) + 1) % FORMS.length]; this.show(); },
      w: () => this.choose(this.warp === null ? 0 : this.warp + 1 < this.store.facts.warps ? this.warp + 1 : "all"),
    };
    if (!move && !others[key.key]) return;
    key.preventDefault();
    if (move) this.move(move[0], key.key === move[1] ? 1 : -1);
    else others[key.key]();
  }

  /** Into a field; what is typed replaces what stands there. */
  fillIn(id) {
    $(id).focus();
    $(id).select();
  }

  choose(warp) {
    this.warp = warp === "all" ? null : Number(warp);
    $("warp").value = String(warp);
    this.say("");
    this.toChosen();
    this.show();
  }

  /** To the nearest event of the chosen warp, an earlier one if there is any. */
  toChosen() {
    if (!this.isChosen(this.at) && !this.seek(-1, () => true, {show: false})) this.seek(1, () => true, {show: false});
  }

  move(what, direction) {
    const {store} = this;
    const wanted = {event: () => true, line: (i) => store.newLine[i], step: (i) => store.newStep[i], tile: (i) => store.code(i).tile,
      barrier: (i) => store.code(i).barrier}[what];
    this.refuse(this.seek(direction, wanted) ? "" : `no ${direction > 0 ? "further" : "earlier"} ${what}${this.warp === null ? "" : ` of warp ${this.warp}`}`);
  }

  stop(direction) {
    const text = $("stop").value.trim();
    if (!text) return this.refuse(`say where to stop: ${GRAMMAR} | a text of the PTX`);
    const {store, warp} = this;
    let meant;
    try {
      meant = stopOf(text, store, warp ?? store.event(this.at).warp ?? 0);
    } catch (error) {
      return this.refuse(error.message);
    }
    const events = meantEvents(store, meant);
    const found = this.seek(direction, (i) => events[i] && meant.test(store.event(i), i), {every: meant.every});
    if (!found) {
      this.show();  // a test may have gone elsewhere
      const whose = meant.scope ?? (warp === null ? "" : meant.every ? "by any warp" : `by warp ${warp}`);
      return this.refuse(`${text}: not met ${direction > 0 ? "after" : "before"} here${whose && ` (${whose})`}`);
    }
    const {said, lanes} = hitText(store, this.at, meant, text), other = warp !== null && store.warp[this.at] !== warp;
    this.met = {at: this.at, lanes};
    this.say([said, other ? `warp ${store.warp[this.at]} did it; the chosen one is ${warp}` : ""].filter(Boolean).join("; "));
    return this.mark();
  }

  /** Go to the nearest event that is wanted, of the chosen warp or of every one. Returns: whether there is one. */
  seek(direction, wanted, {show = true, every = false} = {}) {
    for (let i = this.at + direction; i >= 0 && i < this.store.count; i += direction) {
      if ((every || this.isChosen(i)) && wanted(i)) {
        if (show) this.go(i, every);
        else this.at = i;
        return true;
      }
    }
    return false;
  }

  help() {
    $("help").showModal();
    $("help").scrollTop = 0;
  }

  say(text) {
    $("message").textContent = text;
    $("message").className = "";
  }

  /** Say why something is not done. */
  refuse(text) {
    this.say(text);
    $("message").className = text && "bad";
  }

  /** Mark the lanes that a stop was for, as long as its event is shown. */
  mark() {
    if (this.met && this.met.at !== this.at) {
      this.met = null;
      this.say("");
    }
    for (const cell of document.querySelectorAll("td[data-lane]")) cell.classList.toggle("met", Boolean(this.met?.lanes.includes(Number(cell.dataset.lane))));
  }

  /** Whether an event is the chosen warp's; the end of a kernel that fails is everybody's. */
  isChosen(i) {
    return this.warp === null || this.store.warp[i] === this.warp || this.store.failed(i);
  }

  go(i, every = false) {
    if (!Number.isInteger(i)) return;
    this.at = Math.max(0, Math.min(this.store.count - 1, i));
    if (!every) this.toChosen();
    this.group = null;
    this.show();
  }

  goToHash() {
    if (/^#\d+$/.test(location.hash)) this.goToPosition(Number(location.hash.slice(1)));
  }

  goToPosition(position) {
    const found = this.store.position.findIndex((each) => each >= position);
    this.go(found < 0 ? this.store.count - 1 : found);
  }

  show() {
    const {store, at} = this, event = store.event(at), warp = this.warp ?? event.warp ?? 0, width = $("registers").clientWidth;
    this.width = width;
    store.goTo(at);
    $("slider").value = at;
    $("index").value = event.position;
    this.timeline.show(at);
    const tile = event.tile === null ? "" : `tile ${event.tile}`;
    const {warp_instructions: total, event_count: held} = store.facts, place = `warp instruction ${event.position} of ${total} (from 0)`;
    $("where").textContent = [event.failed ? `FAILED: ${place}` : `executed: ${place}`, event.warp === null ? "" : `warp ${event.warp}`,
      store.facts.has_tiles ? tile : "", store.code(at).step, held < total ? `the trace has ${held} of them` : ""].filter(Boolean).join(" · ");
    $("where").className = event.failed ? "bad" : "";
    showCode(store, event, this.code);
    $("event").replaceChildren(...eventPane(store, event, {width, fault: store.end.fault}));
    $("registers").replaceChildren(...registersPane(store, event, warp, this, width));
    this.names();
    const live = visible(store, warp);
    $("live").replaceChildren(...live.map(([name]) => el("option", {value: name})));
    $("all-registers").lastElementChild.replaceChildren(...($("all-registers").open
      ? live.map(([name, type, bank, row]) => registerTable(store.facts, name, type, store.row(warp, bank, row), this.form, {width})) : []));
    const {parts, buttons} = fragmentPane(store, event, this.operand, (i) => { this.operand = i; this.show(); });
    $("fragment-pane").hidden = !parts.length;
    $("operands").replaceChildren(...buttons);
    $("fragment").replaceChildren(...parts);
    $("banks").replaceChildren(...banksPane(store, event, this, (i) => { this.group = i; this.show(); }));
    $("pipeline").replaceChildren(...pipelinePane(store, event, warp));
    $("rows").replaceChildren(...rowsPane(store, warp));
    this.mark();
  }

  /** The registers that the pane shows, by name: a click scrolls there. */
  names() {
    const tables = [...$("registers").querySelectorAll("table")];
    $("register-names").replaceChildren(...(tables.length > 2 ? tables : []).map((table) =>
      el("button", {title: table.previousElementSibling.textContent, onclick: () => { $("registers").scrollTop = table.parentElement.offsetTop; }},
        [table.dataset.register, / ([DABC]\[[^\]]*\])/.exec(table.previousElementSibling.textContent)?.[1]].filter(Boolean).join(" "))));
    $("registers").scrollTop = 0;
    this.below();
  }

  /** Says which registers are below what is in sight. */
  below() {
    const box = $("registers"), bottom = box.scrollTop + box.clientHeight;
    const hidden = [...box.querySelectorAll("table")].filter((table) => table.offsetTop + table.offsetHeight > bottom + 2);
    $("registers-below").hidden = !hidden.length;
    const names = hidden.slice(0, 4).map((table) => table.dataset.register);
    $("registers-below").textContent = `▼ more below: ${names.join(", ")}${hidden.length > 4 ? ` and ${hidden.length - 4} more` : ""}`;
  }
}

async function start() {
  const store = new Store(await unpack($("trace").textContent));
  if (!store.count) {
    $("fault").hidden = false;
    $("fault").textContent = store.end.fault?.message ?? "the trace holds no event";
    return;
  }
  const page = new Page(store);
  page.show();
  page.goToHash();
  // for scripts and tests: the store and the page as they are
  window.fasim = {store, page, short, laneText, elementText};
}

start().catch((error) => {
  $("fault").hidden = false;
  $("fault").textContent = `this page cannot be shown: ${error.message}; a browser of 2023 or later is needed`;
  throw error;
});
