// SPDX-License-Identifier: Apache-2.0
/** What a map shows, as SVG: its window, colours, links, jobs, marks and legend. `nidmap web export` draws with it too. */

import { Camera } from "../core/camera.js";
import { counted, grouped } from "../core/words.js";
import { labelsIn } from "./labels.js";
import { usedClasses, vacantClass } from "./legendclasses.js";
import { drawOverlay } from "./over.js";
import { Paper } from "./paper.js";
import { linesOf, writeOn } from "./sheet.js";
import { KEY, Looks } from "./sprites.js";
import { rampColour } from "./theme.js";
import { Tiles } from "./tiles.js";

/** The map on a slide of 1920 x 1080, and what is free around it: for the words above, and for the legend beside it. */
const SLIDE = { width: 1420, height: 890 };
const ROOM = { side: 40, above: 118, line: 32, below: 40, legend: 420 };

/** Of a picture of another size, how wide its map is at least, so that the sentence has room. */
const LEAST_WIDE = 1250;

/** CSS pixels of a unit of it: SVG can be enlarged, so that small letters have room. */
const FINE = 1.5;

const LEGEND = { step: 40, swatch: 28, ramp: 340, most: 22, letters: 25 };
const RAMP_STEPS = 40;

/** The sentence: its letters, how wide one is a pixel of its height, and lines of it on a slide. */
const [LETTERS, LETTER, LINES] = [26, 0.53, 2];

/**
 * Draw it.
 * @param {Object} shown `title`, `sentence`, `foot` of a slide; `machine`, `scene`, `theme`; `colours` of coloured(), `looks` and `keys` of the nodes; `marks`
 *   with `name`, `count` and `look`; `over` the nodes: `jobs`, `lines`, `outlined`; `window` in units, for a slide: [] is the whole scene
 * @returns {string} an SVG: a slide of 1920 x 1080, or, without a window, the whole scene at a pixel a unit
 */
export function pictureOf(shown) {
  const { title, sentence, theme } = shown;
  const slide = Boolean(shown.window);
  const camera = slide ? slideCamera(shown) : wholeCamera(shown);
  const unit = slide ? 1 : Math.max(camera.width / SLIDE.width, camera.height / SLIDE.height);
  const [wide, high] = [camera.width / unit, camera.height / unit];
  const legend = legendOf(shown);
  const columns = slide ? 1 : Math.max(Math.floor(wide / (ROOM.legend + ROOM.side)), 1);
  const width = wide + 2 * ROOM.side + (slide ? ROOM.legend : 0);
  const lines = linesOf(sentence, (width - 2 * ROOM.side) / (LETTERS * LETTER), slide ? LINES : Infinity);
  const above = ROOM.above + ROOM.line * Math.max(lines.length - 1, 1);
  const height = above + high + ROOM.below + (slide ? 0 : LEGEND.step * Math.ceil(legend.length / columns));
  const paper = new Paper(Math.round(width * unit), Math.round(height * unit));
  paper.fillStyle = theme.map;
  paper.fillRect(0, 0, paper.width, paper.height);
  const write = (text, x, y, style) => writeOn(paper, text, x * unit, y * unit, { ...style, size: style.size * unit });
  write(title, ROOM.side, 46, { size: 34, weight: 700, colour: theme.ink });
  lines.forEach((line, i) => write(line, ROOM.side, 92 + ROOM.line * i, { size: LETTERS, colour: theme.soft }));
  drawMap(paper, camera, { x: ROOM.side * unit, y: above * unit, w: camera.width, h: camera.height }, shown);
  const [left, top] = slide ? [wide + 2 * ROOM.side, above + 20] : [ROOM.side, above + high + ROOM.below];
  legend.forEach((row, i) => drawRow(paper, row, left + (i % columns) * (ROOM.legend + ROOM.side), top + Math.floor(i / columns) * LEGEND.step, { theme, unit, write, right: ROOM.legend - (slide ? ROOM.side : 0) }));
  if (slide && shown.foot) write(shown.foot, ROOM.side, height - 18, { size: 20, colour: theme.soft });
  return paper.svg(title, sentence);
}

