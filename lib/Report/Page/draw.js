// draw.js - what panels have in common: size, the axis of time, colours.

const root = document.documentElement;
const rightMargin = 14, axisHeight = 20;
const font = '11px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';

let colours = {};

/** Colours are the style sheet's, so that dark mode and print are its alone. */
function readColours() {
  const style = getComputedStyle(root);
  const names = [...categories, "compute", "collective", "copy", "storage", "wait", "other", "page", "ink", "soft", "line",
    "grid", "panel", "focus", "limit"];
  colours = Object.fromEntries(names.map(name => [name, style.getPropertyValue(`--${name}`).trim()]));
}

const channels = hex => [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16));

/** `colour` with `part` of `other` in it. */
function mix(colour, other, part) {
  const a = channels(colour), b = channels(other);
  return `rgb(${a.map((value, i) => Math.round(value + (b[i] - value) * part)).join(" ")})`;
}

/** Three shades of a colour, so that neighbouring layers differ. */
function shadesOf(name) {
  return [0, 0.14, 0.28].map(part => mix(colours[name], colours.page, part));
}

/** Which of them a layer has; what belongs to none has the colour itself. */
const shadeOf = layer => (plan.strings[layer] === "" ? 0 : layer % 3);

/** Black or white, whichever can be read on `colour`. */
function inkOn(colour) {
  const [r, g, b] = channels(colour);
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#101418" : "#ffffff";
}

/** A step of 1, 2 or 5 times a power of ten that divides `range` into at most `parts`. */
function niceStep(range, parts) {
  const raw = range / parts, power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].find(factor => factor * power >= raw) * power;
}

/** The same for bytes, in powers of 1024. */
function niceBytes(range, parts) {
  let unit = 1;
  while (range / parts >= unit * 1000 && unit < 2 ** 60)
    unit *= 1024;
  return Math.max(1, niceStep(range / unit, parts)) * unit;
}

/** `text`, or as much of its beginning as fits into `room` pixels. */
function fitted(context, text, room) {
  if (context.measureText(text).width <= room)
    return text;
  const letters = Math.floor(room / 6.2) - 1;
  return letters < 2 ? "" : `${text.slice(0, letters)}\u2026`;
}

class Panel {
  /** `painter` has draw(panel), hit(panel, x, y), bounds(panel, item) and step(item, key). */
  constructor(id, painter) {
    this.canvas = document.getElementById(id);
    this.overlay = this.canvas.nextElementSibling;
    this.context = this.canvas.getContext("2d");
    this.painter = painter;
    this.id = id;
  }

  /** Takes the width there is; `fixed` is that of a printed page. */
  resize(fixed) {
    this.width = fixed || Math.max(240, this.canvas.parentElement.clientWidth);
    this.height = this.painter.height();
    this.gutter = this.width < 640 ? 62 : 88;
    this.ratio = fixed ? 2 : Math.min(3, window.devicePixelRatio || 1);
    for (const canvas of [this.canvas, this.overlay]) {
      canvas.width = Math.round(this.width * this.ratio);
      canvas.height = Math.round(this.height * this.ratio);
      canvas.style.height = `${this.height}px`;
    }
  }

  get plotWidth() { return this.width - this.gutter - rightMargin; }
  get plotHeight() { return this.height - axisHeight; }
  x(time) { return this.gutter + (time - state.t0) / (state.t1 - state.t0) * this.plotWidth; }
  time(x) { return state.t0 + (x - this.gutter) / this.plotWidth * (state.t1 - state.t0); }
  /** Time that a pixel shows. */
  get grain() { return (state.t1 - state.t0) / this.plotWidth; }

  /** Draws everything but what the pointer adds. */
  draw() {
    const context = this.context;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.font = font;
    context.lineWidth = 1;
    this.drawTimeAxis();
    this.painter.draw(this);
    context.strokeStyle = colours.line;
    context.strokeRect(this.gutter + 0.5, 0.5, this.plotWidth - 1, this.plotHeight - 1);
  }

  drawTimeAxis() {
    const context = this.context, step = niceStep(state.t1 - state.t0, Math.max(2, this.plotWidth / 110));
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let tick = Math.ceil(state.t0 / step) * step; tick <= state.t1; tick += step) {
      const x = Math.round(this.x(tick)) + 0.5;
      context.fillStyle = colours.grid;
      context.fillRect(x - 0.5, 0, 1, this.plotHeight);
      const label = formatTick(tick, state.t1, step);
      const half = context.measureText(label).width / 2;
      context.fillStyle = colours.soft;
      if (x - half >= this.gutter - 20 && x + half <= this.width)
        context.fillText(label, x, this.plotHeight + axisHeight / 2 + 1);
    }
  }

  /** A label at height `y` of the axis of values, with its line. */
  tick(y, label) {
    const context = this.context;
    context.fillStyle = colours.grid;
    context.fillRect(this.gutter, Math.round(y), this.plotWidth, 1);
    context.fillStyle = colours.soft;
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillText(label, this.gutter - 7, Math.min(Math.max(y, 7), this.plotHeight - 5));
  }

  /** Keeps what `body` draws within the plot. */
  clipped(body) {
    const context = this.context;
    context.save();
    context.beginPath();
    context.rect(this.gutter, 0, this.plotWidth, this.plotHeight);
    context.clip();
    body(context);
    context.restore();
  }

  /** A dashed line where the plan's peak is. */
  markPeak(context) {
    const x = Math.round(this.x(timelineNow().peakTime)) + 0.5;
    context.strokeStyle = colours.ink;
    context.setLineDash([4, 3]);
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, this.plotHeight);
    context.stroke();
    context.setLineDash([]);
  }

  /** What the pointer and the keys add: the time, and what is marked with its span on every panel. */
  drawOverlay() {
    const context = this.overlay.getContext("2d"), marked = state.marked;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.save();
    context.beginPath();
    context.rect(this.gutter, 0, this.plotWidth, this.plotHeight);
    context.clip();
    if (marked && marked.span && marked.panel !== this) {
      const [begin, end] = marked.span.map(time => this.x(time));
      context.globalAlpha = 0.14;
      context.fillStyle = colours.focus;
      context.fillRect(begin, 0, Math.max(1, end - begin), this.plotHeight);
      context.globalAlpha = 1;
    }
    if (state.time !== null) {
      context.fillStyle = colours.soft;
      context.fillRect(Math.round(this.x(state.time)), 0, 1, this.plotHeight);
    }
    if (marked && marked.panel === this) {
      const box = this.painter.bounds(this, marked.item);
      context.strokeStyle = colours.ink;
      context.lineWidth = 2;
      if (box)
        context.strokeRect(box.x - 1, box.y - 1, Math.max(2, box.width) + 2, box.height + 2);
    }
    context.restore();
  }
}
