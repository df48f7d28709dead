// SPDX-License-Identifier: Apache-2.0
/** Two to four plans side by side: the same figures as compare, small maps that point together. */

import { spokenRange, spokenSeconds, spokenTouches } from "../core/figures.js";
import { newMark, OWN_ORDER } from "../core/marks.js";
import { rowsOf } from "../core/nodelist.js";
import { counted } from "../core/words.js";
import { distinct, keysOf } from "../draw/colouring.js";
import { Looks } from "../draw/sprites.js";
import { MapView } from "../map/mapview.js";
import { Overlay } from "../map/overlay.js";
import { unitBoxes } from "../map/stage.js";
import { postJson, saidOf } from "../net/api.js";
import { announce, notice } from "../ui/announce.js";
import { copyText } from "../ui/clipboard.js";
import { byId, el, refill } from "../ui/dom.js";
import { heatOf, mostOf } from "./heat.js";
import { planSlide } from "./planslide.js";
import { blame, chosenNodes } from "./jobform.js";
import { openRankFile } from "./rankfile.js";
import { classBars, limitOf, noteList, spentOf } from "./traffic.js";

const MOST = 3;

/** A gain below which two plans are alike. */
const SAME = 1.005;

const ENDING = "Ending the search with the best so far; its plan is predicted in full …";
const USUAL = ["auto", "compact", "blades", "hilbert", "spread"];

/** This tab's name for what it asks: a new question takes the place of its old one. */
const QUESTION = `page-${Math.random().toString(36).slice(2)}-compare`;

/** The planner's tab. */
export class PlanView {
  constructor(app) {
    this.app = app;
    this.cards = [];
    this.own = "";
    this.offer();
    byId("planner").addEventListener("submit", (event) => {
      event.preventDefault();
      this.run();
    });
    byId("plan-strategies").addEventListener("change", ({ target }) => this.limit(target));
    byId("planner").addEventListener("input", () => {
      this.filled = true;
    });
    byId("plan-finish").addEventListener("click", () => this.finish());
    byId("plan-cancel").addEventListener("click", () => app.questions.get("compare")?.abort());
    app.store.on(["tab", "marks"], () => this.begin());
    app.store.on(["hover"], () => this.point(app.store.get("hover")));
    app.store.on(["theme"], () => this.answer && this.show(this.answer));
    app.store.on(["snapshot"], () => this.cards.forEach((card) => card.view && this.colour(card)));
  }

  /** List what this machine can be planned with. */
  offer() {
    const choices = this.app.machine.answer.choices ?? { strategies: [], orders: [] };
    const names = choices.strategies.filter((name) => name !== choices.default_strategy);
    const picked = USUAL.filter((name) => names.includes(name)).slice(0, MOST);
    const boxes = names.map((name) => el("label", {}, el("input", { type: "checkbox", value: name, checked: picked.includes(name) }), name));
    refill(byId("plan-strategies"), ...boxes);
    refill(byId("plan-order"), ...choices.orders.map((name) => el("option", { value: name, text: name, selected: name === "row-major" })));
    byId("plan-count").max = this.app.machine.count;
    this.limit();
  }

  /** Begin with the mark and its job, until a person or a link says otherwise. */
  begin() {
    const { marks, store } = this.app;
    if (this.filled || store.get("tab") !== "plans") return;
    if (marks.current?.rows.length) byId("plan-count").value = marks.current.rows.length;
  }

  /** Keep to the most that fit: what is chosen now takes the place of what was chosen first. */
  limit(latest) {
    const chosen = [...byId("plan-strategies").querySelectorAll("input:checked")];
    this.chosen = [...(this.chosen ?? []).filter((box) => box !== latest && chosen.includes(box)), ...chosen.filter((box) => box === latest || !this.chosen?.includes(box))];
    while (this.chosen.length > MOST) this.chosen.shift().checked = false;
  }

  /** What is asked, as one word for the URL. */
  get asked() {
    const form = this.form();
    return [form.count, form.ppn, form.order, form.from, form.strategies.join(","), form.pattern].join(";");
  }

  form() {
    const chosen = [...byId("plan-strategies").querySelectorAll("input:checked")].map((box) => box.value);
    return {
      count: Number(byId("plan-count").value), ppn: this.app.store.get("ppn"), pattern: this.app.store.get("pattern"),
      order: byId("plan-order").value, from: byId("plan-from").value, strategies: chosen,
    };
  }

