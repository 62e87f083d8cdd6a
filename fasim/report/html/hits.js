// --- hits: what a stop was for: who did it, to which bytes, and what they hold; in the words of the terminal -----------------------------

/** The bytes of a row of a matrix, which a lane gives the address of. */
const ROW_BYTES = 16;
/** Bytes of a value in shared memory, by the type that the instruction takes it for. */
const VALUE_BYTES = {u8: 1, s8: 1, b8: 1, u16: 2, s16: 2, b16: 2, f16: 2, bf16: 2, u64: 8, s64: 8, b64: 8, f64: 8};

/** What event i did that a stop was for. Returns {said, lanes}. */
function hitText(store, i, meant, text) {
  const event = store.event(i), found = meant.hit?.(event, i);
  return found ?? {said: `${text}: warp ${event.warp} executes it`, lanes: []};
}

/** Whether all that happened before event i since the one before it is known. */
function isWhole(store, i) {
  return store.position[i] === (i ? store.position[i - 1] + 1 : 0);
}

const laneWords = (lanes) => `lane${lanes.length === 1 ? "" : "s"} ${ranges(lanes)}`;

function nanHit(event, mask) {
  const lanes = lanesOf(maskOf(mask));
  return {said: `warp ${event.warp}: NaN in ${laneWords(lanes)}`, lanes};
}

/** which: the number of the destination; mask: the lanes that are meant. */
function registerHit(store, event, i, which, mask) {
  const [name, type, bank, row] = event.changed[which], {warp} = event, lanes = lanesOf(mask), [lane] = lanes;
  const known = isWhole(store, i) || !(store.facts.filters.steps.length || store.facts.filters.tile !== null);
  const text = (values) => valueText(store.facts, values[lane], type, "value");
  const then = store.goTo(i, () => text(store.row(warp, bank, row))), now = text(store.row(warp, bank, row));
  const first = hasLane(maskOf(event.fresh?.[which] ?? "0"), lane), before = first ? ", its first value" : known ? `, before ${then}` : "";
  const more = lanes.length - 1, others = more ? `; ${more} more lane${more === 1 ? "" : "s"} wrote it, too` : "";
  return {said: `${name}: lane ${lane} of warp ${warp} wrote ${now}${before}${others}`, lanes};
}

/** place: buffer (undefined: shared memory), start and size, in the buffer or in shared memory. */
function accessHit(store, event, i, reads, {buffer, start, size}) {
  const {facts} = store, base = buffer?.address ?? 0, space = buffer ? "global" : "shared", code = facts.code[event.pc];
  const opcode = code.text.replace(/^@\S+\s+/, "").split(/[\s;]/)[0], matrix = /^(ldmatrix|stmatrix|LDSM|STSM)/.test(opcode), {access} = event;
  const each = matrix ? ROW_BYTES : access?.bytes_per_lane, arrived = !reads && !buffer && event.copy?.arrived;
  const spans = arrived ? arrived.map(([from, to]) => ({lane: null, from, to}))
    : lanePlaces(facts, event, space, reads).map(([lane, at]) => ({lane, from: at - base, to: at - base + each}));
  const places = spans.filter(({from, to}) => from < start + size && start < to);
  if (!places.length) return null;
  const first = Math.max(start, Math.min(...places.map(({from}) => from)));
  const lanes = places.filter(({lane, from, to}) => lane !== null && from <= first && first < to).map(({lane}) => lane);
  const value = buffer ? globalValues(store, event, i, buffer, first, places, reads) : sharedValues(store, i, places, first, matrix ? "b16" : typeOf(opcode));
  const before = value.then === null ? "" : `, before ${value.then}`, wrote = value.now === null ? "wrote it" : `wrote ${value.now}`;
  const warp = `warp ${event.warp}`, who = arrived ? warp : `${laneWords(lanes)} of ${warp}`;
  let said = `${who} ${wrote}${before}`;
  if (reads) said = `${who} read ${value.then ?? "it"}${access.sources ? " (a copy to shared memory)" : ""}`;
  else if (arrived) said = `${who} ${wrote} by cp.async${before}`;
  else if (matrix) said = `stmatrix of ${warp} ${wrote}${before}; the address is that of ${laneWords(lanes)}`;
  const more = arrived ? 0 : places.filter(({from, to}) => !(from <= first && first < to)).length;
  const others = more && size > (access?.bytes_per_lane ?? size) ? `; ${more} more lane${more === 1 ? "" : "s"} in the range` : "";
  return {said: `${buffer ? elementName(buffer, first) : sharedName(facts, first)}: ${said}${others}`, lanes};
}

