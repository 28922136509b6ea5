// tables.js - heading, figures and tables: everything that is text.

const $ = id => document.getElementById(id);

/** An element with text, or with children. */
function make(tag, content, className) {
  const element = document.createElement(tag);
  if (Array.isArray(content))
    element.append(...content);
  else if (content !== undefined && content !== null)
    element.textContent = content;
  if (className)
    element.className = className;
  return element;
}

function swatch(name) {
  const element = make("span", "", "swatch");
  element.style.background = `var(--${name})`;
  return element;
}

/** A bar of `part` of `whole`, for the eye alone: the figure stands beside it. */
function bar(part, whole, colour) {
  if (!(part > 0))
    return "";
  const fill = make("span", "", "fill");
  fill.style.width = `${whole > 0 ? Math.max(0, Math.min(100, 100 * part / whole)) : 0}%`;
  fill.style.background = `var(--${colour})`;
  fill.setAttribute("aria-hidden", "true");
  return fill;
}

/** A table; `heads` are [title, class], cells are texts or nodes. */
function table(label, heads, rows) {
  const cell = (content, className) =>
    make("td", content instanceof Node ? [content] : Array.isArray(content) ? content : String(content), className);
  const head = make("tr", heads.map(([title, className]) => {
    const th = make("th", title, className === "number" ? className : "");
    th.scope = "col";
    return th;
  }));
  const body = rows.map(row => make("tr", row.map((content, i) => cell(content, heads[i][1]))));
  const result = make("table", [make("thead", [head]), make("tbody", body)]);
  result.setAttribute("aria-label", label);
  return result;
}

function fillHeader() {
  const report = plan.report, [dp, tp, pp, sp] = report.mesh;
  $("model").textContent = report.model || "Plan";
  const ranks = report.world === 1 ? "one rank" : `${formatExact(report.world)} ranks (dp ${dp}, tp ${tp}, pp ${pp}, sp ${sp})`;
  const basis = report.basis === "rules" ? "planned by rules" : "the plan of the program";
  $("subtitle").textContent = [report.target && `on ${report.target}`, ranks, basis].filter(Boolean).join(" \u00b7 ");
  const most = Math.max(0, ...report.ranks.map(rank => rank.peak));
  const verdict = $("verdict");
  if (report.limit <= 0)
    verdict.textContent = `Needs ${formatBytes(most)}; no limit is known`;
  else if (report.fits)
    verdict.textContent = `\u2713 Fits: ${formatBytes(most)} of ${formatBytes(report.limit)}`;
  else if (most > report.limit)
    verdict.textContent = `\u2717 Does not fit: ${formatBytes(most)} of ${formatBytes(report.limit)}, ${formatBytes(most - report.limit)} too much`;
  else
    verdict.textContent = "\u2717 Does not fit the hosts' memory or storage";
  if (report.limit > 0 || !report.fits)
    verdict.className = report.fits ? "fits" : "fails";
}

/** The figures of the whole plan and of the chosen ranks. */
function fillFigures() {
  const report = plan.report, rank = rankNow(), seconds = value => formatTime(value * 1e9);
  const step = report.step ?? (timelineNow() ? timelineNow().step || null : null);
  const figures = [["Peak of a device", formatBytes(rank.peak), `${formatExact(rank.peak)} bytes`]];
  const add = (name, value, spell) => value !== null && value > 0 && figures.push([name, spell(value)]);
  add("Limit", report.limit, formatBytes);
  add("Host", rank.host, formatBytes);
  add("NVMe", rank.nvme, formatBytes);
  add("Step", step, seconds);
  add("Computing", report.compute, seconds);
  add("Exposed exchange", report.exposed, seconds);
  add("TFLOP/s a device", report.tflops, value => trimmed(Number(value.toPrecision(3))));
  add("Tokens/s", report.tokens, formatCount);
  add("MFU", report.mfu, value => formatShare(value, 1));
  add("HFU", report.hfu, value => formatShare(value, 1));
  add("Parameters", report.parameters, formatCount);
  add("Active parameters", report.activeParameters, formatCount);
  add("FLOP a step", report.flops, formatCount);
  $("figures").replaceChildren(...figures.map(([name, value, exact]) => {
    const dd = make("dd", value);
    if (exact)
      dd.title = exact;
    return make("div", [make("dt", name), dd]);
  }));
  $("peak-label").textContent = formatBytes(rank.peak);
  $("peak-at").textContent = `at ${rank.peakAt}`;
}

/** A section shows only where it has something to show. */
function fillSection(id, content) {
  $(`${id}-section`).hidden = !content;
  if (content)
    $(id).replaceChildren(content);
}

