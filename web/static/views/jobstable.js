// SPDX-License-Identifier: Apache-2.0
/** The jobs that hold nodes now, one's own first, then the slowest against its best placement; a click marks one on the map. */

import { spokenAge } from "../core/figures.js";
import { counted } from "../core/words.js";
import { drawTable } from "../draw/sheet.js";
import { getJson, saidOf } from "../net/api.js";
import { byId, el, renew } from "../ui/dom.js";
import { sheetOf } from "./slidefoot.js";

const MOST = 500;

/** Slowdowns up to which a job sits as well as it can, and at the right end of a bar. */
const [AS_GOOD, FULL] = [1.05, 2];

/** How the table is sorted: the slowest first until a head is pressed. */
const order = { column: "slowdown", down: true };

/** Keep the table: it has the jobs of the newest state, with the figures that are known of them. */
export function jobsTable(app) {
  if (!app.served) return;
  const known = { figures: new Map(), question: "" };
  const show = () => app.store.get("tab") === "jobs" && draw(app, known);
  app.jobs = { slide: () => slideOf(app, known) };
  const ask = async () => {
    if (app.store.get("tab") !== "jobs") return;
    const path = pathOf(app);
    if (known.question !== path) Object.assign(known, { question: path, figures: new Map(), reason: "" });
    show();
    if (known.snapshot === app.snapshot && known.asked === path) return;
    Object.assign(known, { snapshot: app.snapshot, asked: path });
    app.curl("jobs", path);
    try {
      const answer = await getJson(path);
      if (known.question === path) Object.assign(known, { figures: new Map(answer.jobs.map((job) => [job.id, job])), timeless: answer.timeless, reason: "" });
    } catch (error) {
      if (known.question === path) Object.assign(known, { asked: "", reason: saidOf(error) });
    }
    show();
  };
  app.store.on(["tab", "snapshot", "pattern", "ppn", "bytes"], ask);
}

function pathOf({ store }) {
  const words = new URLSearchParams({ pattern: store.get("pattern"), ppn: store.get("ppn") });
  if (store.get("bytes")) words.set("bytes", store.get("bytes"));
  return `api/v1/slowdowns?${words}`;
}

/** The columns, each with what it is sorted by and what it shows. @returns {Array<any>} */
function columnsOf(app) {
  const [outer, inner] = [app.machine.levels[0], app.machine.levels.at(-2) ?? app.machine.levels[0]];
  const levels = app.machine.answer.kind === "torus" ? ["router"] : [...new Set([outer, inner])];
  return [
    { id: "job", of: ({ job }) => job.id, cell: ({ job }) => el("td", {}, el("button", { type: "button", class: "plain", text: job.id, "aria-label": `Mark job ${job.id}`, on: { click: () => mark(app, job) } }), job.mine ? el("span", { class: "tag", text: "yours" }) : null) },
    { id: "name", of: ({ job }) => job.name },
    { id: "nodes", of: ({ job }) => job.count },
    { id: "slowdown", of: ({ found }) => found?.slowdown ?? null, cell: slowdownCell },
    ...levels.map((level) => ({ id: counted(2, level).replace(/^2 /, ""), of: ({ found }) => found?.touches[level] ?? null })),
    { id: "spread", of: ({ found }) => found?.spread ?? null, text: (value) => value.toFixed(2) },
    ...(app.machine.answer.show_users ? [{ id: "user", of: ({ job }) => job.user ?? "" }] : []),
    { id: "ranks per node", of: ({ job, found }) => found?.ppn ?? (job.ppn || null) },
    { id: "assumed pattern", of: ({ found }) => found?.patterns.join(", ") ?? "" },
  ];
}

/** The jobs with what is known of them, in the order of the table. */
function rowsOf(app, known, columns) {
  const rows = app.snapshot.jobs.map((job) => ({ job, found: sameJob(job, known.figures.get(job.id)) }));
  const by = columns.find((column) => column.id === order.column) ?? columns[0];
  return rows.sort((a, b) => Number(Boolean(b.job.mine)) - Number(Boolean(a.job.mine)) || (order.down ? -1 : 1) * before(by.of(a), by.of(b)));
}

/** The table as a slide. */
function slideOf(app, known) {
  const columns = columnsOf(app);
  const rows = rowsOf(app, known, columns);
  const sheet = sheetOf(app, `Jobs on ${app.machine.title}`, saidOfAll(rows, known.timeless));
  const cells = rows.map((row) => columns.map((column) => (column.id === "slowdown" ? slowdownOnSlide(row) : textOf(column, row))));
  drawTable(sheet, columns.map(({ id }) => id), cells);
  return sheet.svg();
}

