// SPDX-License-Identifier: Apache-2.0
/** The map's twin: the same nodes as a table, only its visible rows in the page. */

import { counted, grouped } from "../core/words.js";
import { drawTable } from "../draw/sheet.js";
import { byId, el, refill } from "../ui/dom.js";
import { sheetOf } from "./slidefoot.js";

const ROW = 26;
const SPARE = 12;

/** Rows that are given to a slide, which says how many it leaves out. */
const MOST_ON_SLIDE = 40;

/** The table, drawn when its tab is open. */
export class TableTwin {
  constructor(app) {
    this.app = app;
    this.sort = { column: "row", down: false };
    this.columns = columnsOf(app);
    this.frame = byId("table-frame");
    this.frame.addEventListener("scroll", () => this.draw());
    for (const id of ["table-show", "table-filter"]) byId(id).addEventListener("input", () => this.refresh());
    new ResizeObserver(() => this.draw()).observe(this.frame);
    app.store.on(["tab", "marks", "snapshot", "focus", "ranks"], () => this.refresh());
  }

  /** Work out which rows are shown and in which order. */
  refresh() {
    if (this.app.store.get("tab") !== "table") return;
    this.rows = this.sorted(this.chosen());
    byId("table-count").textContent = counted(this.rows.length, "node");
    byId("table").setAttribute("aria-rowcount", this.rows.length + 1);
    this.heads();
    this.draw(true);
  }

  chosen() {
    const { app } = this;
    const show = byId("table-show").value;
    const words = byId("table-filter").value.trim().toLowerCase();
    const markOf = app.marks.ofRows(app.machine.count);
    const active = new Set(app.marks.current?.rows ?? []);
    const rows = [];
    for (let row = 0; row < app.machine.count; row++) {
      if (show === "marked" && !markOf?.[row]) continue;
      if (show === "active" && !active.has(row)) continue;
      if (!words || this.columns.some((column) => String(column.of(row)).toLowerCase().includes(words))) rows.push(row);
    }
    return rows;
  }

  sorted(rows) {
    const { column, down } = this.sort;
    const of = this.columns.find((each) => each.id === column)?.of;
    if (!of) return rows;
    const keyed = rows.map((row) => [of(row), row]);
    const before = (a, b) => (typeof a === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
    keyed.sort((a, b) => (down ? -1 : 1) * before(a[0], b[0]) || a[1] - b[1]);
    return keyed.map(([, row]) => row);
  }

  /** The rows in sight as a slide. */
  slide() {
    const first = Math.floor(this.frame.scrollTop / ROW);
    const rows = (this.rows ?? []).slice(first).slice(0, MOST_ON_SLIDE);
    const columns = this.columns.filter(({ of }) => rows.some((row) => String(of(row))));
    const sheet = sheetOf(this.app, this.app.machine.title, counted(this.rows?.length ?? 0, "node"));
    drawTable(sheet, columns.map(({ title }) => title), rows.map((row) => columns.map(({ of }) => String(of(row)))), (this.rows?.length ?? 0) - first);
    return sheet.svg();
  }

  heads() {
    const cells = this.columns.map((column) => {
      const mine = this.sort.column === column.id;
      const button = el("button", { type: "button", text: column.title, on: { click: () => this.sortBy(column.id) } });
      return el("th", { scope: "col", "aria-sort": mine ? (this.sort.down ? "descending" : "ascending") : "none" }, button);
    });
    const held = document.activeElement?.closest?.("#table th") ? [...byId("table").tHead.rows[0].cells].indexOf(document.activeElement.closest("th")) : -1;
    refill(byId("table").tHead.rows[0], el("th", { scope: "col", class: "box" }, el("span", { class: "unseen", text: "Marked" })), ...cells);
    if (held >= 0) byId("table").tHead.rows[0].cells[held].querySelector("button")?.focus();
  }

  sortBy(column) {
    this.sort = { column, down: this.sort.column === column && !this.sort.down };
    this.refresh();
  }

  draw(anew = false) {
    if (!this.rows || this.app.store.get("tab") !== "table") return;
    const first = Math.max(Math.floor(this.frame.scrollTop / ROW) - SPARE, 0);
    const last = Math.min(first + Math.ceil(this.frame.clientHeight / ROW) + 2 * SPARE, this.rows.length);
    if (!anew && this.span?.[0] === first && this.span?.[1] === last) return;
    this.span = [first, last];
    /** @type {any} */
    const focused = document.activeElement;
    const held = focused?.dataset?.row;
    const body = [this.pad(first), ...this.rows.slice(first, last).map((row, i) => this.line(row, first + i)), this.pad(this.rows.length - last)];
    refill(byId("table").tBodies[0], ...body);
    if (held !== undefined) this.frame.querySelector(`input[data-row="${held}"]`)?.focus();
  }

  pad(rows) {
    if (!rows) return null;
    const cell = el("td", { class: "pad", colspan: this.columns.length + 1 });
    cell.style.height = `${rows * ROW}px`;
    return el("tr", { "aria-hidden": "true" }, cell);
  }

  line(row, at) {
    const { app } = this;
    const marked = app.marks.current?.rows.includes(row) ?? false;
    const box = el("input", { type: "checkbox", checked: marked, "data-row": row, "aria-label": `Mark ${app.machine.names[row]}`, on: { change: () => app.toggle([row]) } });
    const cells = this.columns.map((column) => {
      const value = column.of(row);
      return el("td", { text: typeof value === "number" ? grouped(value).replaceAll(",", "") : value, title: String(value).length > 30 ? value : null });
    });
    return el("tr", { "aria-rowindex": at + 2, "data-focus": String(app.store.get("focus") === row), on: { click: (event) => event.target !== box && app.focus(row, { say: false }) } }, el("td", { class: "box" }, box), ...cells);
  }
}

function columnsOf(app) {
  const { machine } = app;
  const plain = [
    { id: "name", title: "name", of: (row) => machine.names[row] },
    { id: "cname", title: "cname", of: (row) => machine.cnames[row] ?? "" },
    { id: "nid", title: "NID", of: (row) => machine.nids[row] },
    ...machine.levels.map((level, i) => ({ id: level, title: level, of: (row) => machine.coords[i][row] })),
    { id: "role", title: "role", of: (row) => (machine.service[row] ? "service" : "compute") },
    { id: "state", title: "state", of: (row) => app.snapshot.word(row) },
    { id: "job", title: "job", of: (row) => app.snapshot.job(row)?.id ?? "" },
    { id: "job-name", title: "job name", of: (row) => app.snapshot.job(row)?.name ?? "" },
    { id: "user", title: "user", of: (row) => app.snapshot.job(row)?.user ?? "" },
    { id: "mark", title: "mark", of: (row) => app.markName(row) },
    { id: "rank", title: "ranks", of: (row) => app.ranksOn(row) },
  ];
  const jobs = new Set(["job", "job-name"]);
  return plain.filter(({ id }) => {
    if (id === "cname") return machine.cnames.length > 0 && machine.cnames.some(Boolean);
    if (id === "user") return machine.answer.show_users;
    return !jobs.has(id) || app.snapshot.jobs.length > 0 || machine.answer.live;
  });
}
