// --- store: the events, and what the CTA holds after each of them ------------------------------------------------------------------

const KEYFRAME_BYTES = 128e6;
const EVENTS_KEPT = 256;
/** of a deadlock: no instruction is the one */
const NO_WARP = 255;
const NOWHERE = {text: "(no warp can go on)", path: [], step: "", inserted: false, line_key: -1, step_key: -1, tile: false, barrier: false, operands: [], fragments: []};
/** of base64: four are three bytes */
const PART_LETTERS = 1 << 20;

/** The lines of the packed text; together they may be more than one string can hold. */
async function unpack(text) {
  const packed = text.trim();
  let at = 0;
  const parts = new ReadableStream({
    pull(controller) {
      if (at < packed.length) controller.enqueue(Uint8Array.from(atob(packed.slice(at, at + PART_LETTERS)), (letter) => letter.charCodeAt(0)));
      else controller.close();
      at += PART_LETTERS;
    },
  });
  const reader = parts.pipeThrough(new DecompressionStream("gzip")).pipeThrough(new TextDecoderStream()).getReader(), lines = [];
  let rest = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const found = part.value.split("\n");
    found[0] = rest + found[0];
    rest = found.pop();
    for (const line of found) lines.push(line);
  }
  lines.push(rest);
  return lines;
}

class State {
  constructor(registers, shared, warps) {
    this.registers = registers;
    this.shared = shared;
    this.splits = Array.from({length: warps}, () => []);
    this.groups = Array.from({length: warps}, () => []);
    this.barriers = [];
    this.next = null;
    this.rows = Array.from({length: warps}, () => ({}));
  }

  copy() {
    const made = new State(this.registers.slice(), this.shared.slice(), 0);
    made.splits = [...this.splits];
    made.groups = [...this.groups];
    made.barriers = this.barriers;
    made.next = this.next;
    made.rows = this.rows.map((rows) => ({...rows}));
    return made;
  }

  apply(event) {
    setWords(this.registers, event.set);
    setWords(this.shared, event.shared);
    for (const [warp, splits] of Object.entries(event.splits ?? {})) this.splits[warp] = splits;
    for (const [warp, groups] of Object.entries(event.groups ?? {})) this.groups[warp] = groups;
    if (event.barriers) this.barriers = event.barriers;
    this.next = event.next ?? null;
    for (const [row, result, warp, values] of event.rows ?? []) this.rows[warp][`${row},${result}`] = values;
  }
}

function setWords(words, runs = []) {
  for (let i = 0; i < runs.length; i += 2) {
    for (let k = 0; k < runs[i + 1].length / 8; k++) words[runs[i] + k] = Number.parseInt(runs[i + 1].substr(8 * k, 8), 16);
  }
}

class Store {
  constructor(lines) {
    this.facts = JSON.parse(lines[0]);
    this.end = JSON.parse(lines.at(-2));
    this.lines = lines.slice(1, -2);
    // of a kernel that fails the last event is the instruction that could not be executed
    if (this.end.event) this.lines.push(JSON.stringify(this.end.event));
    this.count = this.lines.length;
    this.kept = new Map();
    this.position = new Float64Array(this.count);
    this.pc = new Int32Array(this.count);
    this.warp = new Uint8Array(this.count);
    this.tile = new Int32Array(this.count);
    this.newLine = new Uint8Array(this.count);
    this.newStep = new Uint8Array(this.count);
    this.conflicts = new Uint16Array(this.count);
    this.withHazards = [];
    this.index();
    const bytes = 4 * (this.facts.warps * this.facts.warp_words + this.facts.shared_bytes / 4) + 1000;
    this.interval = Math.max(64, Math.ceil(this.count * bytes / KEYFRAME_BYTES));
    this.keyframes = [];
    this.at = -1;
    this.state = this.start();
    this.reads = [];
  }

