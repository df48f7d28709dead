// SPDX-License-Identifier: Apache-2.0
/** The figures at the top: of the machine and its jobs, or of the mark; each with its conditions. */

import { rounded, spokenBytes, spokenRange, spokenSeconds } from "../core/figures.js";
import { counted, grouped, unitName } from "../core/words.js";
import { copyText } from "../ui/clipboard.js";
import { byId, el, renew } from "../ui/dom.js";

/** The figures of a mark, which stand there while they are awaited: the map keeps its size. */
const AWAITED = ["Spread", "Time", "Speed"];

/** Own jobs with a button each, and units with free nodes that have a bar. */
const [MOST_OWN, MOST_FRAGMENTS] = [4, 48];

/** Keep the figures true; the sentence, which says the same, stays for screen readers and to be copied. */
export function figureBar(app) {
  app.store.on(["marks", "describe", "snapshot", "tab", "comparison", "pattern", "ppn", "bytes"], () => show(app));
  show(app);
}

function show(app) {
  const mark = app.marks.current;
  const plans = app.store.get("tab") === "plans" && app.store.get("comparison");
  const figures = plans ? [] : mark?.rows.length ? figuresOfMark(app, mark) : figuresOfJobs(app);
  byId("figures").hidden = !figures.length;
  byId("sentence").classList.toggle("unseen", figures.length > 0);
  const copy = el("button", { type: "button", class: "plain", text: "Copy sentence", on: { click: () => copyText(byId("sentence").textContent, "Sentence") } });
  renew(byId("figures"), ...figures, figures.length ? copy : null);
}

/** A figure: what it is, itself, and what it holds for. */
function figure(name, value, ...conditions) {
  return el("div", { class: "figure" }, el("span", { class: "soft", text: name }), el("strong", { class: "num", text: value }), ...conditions.map((each) => (typeof each === "string" ? el("span", { class: "soft", text: each }) : each)));
}

// --- the mark -------------------------------------------------------------------------

function figuresOfMark(app, mark) {
  const found = app.store.get("describe");
  if (!found && app.served) return AWAITED.map((name) => figure(name, "…", "predicting"));
  const { prediction, default: usual, timeless } = found ?? {};
  if (!prediction || !usual) return [];
  const time = timeless ? figure("Time", "not known", timeless) : figure("Time", spokenRange(prediction.between), `likely ${spokenSeconds(prediction.time_s)}; ${jobWords(prediction)}`, timeBars(prediction, usual));
  return [spreadFigure(app, mark, found), time, ...(timeless ? [] : [gainFigure(app, mark, usual)])];
}

function jobWords({ pattern, ppn, bytes, routing }) {
  return `${pattern} of ${spokenBytes(bytes)}, ${counted(ppn, "rank")} per node; routing ${routing}`;
}

function spreadFigure(app, mark, { touches, default: usual }) {
  const [level, number] = Object.entries(touches)[0] ?? ["node", mark.rows.length];
  const least = fewest(app.machine, mark.rows.length);
  const others = usual.touches[level];
  const conditions = [least && app.machine.levels[0] === level ? `the fewest possible: ${least}` : "", `${usual.words}: ${others}`].filter(Boolean);
  return figure(`Spread of ${counted(mark.rows.length, "node")}`, counted(number, level), conditions.join("; "));
}

/** The fewest outermost units that have so many compute nodes. */
export function fewest({ coords, service, count }, nodes) {
  const sizes = new Map();
  for (let row = 0; row < count; row++) if (!service[row]) sizes.set(coords[0][row], (sizes.get(coords[0][row]) ?? 0) + 1);
  let left = nodes;
  const needed = [...sizes.values()].sort((a, b) => b - a).findIndex((size) => (left -= size) <= 0);
  return needed + 1;
}

/** The mark's time and that of the scheduler's own choice, on one scale, with their ranges. */
function timeBars(prediction, usual) {
  const most = Math.max(prediction.between.high, usual.between.high) || 1;
  const share = (value) => `${(100 * value) / most}%`;
  const bar = (name, likely, { low, high }) => {
    const fill = el("span", { class: "bar-fill" });
    fill.style.width = share(likely);
    const whisker = el("span", { class: "whisker" });
    Object.assign(whisker.style, { left: share(low), width: share(high - low) });
    return [el("span", { class: "soft", text: name }), el("span", { class: "bar-frame" }, fill, whisker), el("span", { class: "soft num", text: spokenRange({ low, high }) })];
  };
  return el("span", { class: "time-bars", "aria-hidden": "true" }, ...bar("here", prediction.time_s, prediction.between), ...bar("scheduler's", usual.time_s, usual.between));
}

