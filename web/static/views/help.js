// SPDX-License-Identifier: Apache-2.0
/** The help: what the keys do, and the same from a shell: how every part of the page was asked for. */

import { curlLine } from "../net/api.js";
import { copyText } from "../ui/clipboard.js";
import { byId, el, refill } from "../ui/dom.js";

const KEYS = [
  ["← → ↑ ↓", "move the focus to the next node; with Ctrl to the next box"],
  ["Space", "mark or unmark the focus node"],
  ["Shift + arrows, Shift + click", "mark the range from the last marked node"],
  ["b c k g", "mark the blade (switch, leaf), chassis, cabinet, group of the focus node"],
  ["j", "mark the job that runs on the focus node"],
  ["Home, End", "first and last node"],
  ["+ − 0 z", "zoom in, zoom out, show all, zoom to the active mark"],
  ["l", "lasso with the mouse; Shift + drag does the same"],
  ["[ ]", "rank before, next rank (colour by rank)"],
  ["n", "new empty mark"],
  ["1 … 8", "make that mark the active one"],
  ["Ctrl + z", "take back the last marking"],
  ["Esc", "end the lasso, clear the search"],
  ["/", "search"],
  ["m p w o t", "map, plans, traffic (wires), jobs, table"],
  ["x v", "in the traffic: the mark, or what the scheduler would choose; both side by side"],
  ["u", "in the traffic: what links carried by their counters, beside what is predicted"],
  ["?", "this list"],
];

const ALWAYS = [
  { name: "machine", path: "api/v1/machine" },
  { name: "layout", path: "api/v1/layout" },
  { name: "states and jobs", path: "api/v1/state" },
];
const LONG = 2000;

/** Keep the help true: all keys, and how each part of the page was asked for. */
export function helpDialog(app) {
  byId("help-open").addEventListener("click", () => openHelp());
  refill(byId("keys"), ...KEYS.flatMap(([keys, what]) => [el("dt", {}, el("kbd", { text: keys })), el("dd", { text: what })]));
  const show = () => refill(byId("curl-lines"), ...[...ALWAYS, ...app.store.get("curl")].map(line));
  app.store.on(["curl"], show);
  byId("curl").hidden = !app.served;
  show();
}

/** Show the keys, and the same from a shell. */
export function openHelp() {
  byId("help").showModal();
}

function line({ name, path, body }) {
  const text = curlLine(path, body);
  const copy = el("button", { type: "button", class: "plain", text: "Copy", "aria-label": `Copy the curl line of ${name}`, on: { click: () => copyText(text, "curl line") } });
  return el("li", {}, el("span", { text: name }), el("code", { tabindex: "0", text: text.length > LONG ? `${text.slice(0, LONG)} …` : text }), copy);
}
