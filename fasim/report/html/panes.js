// --- panes: registers, fragments, rows, what happened -----------------------------------------------------------------------------------

/** One lane of a register: an address of device memory by buffer and byte where values are shown as what they are. */
function valueText(facts, value, type, form) {
  if (form === "value" && Array.isArray(value) && type !== "f64") {
    const at = Number(big(value)), buffer = facts.buffers.find((each) => each.address <= at && at < each.address + each.size_bytes);
    if (buffer) return `${buffer.name}+${at - buffer.address}`;
  }
  return laneText(value, type, form);
}

// the PTX does not have what lowering made
const isMade = (name) => name.startsWith("~");

/** options: what (words for the caption), changed and active (masks of lanes), width. */
function registerTable(facts, name, type, values, form, {what = "", changed = 0, active = 0xffffffff, width = 600} = {}) {
  const texts = values.map((value) => valueText(facts, value, type, form)), idle = LANES.filter((lane) => !hasLane(active, lane));
  const marks = (lane) => [hasLane(changed, lane) ? "new" : "", texts[lane].includes("nan") ? "nan" : "", hasLane(active, lane) ? "" : "off"].join(" ").trim();
  const titles = (lane) => [hasLane(changed, lane) ? "changed" : "", hasLane(active, lane) ? "" : "does not execute it"].filter(Boolean).join(", ");
  const said = [what, idle.length && idle.length < 32 ? `lanes ${ranges(idle)} do not execute it` : ""].filter(Boolean).join("; ");
  return laneTable(texts, {caption: [el("b", {}, name), ` ${type} `, el("span", {class: "quiet"}, said)], marks, titles, width, data: {register: name}});
}

/** What an operand of a matrix instruction is: A[0], by the register's name. */
function fragmentRoles(code) {
  const found = new Map();
  for (const [operand, , names] of code.fragments) {
    names.forEach((name, i) => found.set(name, [...(found.get(name) ?? []), operand.length === 1 && operand !== "R" ? `${operand}[${i}]` : `[${i}]`]));
  }
  return found;
}

/** The registers that hold their values and that the PTX has. */
function visible(store, warp) {
  return store.live(warp).filter(([name]) => !isMade(name));
}

function registersPane(store, event, warp, {form, pinned}, width) {
  const parts = [], shown = new Set(), own = event.warp === warp, roles = fragmentRoles(store.facts.code[event.pc] ?? NOWHERE);
  const active = maskOf(event.active), role = (name, which) => (roles.get(name) ?? []).filter((each) => !/^[DABC]/.test(each) || which.includes(each[0])).join(", ");
  for (const [name, type, bank, row, lanes] of own ? event.changed ?? [] : []) {
    if (isMade(name)) continue;
    shown.add(name);
    const what = ["written", role(name, "D")].filter(Boolean).join(": ");
    parts.push(registerTable(store.facts, name, type, store.row(warp, bank, row), form, {what, changed: maskOf(lanes), active, width}));
  }
  const live = new Map(visible(store, warp).map((register) => [register[0], register]));
  for (const name of pinned) {
    if (shown.has(name)) continue;
    const register = live.get(name);
    shown.add(name);
    if (register) parts.push(registerTable(store.facts, name, register[1], store.row(warp, register[2], register[3]), form, {what: "shown always", width}));
    else parts.push(el("p", {class: "quiet"}, `${name}: holds no value here`));
  }
  for (const {name, type, values} of own ? store.reads : []) {
    const what = [event.failed ? "would read" : "read", role(name, "ABC")].filter(Boolean).join(": ");
    if (!isMade(name)) parts.push(registerTable(store.facts, name, type, values, form, {what: event.failed ? what : `${what}; as it was before`, active, width}));
  }
  return parts.length ? parts : [el("p", {class: "quiet"}, own || event.warp === null ? "this instruction has no registers" : `warp ${event.warp} executed this, not warp ${warp}`)];
}

/** The matrix of an operand; those that are read as they were before the instruction. */
function fragmentPane(store, event, chosen, choose) {
  const code = store.facts.code[event.pc] ?? NOWHERE;
  if (!code.fragments.length) return {parts: [], buttons: []};
  const at = chosen % code.fragments.length, [operand, number, names, output] = code.fragments[at], layout = store.facts.layouts[number];
  const buttons = code.fragments.map(([name], i) => el("button", {class: i === at ? "chosen" : "", onclick: () => choose(i)}, name));
  const written = new Map((event.changed ?? []).map(([name, , bank, row]) => [name, store.row(event.warp, bank, row)]));
  const read = new Map(store.reads.map(({name, values}) => [name, values]));
  const held = names.map((name) => (output ? written.get(name) : read.get(name)));
  const matrices = Array.from({length: layout.matrices}, () => ({cells: Array.from({length: layout.rows}, () => []), names: new Set()}));
  for (const [matrix, row, column, lane, register, low] of layout.cells) {
    const text = held[register] ? elementText(held[register][lane], low, layout.element_bits, layout.type) : "?";
    matrices[matrix].cells[row][column] = {text, lane, title: `lane ${lane}, ${names[register]}${low ? `, bits ${low} and up` : ""}`};
    matrices[matrix].names.add(names[register]);
  }
  const {length} = matrices, size = `${layout.rows} x ${layout.columns} ${layout.type}`;
  const caption = `${operand}: ${length > 1 ? `${length} of ` : ""}${size} in ${names.join(", ")}`;
  const tables = matrices.map(({cells, names: own}, i) => matrixTable(cells, length > 1 ? `matrix ${i}, ${[...own].join(", ")}` : ""));
  return {parts: [el("p", {class: "caption"}, caption), el("div", {class: length > 1 ? "pairs" : ""}, ...tables)], buttons};
}

