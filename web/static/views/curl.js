// SPDX-License-Identifier: Apache-2.0
/** The same from a shell: how every view of the page was asked for. */

import { curlLine } from "../net/api.js";
import { copyText } from "../ui/clipboard.js";
import { byId, el, refill } from "../ui/dom.js";

const ALWAYS = [
  { name: "machine", path: "api/v1/machine" },
  { name: "layout", path: "api/v1/layout" },
  { name: "states and jobs", path: "api/v1/state" },
];
const LONG = 2000;

/** Keep the list of curl lines. */
export function curlLines(app) {
  const show = () => refill(byId("curl-lines"), ...[...ALWAYS, ...app.store.get("curl")].map(line));
  app.store.on(["curl"], show);
  byId("curl").hidden = !app.served;
  show();
}

function line({ name, path, body }) {
  const text = curlLine(path, body);
  const copy = el("button", { type: "button", class: "plain", text: "Copy", "aria-label": `Copy the curl line of ${name}`, on: { click: () => copyText(text, "curl line") } });
  return el("li", {}, el("span", { text: name }), el("code", { text: text.length > LONG ? `${text.slice(0, LONG)} …` : text }), copy);
}
