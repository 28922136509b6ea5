// memory.js - bytes by category over the step, with the limit and the peak.

const memoryPainter = {
  height: () => (window.innerWidth < 700 ? 200 : 250),

  /** The top of the axis, and whether the limit is below it. */
  scale() {
    const curve = timelineNow().curve, limit = plan.report.limit;
    let most = 1;
    for (let i = 0; i < curve.count; ++i)
      most = Math.max(most, this.total(i));
    const showsLimit = limit > 0 && state.hidden.size === 0 && limit <= 1.8 * most;
    // Above the curve there is room for what is written there.
    return { top: Math.max(most * 1.16, showsLimit ? limit * 1.09 : 0), most, showsLimit };
  },

  /** Visible bytes at point i. */
  total(i) {
    const curve = timelineNow().curve;
    let sum = 0;
    for (let c = 0; c < categories.length; ++c)
      if (!state.hidden.has(c))
        sum += curve.bytes[c][i];
    return sum;
  },

  /** For each pixel the point that stands highest within it, or -1 beyond the end. */
  columns(panel) {
    const curve = timelineNow().curve, width = Math.ceil(panel.plotWidth), result = new Int32Array(width).fill(-1);
    let next = 0, live = -1;
    while (next < curve.count && curve.time[next] <= state.t0)
      live = next++;
    for (let x = 0; x < width; ++x) {
      const end = state.t0 + (x + 1) * panel.grain;
      let highest = live;
      for (; next < curve.count && curve.time[next] < end; live = next++)
        if (highest < 0 || this.total(next) > this.total(highest))
          highest = next;
      result[x] = end - panel.grain > timelineNow().length ? -1 : highest;
    }
    return result;
  },

  draw(panel) {
    const { top, most, showsLimit } = this.scale(), y = bytes => panel.plotHeight * (1 - bytes / top);
    const step = niceBytes(top, 5);
    for (let bytes = 0; bytes <= top; bytes += step)
      panel.tick(y(bytes), formatBytes(bytes).replace(".0 ", " "));
    panel.clipped(context => {
      this.drawStacks(panel, context, y);
      this.drawLimit(panel, context, y, showsLimit, most);
      this.drawPeak(panel, context, y);
    });
  },

  /** The highest stack first, each down to nothing: what is below covers it, so that no seam shows, on paper either. */
  drawStacks(panel, context, y) {
    const curve = timelineNow().curve, columns = this.columns(panel), tops = [], live = new Float64Array(columns.length);
    for (let c = 0; c < categories.length; ++c) {
      if (!state.hidden.has(c))
        columns.forEach((point, x) => { live[x] += point < 0 ? 0 : curve.bytes[c][point]; });
      tops.push(Float64Array.from(live));
    }
    for (let c = categories.length; c-- > 0;) {
      if (state.hidden.has(c) || !curve.bytes[c].some(bytes => bytes > 0))
        continue;
      context.fillStyle = colours[categories[c]];
      context.beginPath();
      context.moveTo(panel.gutter, y(0));
      tops[c].forEach((bytes, x) => {
        context.lineTo(panel.gutter + x, y(bytes));
        context.lineTo(panel.gutter + x + 1, y(bytes));
      });
      context.lineTo(panel.gutter + columns.length, y(0));
      context.fill();
    }
  },

  drawLimit(panel, context, y, showsLimit, most) {
    const limit = plan.report.limit;
    if (limit <= 0 || state.hidden.size > 0)
      return;
    const at = showsLimit ? Math.round(y(limit)) + 0.5 : 4.5;
    context.strokeStyle = context.fillStyle = colours.limit;
    if (most > limit) {
      context.globalAlpha = 0.16;
      context.fillRect(panel.gutter, 0, panel.plotWidth, at);
      context.globalAlpha = 1;
    }
    context.beginPath();
    context.moveTo(panel.gutter, at);
    context.lineTo(panel.gutter + panel.plotWidth, at);
    if (most > limit) { // on the areas it needs a ground
      context.strokeStyle = colours.page;
      context.lineWidth = 4;
      context.stroke();
      context.strokeStyle = colours.limit;
    }
    context.lineWidth = 1.5;
    context.setLineDash(showsLimit ? [] : [2, 4]);
    context.stroke();
    context.setLineDash([]);
    context.lineWidth = 1;
    const label = `limit ${formatBytes(limit)}${showsLimit ? "" : " (\u2191 far above)"}`;
    this.label(panel, context, label, panel.gutter + panel.plotWidth - 6, showsLimit && at > 22 ? at - 10 : at + 12,
      "right", colours.limit);
  },

  drawPeak(panel, context, y) {
    panel.markPeak(context);
    const timeline = timelineNow(), x = panel.x(timeline.peakTime);
    if (state.hidden.size > 0)
      return;
    const at = y(timeline.peak), right = x > panel.gutter + panel.plotWidth * 0.6;
    context.fillStyle = colours.ink;
    context.beginPath();
    context.arc(x, at, 3.5, 0, 2 * Math.PI);
    context.fill();
    this.label(panel, context, `peak ${formatBytes(timeline.peak)}`, x + (right ? -9 : 9), at > 20 ? at - 11 : at + 12,
      right ? "right" : "left", colours.ink);
  },

  /** Text on a ground of its own, for it stands on the areas. */
  label(panel, context, text, x, y, align, colour) {
    const width = context.measureText(text).width;
    context.fillStyle = colours.page;
    context.globalAlpha = 0.85;
    context.fillRect((align === "right" ? x - width : x) - 4, y - 8, width + 8, 16);
    context.globalAlpha = 1;
    context.fillStyle = colour;
    context.textAlign = align;
    context.textBaseline = "middle";
    context.fillText(text, x, y);
  },

  /** The point that the column under x shows. */
  hit(panel, x) {
    const column = Math.floor(x - panel.gutter), columns = this.columns(panel);
    return column >= 0 && column < columns.length && columns[column] >= 0 ? columns[column] : -1;
  },

  bounds(panel, item) {
    const curve = timelineNow().curve, { top } = this.scale();
    const y = panel.plotHeight * (1 - this.total(item) / top);
    return { x: panel.x(curve.time[item]) - 2, y: y - 2, width: 4, height: 4 };
  },

  span: () => null,
  begin: item => timelineNow().curve.time[item],
  end: item => timelineNow().curve.time[Math.min(item + 1, timelineNow().curve.count - 1)],

  step(item, key) {
    const count = timelineNow().curve.count;
    const next = { ArrowRight: item + 1, ArrowLeft: item - 1, Home: 0, End: count - 1 }[key];
    return next === undefined || item < 0 ? Math.max(item, 0) : Math.min(Math.max(next, 0), count - 1);
  },

  describe(item) {
    const curve = timelineNow().curve, rows = [];
    for (let c = categories.length - 1; c >= 0; --c)
      if (curve.bytes[c][item] > 0)
        rows.push([categories[c], formatBytes(curve.bytes[c][item]), categories[c]]);
    let total = 0;
    for (const bytes of curve.bytes)
      total += bytes[item];
    return { title: formatBytes(total), where: `live at ${formatTime(curve.time[item])}`, rows };
  },
};
