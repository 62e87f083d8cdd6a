// --- stops: where to stop, as a person writes it: the breakpoints of the stepper, or a text -------------------------------------------

const GRAMMAR = "line N [FILE] | step NAME | conflict [N] | hazard [KIND] | nan [any] | reg NAME [= VALUE] [lane N] [warp N|any] | "
  + "mem BUFFER[I,J] [= VALUE] | mem shared|BUFFER OFFSET [= VALUE] | read BUFFER[I,J] | read shared|BUFFER OFFSET";
const STOPS = ["conflict", "hazard", "nan", "nan any", "barrier", "line 1", "step NAME", "reg %r1", "reg %f1 = 1.0 lane 0", "mem shared 0x0", "read shared 0x0", "mma.sync"];

/**
 * What a text means: one of GRAMMAR, else a text of the PTX or of the source (that is what /TEXT always is).
 * Returns {test(event, i), pcs (bool by pc), enters (whether only where a warp comes to one of pcs), every (whether of all warps)}.
 * warp: the one whose register `reg` means. Throws an Error that says why a stop cannot be met.
 */
function stopOf(text, store, warp) {
  const {code} = store.facts, [what, ...words] = text.trim().split(/\s+/), rest = words.join(" ");
  const everywhere = code.map(() => true), none = () => { throw new Error(`${text.trim()}: a stop is ${GRAMMAR} | barrier | a text of the PTX or the source`); };
  const number = (given) => (/^\d+$/.test(given) ? Number(given) : none());
  switch (what) {
    case "line": return enters(store, lineStop(store.facts, number(words[0] ?? ""), words[1] ?? ""));
    case "step": return enters(store, stepStop(store.facts, words[0] ?? none()));
    case "conflict": {
      const least = words.length ? number(words[0]) : 1;
      return {pcs: everywhere, test: (event, i) => store.conflicts[i] >= Math.min(least, 65535) && event.access?.conflicts >= least};
    }
    case "hazard": {
      const kinds = hazardKinds(store.facts, words[0]);
      return {pcs: everywhere, every: true, test: (event) => (event.hazards ?? []).some((hazard) => !kinds || kinds.includes(hazard.kind))};
    }
    case "nan":
      if (rest !== "" && rest !== "any") none();
      return {pcs: everywhere, test: (event) => Boolean(rest ? event.nan_lanes : event.new_nan_lanes), hit: (event) => nanHit(event, rest ? event.nan_lanes : event.new_nan_lanes)};
    case "barrier": return {pcs: code.map(({barrier}) => barrier), test: () => true};
    case "reg": return registerStop(store, rest, warp, none);
    case "mem": case "read": return memoryStop(store, what === "read", rest, none);
    default: return textStop(store.facts, text.trim().replace(/^\/(?=.)/, ""));
  }
}

function enters(store, pcs) {
  for (let pc = 1; pc < pcs.length; pc++) if (store.facts.code[pc].line_key < 0) pcs[pc] = pcs[pc - 1];
  return {pcs, enters: true, test: () => true};
}

function lineStop({code, files}, line, file) {
  const is = ({path}) => !file || (file.includes("/") ? path.endsWith(file) : path.split("/").at(-1) === file);
  const pcs = code.map(({path}) => path.some(([at, number]) => number === line && is(files[at])));
  if (!pcs.includes(true)) {
    const lines = [...new Set(code.flatMap(({path}) => path.filter(([at]) => !file || files[at].path.endsWith(file)).map(([, number]) => number)))];
    lines.sort((a, b) => Math.abs(a - line) - Math.abs(b - line) || a - b);
    const hint = lines.length ? `; the nearest line that has some is ${lines[0]}` : "";
    throw new Error(`line ${line}${file && ` of ${file}`}: no instruction comes from it${hint}`);
  }
  return pcs;
}

function stepStop({code}, name) {
  const pcs = code.map(({step, step_key}) => step === name && step_key >= 0);
  const known = [...new Set(code.map(({step}) => step).filter(Boolean))];
  if (!pcs.includes(true)) throw new Error(`no step '${name}'; there are: ${known.join(", ") || "none, the source marks no steps"}`);
  return pcs;
}

/** The kinds that a word means, null for all. */
function hazardKinds({hazard_groups}, word) {
  if (!word) return null;
  const kinds = Object.values(hazard_groups).flat();
  if (!hazard_groups[word] && !kinds.includes(word)) {
    throw new Error(`no hazard is of kind '${word}'; there are: ${kinds.join(", ")}; and all of a kind: ${Object.keys(hazard_groups).join(", ")}`);
  }
  return hazard_groups[word] ?? [word];
}

