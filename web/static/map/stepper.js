// SPDX-License-Identifier: Apache-2.0
/** Rank by rank: where it sits, and where the ranks it talks to sit. */

import { OWN_ORDER } from "../core/marks.js";
import { announce } from "../ui/announce.js";
import { byId, el, refill } from "../ui/dom.js";

const MOST_LINES = 400;

/** Show the controls while ranks are coloured. */
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

function neighboursOf({ neighbours }, rank) {
  return neighbours ? neighbours.ranks.slice(neighbours.offsets[rank], neighbours.offsets[rank + 1]) : [];
}

/** Outlines and lines for the overlay. */
export function rankPicture(app) {
  const ranks = app.store.get("ranks");
  if (app.store.get("way") !== "rank" || !ranks) return { outlines: [], lines: [] };
  const { scene, theme } = app;
  const rank = Math.min(app.store.get("rank"), ranks.ranks - 1);
  const middle = (row) => [scene.x[row] + scene.node.w / 2, scene.y[row] + scene.node.h / 2];
  const box = (row, colour, wide) => ({ x: scene.x[row], y: scene.y[row], w: scene.node.w, h: scene.node.h, colour, wide });
  const own = ranks.node_rows[rank];
  const others = [...new Set(neighboursOf(ranks, rank).map((other) => ranks.node_rows[other]))].filter((row) => row !== own);
  const [x0, y0] = middle(own);
  const lines = others.slice(0, MOST_LINES).map((row) => {
    const [x1, y1] = middle(row);
    return { x0, y0, x1, y1, share: 0.4, colour: theme.ink };
  });
  return { outlines: [...others.map((row) => box(row, theme.ink, 1.5)), box(own, theme.hues[1], 3)], lines };
}
