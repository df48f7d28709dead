/** Taking the picture away: SVG, PNG or a page that opens from disk, made by the server. */

import { curlLine, postFile, saidOf } from "./api.js";
import { copyText, saveBlob } from "./clipboard.js";
import { byId, el, refill } from "./dom.js";
import { slideOf } from "./slide.js";

/** Drawn by the page itself. */
const SLIDE = "slide";

const FORMATS = [
  ["html", "A page that opens from disk (.html): map, marks and states, no server needed"],
  ["svg", "A drawing (.svg): sharp at any size"],
  ["png", "A picture (.png)"],
  [SLIDE, "What the map shows now, with its legend, as a slide (1920 x 1080, .png)"],
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
  const line = el("code", { id: "save-line" });
  const chosen = () => byId("save-body").querySelector("input:checked").value;
  const show = () => {
    line.hidden = chosen() === SLIDE;
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
  const job = { ppn: store.get("ppn"), pattern: store.get("pattern"), bytes: Number(store.get("bytes")) || null, order: store.get("order") };
  return { format, marks: named, view: app.scene.id, colour, theme: app.theme.name === "dark" ? "dark" : "light", ...job };
}

function nameOf(app, format) {
  return `${app.machine.title.replaceAll(/[^A-Za-z0-9._-]+/g, "-").slice(0, 60) || "machine"}.${format === SLIDE ? "png" : format}`;
}

async function fetchFile(app, format, said) {
  said.textContent = "Drawing …";
  said.className = "soft";
  try {
    const own = format === SLIDE && (await slideOf(app, byId("sentence").textContent));
    saveBlob(own || (await postFile("api/v1/export", bodyOf(app, format))), nameOf(app, format));
    said.textContent = `${nameOf(app, format)} saved`;
  } catch (error) {
    said.textContent = saidOf(error);
    said.className = "bad";
  }
}
