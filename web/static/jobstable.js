/** The jobs, the slowest against its best placement first; a click marks one on the map. */

import { getJson, saidOf } from "./api.js";
import { byId, counted, el, refill } from "./dom.js";

const MOST = 500;
const PATH = "api/v1/slowdowns";

/** Keep the table of the jobs; it is asked for when it is first seen, and anew when there are other jobs. */
export function jobsTable(app) {
  if (!app.served) return;
  let known = null;
  const show = async () => {
    if (app.store.get("tab") !== "jobs" || known === app.snapshot) return;
    known = app.snapshot;
    byId("jobs-said").textContent = known.jobs.length ? `Predicting ${counted(known.jobs.length, "job")} …` : "no jobs are known";
    app.curl("jobs", PATH);
    try {
      draw(app, await getJson(PATH));
    } catch (error) {
      known = null;
      byId("jobs-said").textContent = saidOf(error);
    }
  };
  app.store.on(["tab", "snapshot"], show);
}

/** How the table is sorted: as it comes (the slowest first) until a head is pressed. */
const order = { column: -1, down: false };

function draw(app, answer) {
  const { jobs, patterns } = answer;
  const [outer, inner] = [app.machine.levels[0], app.machine.levels.at(-2) ?? app.machine.levels[0]];
  const torus = app.machine.answer.kind === "torus";
  const levels = torus ? ["router"] : [...new Set([outer, inner])];
  const heads = ["job", "name", ...(app.machine.answer.show_users ? ["user"] : []), "nodes", ...levels.map(plural), "spread", "slowdown", "at least", "at most"];
  byId("jobs-said").textContent = jobs.length
    ? `${counted(jobs.length, "job")} against the best placement of as many nodes among those free now and its own; ${patterns.join(" and ")} with one rank a node stand for what each really sends.`
    : "no jobs are known";
  const sort = (column) => () => {
    order.down = order.column === column && !order.down;
    order.column = column;
    draw(app, answer);
    byId("jobs-head").cells[column].querySelector("button").focus();
  };
  const sorting = (column) => (column !== order.column ? "none" : order.down ? "descending" : "ascending");
  refill(byId("jobs-head"), ...heads.map((text, column) => el("th", { scope: "col", "aria-sort": sorting(column) }, el("button", { type: "button", text, on: { click: sort(column) } }))));
  const rows = jobs.map((job) => ({ job, values: valuesOf(app, job, levels) }));
  if (order.column >= 0) rows.sort((a, b) => (order.down ? -1 : 1) * before(a.values[order.column], b.values[order.column]));
  refill(byId("jobs-body"), ...rows.slice(0, MOST).map(({ job }) => line(app, job, levels)));
}

/** What each column is sorted by. */
function valuesOf(app, job, levels) {
  const words = [job.id, job.name, ...(app.machine.answer.show_users ? [job.user ?? ""] : [])];
  return [...words, job.count, ...levels.map((level) => job.touches[level]), job.spread, job.slowdown, job.slowdown_low, job.slowdown_high];
}

/** Which of two values comes first; none is the least. */
function before(a, b) {
  if (typeof a === "string") return a.localeCompare(b, "en", { numeric: true });
  return (a ?? -1) - (b ?? -1);
}

function plural(level) {
  return counted(2, level).replace(/^2 /, "");
}

function line(app, job, levels) {
  const button = el("button", { type: "button", class: "plain", text: job.id, "aria-label": `Mark job ${job.id}`, on: { click: () => mark(app, job) } });
  const words = [job.name, ...(app.machine.answer.show_users ? [job.user ?? ""] : [])];
  const figures = [job.count, ...levels.map((level) => job.touches[level]), job.spread?.toFixed(2)];
  const ends = [job.slowdown_low, job.slowdown_high].map((value) => value?.toFixed(2));
  return el("tr", {}, el("td", {}, button), ...words.map((text) => el("td", { text })), ...numbers(figures), el("td", { class: "num slow" }, bar(job.slowdown)), ...numbers(ends));
}

function numbers(values) {
  return values.map((value) => el("td", { class: "num", text: value ?? "" }));
}

/** A slowdown as a bar as well: none at 1, the whole width at 2. */
function bar(slowdown) {
  if (slowdown === null) return el("span", { text: "" });
  const fill = el("span", { class: "bar-fill" });
  fill.style.width = `${100 * Math.min(slowdown - 1, 1)}%`;
  return el("span", { class: "slow-bar" }, el("span", { text: `${slowdown.toFixed(2)} x` }), el("span", { class: "bar-frame" }, fill));
}

/** Mark a job; the one that was marked from here before gives its place. */
function mark(app, { id }) {
  const job = app.snapshot.jobs.find((each) => each.id === id);
  if (job) app.markOfTable = app.markFound(`job ${id}`, job.list, app.markOfTable);
}
