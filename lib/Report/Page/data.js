"use strict";
// data.js - the plan as objects, and how its figures are spelt.

const plan = JSON.parse(document.getElementById("plan-data").textContent);
const categories = plan.categories;

/** "812.4 MiB", as ds-opt spells it: halves go to the even digit. */
function formatBytes(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let unit = 0, value = bytes;
  for (; (Math.abs(value) >= 1023.95 || (unit === 0 && Math.abs(bytes) >= 1024)) && unit < 6; ++unit)
    value /= 1024;
  if (unit === 0)
    return `${bytes} B`;
  const tenths = value * 10, down = Math.floor(tenths);
  const rounded = tenths - down === 0.5 ? down + (down % 2) : Math.round(tenths);
  return `${(rounded / 10).toFixed(1)} ${units[unit]}`;
}

const formatExact = number => Math.round(number).toString().replace(/\B(?=(\d{3})+$)/g, ",");

/** The unit of times about as long as `ns`, and its nanoseconds. */
const timeUnit = ns => (ns >= 1e9 ? ["s", 1e9] : ns >= 1e6 ? ["ms", 1e6] : ns >= 1e3 ? ["\u00b5s", 1e3] : ["ns", 1]);

/** Nanoseconds with four digits. */
function formatTime(ns) {
  const [unit, per] = timeUnit(Math.abs(ns));
  return `${trimmed(ns / per)} ${unit}`;
}

/** A place on an axis that ends at `most`, with as many digits as tell it from one `step` away. */
function formatTick(ns, most, step) {
  const [unit, per] = timeUnit(most);
  return `${(ns / per).toFixed(Math.min(Math.max(Math.ceil(-Math.log10(step / per) - 1e-9), 0), 9))} ${unit}`;
}

/** Four digits, none after them that says nothing. */
function trimmed(value) {
  if (value === 0)
    return "0";
  const text = Math.abs(value) >= 1000 ? Math.round(value).toString() : value.toPrecision(4);
  return text.includes(".") && !text.includes("e") ? text.replace(/\.?0+$/, "") : text;
}

/** 1.2 G: counts in powers of 1000. */
function formatCount(value) {
  const units = ["", " k", " M", " G", " T", " P", " E", " Z"];
  let unit = 0;
  for (; value >= 999.95 && unit < units.length - 1; ++unit)
    value /= 1000;
  return (unit === 0 ? trimmed(value) : value.toFixed(1)) + units[unit];
}

const formatShare = (part, whole) => (whole > 0 ? `${(100 * part / whole).toFixed(1)} %` : "");

const numbers = columns =>
  Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, Float64Array.from(column)]));

/** The segments in the order of time: runs of commands of the first stream that belong together. */
function segmentsOf(commands) {
  const runs = [];
  for (let i = 0; i < commands.name.length; ++i) {
    const name = plan.strings[commands.segment[i]], end = commands.begin[i] + commands.length[i];
    const last = runs[runs.length - 1];
    if (name === "" || commands.stream[i] !== 0)
      continue;
    if (last && last.name === name)
      last.end = Math.max(last.end, end), last.begin = Math.min(last.begin, commands.begin[i]);
    else
      runs.push({ name, begin: commands.begin[i], end });
  }
  return runs;
}

/** One timeline: columns as arrays of numbers, the curve by category, and what follows from them. */
function readTimeline(raw) {
  const commands = numbers(raw.commands), buffers = numbers(raw.buffers);
  const count = raw.curve.length / (categories.length + 1);
  const curve = { time: new Float64Array(count), bytes: categories.map(() => new Float64Array(count)), count };
  for (let i = 0, at = 0; i < count; ++i) {
    curve.time[i] = raw.curve[at++];
    for (let c = 0; c < categories.length; ++c)
      curve.bytes[c][i] = raw.curve[at++];
  }
  const spaces = [...new Set(raw.buffers.space)].map(id => plan.strings[id]);
  return { ...raw, commands, buffers, curve, spaces, length: Math.max(1, raw.length), segments: segmentsOf(commands) };
}

const timelines = plan.timelines.map(readTimeline);

/** Whom an entry of the ranks stands for. */
function spellRanks(rank) {
  const who = rank.first === rank.last ? `Rank ${rank.first}` : `Ranks ${rank.first}\u2013${rank.last}`;
  return plan.report.mesh[2] > 1 ? `${who}, stage ${rank.stage}` : who;
}

// What is shown: [t0, t1] of the step, [low, high] of the arena's height. `marked` is the thing that the pointer or
// the keys are on.
const state = { rank: 0, t0: 0, t1: 1, low: 0, high: 1, hidden: new Set(), space: "device", marked: null, time: null };
const rankNow = () => plan.report.ranks[state.rank];
const timelineNow = () => timelines[state.rank];
