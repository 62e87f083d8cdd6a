// --- memory: the banks of an access, copies on their way, barriers ---------------------------------------------------------------------

const CELLS = ["lanes", "f16", "bf16", "f32", "hex", "unsigned", "signed"];
const LINE_BYTES = 128;
const LINES_SHOWN = 64;
const COLLISIONS_SHOWN = 4;
const CELL_CHARACTERS = 5;
/** what nobody has written, a not-a-number to all who read it */
const UNWRITTEN = 0xffffffff;

/** What fits into a cell: at most five characters, as many digits as there is room for. */
function cellNumber(number) {
  const bare = (text) => text.replace(/^(-?)0\./, "$1.").replace("e+", "e");
  const texts = [4, 3, 2, 1].flatMap((digits) => [bare(String(Number(number.toPrecision(digits)))), bare(Number(number.toPrecision(digits)).toExponential())]);
  return Number.isFinite(number) && number !== 0 ? texts.find((text) => text.length <= CELL_CHARACTERS) ?? texts.at(-1) : short(number);
}

function wordText(bits, form, short = cellNumber) {
  if (bits === UNWRITTEN && short === cellNumber && ["f16", "bf16", "f32"].includes(form)) return "·";
  const high = bits >>> 16, low = bits & 0xffff;
  switch (form) {
    case "f16": return `${short(f16(low))}\n${short(f16(high))}`;
    case "bf16": return `${short(bf16(low))}\n${short(bf16(high))}`;
    case "f32": return short(f32(bits));
    case "unsigned": return String(bits);
    case "signed": return String(bits | 0);
    default: return `${high.toString(16).padStart(4, "0")}\n${low.toString(16).padStart(4, "0")}`;
  }
}

function regionAt(facts, offset) {
  return facts.regions.find(({start, end}) => start <= offset && offset < end);
}

function rangeNames(facts, list) {
  const sizes = new Map();
  for (const [start, end] of list) {
    const name = regionAt(facts, start)?.name ?? `[0x${start.toString(16)}, 0x${end.toString(16)})`;
    sizes.set(name, (sizes.get(name) ?? 0) + end - start);
  }
  const texts = [...sizes].map(([name, bytes]) => (facts.regions.length ? `${name} (${bytes.toLocaleString("en")} B)` : name));
  return texts.length > 4 ? `${texts.slice(0, 4).join(", ")} and ${texts.length - 4} more` : texts.join(", ");
}

/** The words that a group of lanes touches: byte offset -> {lanes, collides}. */
function touchedWords(access, group) {
  const found = new Map(), width = Math.max(4, access.lane_bytes), collides = new Set(group.collides);
  for (const lane of group.lanes) {
    const start = Math.floor(access.addresses[lane] / width) * width;
    for (let at = start; at < start + width; at += 4) {
      if (!found.has(at)) found.set(at, {lanes: [], collides: collides.has(at)});
      found.get(at).lanes.push(lane);
    }
  }
  return found;
}

/** options: group (number, or null for the one that costs most), cells, from (byte). */
function banksPane(store, event, options, choose) {
  const access = event.access, parts = [], said = [];
  const shared = access && access.space === "shared" && access.groups;
  let touched = new Map(), lines;
  if (shared) {
    const state = access.conflicts ? "bad" : "";
    const counted = access.op.startsWith("LDGSTS.cg") ? "; copies past L1 are on ncu's source page only, there" : ";";
    parts.push(el("p", {class: state}, `${access.op}: ${access.wavefronts} wavefronts, ${access.conflicts} conflicts${counted} ideal ${access.wavefronts_ideal}`));
    const costs = access.groups.map((group) => group.wavefronts), worst = costs.indexOf(Math.max(...costs));
    const shown = options.group !== null && options.group < costs.length ? options.group : worst;
    if (costs.length > 1) {
      parts.push(el("p", {class: "chips"}, ...access.groups.map((group, i) => el("button", {class: i === shown ? "chosen" : "", onclick: () => choose(i)},
        `lanes ${ranges(group.lanes)}: ${group.wavefronts}`))));
    }
    touched = touchedWords(access, access.groups[shown]);
    lines = [...new Set([...touched.keys()].map((at) => Math.floor(at / LINE_BYTES)))].sort((a, b) => a - b);
    parts.push(...collisionList(access));
  } else if (store.facts.shared_bytes) {
    const first = Math.min(Math.floor(options.from / LINE_BYTES), Math.floor((store.facts.shared_bytes - 1) / LINE_BYTES));
    lines = Array.from({length: 8}, (_, i) => first + i).filter((line) => line * LINE_BYTES < store.facts.shared_bytes);
    said.push("this instruction does not access shared memory; its bytes, and what has just changed");
  } else {
    return [];
  }
  const cells = options.cells === "lanes" && !shared ? store.facts.shared_cells : options.cells;
  if (cells !== "lanes") said.push(`words as ${cells}${["f16", "bf16", "hex"].includes(cells) ? `, the ${cells === "hex" ? "high" : "low"} half above` : ""}`);
  if (said.length) parts.push(el("p", {class: "quiet"}, said.join("; ")));
  const rows = lines.slice(0, LINES_SHOWN).map((line) => el("tr", {}, el("th", {class: "offset"}, lineName(store.facts, line * LINE_BYTES)),
    ...LANES.map((bank) => bankCell(store, event, touched.get(line * LINE_BYTES + 4 * bank), line * LINE_BYTES + 4 * bank, cells))));
  parts.push(el("table", {class: "banks"}, el("tr", {}, el("th", {}, "byte \\ bank"), ...LANES.map((bank) => el("th", {}, bank))), ...rows));
  if (lines.length > LINES_SHOWN) parts.push(el("p", {class: "quiet"}, `and ${lines.length - LINES_SHOWN} lines more`));
  return parts;
}

