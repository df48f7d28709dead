/** Taking the picture away: SVG, PNG or a page that opens from disk, made by the server. */

import { curlLine, postFile, saidOf } from "./api.js";
import { copyText, saveBlob } from "./clipboard.js";
import { byId, el, refill } from "./dom.js";
import { painted } from "./paper.js";
import { slideOf } from "./slide.js";

/** Drawn by the page itself. */
const SLIDES = { "slide-svg": "svg", "slide-png": "png" };

const FORMATS = [
  ["html", "This page in one file (.html): it opens from disk as it stands here, no server needed"],
  ["slide-svg", "What the map shows, with its legend, as a slide (.svg): sharp at any size"],
  ["slide-png", "The same slide in pixels (1920 x 1080, .png)"],
  ["svg", "The whole machine (.svg), as the server draws it"],
  ["png", "The same in pixels (.png)"],
];

/** Ways to colour that the server draws too; the others are drawn by state. */
const DRAWN = { state: "state", job: "job" };

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
    line.hidden = chosen() in SLIDES;
    line.textContent = line.hidden ? "" : `${curlLine("api/v1/export", bodyOf(app, chosen()))} -o ${nameOf(app, chosen())}`;
  };
  const save = el("button", { type: "button", class: "main", text: "Save", on: { click: () => fetchFile(app, chosen(), said) } });
  const copy = el("button", { type: "button", text: "Copy curl line", on: { click: () => copyText(line.textContent, "curl line") } });
  refill(byId("save-body"), el("div", { role: "radiogroup", "aria-labelledby": "save-head", class: "choices" }, ...choices), line, said, el("div", { class: "row" }, save, copy));
  show();
  byId("save").showModal();
}

/** What the server is asked: the marks by name, the view and the colours as the page has them. */
function bodyOf(app, format) {
  const { store, marks } = app;
  const way = store.get("way");
  const [first, ...others] = [...marks.list].sort((a, b) => (b === marks.current) - (a === marks.current)).filter((mark) => mark.rows.length);
  const named = [first, ...others].filter(Boolean).map((mark) => ({ name: mark.name, nodes: app.asked(mark), hue: mark.hue }));
  const colour = way === `level:${app.machine.levels[0]}` ? "group" : (DRAWN[way] ?? "state");
  const { name, slots } = app.orderOf(first ?? {});
  const job = { ppn: store.get("ppn"), pattern: store.get("pattern"), bytes: Number(store.get("bytes")) || null, order: name, slots };
  const page = format === "html" ? { state: app.stateNow(), ...asShown(app, way, first) } : {};
  return { format, marks: named, view: app.scene.id, colour, theme: app.theme.name === "dark" ? "dark" : "light", ...job, ...page };
}

/** Colours that the server's answers made, for a page that will have no server. */
function asShown({ store, machine }, way, first) {
  const [ranks, hops] = ["ranks", "hops"].map((key) => store.get(key));
  if (way === "rank" && ranks && first) return { colour: "rank", order: ranks.order.strategy, slots: ranks.order.slots };
  return way === "hops" && hops ? { colour: "hops", focus: `#${hops.from}` } : {};
}

function nameOf(app, format) {
  return `${app.machine.title.replaceAll(/[^A-Za-z0-9._-]+/g, "-").slice(0, 60) || "machine"}.${SLIDES[format] ?? format}`;
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
  if (!(format in SLIDES)) return postFile("api/v1/export", bodyOf(app, format));
  const slide = slideOf(app, byId("sentence").textContent);
  return format === "slide-png" ? painted(slide) : slide;
}
