/** Group by group: how busy the busiest link between each two is, as a square of colours. */

import { el, refill } from "./dom.js";
import { spokenBytes, spokenSeconds } from "./figures.js";
import { rampColour } from "./theme.js";

/**
 * Draw a matrix.
 * @param {Object} matrix `labels`, `seconds` (or `load`, bytes) row from, column to
 * @param {Object} options `theme`, `most` the figure of the darkest colour, `hover(from, to)`
 * @returns {HTMLElement}
 */
export function heatOf(matrix, { theme, most, hover }) {
  const size = matrix.labels.length;
  const cell = Math.max(2, Math.floor(300 / size));
  const canvas = el("canvas", { width: size * cell, height: size * cell, role: "img", "aria-label": described(matrix) });
  canvas.style.maxWidth = `${Math.max(size * 26, 60)}px`;
  paint(canvas, matrix, cell, theme, most);
  const words = el("p", { class: "soft num", "aria-hidden": "true", text: legendWords(matrix, most) });
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const from = Math.min(Math.floor(((event.clientY - box.top) / box.height) * size), size - 1);
    const to = Math.min(Math.floor(((event.clientX - box.left) / box.width) * size), size - 1);
    words.textContent = pairWords(matrix, Math.max(from, 0), Math.max(to, 0));
    hover(Math.max(from, 0), Math.max(to, 0));
  });
  canvas.addEventListener("pointerleave", () => {
    words.textContent = legendWords(matrix, most);
    hover(-1, -1);
  });
  const host = el("div", { class: "heat" });
  refill(host, canvas, words);
  return host;
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
    context.fillStyle = value > 0 ? rampColour(theme.ramps.load, 0.12 + (0.88 * value) / most) : theme.map;
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
  const { labels } = matrix;
  const where = from === to ? `inside ${labels[from]}` : `${labels[from]} to ${labels[to]}`;
  return `${where}: ${spokenValue(matrix, valuesOf(matrix)[from][to])}`;
}

function legendWords(matrix, most) {
  const { level } = matrix;
  return `from ${level} (down) to ${level} (across); darkest ${spokenValue(matrix, most)}`;
}