  /** Fill the form from a URL's word. */
  restore(asked) {
    const [count, ppn, order, from, strategies, ...pattern] = asked.split(";");
    byId("plan-count").value = count;
    byId("plan-order").value = order;
    byId("plan-from").value = from === "mark" ? "mark" : "free";
    this.filled = true;
    this.app.store.set({ ppn: Number(ppn) || 1, pattern: pattern.join(";") || "alltoall" });
    const wanted = (strategies ?? "").split(",").slice(0, MOST);
    for (const box of byId("plan-strategies").querySelectorAll("input")) box.checked = wanted.includes(box.value);
    this.limit();
  }

  /** Look for better nodes for the job of a mark: among the free ones and its own. */
  findFor(mark) {
    byId("plan-count").value = mark.rows.length;
    byId("plan-from").value = "free";
    this.app.openTab("plans");
    this.run(ownWords(mark, this.app.store.get("describe")));
  }

  /** Ask the server to compare, and show what it says; `own`, how a job is placed that has nodes already. */
  async run(own = "") {
    const { app } = this;
    const { count, ppn, pattern, order, from, strategies } = this.form();
    this.filled = true;
    const mark = app.marks.current;
    const among = from === "mark" && mark ? app.asked(mark) : "";
    const body = { count, ppn, pattern, strategies, orders: [order], from: among, ...chosenNodes(app), bytes: Number(app.store.get("bytes")) || null, links: 0, question: QUESTION };
    this.say(`Planning ${counted(count, "node")} …`, false);
    this.previewed = "";
    this.ending = false;
    /** @type {any} */
    const asked = byId("planner").contains(document.activeElement) ? document.activeElement : null;
    this.progress({ text: "" });
    byId("plan-go").disabled = true;
    if (asked === byId("plan-go")) byId("plan-cancel").focus(); // a disabled button loses the focus
    try {
      this.own = own;
      const answer = await app.ask("compare", "api/v1/compare", body, (now) => this.progress(now));
      if (answer ?? this.answer) this.show(answer ?? this.answer);
      else this.clear();
      if (!answer) this.say("Cancelled.", false);
    } catch (error) {
      if (this.answer) this.show(this.answer); // what was found before stays
      else this.clear();
      this.say(saidOf(error), true);
      blame(saidOf(error));
    }
    byId("plan-go").disabled = false;
    const left = byId("plan-running").contains(document.activeElement) || document.activeElement === document.body;
    byId("plan-running").hidden = true;
    if (asked && left) asked.focus();
    app.store.set({ plan: this.asked });
  }

  /** Show how far the planning is: only a search knows its share, and has a best plan so far. */
  progress({ text, share = undefined, rows = "" }) {
    byId("plan-running").hidden = false;
    const bar = byId("plan-share");
    if (share === undefined) bar.removeAttribute("value");
    else bar.value = share;
    byId("plan-finish").hidden = !rows || this.ending;
    if (this.ending) byId("plan-now").textContent = `${ENDING} ${text}`;
    if (this.ending) return;
    byId("plan-now").textContent = rows ? `${text}; the best so far is drawn below` : text;
    if (rows && rows !== this.previewed) this.preview(rows);
  }

  /** Draw where the best plan so far puts the job. */
  preview(rows) {
    this.previewed = rows;
    const card = { map: this.smallMap("Where the best plan so far puts the job"), row: { node_rows: rowsOf(rows) } };
    refill(byId("plans"), el("article", { class: "preview" }, el("h2", { text: "the best so far" }), card.map));
    this.cards = [card];
    this.paint(card);
  }

  /** Let the search end with the best plan that it has found. */
  async finish() {
    byId("plan-finish").hidden = true;
    this.ending = true;
    byId("plan-now").textContent = ENDING;
    this.say(ENDING, false);
    await postJson("api/v1/finish", { question: QUESTION }).catch((error) => this.say(saidOf(error), true));
  }

  say(text, bad) {
    byId("plan-said").textContent = text;
    byId("plan-said").classList.toggle("bad", bad);
  }

  clear() {
    refill(byId("plans"));
    this.cards = [];
  }

  show(answer) {
    this.answer = answer;
    this.clear();
    this.say("", false);
    this.app.store.set({ comparison: capital(answer.sentence) + this.own });
    const rows = answer.rows.slice(0, MOST + 1);
    const most = Math.max(...rows.map((row) => mostOf(row.matrix)), 1e-12);
    const slowest = Math.max(...rows.map((row) => row.between.high), 1e-12);
    this.cards = rows.map((row, i) => this.card(row, i, { most, slowest, best: rows[0].time_s }));
    byId("plans").append(...this.cards.map((card) => card.node));
    byId("plan-warnings").textContent = answer.notes.filter((note) => note.startsWith("which nodes are free")).join(" ");
    refill(byId("plan-notes"), noteList([...answer.notes, `wiring: ${answer.wiring}; routing: ${answer.routing}`]));
    for (const card of this.cards) this.paint(card);
  }