// a register that a block of the PTX has for itself is told apart by a number, as in x~1
const isCalled = (register, text) => register === text || register.split("~")[0] === text;

function registerStop(store, rest, shown, none) {
  const {code, kernel, warps} = store.facts;
  const match = /^([^\s=]+)(?:\s*=\s*(\S+))?(?:\s+lane\s+(\d+))?(?:\s+(any)|\s+warp\s+(\d+))?$/.exec(rest) ?? none();
  const [, name, value, lane, any, given = shown] = match, warp = any ? null : Number(given);
  const writes = ({operands}) => operands.filter(([each, , , , , written]) => written && isCalled(each, name));
  const pcs = code.map((each) => writes(each).length > 0);
  if (!pcs.includes(true)) {
    const written = [...new Set(code.flatMap(({operands}) => operands.filter((each) => each[5]).map(([each]) => each.split("~")[0])))].filter(Boolean);
    throw new Error(`nothing in kernel ${kernel} writes a register ${name}; the PTX names them, for example ${written.slice(0, 3).join(", ")}`);
  }
  if (lane !== undefined && Number(lane) > 31) throw new Error(`lane ${lane}: a warp has lanes 0 to 31`);
  if (warp >= warps) throw new Error(`warp ${warp}: the CTA has warps 0 to ${warps - 1}`);
  const bits = new Map();
  if (value !== undefined) for (const [, type, bank] of code.flatMap(writes)) bits.set(`${type} ${bank}`, registerBits(name, value, type, bank, none));
  const chosen = lane === undefined ? 0xffffffff : 1 << Number(lane) >>> 0;
  // of a lane every write is meant, else what changes in any
  const written = (event, i, [each, type, bank, row, changed]) => {
    if (!isCalled(each, name) || (warp !== null && warp !== event.warp)) return 0;
    const lanes = maskOf(event.active) & chosen;
    if (value === undefined) return lane === undefined ? lanes & maskOf(changed) : lanes;
    store.goTo(i);
    const wanted = bits.get(`${type} ${bank}`), held = store.row(event.warp, bank, row);
    return LANES.reduce((mask, at) => (hasLane(lanes, at) && registerNumber(held[at]) === wanted ? mask | 1 << at : mask), 0);
  };
  const test = (event, i) => (event.changed ?? []).some((change) => written(event, i, change) !== 0);
  const hit = (event, i) => {
    const which = event.changed.findIndex((change) => written(event, i, change) !== 0);
    return registerHit(store, event, i, which, written(event, i, event.changed[which]));
  };
  return {pcs, test, hit, every: true, scope: any ? "of any warp" : `of warp ${warp}`};
}

const registerNumber = (value) => (Array.isArray(value) ? big(value) : BigInt(value));

/** What a register of a type holds for a value; a number with a point or an exponent is one of the register's type. */
function registerBits(name, text, type, bank, none) {
  const whole = /^-?(0x[0-9a-f]+|\d+)$/i.test(text);
  if (bank === 1) return whole ? BigInt(Number(text) !== 0) : none();
  const size = Math.min(bank, Number(/^[a-z]+(\d+)$/.exec(type)?.[1] ?? bank));
  if (whole) return BigInt.asUintN(size, text.startsWith("-") ? -BigInt(text.slice(1)) : BigInt(text));
  const number = pythonNumber(text) ?? none();
  if (!["f16", "f32", "f64"].includes(type)) throw new Error(`register ${name} is ${type}, no floating-point number: compare it with its bits, not ${text}`);
  const bytes = numberBytes(number, type);
  if (!bytes) throw new Error(`register ${name} is ${type}, too small for ${text}`);
  return bytes.reduceRight((sum, byte) => sum << 8n | BigInt(byte), 0n);
}

