// main.js - one view for all panels: zoom, pan, pointer, keys, the choice of ranks, print.

const panels = timelines.length === 0 ? []
  : [new Panel("memory", memoryPainter), new Panel("arena", arenaPainter), new Panel("streams", streamsPainter)];

let asked = false;

/** Draws all with the next frame, once. */
function redraw() {
  if (asked)
    return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    drawAll();
  });
}

function drawAll() {
  for (const panel of panels) {
    panel.draw();
    panel.drawOverlay();
  }
  if (panels.length > 0)
    $("window").textContent = `${formatTick(state.t0, state.t1, panels[0].grain)} \u2013 ${formatTick(state.t1, state.t1, panels[0].grain)}`
      + ` of ${formatTime(timelineNow().length)}`;
}

/** Shows [t0, t1], within the step and no less than 100 ns. */
function show(t0, t1) {
  const length = timelineNow().length, width = Math.min(Math.max(t1 - t0, Math.min(100, length)), length);
  state.t0 = Math.min(Math.max(t0, 0), length - width);
  state.t1 = state.t0 + width;
  redraw();
}

function zoom(factor, at = (state.t0 + state.t1) / 2) {
  show(at - (at - state.t0) * factor, at + (state.t1 - at) * factor);
}
const pan = part => show(state.t0 + part * (state.t1 - state.t0), state.t1 + part * (state.t1 - state.t0));

/** Zooms and pans the arena's offsets; `at` is the part of its height that stays. */
function zoomOffsets(factor, at) {
  const height = Math.min(Math.max((state.high - state.low) * factor, 1e-6), 1), middle = state.low + at * (state.high - state.low);
  state.low = Math.min(Math.max(middle - at * height, 0), 1 - height);
  state.high = state.low + height;
  redraw();
}
function panOffsets(part) {
  const height = state.high - state.low;
  state.low = Math.min(Math.max(state.low + part * height, 0), 1 - height);
  state.high = state.low + height;
}

function showAll() {
  state.low = 0;
  state.high = 1;
  show(0, timelineNow().length);
}
function showPeak() {
  const { peakTime, length } = timelineNow(), half = Math.min((state.t1 - state.t0) / 4, length / 20);
  show(peakTime - half, peakTime + half);
}

/** Puts the tooltip beside (x, y) of `panel`, within the picture. */
function showTooltip(panel, description, x, y) {
  const tooltip = $("tooltip"), rows = description.rows.map(([name, value, colour]) => {
    const label = make("th", colour ? [swatch(colour), ` ${name}`] : name);
    label.scope = "row";
    return make("tr", [label, make("td", value)]);
  });
  tooltip.replaceChildren(make("strong", description.title), make("span", description.where, "where"),
    make("table", [make("tbody", rows)]));
  tooltip.hidden = false;
  const box = panel.canvas.parentElement, left = x + 16 + tooltip.offsetWidth > panel.width ? x - 16 - tooltip.offsetWidth : x + 16;
  tooltip.style.left = `${Math.max(0, left)}px`;
  tooltip.style.top = `${box.offsetTop + y + 16}px`;
}

/** Marks item `item` of `panel`, or nothing; the tooltip goes to (x, y), or to the item. */
function mark(panel, item, x, y) {
  state.marked = panel && item >= 0 ? { panel, item, span: panel.painter.span(item) } : null;
  for (const each of panels)
    each.drawOverlay();
  if (!state.marked) {
    $("tooltip").hidden = true;
    return;
  }
  const description = panel.painter.describe(item);
  if (x === undefined) {
    const box = panel.painter.bounds(panel, item);
    x = Math.min(Math.max(box.x, panel.gutter), panel.gutter + panel.plotWidth);
    y = Math.min(Math.max(box.y, 0), panel.plotHeight);
    $("announce").textContent = [description.title, description.where, ...description.rows.map(row => row.slice(0, 2).join(" "))]
      .filter(Boolean).join(", ");
  }
  showTooltip(panel, description, x, y);
}

