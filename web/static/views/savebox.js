// SPDX-License-Identifier: Apache-2.0
/** Taking away what a tab shows: as a slide in SVG or PNG, drawn here, or as a page that opens from disk, made by the server. */

import { pictureOf } from "../draw/picture.js";
import { painted } from "../draw/raster.js";
import { curlLine, postFile, saidOf } from "../net/api.js";
import { copyText, saveBlob } from "../ui/clipboard.js";
import { byId, el, refill } from "../ui/dom.js";
import { chosenNodes } from "./jobform.js";
import { footOf } from "./slidefoot.js";

const FORMATS = [
  ["html", "This page in one file (.html): it opens from disk as it stands here, no server needed"],
  ["svg", "What this tab shows, with what it holds for, as a slide (.svg): sharp at any size"],
  ["png", "The same slide in pixels (1920 x 1080, .png)"],
];

/** Wire the button; an exported page cannot export again. */
export function saveBox(app) {
  byId("save-open").hidden = !app.served;
  byId("save-open").addEventListener("click", () => open(app));
}

function open(app) {
  const choices = FORMATS.map(([id, text], i) => {
    const radio = el("input", { type: "radio", name: "save-format", value: id, checked: i === 0, on: { change: () => show() } });
    return el("label", { class: "check" }, radio, el("span", { text }));
  });
  const said = el("p", { class: "soft", role: "status", id: "save-said" });
  const line = el("code", { id: "save-line", tabindex: "0" });
  const chosen = () => byId("save-body").querySelector("input:checked").value;
  const show = () => {
    line.hidden = chosen() !== "html";
    line.textContent = line.hidden ? "" : `${curlLine("api/v1/export", bodyOf(app))} -o ${nameOf(app, "html")}`;
  };
  const save = el("button", { type: "button", class: "main", text: "Save", on: { click: () => fetchFile(app, chosen(), said) } });
  const copy = el("button", { type: "button", text: "Copy curl line", on: { click: () => copyText(line.textContent, "curl line") } });
  refill(byId("save-body"), el("div", { role: "radiogroup", "aria-labelledby": "save-head", class: "choices" }, ...choices), line, said, el("div", { class: "row" }, save, copy));
  show();
  byId("save").showModal();
}

/** What the server is asked: the page with the marks by name, as it stands here. */
function bodyOf(app) {
  const { store, marks } = app;
  const way = store.get("way");
  const [first, ...others] = [...marks.list].sort((a, b) => Number(b === marks.current) - Number(a === marks.current)).filter((mark) => mark.rows.length);
  const named = [first, ...others].filter(Boolean).map((mark) => ({ name: mark.name, nodes: app.asked(mark), hue: mark.hue }));
  const { name, slots } = app.orderOf(first ?? {});
  const job = { ppn: store.get("ppn"), pattern: store.get("pattern"), bytes: Number(store.get("bytes")) || null, order: name, slots, ...chosenNodes(app) };
  return { format: "html", marks: named, ...job, state: app.stateNow(), ...asShown(app, way, first) };
}

/** Colours that the server's answers make, for a page that will have no server; its answer on hops may be on its way. */
function asShown({ store, machine }, way, first) {
  const [ranks, hops, focus] = ["ranks", "hops", "focus"].map((key) => store.get(key));
  const from = focus >= 0 ? focus : hops?.from;
  if (way === "rank" && ranks && first) return { colour: "rank", order: ranks.order.strategy, slots: ranks.order.slots };
  if (way === "hops" && from >= 0) return { colour: "hops", focus: `#${from}` };
  return { colour: way === `level:${machine.levels[0]}` ? "group" : way === "job" ? "job" : "state" };
}

function nameOf(app, format) {
  const name = app.machine.title.replaceAll(/[^A-Za-z0-9._-]+/g, "-").slice(0, 60) || "machine";
  const tab = app.store.get("tab");
  return format === "html" || tab === "map" ? `${name}.${format}` : `${name}-${tab}.${format}`;
}

async function fetchFile(app, format, said) {
  said.textContent = "Drawing …";
  said.className = "soft";
  try {
    saveBlob(await fileOf(app, format), nameOf(app, format));
    said.textContent = `${nameOf(app, format)} saved`;
  } catch (error) {
    said.textContent = saidOf(error);
    said.className = "bad";
  }
}

async function fileOf(app, format) {
  if (format === "html") return postFile("api/v1/export", bodyOf(app));
  const slide = new Blob([slideOf(app)], { type: "image/svg+xml" });
  return format === "png" ? painted(slide) : slide;
}

/** The slide of the tab that is open; each part of the page draws its own. */
export function slideOf(app) {
  const own = { plans: app.plans, traffic: app.traffic, jobs: app.jobs, table: app.table }[app.store.get("tab")];
  return own?.slide() ?? pictureOf(shownBy(app));
}

/** What the map shows now. */
function shownBy(app) {
  const { machine, scene, theme, shown: colours, view, stage } = app;
  const marks = app.marks.list.map((mark) => ({ name: mark.name, count: mark.rows.length, look: app.look(mark) }));
  return {
    title: machine.title, sentence: byId("sentence").textContent, machine, scene, theme, colours, marks,
    looks: app.looksFor(colours).looks, keys: app.keysFor(colours), over: stage.overlay, foot: footOf(app), window: view.fitted ? [] : view.camera.window,
  };
}
