// SPDX-License-Identifier: Apache-2.0
/** The search field: a list of what the words may mean, used by keyboard or mouse. */

import { counted } from "../core/words.js";
import { announce } from "../ui/announce.js";
import { byId, el, refill } from "../ui/dom.js";
import { searched } from "./search.js";

/** Wire the field to the page. */
export function searchBox(app) {
  const field = byId("search");
  const list = byId("search-hits");
  let hits = [];
  let chosen = 0;

  const show = () => {
    hits = searched(field.value, app);
    chosen = 0;
    draw();
    if (field.value.trim()) announce(hits.length ? counted(hits.length, "match") : "nothing found");
  };
  const draw = () => {
    list.hidden = !field.value.trim();
    field.setAttribute("aria-expanded", String(!list.hidden));
    refill(list, ...(hits.length ? hits.map(option) : [el("li", { role: "option", "aria-disabled": "true", "aria-selected": "false", text: "nothing found" })]));
    if (hits.length) field.setAttribute("aria-activedescendant", `hit-${chosen}`);
    else field.removeAttribute("aria-activedescendant");
  };
  const option = (hit, i) => el("li", { role: "option", id: `hit-${i}`, "aria-selected": String(i === chosen), on: { pointerdown: (event) => pick(event, i) } },
    el("span", { class: "soft", text: hit.kind }), el("span", { text: hit.title }), hit.detail ? el("span", { class: "detail soft", text: hit.detail }) : null);
  const pick = (event, i) => {
    event.preventDefault();
    take(i);
  };
  const take = (i) => {
    const hit = hits[i];
    if (!hit) return;
    close();
    byId("map").focus();
    if (hit.go) hit.go();
    else if (hit.row !== undefined) app.goTo(hit.row);
    else if (hit.job) app.markJob(hit.job);
    else app.markFound(hit.title, hit.rows());
  };
  const close = () => {
    field.value = "";
    draw();
    field.blur();
  };
  const keys = {
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    Enter: () => take(chosen),
    Escape: () => close(),
  };
  const move = (by) => {
    chosen = hits.length ? (chosen + by + hits.length) % hits.length : 0;
    draw();
    byId(`hit-${chosen}`)?.scrollIntoView({ block: "nearest" });
  };
  field.addEventListener("input", show);
  field.addEventListener("keydown", (event) => {
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  field.addEventListener("blur", () => {
    list.hidden = true;
    field.setAttribute("aria-expanded", "false");
  });
}
