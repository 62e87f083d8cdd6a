// --- timeline: all events at a glance, a row for each warp ------------------------------------------------------------------------------

// Okabe and Ito's colours, which the colour-blind can tell apart
const COLORS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#7f7f7f"];
const TOP = 12;

class Timeline {
  constructor(store, box, canvas, cursor, go) {
    Object.assign(this, {store, box, canvas, cursor});
    this.steps = [...new Set(store.facts.code.map((code) => code.step).filter(Boolean))];
    this.rowHeight = Math.max(3, Math.min(9, Math.floor(90 / store.facts.warps)));
    const place = (pointer) => {
      const {left, width} = box.getBoundingClientRect();
      go(Math.max(0, Math.min(store.count - 1, Math.floor((pointer.clientX - left) / width * store.count))));
    };
    box.addEventListener("pointerdown", (pointer) => { box.setPointerCapture(pointer.pointerId); place(pointer); });
    box.addEventListener("pointermove", (pointer) => { if (pointer.buttons) place(pointer); });
    new ResizeObserver(() => this.draw()).observe(box);
  }

  color(step) {
    const number = this.steps.indexOf(step);
    return number < 0 ? "#9aa0a6" : COLORS[number % COLORS.length];
  }

  draw() {
    const {store, canvas, rowHeight} = this, {facts, count} = store, scale = window.devicePixelRatio || 1;
    const width = this.box.clientWidth, height = TOP + rowHeight * facts.warps;
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d"), front = getComputedStyle(document.body).color;
    context.scale(scale, scale);
    const wide = Math.max(1, width / count);
    for (let i = 0; i < count; i++) {
      context.fillStyle = this.color(store.code(i).step);
      context.fillRect(i / count * width, TOP + rowHeight * store.warp[i], wide, rowHeight - 1);
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