  /** The plans as a slide; null where there are none. */
  slide() {
    const cards = this.cards.filter(({ row }) => row.strategy);
    return cards.length ? planSlide(this.app, this.answer, cards, this.window()) : null;
  }

  card(row, i, scale) {
    const best = i === 0 && this.answer.rows.length > 1 && !row.default;
    const ahead = this.answer.rows.some((other) => other.time_s * SAME < row.time_s);
    const rank = ahead ? "as fast, as far as is known" : rankOf(row.gain);
    const title = el("h2", {}, row.strategy, row.default ? el("span", { class: "tag", text: "the default" }) : null, best ? el("span", { class: "tag win", text: rank }) : null);
    const map = this.smallMap(`Where ${row.strategy} puts the job: ${spokenTouches(row.touches)}`);
    const heat = row.matrix && row.matrix.labels.length > 1 ? heatOf(row.matrix, { theme: this.app.theme, most: scale.most, hover: (from, to) => this.pointPair(row.matrix, from, to) }) : null;
    const twin = this.answer.rows.slice(0, i).find((other) => sameNodes(other, row));
    const alike = twin ? el("p", { class: "soft", text: `the same nodes as ${twin.strategy}` }) : null;
    const parts = [title, timeOf(row, scale, this.answer.timeless), map, alike ?? el("div"), this.deeds(row), figuresOf(row), classBars(row, this.answer.timeless), heat ?? el("div")];
    const node = el("article", { class: best ? "plan best" : "plan", "aria-label": `Plan ${row.strategy}` }, ...parts);
    node.style.gridRow = `span ${parts.length}`; // a row each, of the same height in all plans
    return { node, map, row, heat, tag: row.default ? "the default" : best ? rank : "", gain: gainWords(row) };
  }

  /** The frame of a small map. */
  smallMap(label) {
    const map = el("div", { class: "small-map" }, el("canvas", { class: "picture", role: "img", "aria-label": label }));
    map.style.aspectRatio = String(Math.min(Math.max(this.app.scene.width / this.app.scene.height, 1.3), 3));
    return map;
  }

  deeds(row) {
    const take = el("button", { type: "button", class: "main", text: "Take as mark", on: { click: () => this.take(row) } });
    const copy = el("button", { type: "button", text: "Copy nodes", on: { click: () => copyText(row.nodelist, "Node list") } });
    const file = el("button", { type: "button", text: "Rank file", on: { click: () => this.file(row) } });
    return el("div", { class: "row" }, take, copy, file);
  }

  take(row) {
    const { ppn, pattern } = this.form();
    const mark = this.app.newMark(row.strategy, row.node_rows);
    if (mark) mark.planned = row.own_order?.slots ?? null;
    this.app.store.set({ ppn, pattern, order: orderOf(row) });
    if (mark) this.app.openTab("map");
  }

  file(row) {
    const { ppn, pattern } = this.form();
    const mark = newMark(row.strategy, row.node_rows, 0);
    mark.planned = row.own_order?.slots ?? null;
    openRankFile(this.app, mark, { ppn, pattern, order: orderOf(row) });
  }

  paint(card) {
    const { app } = this;
    const { scene } = app;
    card.view = new MapView(card.map, card.map.querySelector("canvas"), true);
    card.view.setScene(scene, () => []);
    const part = this.window();
    if (part) card.view.fit(...part);
    card.overlay = new Overlay(card.view, card.map, { label: () => {} });
    this.colour(card);
    card.map.addEventListener("pointermove", (event) => {
      const box = card.map.getBoundingClientRect();
      app.store.set({ hover: scene.at(...card.view.units(event.clientX - box.left, event.clientY - box.top)) });
    });
    card.map.addEventListener("pointerleave", () => app.store.set({ hover: -1 }));
  }

  /** Colour a small map by the states of now. */
  colour(card) {
    const { app } = this;
    const { theme } = app;
    const markOf = new Uint8Array(app.machine.count);
    for (const row of card.row.node_rows) markOf[row] = 1;
    const colours = { classes: [{ id: "", colour: theme.idle, hatch: 0, shape: 1 }], codes: new Uint16Array(app.machine.count) };
    const looks = new Looks(theme, colours.classes, [distinct(theme, card.row.default ? 1 : 0)], true);
    card.view.setKeys(keysOf(colours, app.snapshot.shape, markOf, new Set()), looks, false);
  }

