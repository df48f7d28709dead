// SPDX-License-Identifier: Apache-2.0
/** The list of marks, the paste box with its bad tokens, and copying back. */

import { FULL, MOST_MARKS } from "../core/marks.js";
import { counted } from "../core/words.js";
import { drawSwatch } from "../draw/swatch.js";
import { saidOf } from "../net/api.js";
import { announce, notice } from "../ui/announce.js";
import { copyText } from "../ui/clipboard.js";
import { byId, el, refill } from "../ui/dom.js";
import { openRankFile } from "./rankfile.js";

const FORMATS = [["nodelist", "Node list"], ["nids", "NIDs"], ["cnames", "cnames"], ["hostfile", "Host file"], ["sbatch", "#SBATCH"]];
const NEAR = 60;

/** Wire the panel to the page. */
export function marksPanel(app) {
  app.store.on(["marks", "theme"], () => show(app));
  byId("paste").addEventListener("submit", (event) => {
    event.preventDefault();
    pasted(app, byId("paste-text").value);
  });
  byId("paste-text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("paste").requestSubmit();
  });
  byId("mark-new").addEventListener("click", () => app.newMark("", []));
  document.addEventListener("paste", (event) => pastedAnywhere(app, event));
  show(app);
}

function show(app) {
  refill(byId("marks"), ...app.marks.list.map((mark, i) => item(app, mark, i)));
  showCopy(app);
}

function item(app, mark, i) {
  const active = i === app.marks.active;
  const swatch = el("canvas", { class: "swatch", width: 32, height: 32, "aria-hidden": "true" });
  drawSwatch(swatch, app.theme, { ...app.look(mark), shape: 2 });
  const name = el("button", {
    type: "button", class: "name", "aria-pressed": String(active), text: mark.name,
    title: active ? "Rename" : "Make this the active mark", on: { click: () => (active ? rename(app, i) : app.marks.select(i)) },
  });
  const count = el("span", { class: "num soft", text: counted(mark.rows.length, "node") });
  const remove = el("button", { type: "button", class: "plain", "aria-label": `Remove mark ${mark.name}`, text: "\u00d7", on: { click: () => app.marks.remove(i) } });
  return el("li", { "data-active": String(active) }, swatch, name, count, remove);
}

function rename(app, i) {
  const input = el("input", { value: app.marks.list[i].name, "aria-label": "Name of the mark", maxlength: 80 });
  const done = (keep) => {
    if (input.isConnected && keep) app.marks.rename(i, input.value);
    show(app);
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === "Escape") done(event.key === "Enter");
    event.stopPropagation();
  });
  input.addEventListener("blur", () => done(true));
  byId("marks").children[i].querySelector(".name").replaceWith(input);
  input.select();
}

/** Text pasted while no field has the focus becomes a mark. */
function pastedAnywhere(app, event) {
  if (event.target.closest?.("input, textarea, select, dialog")) return;
  const text = event.clipboardData?.getData("text") ?? "";
  if (!text.trim()) return;
  byId("paste-text").value = text.slice(0, 200000);
  pasted(app, text);
}

async function pasted(app, text) {
  const said = byId("paste-said");
  if (!text.trim()) return;
  const most = app.machine.answer.limits?.text ?? Infinity;
  if (text.length > most) {
    refill(said, el("p", { class: "bad", text: `the text has ${text.length} characters; at most ${most} are read` }));
    return;
  }
  refill(said, el("p", { class: "soft", text: "Reading …" }));
  try {
    const found = await app.resolve(text);
    if (found) take(app, text, found);
  } catch (error) {
    refill(said, el("p", { class: "bad", text: saidOf(error) }));
  }
}

