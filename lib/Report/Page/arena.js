// arena.js - buffers as rectangles: when they live, and where.

const arenaPainter = {
  height: () => (window.innerWidth < 700 ? 260 : 340),

  /** Whether buffer i is in the arena that is shown, has a place there, and its category is not hidden. */
  visible(i) {
    const buffers = timelineNow().buffers;
    return plan.strings[buffers.space[i]] === state.space && buffers.offset[i] >= 0 && !state.hidden.has(buffers.category[i]);
  },

  /** The offsets that the window shows. */
  range() {
    const [low, high] = this.wholeRange();
    return [low + state.low * (high - low), low + state.high * (high - low)];
  },

  /** The offsets from the lowest to the highest that there are: all of the arena when nothing is hidden. */
  wholeRange() {
    const { buffers, arena } = timelineNow();
    let low = Infinity, high = 0;
    for (let i = 0; i < buffers.offset.length; ++i)
      if (this.visible(i)) {
        low = Math.min(low, buffers.offset[i]);
        high = Math.max(high, buffers.offset[i] + buffers.bytes[i]);
      }
    if (state.hidden.size === 0)
      return [0, Math.max(state.space === "device" ? arena : 0, high, 1)];
    return low < high ? [low, high] : [0, 1];
  },

  y(panel, offset, range) { return panel.plotHeight * (1 - (offset - range[0]) / (range[1] - range[0])); },

  box(panel, i, range) {
    const buffers = timelineNow().buffers, x = panel.x(buffers.begin[i]);
    const top = this.y(panel, buffers.offset[i] + buffers.bytes[i], range);
    return { x, y: top, width: panel.x(buffers.end[i]) - x, height: this.y(panel, buffers.offset[i], range) - top };
  },

  draw(panel) {
    const range = this.range(), step = niceBytes(range[1] - range[0], 6);
    for (let offset = Math.ceil(range[0] / step) * step; offset <= range[1]; offset += step)
      panel.tick(this.y(panel, offset, range), formatBytes(offset).replace(".0 ", " "));
    panel.clipped(context => {
      const shades = categories.map(shadesOf), buffers = timelineNow().buffers;
      for (let i = 0; i < buffers.name.length; ++i) {
        if (!this.visible(i) || buffers.end[i] < state.t0 || buffers.begin[i] > state.t1 || buffers.offset[i] > range[1])
          continue;
        const box = this.box(panel, i, range), seam = box.width > 4 && box.height > 4 ? 0.6 : 0;
        context.fillStyle = shades[buffers.category[i]][shadeOf(buffers.layer[i])];
        context.fillRect(box.x, box.y, Math.max(box.width - seam, 0.75), Math.max(box.height - seam, 0.75));
        this.drawName(panel, context, i, box);
      }
      panel.markPeak(context);
    });
  },

  /** The name, where there is room; of what is longer than the window, at its left side. */
  drawName(panel, context, i, box) {
    const left = Math.max(box.x, panel.gutter), right = Math.min(box.x + box.width, panel.gutter + panel.plotWidth);
    const top = Math.max(box.y, 0), bottom = Math.min(box.y + box.height, panel.plotHeight);
    if (right - left < 44 || bottom - top < 13)
      return;
    const buffers = timelineNow().buffers, layer = plan.strings[buffers.layer[i]], name = plan.strings[buffers.name[i]];
    context.fillStyle = inkOn(colours[categories[buffers.category[i]]]);
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillText(fitted(context, layer ? `${name}  ${layer}` : name, right - left - 8), left + 4, (top + bottom) / 2);
  },

  /** The buffer at a place; else the nearest within three pixels. */
  hit(panel, x, y) {
    const range = this.range();
    let best = -1, nearest = 3.01;
    for (let i = 0; i < timelineNow().buffers.name.length; ++i) {
      if (!this.visible(i))
        continue;
      const box = this.box(panel, i, range);
      const aside = Math.max(box.x - x, x - box.x - box.width, 0), above = Math.max(box.y - y, y - box.y - box.height, 0);
      const distance = Math.max(aside, above);
      if (distance < nearest)
        best = i, nearest = distance;
      if (nearest === 0)
        break;
    }
    return best;
  },

  bounds(panel, item) { return this.box(panel, item, this.range()); },
  span: item => [timelineNow().buffers.begin[item], timelineNow().buffers.end[item]],
  begin: item => timelineNow().buffers.begin[item],
  end: item => timelineNow().buffers.end[item],

  /** Left and right in the order of time; up and down among those that live at the same moment. */
  step(item, key) {
    const buffers = timelineNow().buffers, shown = [];
    for (let i = 0; i < buffers.name.length; ++i)
      if (this.visible(i))
        shown.push(i);
    const upwards = key === "ArrowUp" || key === "ArrowDown";
    const moment = item < 0 ? 0 : Math.max(buffers.begin[item], state.t0);
    const list = upwards && item >= 0 ? shown.filter(i => buffers.begin[i] <= moment && moment < buffers.end[i]) : shown;
    list.sort((a, b) => (upwards ? buffers.offset[a] - buffers.offset[b] : buffers.begin[a] - buffers.begin[b] || a - b));
    const at = list.indexOf(item), last = list.length - 1;
    const next = { ArrowRight: at + 1, ArrowUp: at + 1, ArrowLeft: at - 1, ArrowDown: at - 1, Home: 0, End: last }[key];
    return last < 0 ? -1 : list[Math.min(Math.max(next, 0), last)];
  },

  describe(item) {
    const { buffers, commands, length } = timelineNow(), text = i => plan.strings[i];
    const command = i => (i < commands.name.length ? [text(commands.name[i]), text(commands.layer[i])].filter(Boolean).join(" ") : "");
    const forGood = buffers.begin[item] === 0 && buffers.end[item] >= length;
    const rows = [["category", categories[buffers.category[item]], categories[buffers.category[item]]],
      ["size", `${formatBytes(buffers.bytes[item])} (${formatExact(buffers.bytes[item])} bytes)`],
      ["offset", formatExact(buffers.offset[item])]];
    if (buffers.type[item] !== undefined && text(buffers.type[item]))
      rows.push(["type", text(buffers.type[item])]);
    rows.push(["lives", forGood ? "the whole step" : `${formatTime(buffers.begin[item])} to ${formatTime(buffers.end[item])}`]);
    if (!forGood && command(buffers.from[item]))
      rows.push(["from", command(buffers.from[item])], ["to", command(buffers.to[item])]);
    return { title: text(buffers.name[item]), where: text(buffers.layer[item]), rows };
  },
};