function fillTables() {
  const rank = rankNow(), report = plan.report, number = "number";
  $("largest").replaceChildren(rank.largest.length === 0
    ? make("p", "The plan does not name single tensors.")
    : table("Ten largest tensors live at the peak",
      [["", number], ["Tensor", "text"], ["Layer", "text"], ["Category", "kind"], ["Size", number], ["Share", number]],
      rank.largest.map(([name, layer, bytes, category], i) => [i + 1, name, layer,
        [swatch(categories[category]), categories[category]], formatBytes(bytes), formatShare(bytes, rank.peak)])));
  const order = categories.map((name, i) => [name, rank.atPeak[i]]);
  $("parts").replaceChildren(table("Bytes at the peak by category",
    [["Category", "kind"], ["Size", number], ["Bytes", number], ["Share", number], ["", "bar"]],
    [...order.map(([name, bytes]) => [[swatch(name), name], formatBytes(bytes), formatExact(bytes),
      formatShare(bytes, rank.peak), bar(bytes, rank.peak, name)]),
    ["together", formatBytes(rank.peak), formatExact(rank.peak), "", ""]]));
  fillSection("changes", report.changes.length > 0 && table("Changes with which the plan would fit, the fastest step first",
    [["Change", "text"], ["Step", number], ["Peak of a device", number]],
    report.changes.map(([change, seconds, bytes]) =>
      [change, seconds === null ? "" : formatTime(seconds * 1e9), formatBytes(bytes)])));
  const sum = report.terms.reduce((total, term) => total + term[1], 0);
  fillSection("terms", report.terms.length > 0 && table("Parts of the step's time",
    [["Part", "kind"], ["Time", number], ["Share", number], ["", "bar"], ["From", "text"]],
    report.terms.map(([name, seconds, source]) => [name, formatTime(seconds * 1e9), formatShare(seconds, sum),
      bar(seconds, sum, "compute"), source])));
  const traffic = report.traffic.filter(([, bytes]) => bytes > 0), most = Math.max(...traffic.map(entry => entry[1]));
  fillSection("traffic", traffic.length > 0 && table("Bytes that each rank sends in a step",
    [["Collective", "text"], ["Sent", number], ["Bytes", number], ["", "bar"]],
    traffic.map(([kind, bytes]) => [kind, formatBytes(bytes), formatExact(bytes), bar(bytes, most, "collective")])));
  const widest = Math.max(...rank.byLayer.map(entry => entry[1]));
  fillSection("layers", rank.byLayer.length > 0 && table("Bytes live at the peak by layer",
    [["Layer", "text"], ["Size", number], ["", "bar"]],
    rank.byLayer.map(([layer, bytes]) => [layer || "(no layer)", formatBytes(bytes), bar(bytes, widest, "activations")])));
  const inArena = rank.memory.filter(([, where, , , isBeyond]) => where === "device" && !isBeyond);
  const outside = rank.memory.filter(line => !inArena.includes(line));
  const part = ([name, where, bytes, source]) => [name, where, formatBytes(bytes), formatExact(bytes), source];
  fillSection("memory-parts", rank.memory.length > 0 && table("What takes memory",
    [["Part", "text"], ["Where", "text"], ["Size", number], ["Bytes", number], ["From", "text"]],
    [...inArena.map(part), ["together", "device", formatBytes(rank.peak), formatExact(rank.peak), "the peak"], ...outside.map(part)]));
  const notes = [...(report.clusterReason ? [`cluster ${report.cluster}: ${report.clusterReason}`] : []), ...(report.programTargetReason ? [`target ${report.programTarget}: ${report.programTargetReason}`] : []), ...(report.basisReason ? [`basis ${report.basis}: ${report.basisReason}`] : []), ...report.notes, ...(timelineNow() ? timelineNow().notes : [])];
  $("notes-section").hidden = notes.length === 0;
  $("notes").replaceChildren(...notes.map(note => make("li", note)));
}

/** The pictures in words: the curve at some forty moments with the peak, and what each stream does. */
function fillAlternative() {
  const { curve, commands, streams, length } = timelineNow(), every = Math.max(1, Math.ceil(curve.count / 40));
  const total = i => curve.bytes.reduce((sum, bytes) => sum + bytes[i], 0);
  const points = [...curve.time.keys()], peak = points.reduce((best, i) => (total(i) > total(best) ? i : best), 0);
  const rows = points.filter(i => i % every === 0 || i === peak || i === curve.count - 1);
  $("curve-table").replaceChildren(table("Memory over the step",
    [["Time", "number"], ["Total", "number"], ...categories.map(name => [name, "number"])],
    rows.map(i => [formatTime(curve.time[i]) + (i === peak ? " (peak)" : ""), formatBytes(total(i)),
      ...curve.bytes.map(bytes => formatBytes(bytes[i]))])));
  const sums = streams.map(() => ({ count: 0, busy: 0, kinds: new Map() }));
  for (let i = 0; i < commands.name.length; ++i) {
    const sum = sums[commands.stream[i]], kind = plan.strings[commands.kind[i]];
    if (!sum || kind === "wait")
      continue;
    ++sum.count;
    sum.busy += commands.length[i];
    sum.kinds.set(kind, (sum.kinds.get(kind) || 0) + commands.length[i]);
  }
  $("stream-table").replaceChildren(table("Streams",
    [["Stream", "text"], ["Commands", "number"], ["Busy", "number"], ["Share", "number"], ["Kinds", "text"]],
    streams.map((name, i) => [name, sums[i].count, formatTime(sums[i].busy), formatShare(sums[i].busy, length),
      [...sums[i].kinds].map(([kind, time]) => `${kind} ${formatTime(time)}`).join(", ")])));
}