function slowdownOnSlide(row) {
  const words = slowdownWords(row);
  const { found, job } = row;
  if (!found || found.slowdown === null || job.count < 2) return words;
  const share = (value) => (value - 1) / (FULL - 1);
  return { text: words, bar: { likely: share(found.slowdown), low: share(found.slowdown_low), high: share(found.slowdown_high) } };
}

function textOf({ of, text = String }, row) {
  const value = of(row);
  return value === null ? "" : text(value);
}

function draw(app, known) {
  const columns = columnsOf(app);
  const rows = rowsOf(app, known, columns);
  byId("jobs-said").textContent = known.reason || saidOfAll(rows, known.timeless);
  byId("jobs-said").classList.toggle("bad", Boolean(known.reason));
  renew(byId("jobs-head"), ...columns.map((column) => headOf(app, known, column)));
  renew(byId("jobs-body"), ...rows.slice(0, MOST).map((row) => el("tr", {}, ...columns.map((column) => cellOf(column, row)))));
}

/** A job's figures, where they are of the nodes that it holds now. */
function sameJob(job, found) {
  return found && found.rows === job.rows ? found : null;
}

function saidOfAll(rows, timeless) {
  if (!rows.length) return "no jobs are known";
  const missing = rows.filter(({ found }) => !found).length;
  const oldest = Math.min(...rows.map(({ found }) => found?.judged ?? Infinity));
  const words = [`${counted(rows.length, "job")} against the best placement of as many nodes among those free now and its own`];
  if (missing) words.push(`predicting ${counted(missing, "job")} …`);
  const age = Date.now() / 1000 - oldest;
  if (oldest < Infinity) words.push(age < 1 ? "figures of now" : `figures up to ${spokenAge(age)} old`);
  if (timeless) words.push(`${timeless}: slowdowns are ratios of bytes times distance`);
  return words.join("; ");
}

function headOf(app, known, { id }) {
  const sort = () => {
    order.down = order.column === id && !order.down;
    order.column = id;
    draw(app, known);
  };
  const sorted = id !== order.column ? "none" : order.down ? "descending" : "ascending";
  return el("th", { scope: "col", "aria-sort": sorted }, el("button", { type: "button", text: id, on: { click: sort } }));
}

function cellOf({ of, text, cell }, row) {
  if (cell) return cell(row);
  const value = of(row);
  return el("td", { class: typeof value === "number" ? "num" : null, text: textOf({ of, text }, row), title: String(value ?? "").length > 30 ? value : null });
}

/** Which of two values comes first; none is the least. */
function before(a, b) {
  if (typeof a === "string") return a.localeCompare(b, "en", { numeric: true });
  return (a ?? -1) - (b ?? -1);
}

/** A slowdown with its range, and as a bar with whiskers: from 1 at the left to 2 at the right. */
function slowdownCell(row) {
  const { job, found } = row;
  const words = slowdownWords(row);
  if (!found || found.slowdown === null || job.count < 2) return el("td", { class: "slow soft", text: words });
  const { slowdown, slowdown_low: low, slowdown_high: high } = found;
  const place = (value) => `${100 * Math.min(Math.max(value - 1, 0) / (FULL - 1), 1)}%`;
  const fill = el("span", { class: "bar-fill" });
  fill.style.width = place(slowdown);
  const whisker = el("span", { class: "whisker" });
  Object.assign(whisker.style, { left: place(low), width: `calc(${place(high)} - ${place(low)})` });
  return el("td", { class: "slow" }, el("span", { class: "slow-bar" }, el("span", { class: "num", text: words }), el("span", { class: "bar-frame" }, fill, whisker)));
}

function slowdownWords({ job, found }) {
  if (!found) return "…";
  if (found.slowdown === null) return "cannot tell";
  if (job.count < 2) return "one node";
  return wordsOf(found.slowdown_low, found.slowdown, found.slowdown_high);
}

function wordsOf(low, likely, high) {
  const [a, b, c] = [low, likely, high].map((value) => value.toFixed(2).replace(/\.?0+$/, ""));
  if (high < AS_GOOD) return "as good as it can be";
  return low < AS_GOOD ? `cannot tell: ${a} to ${c} x` : `${b} x (${a} to ${c})`;
}

/** Mark a job; the one that was marked from here before gives its place. */
function mark(app, { id }) {
  const job = app.snapshot.jobs.find((each) => each.id === id);
  if (job) app.markOfTable = app.markJob(job, { instead: app.markOfTable });
}