/** What an instruction takes values for that it moves. */
function typeOf(opcode) {
  return opcode.split(".").reverse().find((word) => /^[ubsf]+\d+$/.test(word)) ?? "b32";
}

function elementName(buffer, offset) {
  const index = elementIndex(buffer, offset);
  return index ? `${buffer.name}[${index.join(", ")}] (byte ${offset})` : `${buffer.name} + ${offset}`;
}

function sharedName(facts, offset) {
  const region = regionAt(facts, offset)?.name;
  return `shared byte 0x${offset.toString(16)}${region ? ` (${region})` : ""}`;
}

/** Returns {now, then}, null for what is not known. */
function sharedValues(store, i, places, offset, type) {
  const size = VALUE_BYTES[type] ?? 4, {from} = places.find((each) => each.from <= offset), at = from + Math.floor((offset - from) / size) * size;
  const look = () => {
    const bytes = Array.from({length: size}, (_, k) => store.state.shared[at + k >> 2] >>> 8 * (at + k & 3) & 255);
    const [low, high] = [0, 4].map((first) => bytes.slice(first, first + 4).reduceRight((sum, byte) => sum * 256 + byte, 0));
    return laneText(size === 8 ? [low, high] : low, type, "value");
  };
  const then = store.goTo(i, look), now = look();
  return {now, then: isWhole(store, i) ? then : null};
}

/** The same of global memory: what was stored, and what that replaced; what was read stands in the registers. */
function globalValues(store, event, i, buffer, offset, places, reads) {
  const item = buffer.dtype ? itemBytes(buffer) : 1, at = Math.floor(offset / item) * item;
  const text = (bytes) => (bytes.includes(undefined) ? null : memoryText(bytes, buffer.dtype));
  if (!reads) {
    const [now, then] = [event.access.stored, event.held].map((runs) => text(bytesOf(runs, buffer.address + at, item)));
    return {now, then};
  }
  const results = (event.changed ?? []).filter(([, , bank]) => bank !== 1), place = places.find(({from, to}) => from <= offset && offset < to);
  if (event.access.sources || !results.length || !place) return {now: null, then: null};
  store.goTo(i);
  const each = event.access.bytes_per_lane / results.length;
  const held = results.flatMap(([, , bank, row]) => {
    const value = store.row(event.warp, bank, row)[place.lane], bits = Array.isArray(value) ? big(value) : BigInt(value);
    return Array.from({length: each}, (_, k) => Number(bits >> BigInt(8 * k) & 255n));
  });
  return {now: null, then: text(Array.from({length: item}, (_, k) => held[at - place.from + k]))};
}

/** The bytes of an element as a number of its type, with all digits that it has; without a type those of one byte. */
function memoryText(bytes, dtype) {
  const bits = bytes.reduceRight((sum, byte) => sum << 8n | BigInt(byte), 0n), words = [Number(bits & 0xffffffffn), Number(bits >> 32n)];
  switch (dtype) {
    case "": return `0x${bytes[0].toString(16).padStart(2, "0")}`;
    case "bool": return bits ? "True" : "False";
    case "f16": return inFull(f16(words[0]), 5);
    case "bf16": return inFull(bf16(words[0]), 5);
    case "f32": return inFull(f32(words[0]), 9);
    case "f64": return inFull(f64(words), 17);
    default: return String(dtype[0] === "i" ? BigInt.asIntN(8 * bytes.length, bits) : bits);
  }
}