/** Brings an item into the window where it is not. */
function reveal(panel, item) {
  const begin = panel.painter.begin(item), end = panel.painter.end(item), width = state.t1 - state.t0;
  if (end < state.t0 || begin > state.t1)
    show((begin + end) / 2 - width / 2, (begin + end) / 2 + width / 2);
  const box = panel.painter.bounds(panel, item);
  if (box.y > panel.plotHeight || box.y + box.height < 0)
    panOffsets((panel.plotHeight / 2 - box.y) / panel.plotHeight);
}

function onKey(panel, event) {
  const item = state.marked && state.marked.panel === panel ? state.marked.item : -1;
  const actions = { "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": showAll, p: showPeak, P: showPeak,
    Escape: () => mark(null) };
  const arrows = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"];
  if (event.ctrlKey || event.metaKey || event.altKey)
    return;
  if (event.shiftKey && (event.key === "ArrowLeft" || event.key === "ArrowRight"))
    pan(event.key === "ArrowLeft" ? -0.2 : 0.2);
  else if (actions[event.key])
    actions[event.key]();
  else if (arrows.includes(event.key)) {
    const next = panel.painter.step(item, event.key);
    if (next >= 0) {
      reveal(panel, next);
      drawAll();
      mark(panel, next);
    }
  } else
    return;
  event.preventDefault();
}

/** Wheel, drag, double click and pinch of one panel. */
function listen(panel) {
  const canvas = panel.canvas, pointers = new Map();
  let moved = false;
  const place = event => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("wheel", event => {
    const [x, y] = place(event), whole = state.t1 - state.t0 >= timelineNow().length;
    const factor = Math.exp(Math.min(Math.max(event.deltaY, -200), 200) / 300);
    if (panel.id === "arena" && (event.ctrlKey || event.altKey)) {
      event.preventDefault();
      zoomOffsets(factor, Math.min(Math.max(1 - y / panel.plotHeight, 0), 1));
      return;
    }
    const aside = event.shiftKey ? event.deltaY || event.deltaX : Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : 0;
    if (whole && (aside !== 0 || event.deltaY > 0))
      return; // nothing to move: the page scrolls
    event.preventDefault();
    if (aside !== 0)
      pan(aside / panel.plotWidth);
    else
      zoom(factor, panel.time(x));
  }, { passive: false });
  canvas.addEventListener("pointerdown", event => {
    pointers.set(event.pointerId, place(event));
    canvas.setPointerCapture(event.pointerId);
    moved = false;
  });
  canvas.addEventListener("pointermove", event => {
    const [x, y] = place(event), before = pointers.get(event.pointerId);
    if (before && pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const apart = Math.abs(before[0] - other[0]), now = Math.abs(x - other[0]);
      if (apart > 4 && now > 4)
        zoom(apart / now, panel.time(other[0]));
      pointers.set(event.pointerId, [x, y]);
    } else if (before && (moved || Math.abs(x - before[0]) > 3 || Math.abs(y - before[1]) > 3)) {
      moved = true;
      canvas.classList.add("dragging");
      if (panel.id === "arena")
        panOffsets((y - before[1]) / panel.plotHeight);
      pan((before[0] - x) / panel.plotWidth);
      pointers.set(event.pointerId, [x, y]);
      mark(null);
    } else if (!before) {
      const inside = x >= panel.gutter && x <= panel.gutter + panel.plotWidth && y <= panel.plotHeight;
      state.time = inside ? panel.time(x) : null;
      mark(panel, inside ? panel.painter.hit(panel, x, y) : -1, x, y);
    }
  });
  const release = event => {
    pointers.delete(event.pointerId);
    canvas.classList.remove("dragging");
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => {
    state.time = null;
    mark(null);
  });
  canvas.addEventListener("dblclick", event => {
    const item = panel.painter.hit(panel, ...place(event));
    const begin = item < 0 ? 0 : panel.painter.begin(item), length = item < 0 ? 0 : panel.painter.end(item) - begin;
    if (item < 0 || length >= (state.t1 - state.t0) * 0.9)
      showAll();
    else
      show(begin - length * 0.1, begin + length * 1.1);
  });
  canvas.addEventListener("keydown", event => onKey(panel, event));
  canvas.addEventListener("blur", () => mark(null));
}

