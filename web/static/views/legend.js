// SPDX-License-Identifier: Apache-2.0
/** The legend: what each colour and shape means, how many there are, and a filter; of ranks one after another. */

import { OWN_ORDER } from "../core/marks.js";
import { grouped } from "../core/words.js";
import { usedClasses, vacantClass } from "../draw/legendclasses.js";
import { drawSwatch } from "../draw/swatch.js";
import { rampColour } from "../draw/theme.js";
import { neighboursOf } from "../map/stage.js";
import { announce } from "../ui/announce.js";
import { byId, el, refill, renew } from "../ui/dom.js";

const MOST = 200;

/** Show the legend of some colours. */
export function showLegend(app, colours) {
  const { ramp, note } = colours;
  const used = usedClasses(colours);
  const rows = used.slice(0, MOST).map((each) => entry(app, each));
  const more = used.length > MOST ? el("p", { class: "soft", text: `and ${used.length - MOST} more` }) : null;
  const list = el("div", { class: "legend", role: "group", "aria-label": "Shown classes" }, ...rows, vacantEntry(app));
  renew(byId("legend"), note ? el("p", { class: "soft", text: note }) : null, ramp ? rampBar(ramp) : null, list, more);
}

function entry(app, kind) {
  const hidden = app.store.get("hidden");
  const swatch = el("canvas", { class: "swatch", width: 32, height: 32, "aria-hidden": "true" });
  drawSwatch(swatch, app.theme, kind);
  const box = el("input", { type: "checkbox", "data-id": kind.id, checked: !hidden.has(kind.id), on: { change: () => flip(app, kind) } });
  const words = el("span", { class: hidden.has(kind.id) ? "words off" : "words", text: kind.label, title: kind.label });
  return el("label", {}, box, swatch, words, el("span", { class: "num soft", text: grouped(kind.count) }));
}

function vacantEntry(app) {
  const kind = vacantClass(app.scene, app.theme);
  if (!kind) return null;
  const swatch = el("canvas", { class: "swatch", width: 32, height: 32, "aria-hidden": "true" });
  drawSwatch(swatch, app.theme, kind);
  return el("label", { class: "vacant" }, el("span"), swatch, el("span", { class: "words", text: kind.label }), el("span", { class: "num soft", text: grouped(kind.count) }));
}

function flip(app, kind) {
  const hidden = new Set(app.store.get("hidden"));
  if (!hidden.delete(kind.id)) hidden.add(kind.id);
  app.store.set({ hidden });
  announce(`${kind.label} ${hidden.has(kind.id) ? "hidden" : "shown"}`);
}

function rampBar({ stops, low, high }) {
  const canvas = el("canvas", { width: 160, height: 1, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  for (let x = 0; x < 160; x++) {
    context.fillStyle = rampColour(stops, x / 159);
    context.fillRect(x, 0, 1, 1);
  }
  return el("div", { class: "ramp" }, el("span", { text: low }), canvas, el("span", { text: high }));
}

/** Show where a rank sits, and whom it talks to, while ranks are coloured. */
export function showStepper(app) {
  const host = byId("stepper");
  const ranks = app.store.get("ranks");
  if (app.store.get("way") !== "rank" || !ranks) {
    refill(host);
    return;
  }
  const held = host.contains(document.activeElement) ? document.activeElement.id : "";
  const rank = app.store.get("rank");
  const field = el("input", { id: "rank", type: "number", min: 0, max: ranks.ranks - 1, value: rank, on: { change: (event) => stepTo(app, Number(event.target.value)) } });
  const orders = el("select", { id: "rank-order", on: { change: (event) => app.store.set({ order: event.target.value }) } },
    ...ordersOf(app).map((name) => el("option", { value: name, text: name === OWN_ORDER ? "the plan's own" : name, selected: name === app.store.get("order") })));
  const near = neighboursOf(ranks, rank);
  refill(host, el("div", { class: "stepper" },
    el("button", { type: "button", "aria-label": "Rank before", text: "\u2039", on: { click: () => stepTo(app, rank - 1) } }),
    el("label", {}, "Rank ", field),
    el("button", { type: "button", "aria-label": "Next rank", text: "\u203a", on: { click: () => stepTo(app, rank + 1) } }),
    el("label", {}, "Order ", orders)),
  el("p", { class: "soft", text: rankWords(app, ranks, rank, near) }));
  if (held) byId(held)?.focus();
}

function ordersOf(app) {
  if (!app.served) return [app.store.get("ranks").order.strategy];
  const named = app.machine.answer.choices?.orders ?? [];
  return app.marks.current?.planned ? [OWN_ORDER, ...named] : named;
}

/** Go to a rank, around at the ends. */
export function stepTo(app, rank) {
  const ranks = app.store.get("ranks");
  if (!ranks) return;
  const to = ((Math.round(rank) % ranks.ranks) + ranks.ranks) % ranks.ranks || 0;
  app.store.set({ rank: to });
  announce(rankWords(app, ranks, to, neighboursOf(ranks, to)));
}

function rankWords(app, ranks, rank, near) {
  const row = ranks.node_rows[rank];
  const apart = near.filter((other) => ranks.node_rows[other] !== row).length;
  const talk = ranks.neighbours ? `; talks to ${near.length} ranks, ${apart} on other nodes` : "";
  return `rank ${rank} of ${ranks.ranks} sits on ${app.machine.called(row)}${talk}`;
}