function slideCamera({ scene, window }) {
  const camera = cameraOn(scene, SLIDE.width, SLIDE.height);
  if (window.length) camera.fit(...window);
  else camera.fitAll();
  return camera;
}

/** All of a scene at a pixel a unit, in the middle. */
function wholeCamera({ scene }) {
  const { width, height } = scene;
  const unit = Math.max(width / SLIDE.width, height / SLIDE.height);
  const camera = cameraOn(scene, Math.ceil(Math.max(width, LEAST_WIDE * unit)), height, 1 / FINE);
  camera.k = scene.pitch;
  camera.centre(width / 2, height / 2);
  return camera;
}

export function cameraOn(scene, width, height, ratio = 1) {
  const camera = new Camera();
  camera.scene = scene;
  camera.resize(width, height, ratio);
  return camera;
}

/** Draw a map into a place of the paper, as a camera sees it. */
export function drawMap(paper, camera, place, { machine, scene, theme, looks, keys, over }) {
  const tiles = new Tiles(paper);
  tiles.namesOf = (row) => machine.namesOf(row);
  tiles.setScene(scene);
  tiles.setKeys(keys, looks, false);
  tiles.setZoom(camera.k, camera.ratio);
  paper.begin(place, camera);
  tiles.paintAll();
  tiles.writeNames(paper);
  drawOverlay(paper, camera, theme, over);
  for (const label of labelsIn(scene, camera)) drawLabel(paper, label, camera.ratio, theme);
  paper.end();
}

function drawLabel(paper, { text, left, top, width = 0, height, size, anchor = "" }, ratio, theme) {
  const centred = anchor.includes("centred");
  const align = centred || anchor.includes("middle") ? "center" : anchor.includes("end") ? "right" : "left";
  const x = centred ? left + width / 2 : align === "left" ? left + 3 : left;
  const middle = top + (height ?? 1.2 * size) / 2;
  writeOn(paper, text, x * ratio, middle * ratio, { size: size * ratio, colour: centred ? theme.ink : theme.soft, align });
}

/** What the colours mean: a ramp, the marks, the classes. */
function legendOf({ scene, theme, colours, marks }) {
  const marked = marks.map((mark) => ({ ...mark.look, shape: 2, label: mark.name, number: counted(mark.count, "node") }));
  const classes = [...usedClasses(colours), vacantClass(scene, theme)].filter(Boolean).map((kind) => ({ ...kind, number: grouped(kind.count) }));
  const rows = [...(colours.ramp ? [colours.ramp] : []), ...marked, ...classes];
  return rows.length > LEGEND.most ? [...rows.slice(0, LEGEND.most), { label: `and ${rows.length - LEGEND.most} more` }] : rows;
}

function drawRow(paper, row, left, y, { theme, unit, write, right }) {
  if (row.stops) {
    drawRamp(paper, row, left, y, { theme, unit, write });
    return;
  }
  const side = Math.round(LEGEND.swatch * unit);
  if (row.colour) paper.node(new Looks({ ...theme, inner: theme.map }, [row], [], false), row.shape << KEY.shape, side, left * unit, y * unit - side / 2);
  write(row.label.length > LEGEND.letters ? `${row.label.slice(0, LEGEND.letters - 1)}…` : row.label, left + 42, y, { size: 22, colour: theme.ink });
  if (row.colour) write(row.number, left + right, y, { size: 22, colour: theme.soft, align: "right" });
}

function drawRamp(paper, { stops, low, high }, left, y, { theme, unit, write }) {
  const step = LEGEND.ramp / RAMP_STEPS;
  for (let i = 0; i < RAMP_STEPS; i++) {
    paper.fillStyle = rampColour(stops, i / (RAMP_STEPS - 1));
    paper.fillRect((left + i * step) * unit, (y - 26) * unit, (step + 0.5) * unit, 20 * unit);
  }
  write(low, left, y + 6, { size: 18, colour: theme.ink });
  write(high, left + LEGEND.ramp, y + 6, { size: 18, colour: theme.ink, align: "right" });
}