  /** The part of the scene that holds all plans' nodes, as large as it may be; null for about all of it. */
  window() {
    const { scene } = this.app;
    const rows = this.cards.flatMap((card) => card.row.node_rows);
    const [xs, ys] = [scene.x, scene.y].map((of) => rows.map((row) => of[row]));
    const ends = (values) => values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
    const [[x0, x1], [y0, y1]] = [ends(xs), ends(ys)];
    const [w, h] = [x1 - x0 + 5 * scene.pitch, y1 - y0 + 5 * scene.pitch];
    const small = rows.length && Math.max(w / scene.width, h / scene.height) < 0.7;
    return small ? [x0 - 2 * scene.pitch, y0 - 2 * scene.pitch, w, h] : null;
  }

  /** Point at a pair of groups in all plans: in their heats, and around both groups on their maps. */
  pointPair(matrix, from, to) {
    const [a, b] = [matrix.labels[from], matrix.labels[to]];
    const boxes = from < 0 ? [] : unitBoxes(this.app, matrix.level, [from, to], matrix.units);
    for (const card of this.cards) {
      card.overlay.outline(boxes);
      const names = card.row.matrix?.labels ?? [];
      card.heat?.point(names.indexOf(a), names.indexOf(b));
    }
  }

  /** Point at one node in all plans: itself, and the chassis or group around it. */
  point(row) {
    const { scene, theme } = this.app;
    for (const card of this.cards) {
      card.overlay.hover(row);
      card.overlay.outline(row < 0 ? [] : around(scene, row, theme.hues[1]));
    }
  }
}

/** What a mark's job takes on the nodes that it has; '' where that is not known. */
function ownWords({ name }, found) {
  if (!found?.prediction || found.timeless) return "";
  const { between, time_s: likely } = found.prediction;
  const range = between.low < between.high ? ` (${spokenRange(between)})` : "";
  return `. ${capital(name)} on its nodes: likely ${spokenSeconds(likely)}${range}`;
}

/** Whether two plans take the same nodes, in whatever order. */
function sameNodes(a, b) {
  const known = new Set(a.node_rows);
  return a.node_rows.length === b.node_rows.length && b.node_rows.every((row) => known.has(row));
}

function orderOf(row) {
  return row.own_order?.slots ? OWN_ORDER : row.order;
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function around(scene, row, colour) {
  const outer = scene.boxOf[0]?.[row] ?? -1;
  if (outer < 0) return [];
  const { x, y, w, h } = scene.levels[0];
  return [{ x: x[outer], y: y[outer], w: w[outer], h: h[outer], colour, wide: 1.5 }];
}

/** What the first of the plans is called: it may only be likely to be the fastest, or as fast as the default. */
function rankOf({ low, likely, high }) {
  if (likely < SAME) return high < SAME ? "as fast as the default" : "perhaps fastest";
  return low >= 1 ? "fastest" : "likely fastest";
}

function gainWords(row) {
  if (row.default) return "what you get without a plan";
  const [low, high] = [row.gain.low, row.gain.high].map((value) => value.toFixed(2).replace(/\.?0+$/, ""));
  const times = low === high ? low : `${low} to ${high}`;
  return `${times === "1" ? "" : `${times} times `}as fast as the default`;
}

function timeOf(row, { slowest }, timeless) {
  if (timeless) return el("div", {}, el("p", { class: "time", text: "no time" }), el("p", { class: "soft", text: timeless }));
  const share = (value) => `${(100 * value) / slowest}%`;
  const fill = el("div", { class: "bar-fill" });
  fill.style.width = share(row.time_s);
  const whisker = el("div", { class: "whisker" });
  Object.assign(whisker.style, { left: share(row.between.low), width: share(row.between.high - row.between.low) });
  const words = el("p", { class: "soft", text: gainWords(row) });
  return el("div", {}, el("p", { class: "time", text: spokenRange(row.between) }), el("p", { class: "soft", text: `likely ${spokenSeconds(row.time_s)}` }), words, el("div", { class: "bar-frame" }, fill, whisker));
}

function figuresOf(row) {
  const facts = [
    ["touches", spokenTouches(row.touches)],
    ["limited by", limitOf(row)],
    ...(row.bound_s > 0 ? [["efficiency", `${Math.round(row.percent_of_bound)} % of the attainable limit`]] : []),
    ["order", row.own_order?.slots ? "its own: take the rank file too" : row.order],
    ...(row.own_order?.needed ? [["without its order", spokenSeconds(row.own_order.sorted_time_s)]] : []),
    ...spentOf(row),
  ];
  return el("dl", { class: "facts num" }, ...facts.flatMap(([name, value]) => [el("dt", { text: name }), el("dd", { text: value })]));
}

/** Say that planning needs a server. */
export function withoutPlans() {
  for (const id of ["tab-plans", "tab-traffic", "tab-jobs"]) byId(id).hidden = true;
  announce("");
  notice("This is an exported picture: planning and live data need nidmap web serve.");
}
