/** What is drawn on it becomes SVG: it stands for a canvas's context, and for the raster of the map's tiles. */

import { el } from "./dom.js";
import { unpacked } from "./theme.js";

const ESCAPED = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** A sheet of some pixels. */
export class Paper {
  constructor(width, height) {
    [this.width, this.height] = [width, height];
    [this.left, this.top, this.size] = [0, 0, Math.max(width, height)];
    this.parts = [];
    this.sprites = new Map();
    this.globalAlpha = 1;
    this.measuring = el("canvas").getContext("2d");
  }

  /** The drawing so far. */
  svg() {
    const { width, height } = this;
    const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`;
    return new Blob([head, ...this.parts, "</svg>"], { type: "image/svg+xml" });
  }

  /** Draw into a part of the sheet until `end`: that many pixels, whose corner lies at (left, top) of the map's world. */
  begin({ x, y, w, h }, { left, top, width, height }) {
    [this.left, this.top, this.size] = [left, top, Math.max(width, height)];
    this.add("svg", `x="${x}" y="${y}" width="${w}" height="${h}" viewBox="0 0 ${width} ${height}"`, null);
  }

  end() {
    this.parts.push("</svg>");
  }

  add(name, words, inside = "") {
    this.parts.push(inside === null ? `<${name} ${words}>` : `<${name} ${words}>${inside}</${name}>\n`);
  }

  // --- as a raster ---------------------------------------------------------------------

  rect(x, y, w, h, colour) {
    this.add("path", `fill="${unpacked(colour)}" d="${box(x - this.left, y - this.top, w, h)}"`);
  }

  frame(x, y, w, h, colour, dash = "") {
    const d = box(x - this.left + 0.5, y - this.top + 0.5, w - 1, h - 1);
    this.add("path", `fill="none" stroke="${unpacked(colour)}"${dash} d="${d}"`);
  }

  dotted(x, y, w, h, colour) {
    this.frame(x, y, w, h, colour, ' stroke-dasharray="2"');
  }

  /** Use a sprite, which is drawn once. */
  blit(sprite, side, x, y) {
    if (!this.sprites.has(sprite)) {
      this.sprites.set(sprite, `n${this.sprites.size}`);
      this.add("symbol", `id="${this.sprites.get(sprite)}" overflow="visible" shape-rendering="crispEdges"`, runs(sprite, side));
    }
    this.add("use", `href="#${this.sprites.get(sprite)}" x="${x - this.left}" y="${y - this.top}"`);
  }

  // --- as a context --------------------------------------------------------------------

  measureText(text) {
    this.measuring.font = this.font;
    return this.measuring.measureText(text);
  }

  fillText(text, x, y, words = `fill="${this.fillStyle}"`) {
    const anchor = { center: "middle", right: "end" }[this.textAlign] ?? "start";
    const plain = text.replaceAll(/[\p{Cc}\p{Cs}\uFFFE\uFFFF]/gu, "").replaceAll(/[&<>"]/g, (one) => ESCAPED[one]);
    this.add("text", `x="${x}" y="${y}" text-anchor="${anchor}" dominant-baseline="central" style="font:${this.font.replaceAll('"', "'")}" ${words}`, plain);
  }

  strokeText(text, x, y) {
    this.fillText(text, x, y, `fill="none" stroke-linejoin="round" ${this.pen()}`);
  }

  pen() {
    return `stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}" stroke-opacity="${this.globalAlpha}"`;
  }

  fillRect(x, y, w, h) {
    this.add("path", `fill="${this.fillStyle}" d="${box(x, y, w, h)}"`);
  }

  strokeRect(x, y, w, h) {
    this.add("path", `fill="none" ${this.pen()} d="${box(x, y, w, h)}"`);
  }

  beginPath() {
    this.path = "";
  }

  moveTo(...point) {
    this.path += `M${point.map(short)}`;
  }

  lineTo(...point) {
    this.path += `L${point.map(short)}`;
  }

  quadraticCurveTo(...points) {
    this.path += `Q${points.map(short)}`;
  }

  stroke() {
    this.add("path", `fill="none" ${this.pen()} d="${this.path}"`);
  }

  drawImage(canvas, x, y, w, h) {
    this.add("image", `href="${canvas.toDataURL()}" x="${x}" y="${y}" width="${w}" height="${h}" preserveAspectRatio="none"`);
  }
}

function short(number) {
  return Math.round(10 * number) / 10;
}

function box(...sides) {
  const [x, y, w, h] = sides.map(short);
  return `M${x} ${y}h${w}v${h}h${-w}z`;
}

/** The pixels of a sprite as one path a colour, a row of equal ones at a time. */
function runs(sprite, side) {
  const paths = new Map();
  for (let at = 0, end = 0; at < sprite.length; at = end) {
    const row = Math.floor(at / side);
    for (end = at; end < (row + 1) * side && sprite[end] === sprite[at]; end++);
    if (sprite[at]) paths.set(sprite[at], `${paths.get(sprite[at]) ?? ""}${box(at % side, row, end - at, 1)}`);
  }
  return [...paths].map(([colour, d]) => `<path fill="${unpacked(colour)}" d="${d}"/>`).join("");
}

/** A drawing in pixels, of the size that it states. */
export async function painted(drawing) {
  const image = new Image();
  image.src = URL.createObjectURL(drawing);
  await image.decode();
  const canvas = el("canvas", { width: image.naturalWidth, height: image.naturalHeight });
  canvas.getContext("2d").drawImage(image, 0, 0);
  URL.revokeObjectURL(image.src);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
