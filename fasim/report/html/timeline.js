// --- timeline: all events at a glance, a row for each warp ------------------------------------------------------------------------------

// Okabe and Ito's colours, which the colour-blind can tell apart
const COLORS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#7f7f7f"];
const TOP = 12;
const TILE_PIXELS = 6;

/** Every eight steps another pattern: plain, light diagonals, dark verticals, light dots, dark diagonals, light checks. */
const PATTERNS = [
  null,
  (context) => strokes(context, "#ffffffd0", [[-1, 7, 7, -1], [-1, 1, 1, -1], [5, 7, 7, 5]]),
  (context) => strokes(context, "#000000b0", [[1, 0, 1, 6], [4, 0, 4, 6]], 1.5),
  (context) => { context.fillStyle = "#ffffffe0"; context.fillRect(0, 0, 3, 3); context.fillRect(3, 3, 3, 3); },
  (context) => strokes(context, "#000000b0", [[-1, -1, 7, 7], [-1, 5, 1, 7], [5, -1, 7, 1]]),
  (context) => strokes(context, "#ffffffd0", [[0, 1.5, 6, 1.5], [0, 4.5, 6, 4.5]], 1.5),
];

function strokes(context, style, lines, width = 1.8) {
  context.strokeStyle = style;
  context.lineWidth = width;
  for (const [x, y, toX, toY] of lines) {
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(toX, toY);
    context.stroke();
  }
}

/** What step number i is filled with: a colour, or a small canvas with its pattern. */
function fillOf(i) {
  const color = COLORS[i % COLORS.length], pattern = PATTERNS[Math.floor(i / COLORS.length) % PATTERNS.length];
  if (!pattern) return color;
  const tile = document.createElement("canvas"), context = tile.getContext("2d");
  tile.width = tile.height = TILE_PIXELS;
  context.fillStyle = color;
  context.fillRect(0, 0, TILE_PIXELS, TILE_PIXELS);
  pattern(context);
  return tile;
}

class Timeline {
  constructor(store, box, canvas, cursor, tip, go) {
    Object.assign(this, {store, box, canvas, cursor, tip});
    this.steps = [...new Set(store.facts.code.map((code) => code.step).filter(Boolean))];
    this.fills = this.steps.map((_, i) => fillOf(i));
    this.rowHeight = Math.max(3, Math.min(11, Math.floor(90 / store.facts.warps)));
    const at = (pointer) => {
      const {left, width} = box.getBoundingClientRect();
      return Math.max(0, Math.min(store.count - 1, Math.floor((pointer.clientX - left) / width * store.count)));
    };
    const place = (pointer) => go(at(pointer));
    box.addEventListener("pointermove", (pointer) => this.hint(at(pointer), pointer));
    box.addEventListener("pointerleave", () => { tip.hidden = true; });
    box.addEventListener("pointerdown", (pointer) => { box.setPointerCapture(pointer.pointerId); place(pointer); });
    box.addEventListener("pointermove", (pointer) => { if (pointer.buttons) place(pointer); });
    new ResizeObserver(() => this.draw()).observe(box);
  }

  /** A small picture of a step's fill, to stand next to its name. */
  swatch(step) {
    const found = this.fills[this.steps.indexOf(step)], made = el("canvas", {width: 18, height: 11}), context = made.getContext("2d");
    context.fillStyle = typeof found === "string" ? found : context.createPattern(found, "repeat");
    context.fillRect(0, 0, made.width, made.height);
    return made;
  }

  hint(i, pointer) {
    const {store, tip, box} = this, {left, width} = box.getBoundingClientRect(), {warp, position} = store.event(i);
    tip.hidden = false;
    tip.textContent = [store.failed(i) ? "FAILED" : store.code(i).step || "no step", `warp instruction ${position}`, warp === null ? "" : `warp ${warp}`].filter(Boolean).join(", ");
    tip.style.left = `${Math.max(0, Math.min(pointer.clientX - left + 12, width - tip.offsetWidth))}px`;
  }

  draw() {
    const {store, canvas, rowHeight} = this, {facts, count} = store, scale = window.devicePixelRatio || 1;
    const width = this.box.clientWidth, height = TOP + rowHeight * facts.warps;
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d"), front = getComputedStyle(document.body).color;
    context.scale(scale, scale);
    const wide = Math.max(1, width / count), fills = new Map([["", "#9aa0a6"]]);
    this.steps.forEach((step, i) => fills.set(step, typeof this.fills[i] === "string" ? this.fills[i] : context.createPattern(this.fills[i], "repeat")));
    for (let i = 0, end; i < count; i = end) {
      const {step} = store.code(i), warp = store.warp[i];
      for (end = i + 1; end < count && store.warp[end] === warp && store.code(end).step === step;) end += 1;
      if (warp === NO_WARP || store.failed(i)) continue;
      context.fillStyle = fills.get(step);
      context.fillRect(i / count * width, TOP + rowHeight * warp, Math.max(wide, (end - i) / count * width), rowHeight - 1);
    }
    if (store.end.event) {
      context.fillStyle = "#d00000";
      context.fillRect(width - Math.max(3, wide), 0, Math.max(3, wide), height);
    }
    context.font = "9px monospace";
    let labelled = -20;
    for (let i = 0; i < count; i++) {
      const x = i / count * width;
      if (store.conflicts[i]) { context.fillStyle = "#d00000"; context.fillRect(x, 8, Math.max(1, wide), 3); }
      if (store.code(i).tile && store.warp[i] === store.warp[0]) {
        context.fillStyle = front;
        context.fillRect(x, 0, 1, height);
        if (x - labelled > 40) { context.fillText(`tile ${store.tile[i]}`, x + 2, 7); labelled = x; }
      }
    }
  }

  show(i) {
    this.cursor.style.left = `${(i + 0.5) / this.store.count * 100}%`;
  }
}