  index() {
    const lineOf = new Map(), stepOf = new Map();
    for (let i = 0; i < this.count; i++) {
      const event = JSON.parse(this.lines[i]), code = this.facts.code[event.pc] ?? NOWHERE;
      this.position[i] = event.position;
      this.pc[i] = event.pc ?? -1;
      this.warp[i] = event.warp ?? NO_WARP;
      this.tile[i] = event.tile ?? -1;
      this.conflicts[i] = Math.min(event.access?.conflicts ?? 0, 65535);
      if (event.hazards) this.withHazards.push(i);
      this.newLine[i] = begins(lineOf, event.warp, code.line_key);
      this.newStep[i] = begins(stepOf, event.warp, code.step_key);
    }
  }

  start() {
    const {warps, warp_words, shared_bytes} = this.facts;
    return new State(new Uint32Array(warps * warp_words), new Uint32Array(Math.ceil(shared_bytes / 4)).fill(0xffffffff), warps);
  }

  event(i) {
    let found = this.kept.get(i);
    if (!found) {
      found = JSON.parse(this.lines[i]);
      if (this.kept.size >= EVENTS_KEPT) this.kept.delete(this.kept.keys().next().value);
      this.kept.set(i, found);
    }
    return found;
  }

  code(i) {
    return this.facts.code[this.pc[i]] ?? NOWHERE;
  }

  /** Whether event i is the instruction that could not be executed. */
  failed(i) {
    return i === this.count - 1 && Boolean(this.end.event);
  }

  /** Make `state` that after event i, and `reads` what the registers held that it reads. Returns: what `look` finds in the state before. */
  goTo(i, look = () => null) {
    if (i <= this.at) this.restore(i - 1);
    else if (i - this.at > 2 * this.interval && this.keyframes.length * this.interval > this.at + this.interval) this.restore(i - 1);
    while (this.at < i - 1) this.forward();
    const warp = this.warp[i];
    this.reads = this.code(i).operands.filter(([, , , , reads]) => reads)
      .map(([name, type, bank, row]) => ({name, type, values: this.row(warp, bank, row)}));
    const seen = look();
    this.forward();
    return seen;
  }

  restore(i) {
    const frame = Math.min(Math.floor((i + 1) / this.interval), this.keyframes.length - 1);
    this.state = frame >= 0 ? this.keyframes[frame].copy() : this.start();
    this.at = frame >= 0 ? frame * this.interval - 1 : -1;
  }

  forward() {
    if ((this.at + 1) % this.interval === 0 && this.keyframes.length === (this.at + 1) / this.interval) this.keyframes.push(this.state.copy());
    this.state.apply(this.at + 1 === this.count ? {} : JSON.parse(this.lines[this.at + 1]));
    this.at += 1;
  }

  /** The 32 lanes of a register row. */
  row(warp, bank, row) {
    const first = warp * this.facts.warp_words + row / 4, words = this.state.registers;
    if (bank === 1) return LANES.map((lane) => hasLane(words[first], lane));
    if (bank === 64) return LANES.map((lane) => [words[first + 2 * lane], words[first + 2 * lane + 1]]);
    return Array.from(words.subarray(first, first + 32));
  }

  /** Where a warp goes on, null if it has ended. */
  nextPc(warp) {
    if (this.state.next?.[0] === warp) return this.state.next[1];
    const pcs = this.state.splits[warp].map(([pc]) => pc);
    return pcs.length ? Math.min(...pcs) : null;
  }

  /** The registers that hold their values when a warp goes on: [name, type, bank, row]. */
  live(warp) {
    const pc = this.nextPc(warp);
    if (pc === null) return [];
    const inside = this.facts.functions.find(([, first, last]) => first <= pc && pc <= last)?.[0] ?? "";
    return this.facts.registers.filter(([, , , , name, first, last]) => !name || (name === inside && first <= pc && pc <= last));
  }
}

function begins(known, warp, key) {
  if (key < 0) return 0;
  const before = known.get(warp);
  known.set(warp, key);
  return before === key ? 0 : 1;
}
