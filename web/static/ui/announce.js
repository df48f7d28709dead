// SPDX-License-Identifier: Apache-2.0
/** Words for those who listen, and short notices for those who look. */

import { byId, el } from "./dom.js";

const NOTICE_MS = 6000;

/** Say something politely to a screen reader. */
export function announce(text) {
  const node = byId("announcer");
  node.textContent = node.textContent === text ? `${text}\u00a0` : text;
}

/** Show a notice at the foot of the page for a while; errors stay until closed. */
export function notice(text, kind = "info") {
  const close = el("button", { type: "button", class: "plain", "aria-label": "Close notice", text: "\u00d7" });
  const node = el("div", { class: `notice ${kind}` }, el("span", { text }), close);
  close.addEventListener("click", () => node.remove());
  const host = byId("notices");
  for (const other of [...host.children]) if (other.firstChild.textContent === text) other.remove();
  while (host.children.length > 2) host.firstChild.remove();
  host.append(node);
  if (kind !== "error") setTimeout(() => node.remove(), NOTICE_MS);
}