function gainFigure(app, mark, { gain, words }) {
  const find = el("button", { type: "button", text: "Find a better placement", on: { click: () => app.plans?.findFor(mark) } });
  const [low, high] = [gain.low, gain.high].map((value) => (value === null ? "any" : rounded(value)));
  const times = low === high ? (low === "1" ? "" : `${low} times `) : `${low} to ${high} times `;
  const unsure = gain.unknowns[0]?.question;
  return figure("Speed", `${times}as fast`, `as ${words}${unsure ? `; least known: ${unsure}` : ""}`, ...(app.plans ? [find] : []));
}

// --- the machine and its jobs ---------------------------------------------------------

function figuresOfJobs(app) {
  const { snapshot, machine } = app;
  if (!snapshot.jobs.length) return [];
  const [outer] = machine.levels;
  const spans = snapshot.jobs.map((job) => ({ job, units: new Set(job.list.map((row) => machine.coords[0][row])).size }));
  const largest = spans.reduce((a, b) => (b.job.count > a.job.count ? b : a));
  const over = ({ job, units }) => units / Math.max(fewest(machine, job.count), 1);
  const spread = spans.reduce((a, b) => (over(b) > over(a) || (over(b) === over(a) && b.units > a.units) ? b : a));
  const mine = spans.filter(({ job }) => job.mine).sort((a, b) => b.job.count - a.job.count);
  const own = mine.length === 1 ? [jobFigure(app, "Your job", mine[0], outer)] : mine.length ? [jobsFigure(app, mine, outer)] : [];
  return [...own, freeFigure(app), jobFigure(app, "Largest job", largest, outer), jobFigure(app, "Most spread job", spread, outer)];
}

/** One's own jobs: the largest by name, each at one press. */
function jobsFigure(app, mine, level) {
  const nodes = mine.reduce((sum, { job }) => sum + job.count, 0);
  const buttons = mine.slice(0, MOST_OWN).map(({ job }) => showButton(app, job, `Show ${job.id}`));
  const [{ job, units }] = mine;
  return figure("Your jobs", `${mine.length} on ${counted(nodes, "node")}`, `largest: ${job.id} ${job.name}, ${spanWords(app, job, units, level)}`, el("span", { class: "row" }, ...buttons));
}

function showButton(app, job, text) {
  return el("button", { type: "button", text, "aria-label": `Show job ${job.id}`, on: { click: () => app.markJob(job) } });
}

function spanWords(app, job, units, level) {
  return `${counted(job.count, "node")} in ${counted(units, level)}; the fewest possible: ${fewest(app.machine, job.count)}`;
}

function jobFigure(app, name, { job, units }, level) {
  return figure(name, `${job.id} ${job.name}`.trim(), spanWords(app, job, units, level), showButton(app, job, "Show it"));
}

/** The free nodes, and the most of them that are in one outermost unit. */
function freeFigure({ snapshot, machine }) {
  const inUnit = new Map();
  let free = 0;
  for (let row = 0; row < machine.count; row++) {
    if (snapshot.shape[row] !== 1) continue;
    free++;
    inUnit.set(machine.coords[0][row], (inUnit.get(machine.coords[0][row]) ?? 0) + 1);
  }
  const compute = machine.count - machine.service.reduce((a, b) => a + b, 0);
  const most = Math.max(...inUnit.values(), 0);
  return figure("Free", `${grouped(free)} of ${grouped(compute)}`, `at most ${counted(most, "node")} in one ${unitName(machine.levels[0])}; ${counted(inUnit.size, machine.levels[0])} with free nodes`, fragments([...inUnit.values()]));
}

/** The free nodes of each outermost unit as bars, the most first; the words beside them say the same in short. */
function fragments(sizes) {
  const sorted = sizes.sort((a, b) => b - a).slice(0, MOST_FRAGMENTS);
  const bars = sorted.map((size) => {
    const bar = el("span");
    bar.style.height = `${Math.max(Math.round((20 * size) / sorted[0]), 2)}px`;
    return bar;
  });
  return el("span", { class: "fragments", "aria-hidden": "true", title: sorted.join(", ") }, ...bars);
}
