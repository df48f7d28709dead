/** What the map shows, as a picture of the size of a slide: the same window, colours, links, marks and legend. */

import { el } from "./dom.js";
import { MapView } from "./mapview.js";
import { Overlay } from "./overlay.js";
import { Paper } from "./paper.js";

const SIZE = { width: 1920, height: 1080 };
const MAP = { left: 40, top: 150, width: 1420, height: 890 };
const LEGEND = { left: 1500, top: 170, step: 40, most: 22 };

/**
 * Draw it.
 * @param {App} app
 * @param {string} sentence what stands above
 * @returns {Blob} an SVG
 */
export function slideOf(app, sentence) {
  const paper = new Paper(SIZE.width, SIZE.height);
  const { theme } = app;
  paper.fillStyle = theme.map;
  paper.fillRect(0, 0, SIZE.width, SIZE.height);
  write(paper, app.machine.title, 40, 46, { size: 34, weight: 650, colour: theme.ink });
  wrapped(paper, sentence, 40, 92, { size: 26, colour: theme.soft });
  drawMap(paper, app);
  drawLegend(paper, theme);
  return paper.svg();
}

function write(context, text, x, y, { size, weight = 400, colour, align = "left" }) {
  context.font = `${weight} ${size}px system-ui, "DejaVu Sans", sans-serif`;
  context.fillStyle = colour;
  context.textAlign = align;
  context.fillText(text, x, y);
}

/** Write a text in lines as long as the slide. */
function wrapped(context, text, x, y, style) {
  context.font = `${style.size}px system-ui, "DejaVu Sans", sans-serif`;
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (context.measureText(longer).width > SIZE.width - 2 * x) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  lines.slice(0, 2).forEach((line, i) => write(context, line, x, y + 1.25 * style.size * i, style));
}

/** The map anew at its own size, in a host out of sight. */
function drawMap(paper, app) {
  const host = el("div", { class: "slide-host", "aria-hidden": "true" }, el("canvas"));
  document.body.append(host);
  const { view: seen, overlay: drawn } = app.stage;
  const view = new MapView(host, host.firstChild);
  const overlay = new Overlay(view, host, { label: () => {} });
  for (const name of ["jobs", "lines", "outlined"]) overlay[name] = drawn[name];
  view.setScene(app.scene, seen.tiles.namesOf);
  if (!seen.fitted) view.fit(...seen.window);
  const { looks } = app.looksFor(app.shown);
  view.setKeys(app.keysFor(app.shown), looks, false);
  paper.begin({ x: MAP.left, y: MAP.top, w: MAP.width, h: MAP.height }, view.camera);
  view.tiles.drawOn(paper);
  overlay.drawOn(paper);
  paper.end();
  const { left, top } = host.getBoundingClientRect();
  for (const node of host.querySelectorAll(".box-label:not([hidden])")) {
    const box = node.getBoundingClientRect();
    const middle = node.classList.contains("centred");
    const inside = box.top >= top && box.bottom <= top + MAP.height && box.left >= left && box.right <= left + MAP.width;
    if (!inside) continue;
    const x = MAP.left + box.left - left + (middle ? box.width / 2 : 3);
    write(paper, node.textContent, x, MAP.top + box.top - top + box.height / 2, { size: Number.parseFloat(node.style.fontSize), colour: app.theme.soft, align: middle ? "center" : "left" });
  }
  host.remove();
}

/** The legend as it stands on the page. */
function drawLegend(context, theme) {
  let y = LEGEND.top;
  const ramp = document.querySelector("#legend .ramp");
  if (ramp) {
    const [low, high] = ramp.querySelectorAll("span");
    context.drawImage(ramp.querySelector("canvas"), LEGEND.left, y, 340, 22);
    write(context, low.textContent, LEGEND.left, y + 44, { size: 22, colour: theme.ink });
    write(context, high.textContent, LEGEND.left + 340, y + 44, { size: 22, colour: theme.ink, align: "right" });
    y += 90;
  }
  const rows = [...document.querySelectorAll("#marks li, #legend label")].map((row) => ({ swatch: row.querySelector("canvas"), words: (row.querySelector(".name, .words") ?? row).textContent, number: row.querySelector(".num")?.textContent ?? "" }));
  for (const { swatch, words, number } of rows.slice(0, LEGEND.most)) {
    if (swatch) context.drawImage(swatch, LEGEND.left, y - 14, 28, 28);
    const short = words.length > 20 ? `${words.slice(0, 19)}…` : words;
    write(context, short, LEGEND.left + 42, y, { size: 22, colour: theme.ink });
    write(context, number, SIZE.width - 40, y, { size: 22, colour: theme.soft, align: "right" });
    y += LEGEND.step;
  }
  if (rows.length > LEGEND.most) write(context, `and ${rows.length - LEGEND.most} more`, LEGEND.left + 42, y, { size: 22, colour: theme.soft });
}
