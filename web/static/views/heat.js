// SPDX-License-Identifier: Apache-2.0
/** Group by group: how busy the busiest link between each two is, as a square of colours. */

import { spokenBytes, spokenSeconds } from "../core/figures.js";
import { rampColour } from "../draw/theme.js";
import { el } from "../ui/dom.js";

/** CSS pixels of the largest square, of a label's room, and of a cell that few units get. */
const LARGEST = 300;
const ROOM = 20;
const WIDE = 30;

/** Share of the ramp at which the least value stands: it must not look like none. */
const LEAST = 0.15;

/**
 * Draw a matrix.
 * @param {Object} matrix `labels`, `seconds` (or `load`, bytes) row from, column to
 * @param {Object} options `theme`, `most` the figure of the darkest colour, `hover(from, to)`
 * @returns {HTMLElement} with `point(from, to)`, which frames an entry (-1 for none)
 */
export function heatOf(matrix, { theme, most, hover }) {
  const size = matrix.labels.length;
  const cell = Math.max(2, Math.floor(LARGEST / size));
  const canvas = el("canvas", { width: size * cell, height: size * cell, role: "img", "aria-label": described(matrix) });
  paint(canvas, matrix, cell, theme, most);
  const frame = el("div", { class: "heat-frame", hidden: true });
  const words = el("p", { class: "soft num", "aria-hidden": "true", text: legendWords(matrix) });
  const host = el("div", { class: "heat" },
    el("div", { class: "heat-grid" }, el("span"), labels(matrix, "across"), labels(matrix, "down"), el("div", { class: "heat-square" }, canvas, frame)),
    scale(theme, matrix, most), words);
  host.style.setProperty("--side", `${Math.min(size * WIDE, LARGEST)}px`);
  host.point = (from, to) => {
    frame.hidden = from < 0 || to < 0;
    Object.assign(frame.style, { left: `${(100 * to) / size}%`, top: `${(100 * from) / size}%`, width: `${100 / size}%`, height: `${100 / size}%` });
    words.textContent = frame.hidden ? legendWords(matrix) : pairWords(matrix, from, to);
  };
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const at = (offset, length) => Math.max(Math.min(Math.floor((offset / length) * size), size - 1), 0);
    const [from, to] = [at(event.clientY - box.top, box.height), at(event.clientX - box.left, box.width)];
    host.point(from, to);
    hover(from, to);
  });
  canvas.addEventListener("pointerleave", () => {
    host.point(-1, -1);
    hover(-1, -1);
  });
  return host;
}

/** Names along one side; of many only every second, fifth … so that none overlap. */
function labels(matrix, side) {
  const size = matrix.labels.length;
  const step = [1, 2, 5, 10, 20, 50].find((each) => (each * Math.min(size * WIDE, LARGEST)) / size >= ROOM) ?? 100;
  const words = matrix.labels.map((label, i) => el("span", { text: i % step ? "" : short(label) }));
  return el("div", { class: `heat-${side}`, "aria-hidden": "true" }, ...words);
}

/** "leaf 3" as "3": the legend says what they are. */
function short(label) {
  return label.replace(/^.* /, "");
}

function scale(theme, matrix, most) {
  const canvas = el("canvas", { width: 100, height: 1, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  for (let x = 0; x < 100; x++) {
    context.fillStyle = shade(theme, x / 99);
    context.fillRect(x, 0, 1, 1);
  }
  return el("div", { class: "ramp" }, el("span", { text: "idle" }), canvas, el("span", { class: "num", text: spokenValue(matrix, most) }));
}

function shade(theme, share) {
  return rampColour(theme.ramps.load, LEAST + (1 - LEAST) * share);
}

/** The figures of a matrix: seconds of the busiest link, or bytes where no link is named. */
function valuesOf(matrix) {
  return matrix.seconds ?? matrix.load;
}

function spokenValue(matrix, value) {
  return matrix.seconds ? spokenSeconds(value) : spokenBytes(value);
}

function paint(canvas, matrix, cell, theme, most) {
  const context = canvas.getContext("2d");
  context.fillStyle = theme.line;
  context.fillRect(0, 0, canvas.width, canvas.height);
  const gap = cell > 5 ? 1 : 0;
  valuesOf(matrix).forEach((row, from) => row.forEach((value, to) => {
    context.fillStyle = value > 0 ? shade(theme, value / most) : theme.map;
    context.fillRect(to * cell, from * cell, cell - gap, cell - gap);
  }));
}

/** The largest entry of a matrix. */
export function mostOf(matrix) {
  return matrix ? valuesOf(matrix).reduce((most, row) => row.reduce((a, b) => Math.max(a, b), most), 0) : 0;
}

function busiest(matrix) {
  const values = valuesOf(matrix);
  let best = [0, 0];
  values.forEach((row, from) => row.forEach((value, to) => {
    if (value > values[best[0]][best[1]]) best = [from, to];
  }));
  return best;
}

function described(matrix) {
  const [from, to] = busiest(matrix);
  return `${matrix.labels.length} by ${matrix.labels.length} ${matrix.level}s; busiest ${pairWords(matrix, from, to)}`;
}

function pairWords(matrix, from, to) {
  const { labels: names } = matrix;
  const where = from === to ? `inside ${names[from]}` : `${names[from]} to ${names[to]}`;
  return `${where}: ${spokenValue(matrix, valuesOf(matrix)[from][to])}`;
}

function legendWords(matrix) {
  const what = matrix.seconds ? "busiest link" : "bytes sent";
  return `${what} from ${matrix.level} (down) to ${matrix.level} (across)`;
}
