// SPDX-License-Identifier: Apache-2.0
/** Why it takes as long as it does: link classes, the busiest links, groups against groups. */

import { spokenLoad, spokenRange, spokenSeconds } from "../core/figures.js";
import { byId, el, refill } from "../ui/dom.js";
import { heatOf, mostOf } from "./heat.js";

const TOP = 5;

/** Show the prediction of the active mark. */
export function showTraffic(app) {
  const found = app.store.get("describe");
  const prediction = found?.prediction ?? null;
  byId("traffic-card").hidden = !app.marks.current?.rows.length || !found;
  if (!found) return;
  if (!prediction) {
    refill(byId("traffic"), el("p", { class: "soft", text: found.reason || "no prediction" }));
    return;
  }
  const box = el("input", { type: "checkbox", checked: app.store.get("links"), id: "links", on: { change: (event) => app.store.set({ links: event.target.checked }) } });
  const draw = el("label", { class: "check" }, box, el("span", { text: `Draw the ${drawn(prediction)} on the map (darker: busier)` }));
  const matrix = prediction.matrix && prediction.matrix.labels.length > 1 ? heat(app, prediction.matrix) : null;
  refill(byId("traffic"), timeList(prediction, found.timeless), el("p", { class: "soft", text: "The busiest link of each class:" }), classBars(prediction, found.timeless), matrix, topLinks(prediction), draw, noteList([...(found.notes ?? []), `wiring: ${prediction.wiring}; routing: ${prediction.routing}`]));
}

/** What the time goes to, as [name, time]; the parts are the whole. */
export function spentOf({ spent }) {
  return Object.entries(spent ?? {}).filter(([, seconds]) => seconds > 0).map(([name, seconds]) => [name, spokenSeconds(seconds)]);
}

/** What most of the time is spent on, without the words that stand before it. */
export function limitOf({ limited_by_text: text }) {
  return text.replace(/^limited by /, "").replace("->", " \u2192 ");
}

/** The time and its parts, and what limits it. */
function timeList(prediction, timeless) {
  const time = `${spokenRange(prediction.between)}, likely ${spokenSeconds(prediction.time_s)}`;
  const facts = timeless ? [["time", `not known: ${timeless}`]] : [["time", time], ...spentOf(prediction), ["limited by", limitOf(prediction)]];
  return el("dl", { class: "facts num" }, ...facts.flatMap(([name, value]) => [el("dt", { text: name }), el("dd", { text: value })]));
}

function heat(app, matrix) {
  const hover = (from, to) => app.stage.pointAt(matrix.level, [from, to], matrix.units);
  return heatOf(matrix, { theme: app.theme, most: mostOf(matrix) || 1, hover });
}

/** What is drawn over the map: all links with traffic, or the busiest of them. */
function drawn({ links }) {
  const some = links.name.length;
  return some < links.total ? `${some} busiest of ${links.total} links` : "busy links";
}

/** Bars of the seconds that the busiest link of each class needs. */
export function classBars(prediction, timeless) {
  if (timeless) return el("p", { class: "soft", text: `not known: ${timeless}` });
  const entries = Object.entries(prediction.by_class);
  const most = Math.max(...entries.map(([, value]) => value), 1e-12);
  const rows = entries.flatMap(([name, value]) => {
    const fill = el("div", { class: "bar-fill" });
    fill.style.width = `${(100 * value) / most}%`;
    const worst = value === most ? "worst" : "";
    return [el("span", { class: worst, text: name }), el("div", { class: "bar-frame" }, fill), el("span", { class: `num ${worst}`, text: spokenSeconds(value) })];
  });
  return el("div", { class: "bars" }, ...rows);
}

function topLinks({ links }) {
  const rows = links.name.slice(0, TOP).map((name, i) => el("li", {}, el("span", { text: name.replace("->", " \u2192 "), title: name }), el("span", { class: "num", text: spokenLoad(links, i) })));
  return rows.length ? el("ul", { class: "tops", "aria-label": "Busiest links" }, ...rows) : null;
}

/** Small print: what the figures rest on. */
export function noteList(notes) {
  const list = el("ul", {}, ...notes.map((text) => el("li", { text })));
  return el("details", { class: "soft" }, el("summary", { text: "What this rests on" }), list);
}