function take(app, text, found) {
  const full = app.marks.full && found.rows.length > 0;
  const jobs = (found.jobs ?? []).slice(0, MOST_MARKS - app.marks.list.filter((mark) => mark.rows.length).length);
  if (jobs.length) for (const job of [...jobs].reverse()) app.newMark(`job ${job.id}`, job.rows);
  else if (found.rows.length && !full) app.newMark("", found.rows);
  if (found.rows.length && app.store.get("tab") === "plans") app.openTab("map");
  const bad = found.errors.length + (found.more_errors ?? 0);
  const words = [counted(found.rows.length, "node") + (full ? ` not marked: ${FULL}` : "")];
  if (jobs.length < found.jobs?.length) words.push(`${jobs.length} of ${counted(found.jobs.length, "job")} marked: there is room for ${MOST_MARKS} marks`);
  if (found.repeated) words.push(`${found.repeated} named twice`);
  if (bad) words.push(`${bad} not understood`);
  const list = el("ul", { class: "bad-list" }, ...found.errors.map((error) => badToken(text, error)));
  refill(byId("paste-said"), el("p", { class: bad || full ? "bad" : "soft", text: words.join(", ") }), list);
  announce(words.join(", "));
  if (!bad && !full) byId("paste-text").value = "";
}

/** A bad token where it stands: its line with the token underlined; pressing it selects the token. */
function badToken(text, error) {
  const [from, length] = placeOf(text, error);
  const where = error.line ? `line ${error.line}, column ${error.column}` : error.token;
  const start = text.lastIndexOf("\n", from - 1) + 1;
  const rest = text.indexOf("\n", from);
  const before = text.slice(Math.max(start, from - NEAR), from);
  const after = text.slice(from + length, Math.min(rest < 0 ? text.length : rest, from + length + NEAR));
  const shown = el("code", {}, before, el("mark", { text: text.slice(from, from + Math.min(length, 200)) }), after);
  const hint = [error.message, error.hint].filter(Boolean).join("; ");
  const button = el("button", { type: "button", on: { click: () => selectIn(from, length) } }, shown, el("br"), el("span", { class: "where", text: `${where}: ${hint}` }));
  return el("li", {}, button);
}

/** Offset and length of a bad token; of the range that unfolds to it where it stands in none. */
function placeOf(text, { line, column, token }) {
  let at = 0;
  for (let i = 1; i < line; i++) at = text.indexOf("\n", at) + 1;
  const from = line ? at + column - 1 : 0;
  if (line && text.startsWith(token, from)) return [from, token.length];
  const found = text.indexOf(token, at);
  return found >= 0 ? [found, token.length] : rangeOf(text, token) ?? [from, 0];
}

/** Where a folded list, "nid[00136-00191]", has the range that holds a name. */
function rangeOf(text, token) {
  for (const list of text.matchAll(/([\w.-]*)\[([^\]]*)\]/g)) {
    const rest = token.startsWith(list[1]) ? token.slice(list[1].length) : "";
    for (const part of list[2].matchAll(/(\d+)(?:-(\d+))?/g)) {
      const inside = Number(part[1]) <= Number(rest) && Number(rest) <= Number(part[2] ?? part[1]);
      if (/^\d+$/.test(rest) && inside) return [list.index + list[1].length + 1 + part.index, part[0].length];
    }
  }
  return null;
}

function selectIn(from, length) {
  const field = byId("paste-text");
  field.focus();
  field.setSelectionRange(from, from + length);
}

function showCopy(app) {
  const mark = app.marks.current;
  const host = byId("copy");
  host.hidden = !mark || !mark.rows.length;
  if (host.hidden) return;
  const known = app.machine.answer.choices?.formats ?? FORMATS.map(([id]) => id);
  const out = el("textarea", { rows: 2, readonly: true, "aria-label": "What was copied", spellcheck: "false", hidden: true });
  const buttons = FORMATS.filter(([id]) => known.includes(id)).map(([id, title]) =>
    el("button", { type: "button", text: title, "data-format": id, on: { click: () => copyAs(app, mark, id, title, out) } }));
  const file = el("button", { type: "button", text: "Rank file", hidden: !app.served, on: { click: () => openRankFile(app, mark, jobOf(app)) } });
  refill(host, el("span", { class: "soft", text: `Copy mark ${mark.name} as` }), el("div", { class: "row" }, ...buttons, file), out);
}

function jobOf({ store }) {
  return { ppn: store.get("ppn"), pattern: store.get("pattern"), order: store.get("order") };
}

async function copyAs(app, mark, format, title, out) {
  try {
    const text = await app.emit(mark, format);
    if (!text) return;
    out.hidden = false;
    out.value = text;
    await copyText(text, title, out);
  } catch (error) {
    notice(saidOf(error), "error");
  }
}