/** A number as Python reads it, null if it is none. */
function pythonNumber(text) {
  const [, sign, word] = /^([+-]?)(.*)$/.exec(text.toLowerCase());
  const number = word === "nan" ? NaN : word === "inf" || word === "infinity" ? Infinity : /^(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(word) ? Number(word) : null;
  return number === null ? null : sign === "-" ? -number : number;
}

/** The bytes of a number in a floating-point type, the low one first; null if it is too large for it. */
function numberBytes(number, type) {
  const made = new DataView(new ArrayBuffer(8)), size = Number(/\d+/.exec(type)[0]) / 8;
  if (type === "bf16") return [...bf16Bytes(number)];
  if (type === "f64") made.setFloat64(0, number, true);
  else if (type === "f32") made.setFloat32(0, number, true);
  else made.setUint16(0, f16Bits(number), true);
  const found = type === "f64" ? number : type === "f32" ? made.getFloat32(0, true) : f16(made.getUint16(0, true));
  if (Number.isFinite(number) && !Number.isFinite(found)) return null;
  return Array.from({length: size}, (_, i) => made.getUint8(i));
}

function f16Bits(number) {
  const sign = number < 0 || Object.is(number, -0) ? 0x8000 : 0, size = Math.abs(number);
  if (Number.isNaN(number)) return 0x7e00;
  if (size === Infinity) return sign | 0x7c00;
  const exponent = size < 2 ** -14 ? -14 : Math.floor(Math.log2(size)), units = even(size / 2 ** (exponent - 10));
  return sign | Math.min(units + (exponent + 14 << 10), 0x7c00);
}

function bf16Bytes(number) {
  if (Number.isNaN(number)) return [0xff, 0x7f];
  const quantum = 2 ** Math.max(Math.floor(Math.log2(Math.abs(number))) - 7, -133), made = new DataView(new ArrayBuffer(4));
  made.setFloat32(0, Number.isFinite(number) && number ? Math.sign(number) * even(Math.abs(number) / quantum) * quantum : number);
  return [made.getUint8(1), made.getUint8(0)];
}

/** To a whole number; a tie goes to the even one. */
function even(number) {
  const down = Math.floor(number), over = number - down;
  return down + (over > 0.5 || (over === 0.5 && down % 2) ? 1 : 0);
}

// --- memory -----------------------------------------------------------------------------------------------------------------------------

function memoryStop(store, reads, rest, none) {
  const {facts} = store, match = /^([^\s[\]]+)(?:\s*\[([^[\]]*)\]|\s+(0x[0-9a-f]+|\d+))(?:\s*=\s*(\S+))?$/i.exec(rest) ?? none();
  const [, where, index, offset, value] = match, buffers = facts.buffers.filter(({constant}) => reads || !constant);
  const buffer = buffers.find(({name}) => name === where), bytes = where === "shared" ? facts.shared_bytes : buffer?.size_bytes;
  if (reads && value !== undefined) none();
  if (bytes === undefined) throw new Error(`no buffer '${where}'; there are: ${[...buffers.map(({name}) => name), "shared"].sort().join(", ")}`);
  if (index !== undefined && !buffer) throw new Error(`${where}[${index}]: shared memory has no elements by name; give a byte offset: mem shared 0x100`);
  const item = buffer ? itemBytes(buffer) : 4, start = index === undefined ? Number(offset) : elementAt(buffer, index).start;
  const wanted = value === undefined ? null : memoryBytes(value, buffer ? buffer.dtype || "f32" : "f32", none);
  const size = wanted?.length ?? (index === undefined ? (item === 4 ? 4 : item - start % item) : elementAt(buffer, index).size);
  if (start + size > bytes) throw new Error(`byte ${start} is not in ${where}, which has ${bytes} bytes`);
  const first = (buffer?.address ?? 0) + start, space = buffer ? "global" : "shared";
  const test = (event, i) => {
    const touched = touchedRanges(facts, event, space, reads).some(([from, to]) => from < first + size && first < to);
    if (!touched || !wanted) return touched;
    if (!buffer) store.goTo(i);
    const held = buffer ? bytesOf(event.access?.stored, first, size) : wanted.map((_, k) => store.state.shared[start + k >> 2] >>> 8 * (start + k & 3) & 255);
    return wanted.every((byte, k) => byte === held[k]);
  };
  const hit = (event, i) => accessHit(store, event, i, reads, {buffer, start, size});
  return {pcs: facts.code.map(() => true), every: true, scope: "by any warp", test, hit};
}

/** The bytes of one element of a buffer. */
const itemBytes = ({size_bytes, shape}) => size_bytes / Math.max(1, shape.reduce((product, size) => product * size, 1));

/** The bytes of an element: start and size; fewer numbers than dimensions mean all below. */
function elementAt({name, shape, ...buffer}, index) {
  const parts = index.split(",").map((part) => part.trim()), said = `${name}[${index}]`;
  if (!parts.every((part) => /^[+-]?\d+$/.test(part))) throw new Error(`${said}: whole numbers are expected between the brackets, for example ${name}[${shape.map(() => 0).join(", ")}]`);
  if (parts.length > shape.length) throw new Error(`${said}: ${name} has ${shape.length} dimensions, [${shape.join(", ")}]`);
  if (parts.some((part, axis) => !(-shape[axis] <= part && part < shape[axis]))) throw new Error(`${said} is outside of ${name}, whose shape is [${shape.join(", ")}]`);
  const at = parts.reduce((sum, part, axis) => sum * shape[axis] + (Number(part) + shape[axis]) % shape[axis], 0);
  const size = itemBytes({shape, ...buffer}) * shape.slice(parts.length).reduce((product, each) => product * each, 1);
  return {start: at * size, size};
}

/** The bytes of a value: 0x… as they are, the last digits in the first byte, else a number of a type. */
function memoryBytes(text, type, none) {
  const [, kind, bits] = /^(f|bf|i|u)(\d+)$/.exec(type) ?? ["", "u", "8"], size = Number(bits) / 8;
  const bytes = (whole, count) => Array.from({length: count}, (_, k) => Number(whole >> BigInt(8 * k) & 255n));
  if (/^0x[0-9a-f]+$/i.test(text)) return bytes(BigInt(text), Math.max(size, Math.floor(text.length / 2) - 1));
  if (kind.endsWith("f")) return numberBytes(pythonNumber(text) ?? none(), type) ?? none();
  if (!/^[+-]?\d+$/.test(text)) none();
  const whole = BigInt(text), signed = whole < 0n;
  if (whole !== (signed ? BigInt.asIntN(Number(bits), whole) : BigInt.asUintN(Number(bits), whole))) none();
  return bytes(BigInt.asUintN(Number(bits), whole), size);
}

/** The ranges of a state space that an event read or wrote: [first, end]. */
function touchedRanges(facts, event, space, reads) {
  if (!reads && space === "shared" && event.copy?.arrived) return event.copy.arrived;
  return lanePlaces(facts, event, space, reads).map(([, at]) => [at, at + event.access.bytes_per_lane]);
}

/** The lanes that read or write a state space, with where they begin: [lane, address]. */
function lanePlaces(facts, {access}, space, reads) {
  if (!access) return [];
  const spans = (found) => found.map((at, lane) => [lane, at]).filter(([, at]) => at !== null);
  if (access.sources) return reads && space === "global" ? spans(access.sources) : [];
  if (!(reads ? access.reads : access.writes)) return [];
  if (access.space === space || (space === "global" && access.space === "const")) return spans(access.addresses);
  if (access.space !== "generic") return [];
  const windowAt = (at) => facts.windows.find(([, first, bytes]) => first <= at && at < first + bytes);
  return spans(access.addresses.map((at) => {
    const found = at === null ? undefined : windowAt(at);
    if (at === null || (found?.[0] ?? "global") !== space) return null;
    return at - (found?.[1] ?? 0);
  }));
}

/** Bytes of global memory as far as runs of [address, hexadecimal digits] say. */
function bytesOf(runs, first, size) {
  return Array.from({length: size}, (_, k) => {
    const run = (runs ?? []).find(([from, hex]) => from <= first + k && first + k < from + hex.length / 2);
    return run ? Number.parseInt(run[1].substr(2 * (first + k - run[0]), 2), 16) : undefined;
  });
}

// --- texts ------------------------------------------------------------------------------------------------------------------------------

/** What no PTX says is looked for in the source lines of instructions. */
function textStop({code, files}, text) {
  const own = code.map(({inserted}) => !inserted);
  const inPtx = code.map((each, pc) => own[pc] && each.text.includes(text));
  const inSource = ({path}) => path.some(([file, line]) => (files[file].lines[line - 1] ?? "").includes(text));
  const pcs = inPtx.includes(true) ? inPtx : code.map((each, pc) => own[pc] && inSource(each));
  if (!pcs.includes(true)) throw new Error(`'${text}' is neither in the PTX nor in the source lines of instructions; a stop is ${GRAMMAR}`);
  return {pcs, test: () => true};
}

/** The events that a stop means, a number of 0 or 1 for each: those at one of its pcs, or where a warp comes to one. */
function meantEvents(store, {pcs, enters: entering}) {
  const found = new Uint8Array(store.count), inside = new Map();
  for (let i = 0; i < store.count; i++) {
    const meant = store.pc[i] >= 0 && !store.failed(i) && pcs[store.pc[i]];
    found[i] = meant && !(entering && inside.get(store.warp[i])) ? 1 : 0;
    inside.set(store.warp[i], meant);
  }
  return found;
}

function touchesWord(runs = [], word) {
  for (let i = 0; i < runs.length; i += 2) if (runs[i] <= word && word < runs[i] + runs[i + 1].length / 8) return true;
  return false;
}