function matrixTable(cells, heading) {
  const rows = cells.map((row, i) => el("tr", {}, el("th", {}, i), ...row.map(({text, title, lane}) => el("td", {title, "data-lane": lane, class: text.includes("nan") ? "nan" : ""}, text))));
  const table = el("table", {class: "matrix"}, el("tr", {}, el("th", {}, ""), ...cells[0].map((_, i) => el("th", {}, i))), ...rows);
  return el("div", {class: "captioned"}, heading ? el("p", {class: "caption"}, el("b", {}, heading)) : "", table);
}

function rowsPane(store, warp) {
  const {rows} = store.facts;
  if (!rows.length) return [];
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

/** options: width of the pane; fault: what ended the kernel. */
function eventPane(store, event, {width, fault}) {
  const code = store.facts.code[event.pc] ?? NOWHERE, lines = [], active = lanesOf(maskOf(event.active));
  if (event.failed) {
    const who = event.pc === null ? code.text : `warp ${event.warp}: ${code.text}`;
    const lanes = active.length ? `\nlanes ${ranges(active)} come to it` : "";
    return [el("pre", {class: "text bad"}, el("b", {}, `FAILED  ${who}`), lanes, ...placeLines(store, code), `${code.path.length ? "" : "\n"}${fault.type}: ${fault.message}`)];
  }
  if (code.inserted) lines.push("a jump that is not in the PTX: the code is laid out in another order");
  lines.push(active.length ? `lanes ${ranges(active)} executed it` : "no lane executed it: its guard is false");
  if (!event.executed) lines.push("it waits there for others");
  lines.push(...placeLines(store, code));
  const {access, barrier} = event;
  if (access) {
    const verb = [access.reads ? "reads" : "", access.writes ? "writes" : ""].filter(Boolean).join(" and ");
    lines.push(`${verb} ${access.bytes_per_lane} B a lane, ${access.space}: ${accessEnds(store.facts, access)}`);
  }
  if (barrier) lines.push(`barrier ${barrier.number}: ${barrier.operation}${barrier.opened ? ", which opened it" : ""}`);
  if (event.copy) lines.push(copyText(store.facts, event));
  if (event.nan_lanes) lines.push(`NaN in lanes ${ranges(lanesOf(maskOf(event.nan_lanes)))}${event.new_nan_lanes ? " (new here)" : ""}`);
  if (event.printed) lines.push(`printed: ${event.printed.trimEnd()}`);
  const texts = lines.map((line, i) => (line instanceof Node ? line : `${line}${i < lines.length - 1 ? "\n" : ""}`));
  const parts = [el("pre", {class: "text"}, el("b", {}, `warp ${event.warp}: ${code.text}`), "\n", ...texts)];
  for (const hazard of event.hazards ?? []) parts.push(el("pre", {class: "text bad"}, `${hazard.severity}: ${hazard.text}`));
  return [...parts, ...addressTables(store.facts, access, width)];
}

function placeLines({facts}, code) {
  return code.path.map(([file, line]) => {
    const {path, lines} = facts.files[file];
    const text = `${path.split("/").at(-1)}:${line}  ${(lines[line - 1] ?? "").trim()}`;
    return el("span", {class: "place", title: text}, text);
  });
}

/** A byte of device memory: B + 7168 = B[14, 0]. */
function globalPlace({buffers}, address) {
  const buffer = buffers.find((each) => each.address <= address && address < each.address + each.size_bytes);
  if (!buffer) return `0x${address.toString(16)}`;
  const {name} = buffer, offset = address - buffer.address, index = elementIndex(buffer, offset);
  return `${name} + ${offset}${index ? ` = ${name}[${index.join(", ")}]` : ""}`;
}

/** The element that a byte of a buffer belongs to, null where it has none that are larger than a byte. */
function elementIndex(buffer, offset) {
  const {shape} = buffer, item = itemBytes(buffer);
  if (!shape.length || (shape.length === 1 && item === 1)) return null;
  let left = Math.floor(offset / item);
  return shape.map((size, axis) => {
    const below = shape.slice(axis + 1).reduce((product, each) => product * each, 1), at = Math.floor(left / below);
    left -= at * below;
    return at;
  });
}

function placeName(facts, space, at) {
  if (at === null) return "·";
  if (space === "shared") return lineName(facts, at);
  return ["global", "const", "generic"].includes(space) ? globalPlace(facts, at) : String(at);
}

/** Where the first and the last lane of an access are. */
function accessEnds(facts, {addresses, sources, space}) {
  const lanes = LANES.filter((lane) => addresses[lane] !== null), ends = [...new Set([lanes[0], lanes.at(-1)])];
  const at = (lane) => `${placeName(facts, space, addresses[lane])}${sources ? ` from ${placeName(facts, "global", sources[lane])}` : ""}`;
  if (ends.length > 1 && isUniform(addresses) && isUniform(sources ?? [])) return `all lanes at ${at(lanes[0])}`;
  return ends.map((lane) => `lane ${lane} at ${at(lane)}`).join(", ");
}

const isUniform = (addresses) => new Set(addresses.filter((at) => at !== null)).size <= 1;

/** Where each lane is in memory, if they are at several places. */
function addressTables(facts, access, width) {
  if (!access || (isUniform(access.addresses) && isUniform(access.sources ?? []))) return [];
  const table = (addresses, space, caption) => laneTable(addresses.map((at) => placeName(facts, space, at)), {caption: [caption], width});
  const verb = access.writes ? (access.reads ? "read and written" : "written") : "read";
  const made = [];
  if (access.sources) made.push(table(access.sources, "global", "copied from (address of each lane)"));
  made.push(table(access.addresses, access.space, `${access.sources ? "copied to" : verb} in ${access.space} memory (address of each lane)`));
  return made;
}