function fillLegend() {
  const shown = new Set();
  timelineNow().curve.bytes.forEach((bytes, c) => bytes.some(value => value > 0) && shown.add(c));
  $("legend").replaceChildren(...categories.map((name, c) => [name, c]).filter(([, c]) => shown.has(c)).map(([name, c]) => {
    const button = make("button", [swatch(name), `${name} ${formatBytes(rankNow().atPeak[c])}`]);
    button.type = "button";
    button.setAttribute("aria-pressed", String(!state.hidden.has(c)));
    button.addEventListener("click", () => {
      state.hidden.has(c) ? state.hidden.delete(c) : state.hidden.add(c);
      button.setAttribute("aria-pressed", String(!state.hidden.has(c)));
      mark(null);
      redraw();
    });
    return button;
  }));
  const kinds = new Set(Array.from(timelineNow().commands.name.keys(), kindOf));
  $("kinds").replaceChildren(...[...kindNames, "other"].filter(kind => kinds.has(kind))
    .map(kind => make("span", [swatch(kind), kind])));
}

function fillChoice(id, names, chosen, onChange) {
  $(`${id}-choice`).hidden = names.length < 2;
  $(id).replaceChildren(...names.map(([value, name]) => {
    const option = make("option", name);
    option.value = value;
    option.selected = String(value) === String(chosen);
    return option;
  }));
  $(id).onchange = () => onChange($(id).value);
}

/** What screen readers are told of each picture. */
function describePictures() {
  const { commands, streams, buffers, length } = timelineNow(), rank = rankNow();
  $("memory").setAttribute("aria-label", `Memory over ${formatTime(length)} by category. Peak ${formatBytes(rank.peak)} at ${rank.peakAt}.`);
  $("arena").setAttribute("aria-label", `${formatExact(buffers.name.length)} buffers of the arena over time and offset.`);
  $("streams").setAttribute("aria-label", `${formatExact(commands.name.length)} commands on ${streams.length} streams.`);
}

function resizeAll(fixed) {
  for (const panel of panels)
    panel.resize(fixed);
  drawAll();
}

function chooseRank(index) {
  state.rank = index;
  mark(null);
  fillFigures();
  fillTables();
  if (panels.length === 0)
    return;
  if (!timelineNow().spaces.includes(state.space))
    state.space = timelineNow().spaces[0] || "device";
  fillChoice("space", timelineNow().spaces.map(name => [name, name]), state.space, name => {
    state.space = name;
    redraw();
  });
  fillLegend();
  fillAlternative();
  describePictures();
  showAll();
  resizeAll();
}

/** Light colours and a page's width for the printer. */
function setPrinting(on) {
  root.classList.toggle("printing", on);
  readColours();
  mark(null);
  resizeAll(on ? 1040 : undefined);
}

function start() {
  const ranks = plan.report.ranks, most = Math.max(...ranks.map(rank => rank.peak));
  fillHeader();
  readColours();
  fillChoice("rank", ranks.map((rank, i) => [i, `${spellRanks(rank)}: ${formatBytes(rank.peak)}`]),
    ranks.findIndex(rank => rank.peak === most), value => chooseRank(Number(value)));
  chooseRank(Math.max(0, ranks.findIndex(rank => rank.peak === most)));
  if (panels.length === 0) {
    $("pictures").hidden = $("toolbar").hidden = true;
    return;
  }
  panels.forEach(listen);
  $("zoom-in").onclick = () => zoom(0.5);
  $("zoom-out").onclick = () => zoom(2);
  $("zoom-peak").onclick = showPeak;
  $("zoom-reset").onclick = showAll;
  window.addEventListener("resize", () => root.classList.contains("printing") || resizeAll());
  window.addEventListener("beforeprint", () => setPrinting(true));
  window.addEventListener("afterprint", () => setPrinting(false));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readColours();
    redraw();
  });
}

start();
