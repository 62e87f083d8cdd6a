// --- page: where one is, and how one moves ----------------------------------------------------------------------------------------------

const MOVES = [["event", "n", "p"], ["line", "l", "L"], ["step", "s", "S"], ["tile", "t", "T"], ["barrier", "b", "B"]];
const HELP = `forward / back
n  right  /  p  left    one warp instruction (of the chosen warp)
l         /  L          source line
s         /  S          step of the algorithm (//@ in the source; else line)
t         /  T          tile: a round of the kernel's main loop
b         /  B          barrier of the CTA
c         /  C          to where the field "stop at" says
home end                first, last

stop at: conflict [N] | hazard [KIND] | nan [any] | barrier | line N | step NAME
         reg NAME | mem BYTE (of shared memory) | a text of the PTX or the source

f number format     o other operand of the fragment     w next warp, or all
g an event's number     x  /  the field "stop at"     ? this help     esc closes it

#N behind the address of the page opens it at warp instruction N of the CTA.`;
const $ = (id) => document.getElementById(id);

class Page {
  constructor(store) {
    Object.assign(this, {store, at: 0, warp: null, form: "value", cells: "lanes", operand: 0, group: null, pinned: [], from: 0});
    this.source = new CodePane($("source"));
    this.ptx = new CodePane($("ptx"));
    this.timeline = new Timeline(store, $("timeline"), $("ticks"), $("cursor"), (i) => this.go(i));
    this.controls();
    this.heading();
    this.legend();
  }

  heading() {
    const {facts, end} = this.store, options = Object.entries({...facts.options, ...facts.defines}).map(([name, value]) => `${name}=${value}`);
    document.title = $("title").textContent = `${facts.kernel}, CTA ${facts.cta.join(",")}`;
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
        return el("p", {}, i === undefined ? "" : el("button", {onclick: () => this.go(i)}, `event ${i}`), " ", text);
      }));
    }
  }

  /** The steps with their colours; a click goes on to the next of them. */
  legend() {
    const on = (step) => this.seek(1, (i) => this.store.newStep[i] && this.store.code(i).step === step) || this.say(`no further ${step}`);
    $("legend").append(...this.timeline.steps.map((step) => el("span", {onclick: () => on(step), title: `on to ${step}`},
      el("b", {style: `background:${this.timeline.color(step)}`}), step)));
  }

  controls() {
    const {store} = this, slider = $("slider");
    slider.max = $("index").max = store.count - 1;
    slider.addEventListener("input", () => this.go(Number(slider.value)));
    $("index").addEventListener("change", () => this.go(Number($("index").value)));
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
    $("stop").addEventListener("keydown", (key) => { if (key.key === "Enter") { this.stop(1); $("stop").blur(); } });
    $("all-registers").addEventListener("toggle", () => this.show());
    $("help").append(el("pre", {}, HELP), el("form", {method: "dialog"}, el("button", {}, "close")));
    $("help-button").addEventListener("click", () => $("help").showModal());
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
      c: () => this.stop(1), C: () => this.stop(-1), "?": () => $("help").showModal(), x: () => $("stop").focus(), "/": () => $("stop").focus(),
      g: () => $("index").focus(), o: () => { this.operand += 1; this.show(); },
      f: () => { $("form").value = this.form = FORMS[(FORMS.indexOf(this.form) + 1) % FORMS.length]; this.show(); },
      w: () => this.choose(this.warp === null ? 0 : this.warp + 1 < this.store.facts.warps ? this.warp + 1 : "all"),
    };
    if (!move && !others[key.key]) return;
    key.preventDefault();
    if (move) this.move(move[0], key.key === move[1] ? 1 : -1);
    else others[key.key]();
  }

  choose(warp) {
    this.warp = warp === "all" ? null : Number(warp);
    $("warp").value = String(warp);
    this.say("");
    if (this.warp !== null && this.store.warp[this.at] !== this.warp && !this.seek(-1, () => true, false)) this.seek(1, () => true, false);
    this.show();
  }

  move(what, direction) {
    const {store} = this;
    const wanted = {event: () => true, line: (i) => store.newLine[i], step: (i) => store.newStep[i], tile: (i) => store.code(i).tile,
      barrier: (i) => store.code(i).barrier}[what];
    this.say(this.seek(direction, wanted) ? "" : `no ${direction > 0 ? "further" : "earlier"} ${what}${this.warp === null ? "" : ` of warp ${this.warp}`}`);
  }

  stop(direction) {
    const text = $("stop").value.trim();
    if (!text) return this.say("say where to stop: conflict, hazard, nan, step NAME, a text of the PTX …");
    const {store} = this, test = stopTest(text, store.facts);
    const found = this.seek(direction, (i) => test(store.event(i), store.code(i)));
    return this.say(found ? "" : `${text}: not met ${direction > 0 ? "behind" : "before"} here`);
  }

  /** Go to the nearest event that is wanted, of the chosen warp. Returns: whether there is one. */
  seek(direction, wanted, show = true) {
    for (let i = this.at + direction; i >= 0 && i < this.store.count; i += direction) {
      if ((this.warp === null || this.store.warp[i] === this.warp) && wanted(i)) {
        if (show) this.go(i);
        else this.at = i;
        return true;
      }
    }
    return false;
  }

  say(text) {
    $("message").textContent = text;
  }

  go(i) {
    if (!Number.isInteger(i)) return;
    this.at = Math.max(0, Math.min(this.store.count - 1, i));
    if (this.warp !== null && this.store.warp[this.at] !== this.warp && !this.seek(-1, () => true, false)) this.seek(1, () => true, false);
    this.group = null;
    this.show();
  }

  goToHash() {
    const position = Number(location.hash.slice(1));
    if (!/^#\d+$/.test(location.hash)) return;
    let i = 0;
    while (i + 1 < this.store.count && this.store.event(i).position < position) i++;
    this.go(i);
  }

  show() {
    const {store, at} = this, event = store.event(at), warp = this.warp ?? event.warp;
    store.goTo(at);
    $("slider").value = $("index").value = at;
    this.timeline.show(at);
    const tile = event.tile === null ? "" : `tile ${event.tile}`;
    $("where").textContent = [`event ${at + 1} of ${store.count}`, `warp instruction ${event.position} of ${store.facts.warp_instructions}`, `warp ${event.warp}`,
      store.facts.has_tiles ? tile : "", store.code(at).step].filter(Boolean).join(" · ");
    showCode(store, event, this.source, this.ptx);
    $("event").replaceChildren(...eventPane(store, event));
    $("registers").replaceChildren(...registersPane(store, event, warp, this.form, this.pinned));
    const live = store.live(warp);
    $("live").replaceChildren(...live.map(([name]) => el("option", {value: name})));
    $("all-registers").lastElementChild.replaceChildren(...($("all-registers").open
      ? live.map(([name, type, bank, row]) => registerTable(name, type, store.row(warp, bank, row), this.form, "")) : []));
    const {parts, buttons} = fragmentPane(store, event, event.warp, this.operand, (i) => { this.operand = i; this.show(); });
    $("operands").replaceChildren(...buttons);
    $("fragment").replaceChildren(...parts);
    $("banks").replaceChildren(...banksPane(store, event, this, (i) => { this.group = i; this.show(); }));
    $("pipeline").replaceChildren(...pipelinePane(store, event, warp));
    $("rows").replaceChildren(...rowsPane(store, warp));
  }
}

function fill(select, values) {
  select.append(...values.map((value) => el("option", {value}, value)));
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
