// SPDX-License-Identifier: Apache-2.0
/** What the colours mean: for each way of colouring, a class for every node and a legend. */

import { SHAPES } from "../core/machine.js";
import { KEY } from "./sprites.js";
import { rampColour } from "./theme.js";

const BINS = 32;
const MOST_CLASSES = 4000;
const HATCHES = 4;

/**
 * The ways to colour that apply now, for the menu.
 * @returns {Array<{id: string, title: string}>}
 */
export function waysToColour(machine) {
  const ways = [{ id: "state", title: "role and state" }, { id: "job", title: "job" }];
  if (machine.answer.show_users) ways.push({ id: "user", title: "user" });
  for (const level of machine.levels.slice(0, -1)) ways.push({ id: `level:${level}`, title: level });
  ways.push({ id: "rank", title: "rank of the mark's job" });
  ways.push({ id: "hops", title: "hops from the focus node" });
  ways.push({ id: "load", title: "predicted link load" });
  return ways;
}

/**
 * Work out classes and codes.
 * @param {string} way an id of waysToColour
 * @param {Object} now `machine`, `snapshot`, `theme`, `hops`, `ranks`, `load`
 * @returns {{classes: Array, codes: Uint16Array, ramp: Object|null, note: string}}
 */
export function coloured(way, now) {
  if (way === "job") return byJob(now, (job) => job.id, (job) => `${job.id} ${job.name}${job.mine ? " (yours)" : ""}`);
  if (way === "user") return byJob(now, (job) => job.user ?? "", (job) => job.user ?? "unknown user");
  if (way.startsWith("level:")) return byLevel(now, way.slice(6));
  if (way === "rank") return byRank(now);
  if (way === "hops") return byHops(now);
  if (way === "load") return byLoad(now);
  return byState(now);
}

/** A class for each shape; nodes that are down or not usable have one for each word as well. */
function byState({ machine, snapshot, theme }) {
  const index = new Map();
  const classes = [];
  const codes = new Uint16Array(machine.count);
  for (let row = 0; row < machine.count; row++) {
    const slot = `${snapshot.shape[row]} ${snapshot.word(row)}`;
    if (!index.has(slot)) index.set(slot, stateClass(classes, snapshot.shape[row], snapshot.word(row), theme));
    codes[row] = index.get(slot);
  }
  for (const each of classes) each.label = snapshot.answer.assumed && SHAPES[each.shape] === "idle" ? "free or not: not known" : stateLabel(each);
  return sortedByCount(classes, codes, (each) => each.shape);
}

/** Index of the class that a shape and word belong to; made where there is none. */
function stateClass(classes, shape, word, theme) {
  const kind = SHAPES[shape];
  const apart = kind === "down" || kind === "other";
  const id = apart ? `${kind}-${word}` : kind;
  const known = classes.findIndex((each) => each.id === id);
  if (known >= 0) {
    classes[known].words.push(word);
    return known;
  }
  const alike = classes.filter((each) => each.shape === shape).length;
  return classes.push({ id, words: [word], colour: theme[kind], hatch: alike % HATCHES, shape, count: 0 }) - 1;
}

function stateLabel({ shape, words }) {
  const kind = SHAPES[shape];
  const said = { idle: "free", allocated: "in use", other: "not usable" }[kind] ?? kind;
  const others = [...new Set(words)].filter((word) => word !== said);
  return others.length ? `${said} (${others.join(", ")})` : said;
}

/** Which colour each job has had so far: it keeps it while others come and go. */
const places = new Map();

function byJob({ machine, snapshot, theme, markHues = [] }, keyOf, labelOf) {
  const sums = new Map();
  for (const job of snapshot.jobs) {
    const known = sums.get(keyOf(job)) || { id: keyOf(job), label: labelOf(job), count: 0, mine: false };
    known.mine ||= Boolean(job.mine);
    known.count += job.list.length;
    sums.set(known.id, known);
  }
  const order = [...sums.values()].sort((a, b) => b.mine - a.mine || b.count - a.count).slice(0, MOST_CLASSES - 1);
  for (const { id } of order) if (!places.has(id)) places.set(id, places.size);
  const hues = theme.hues.filter((_, i) => !markHues.includes(i)); // a mark's frame is told from every job
  const look = hues.length ? { ...theme, hues } : theme;
  const classes = order.map((each) => ({ ...each, ...distinct(look, places.get(each.id)), count: 0, shape: 2 }));
  const none = { id: "none", label: "no job", colour: theme.vacant, hatch: 0, shape: 1, count: 0 };
  const index = new Map(classes.map((each, i) => [each.id, i]));
  const codes = new Uint16Array(machine.count).fill(classes.length);
  for (let row = 0; row < machine.count; row++) {
    const job = snapshot.job(row);
    if (job) codes[row] = index.get(keyOf(job)) ?? classes.length;
  }
  return counted([...classes, none], codes, null, snapshot.jobs.length ? "" : "no jobs are known");
}

/** Hue first, then hatching: what lies near in the list looks least alike. */
export function distinct(theme, i) {
  return { colour: theme.hues[i % theme.hues.length], hatch: Math.floor(i / theme.hues.length) % HATCHES };
}

