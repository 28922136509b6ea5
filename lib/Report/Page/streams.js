// streams.js - which command runs when on which stream, below the segments of the step.

const kindNames = ["compute", "collective", "copy", "storage", "wait"];
const kindOf = i => {
  const kind = plan.strings[timelineNow().commands.kind[i]];
  return kindNames.includes(kind) ? kind : "other";
};

const streamsPainter = {
  rowHeight: 26,
  bandHeight: 20,
  height() { return this.bandHeight + this.rowHeight * Math.max(1, timelineNow().streams.length) + axisHeight + 4; },

  box(panel, i) {
    const commands = timelineNow().commands, x = panel.x(commands.begin[i]);
    return { x, y: this.bandHeight + this.rowHeight * commands.stream[i] + 3,
      width: panel.x(commands.begin[i] + commands.length[i]) - x, height: this.rowHeight - 6 };
  },

  draw(panel) {
    const { streams } = timelineNow(), context = panel.context;
    context.textAlign = "right";
    context.textBaseline = "middle";
    streams.forEach((name, row) => {
      const top = this.bandHeight + this.rowHeight * row;
      context.fillStyle = colours.grid;
      context.fillRect(panel.gutter, top, panel.plotWidth, 1);
      context.fillStyle = colours.soft;
      context.fillText(fitted(context, name, panel.gutter - 10), panel.gutter - 7, top + this.rowHeight / 2);
    });
    panel.clipped(clip => {
      this.drawSegments(panel, clip);
      this.drawCommands(panel, clip);
      panel.markPeak(clip);
    });
  },

  drawSegments(panel, context) {
    context.textAlign = "left";
    timelineNow().segments.forEach((segment, i) => {
      const x = panel.x(segment.begin), width = panel.x(segment.end) - x;
      context.fillStyle = i % 2 ? colours.grid : colours.panel;
      context.fillRect(x, 0, width, this.bandHeight);
      context.fillStyle = colours.line;
      context.fillRect(x, 0, 1, panel.plotHeight);
      const left = Math.max(x, panel.gutter), room = Math.min(x + width, panel.gutter + panel.plotWidth) - left - 10;
      context.fillStyle = colours.soft;
      if (room > 16)
        context.fillText(fitted(context, segment.name, room), left + 5, this.bandHeight / 2 + 1);
    });
  },

  drawCommands(panel, context) {
    const commands = timelineNow().commands, shades = {};
    for (const kind of [...kindNames, "other"])
      shades[kind] = shadesOf(kind);
    for (let i = 0; i < commands.name.length; ++i) {
      if (commands.begin[i] + commands.length[i] < state.t0 || commands.begin[i] > state.t1)
        continue;
      const kind = kindOf(i), box = this.box(panel, i), seam = box.width > 4 ? 0.6 : 0;
      context.fillStyle = shades[kind][shadeOf(commands.layer[i])];
      if (kind === "wait") { // a stream that stands still
        context.fillRect(box.x, box.y + box.height / 2 - 1, box.width, 2);
        continue;
      }
      context.fillRect(box.x, box.y, Math.max(box.width - seam, 0.75), box.height);
      const left = Math.max(box.x, panel.gutter), room = Math.min(box.x + box.width, panel.gutter + panel.plotWidth) - left;
      if (room < 30)
        continue;
      const name = plan.strings[commands.name[i]], layer = plan.strings[commands.layer[i]];
      context.fillStyle = inkOn(colours[kind]);
      context.textAlign = "left";
      context.fillText(fitted(context, layer ? `${name}  ${layer}` : name, room - 8), left + 4, box.y + box.height / 2 + 1);
    }
  },

  hit(panel, x, y) {
    const commands = timelineNow().commands, row = Math.floor((y - this.bandHeight) / this.rowHeight);
    let best = -1, nearest = 3.01;
    for (let i = 0; i < commands.name.length; ++i) {
      if (commands.stream[i] !== row)
        continue;
      const box = this.box(panel, i), distance = Math.max(box.x - x, x - box.x - box.width, 0);
      if (distance < nearest || (distance === 0 && nearest === 0 && commands.length[i] < commands.length[best]))
        best = i, nearest = distance;
    }
    return best;
  },

  bounds(panel, item) { return this.box(panel, item); },
  span: item => [timelineNow().commands.begin[item], timelineNow().commands.begin[item] + timelineNow().commands.length[item]],
  begin: item => timelineNow().commands.begin[item],
  end: item => timelineNow().commands.begin[item] + timelineNow().commands.length[item],

  /** Left and right on the stream; up and down to what runs nearest in time on the next one. */
  step(item, key) {
    const { commands, streams } = timelineNow(), all = [...commands.name.keys()];
    if (all.length === 0)
      return -1;
    if (item < 0)
      return 0;
    const rows = { ArrowUp: -1, ArrowDown: 1 }[key];
    if (rows) {
      const row = Math.min(Math.max(commands.stream[item] + rows, 0), streams.length - 1);
      const there = all.filter(i => commands.stream[i] === row), from = commands.begin[item];
      return there.reduce((best, i) => (Math.abs(commands.begin[i] - from) < Math.abs(commands.begin[best] - from) ? i : best),
        there.length ? there[0] : item);
    }
    const own = all.filter(i => commands.stream[i] === commands.stream[item]);
    own.sort((a, b) => commands.begin[a] - commands.begin[b] || a - b);
    const at = own.indexOf(item), next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: own.length - 1 }[key];
    return own[Math.min(Math.max(next, 0), own.length - 1)];
  },

  describe(item) {
    const { commands, streams } = timelineNow(), text = i => plan.strings[i], seconds = commands.length[item] / 1e9;
    const rows = [["kind", plan.strings[commands.kind[item]], kindOf(item)], ["stream", streams[commands.stream[item]]],
      ["time", `${formatTime(commands.length[item])}, from ${formatTime(commands.begin[item])}`]];
    if (text(commands.segment[item]))
      rows.push(["segment", text(commands.segment[item])]);
    const rate = (amount, unit) => (seconds > 0 ? `, ${formatCount(amount / seconds)}${unit}/s` : "");
    if (commands.flops[item] > 0)
      rows.push(["work", `${formatCount(commands.flops[item])}FLOP${rate(commands.flops[item], "FLOP")}`]);
    if (commands.bytes[item] > 0)
      rows.push(["moves", `${formatBytes(commands.bytes[item])}${rate(commands.bytes[item], "B")}`]);
    return { title: text(commands.name[item]), where: text(commands.layer[item]), rows };
  },
};
