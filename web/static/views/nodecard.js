// SPDX-License-Identifier: Apache-2.0
/** All that is known of the focus node, and marking what stands around it. */

import { counted } from "../core/words.js";
import { byId, el, refill } from "../ui/dom.js";

/** Show the node of a row. */
export function showNode(app, row) {
  const host = byId("node");
  if (row < 0) {
    refill(host, el("p", { class: "soft", text: "Click a node, or move with the arrow keys." }));
    return;
  }
  refill(host, el("dl", { class: "facts" }, ...factsOf(app, row).flatMap(([name, value]) => [el("dt", { text: name }), el("dd", { text: value })])), around(app, row));
}

/** Name and value of what is known, empty ones left out. */
export function factsOf(app, row) {
  const { machine, snapshot } = app;
  const job = snapshot.job(row);
  const ranks = app.ranksOn(row);
  const marks = app.marksOf(row).map((mark) => mark.name).join(", ");
  const memory = machine.word("memory_mb", row);
  return [
    ["name", machine.names[row]],
    ["cname", machine.cnames[row] ?? ""],
    ["NID", machine.nids[row] >= 0 ? String(machine.nids[row]) : ""],
    ["stands at", machine.where(row)],
    ["role", machine.service[row] ? "service" : "compute"],
    ["state", snapshot.word(row)],
    ["job", job ? `${job.id} ${job.name}` : ""],
    ["user", job?.user ?? ""],
    ["job has", job ? counted(job.list.length, "node") : ""],
    ["ranks", ranks],
    ["mark", marks],
    ["cores", hardware(machine.word("cores", row))],
    ["memory", memory ? `${Math.round(memory / 1024)} GiB` : ""],
    ["GPUs", hardware(machine.word("gpus", row))],
    ["cable", cable(machine.word("cable_gbs", row))],
    ["features", machine.word("features", row)],
  ].filter(([, value]) => value !== "" && value !== undefined);
}

function cable(gbs) {
  return gbs ? `${gbs} GB/s` : "";
}

function hardware(number) {
  return number ? String(number) : "";
}

function around(app, row) {
  const buttons = app.scene.levels.map((level, i) => {
    const box = app.scene.boxOf[i][row];
    if (box < 0) return null;
    return el("button", { type: "button", text: `Mark ${level.name}`, on: { click: () => app.toggleBox(i, box) } });
  });
  const job = app.snapshot.job(row);
  const own = el("button", { type: "button", text: "Mark node", on: { click: () => app.toggle([row]) } });
  const ofJob = job ? el("button", { type: "button", text: "Mark job", on: { click: () => app.markJob(job, { show: false }) } }) : null;
  return el("div", { class: "row" }, own, ...buttons, ofJob);
}