/** Which lanes ask banks for different words: banks where it is the same lanes together. */
function collisionList({collisions}) {
  const found = new Map();
  for (const {bank, words} of collisions) {
    const lanes = words.map((word) => ranges(word.lanes)).join(" | ");
    if (!found.has(lanes)) found.set(lanes, {banks: [], words});
    found.get(lanes).banks.push(bank);
  }
  if (!found.size) return [];
  const items = [...found].slice(0, COLLISIONS_SHOWN).map(([lanes, {banks, words}]) => {
    const title = banks.length === 1 ? words.map((word) => `lanes ${ranges(word.lanes)} at byte ${word.byte_offset}`).join(", ") : "";
    const single = words.every((word) => word.lanes.length === 1), who = single ? `one for each of lanes ${ranges(words.flatMap((word) => word.lanes).sort((a, b) => a - b))}` : `of lanes ${lanes}`;
    return el("li", {title}, el("b", {}, `bank${banks.length > 1 ? "s" : ""} ${ranges(banks)}`), `: ${words.length} words, ${who}`);
  });
  const more = found.size - items.length;
  return [el("ul", {class: "collisions"}, ...items, more > 0 ? el("li", {class: "quiet"}, `and ${more} more like these`) : null)];
}

function lineName(facts, offset) {
  const region = regionAt(facts, offset);
  return region ? `${region.name} +${offset - region.start}` : String(offset);
}

function bankCell(store, event, word, at, cells) {
  if (at >= store.facts.shared_bytes) return el("td", {class: "off"}, "");
  const bits = store.state.shared[at / 4], value = wordText(bits, cells);
  const lanes = word ? ranges(word.lanes) : "";
  const written = touchesWord(event.shared, at / 4);
  const kind = word ? (word.collides ? "collides" : "touched") : written ? "new" : "";
  const title = `byte ${at}, bank ${at / 4 % 32}${lanes && `, lanes ${lanes}`}: ${wordText(bits, "hex").replace("\n", "")} = f16 ${wordText(bits, "f16", short).replace("\n", ", ")} = f32 ${wordText(bits, "f32", short)}`;
  return el("td", {class: kind, title}, cells === "lanes" ? lanes && (word.collides ? `${lanes}!` : lanes) : value);
}

// --- pipeline ---------------------------------------------------------------------------------------------------------------------------

function splitText(store, [pc, lanes, state]) {
  const code = store.facts.code[pc], line = code.path.length ? code.path[0][1] : "?";
  const some = maskOf(lanes) === 0xffffffff ? "" : ` lanes ${ranges(lanesOf(maskOf(lanes)))}`;
  return `${state} at line ${line}${some}`;
}

function pipelinePane(store, event, warp) {
  const {facts, state} = store, parts = [];
  if (event.copy) parts.push(el("p", {}, `warp ${event.warp} ${copyText(facts, event)}`));
  const rows = state.splits.map((splits, each) => {
    const groups = state.groups[each].map(([number, committed, bytes, list]) => el("div", {},
      el("span", {class: committed ? "bar" : "bar open", style: `width:${Math.max(3, Math.min(120, bytes / 64))}px`}), " ",
      `group ${number} ${committed ? "on its way" : "open"}: ${bytes.toLocaleString("en")} B to ${rangeNames(facts, list)}`));
    return el("tr", {}, el("th", {class: each === warp ? "chosen" : ""}, `warp ${each}`),
      el("td", {class: "words"}, splits.map((split) => splitText(store, split)).join(", ") || "ended", ...groups));
  });
  parts.push(el("table", {class: "wide"}, ...rows));
  for (const [number, arrived, expected, warps] of state.barriers) {
    parts.push(el("p", {}, `barrier ${number}: ${arrived} of ${expected || "all"} threads; warps ${ranges(warps)} wait`));
  }
  if (facts.regions.length) parts.push(regionTable(facts, state));
  return parts;
}

function copyText(facts, {copy}) {
  if (copy.groups) return `copies for group ${copy.groups.join(", ")}`;
  if (copy.group !== undefined) return `committed group ${copy.group}`;
  const waited = copy.pending < 0 ? "waited for all" : `waited until ${copy.pending} groups are pending`;
  return `${waited}: ${copy.arrived.length ? rangeNames(facts, copy.arrived) : "nothing"} arrived`;
}

/** What is on its way into each named part of shared memory. */
function regionTable(facts, state) {
  const rows = facts.regions.map(({name, start, end}) => {
    const coming = [];
    state.groups.forEach((groups, warp) => groups.forEach(([number, committed, , list]) => {
      const bytes = list.reduce((sum, [from, to]) => sum + Math.max(0, Math.min(to, end) - Math.max(from, start)), 0);
      if (bytes) coming.push(`warp ${warp} group ${number}${committed ? "" : " (open)"}: ${bytes} B`);
    }));
    return el("tr", {}, el("th", {}, name), el("td", {}, `${start}–${end - 1}`), el("td", {class: coming.length ? "words new" : "words"},
      coming.length ? `being filled: ${coming.join(", ")}` : "nothing on its way"));
  });
  return el("table", {class: "wide"}, el("caption", {}, "buffers"), ...rows);
}