function byLevel({ machine, theme }, level) {
  const values = machine.coords[Math.max(machine.levels.indexOf(level), 0)];
  const present = [...new Set(values)].sort((a, b) => a - b);
  const index = new Map(present.map((value, i) => [value, i]));
  const axis = present.length > 8 && machine.answer.kind === "torus";
  const classes = present.map((value, i) => ({
    id: String(value),
    label: `${level} ${value}`,
    ...(axis ? { colour: rampColour(theme.ramps.rank, i / (present.length - 1)), hatch: 0 } : distinct(theme, i)),
    shape: 2,
    count: 0,
  }));
  return counted(classes, Uint16Array.from(values, (value) => index.get(value)), null, "");
}

function byRank({ machine, theme, ranks }) {
  if (!ranks) return nothing(machine, theme, "mark a job's nodes to see its ranks");
  const value = new Float64Array(machine.count).fill(-1);
  const first = new Float64Array(machine.count).fill(Infinity);
  ranks.node_rows.forEach((row, rank) => {
    first[row] = Math.min(first[row], rank);
  });
  for (let row = 0; row < machine.count; row++) if (first[row] < Infinity) value[row] = first[row];
  return onRamp(machine, theme, value, theme.ramps.rank, { low: "rank 0", high: `rank ${ranks.ranks - 1}`, none: "no rank" });
}

function byHops({ machine, theme, hops }) {
  if (!hops) return nothing(machine, theme, "put the focus on a node to count hops from it");
  const whole = hops.hops.map(Math.round);
  const most = Math.max(...new Set(whole), 1);
  const classes = [];
  for (let far = 0; far <= most; far++) {
    const colour = rampColour(theme.ramps.rank, 1 - far / most);
    classes.push({ id: `${far}`, label: far === 1 ? "1 hop" : `${far} hops`, colour, hatch: 0, shape: 2, count: 0 });
  }
  classes.push({ id: "none", label: "unreachable", colour: theme.vacant, hatch: 0, shape: 1, count: 0 });
  const codes = Uint16Array.from(whole, (far) => (far < 0 ? classes.length - 1 : far));
  return counted(classes, codes, null, `hops from ${machine.called(hops.from)}, by the shortest way`);
}

function byLoad({ machine, theme, load }) {
  if (!load) return nothing(machine, theme, "mark a job's nodes to predict its load");
  const share = new Map(load.row.map((router, i) => [router, load.share[i]]));
  const value = Float64Array.from(machine.router, (router) => share.get(router) ?? -1);
  return onRamp(machine, theme, value, theme.ramps.load, { low: "0", high: "the busiest link", none: "no load", top: 1 });
}

/** Classes for numbers: equal steps of a ramp, and one for nodes without a number (-1). */
function onRamp(machine, theme, value, stops, { low, high, none, top = 0 }) {
  const most = top || Math.max(value.reduce((a, b) => Math.max(a, b), 0), 1);
  const classes = [];
  for (let bin = 0; bin < BINS; bin++) {
    classes.push({ id: `${bin}`, label: "", colour: rampColour(stops, bin / (BINS - 1)), hatch: 0, shape: 2, count: 0 });
  }
  classes.push({ id: "none", label: none, colour: theme.vacant, hatch: 0, shape: 1, count: 0 });
  const codes = Uint16Array.from(value, (each) => (each < 0 ? BINS : Math.min(Math.floor((each / most) * BINS), BINS - 1)));
  return counted(classes, codes, { stops, low, high }, "");
}

function nothing(machine, theme, note) {
  const one = { id: "none", label: "all nodes", colour: theme.idle, hatch: 0, shape: 1, count: 0 };
  return counted([one], new Uint16Array(machine.count), null, note);
}

function counted(classes, codes, ramp, note) {
  for (let row = 0; row < codes.length; row++) classes[codes[row]].count++;
  return { classes, codes, ramp, note };
}

function sortedByCount(classes, codes, keyOf) {
  const order = classes.map((_, i) => i).sort((a, b) => keyOf(classes[a]) - keyOf(classes[b]));
  const place = new Uint16Array(classes.length);
  order.forEach((old, i) => {
    place[old] = i;
  });
  return counted(order.map((i) => classes[i]), codes.map((code) => place[code]), null, "");
}

/**
 * The key of every node: class, shape (of the class where the node is free or in use), mark and whether it steps back behind the marked ones.
 * @param {Object} colours answer of coloured()
 * @param {Uint8Array} shape of a Snapshot
 * @param {Uint8Array|null} markOf number of a node's mark, 0 for none; null where nothing is marked
 * @param {Set<string>} hidden ids of classes that the legend has switched off
 */
export function keysOf(colours, shape, markOf, hidden) {
  const off = colours.classes.map((each) => hidden.has(each.id));
  const own = colours.classes.map((each) => each.shape);
  const { codes } = colours;
  const keys = new Uint32Array(codes.length);
  for (let row = 0; row < keys.length; row++) {
    const mark = markOf ? markOf[row] : 0;
    const away = off[codes[row]] && !mark;
    const plain = shape[row] === 1 || shape[row] === 2 ? own[codes[row]] : shape[row];
    const kind = away ? 6 : plain;
    const faded = markOf && !mark ? 1 : 0;
    keys[row] = codes[row] | (kind << KEY.shape) | (mark << KEY.mark) | (faded << KEY.faded);
  }
  return keys;
}
