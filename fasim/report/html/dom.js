// --- dom: elements that the panes are made of ----------------------------------------------------------------------------------------

/** How wide a character of a table is, and what a cell has around its text. */
const CHARACTER_PIXELS = 6.62, CELL_PIXELS = 9;

function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== "") made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null).map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

/** 32 texts in lines that fit into so many pixels, with a caption above. marks: class by lane; titles: what a lane says more. */
function laneTable(texts, {caption = [], marks = () => "", titles = () => "", width = 600, data = {}} = {}) {
  const characters = Math.max(...texts.map((text) => text.length)), longest = characters * CHARACTER_PIXELS + CELL_PIXELS;
  const across = [32, 8, 4, 2].find((count) => (count < 32 || characters < 4) && count * longest + 3 * CHARACTER_PIXELS < width) ?? 1;
  const rows = [];
  for (let first = 0; first < 32; first += across) {
    rows.push(el("tr", {}, el("th", {}, first), ...LANES.slice(first, first + across).map((lane) =>
      el("td", {class: marks(lane), "data-lane": lane, title: [`lane ${lane}`, titles(lane)].filter(Boolean).join(": ")}, texts[lane]))));
  }
  const table = el("table", {class: "lanes"}, ...rows);
  Object.assign(table.dataset, data);
  return el("div", {class: "captioned"}, el("p", {class: "caption"}, ...caption), table);
}

function fill(select, values) {
  select.append(...values.map((value) => el("option", {value}, value)));
}
