// SPDX-License-Identifier: Apache-2.0
/** The rank file of a job: which order, in which launcher's format; copied or saved. */

import { OWN_ORDER } from "../core/marks.js";
import { saidOf } from "../net/api.js";
import { copyText, saveBlob } from "../ui/clipboard.js";
import { byId, el, refill } from "../ui/dom.js";

/**
 * Open the dialogue.
 * @param {import("./app.js").App} app
 * @param {Object} mark its nodes in slot order
 * @param {Object} job `ppn`, `pattern`, `order`
 */
export function openRankFile(app, mark, job) {
  const choices = app.machine.answer.choices;
  const own = mark.planned ? [OWN_ORDER] : [];
  const order = chooser("Order", [...own, "auto", ...choices.orders.filter((name) => name !== "auto")], job.order);
  const format = chooser("Format", choices.order_formats, "slurm"); // a host a rank: any order can be written so
  const out = el("textarea", { rows: 10, readonly: true, "aria-label": "The rank file", spellcheck: "false" });
  const said = el("p", { class: "soft", role: "status" });
  const state = { name: "ranks.txt" };
  const ask = async () => {
    said.textContent = "Ordering …";
    try {
      const planned = order.select.value === OWN_ORDER;
      const how = planned ? { slots: mark.planned } : { strategy: order.select.value };
      const body = { nodes: app.asked(mark), ppn: job.ppn, pattern: job.pattern, ...how, format: format.select.value };
      const answer = await app.ask("rank file", "api/v1/order", body);
      if (!answer) return;
      out.value = answer.text;
      state.name = answer.filename;
      said.textContent = [`${answer.order.ranks} ranks, order ${planned ? "the plan's own" : answer.order.strategy}`, ...answer.notes].join("; ");
    } catch (error) {
      out.value = "";
      said.textContent = saidOf(error);
    }
  };
  for (const { select } of [order, format]) select.addEventListener("change", ask);
  const copy = el("button", { type: "button", class: "main", text: "Copy", on: { click: () => copyText(out.value, "Rank file", out) } });
  const save = el("button", { type: "button", text: "Save", on: { click: () => saveBlob(new Blob([out.value], { type: "text/plain" }), state.name) } });
  refill(byId("file-body"), el("div", { class: "row" }, order.label, format.label), said, out, el("div", { class: "row" }, copy, save));
  byId("file").showModal();
  ask();
}

function chooser(title, names, chosen) {
  const select = el("select", {}, ...names.map((name) => el("option", { value: name, text: name === OWN_ORDER ? "the plan's own" : name, selected: name === chosen })));
  return { select, label: el("label", {}, `${title} `, select) };
}
