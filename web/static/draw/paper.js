// SPDX-License-Identifier: Apache-2.0
/** What is drawn on it becomes SVG: it stands for a canvas's context, and for the raster of the map's tiles. Needs no browser. */

import { unpacked } from "./theme.js";

const ESCAPED = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** A sheet of some pixels. */
export class Paper {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.left = 0;
    this.top = 0;
    this.size = Math.max(width, height);
    this.fillStyle = "";
    this.strokeStyle = "";
    this.lineWidth = 1;
    this.font = "";
    this.textAlign = "";
    this.parts = [];
    this.looks = "";
    this.outline = "";
    this.places = new Map();
    this.globalAlpha = 1;
  }

  /** The drawing so far, with what it shows in words. */
  svg(title, words) {
    this.flush();
    const { width, height } = this;
    const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" font-family="system-ui, 'DejaVu Sans', Verdana, sans-serif">`;
    return [head, `<title>${escaped(title)}</title>`, `<desc>${escaped(words)}</desc>`, ...this.parts, "</svg>", ""].join("\n");
  }

  /** Draw into a part of the sheet until `end`: that many pixels, whose corner lies at (left, top) of the map's world. */
  begin({ x, y, w, h }, { left, top, width, height }) {
    this.flush();
    Object.assign(this, { left, top, size: Math.max(width, height) });
    this.parts.push(`<svg x="${x}" y="${y}" width="${w}" height="${h}" viewBox="0 0 ${width} ${height}">`);
  }

  end() {
    this.flush();
    Object.assign(this, { left: 0, top: 0 });
    this.parts.push("</svg>");
  }

  /** Add to the path of these looks; what looks alike and follows one another is one path. */
  draw(looks, d) {
    if (looks !== this.looks || this.places.size) this.flush();
    this.looks = looks;
    this.outline += d;
  }

  /** Write down what was drawn. */
  flush() {
    if (this.outline) this.parts.push(`<path ${this.looks} d="${this.outline}"/>`);
    this.outline = "";
    for (const [layers, corners] of this.places) {
      for (const { from, d, fill, stroke, wide } of layers) {
        const line = stroke ? ` stroke="${stroke}" stroke-width="${short(wide)}"` : "";
        const paths = corners.map(([x, y]) => `M${short(x + from)} ${short(y + from)}${d}`);
        this.parts.push(`<path fill="${fill}"${line} d="${paths.join("")}"/>`);
      }
    }
    this.places.clear();
  }

  // --- as a raster ---------------------------------------------------------------------

  rect(x, y, w, h, colour) {
    this.draw(`fill="${unpacked(colour)}"`, box(x - this.left, y - this.top, w, h));
  }

  /** A rectangle with its outline, one pixel wide, inside it. */
  box(x, y, w, h, colour, line) {
    if (!line) return this.rect(x, y, w, h, colour);
    return this.draw(`fill="${unpacked(colour)}" stroke="${unpacked(line)}"`, box(x - this.left + 0.5, y - this.top + 0.5, w - 1, h - 1));
  }

  dotted(x, y, w, h, colour) {
    this.draw(`fill="none" stroke="${unpacked(colour)}" stroke-dasharray="2"`, box(x - this.left + 0.5, y - this.top + 0.5, w - 1, h - 1));
  }

  /** Place a node: those of one key are one path. */
  node(looks, key, side, x, y) {
    if (this.outline) this.flush();
    const layers = looks.layers(key, side);
    if (!this.places.has(layers)) this.places.set(layers, []);
    this.places.get(layers).push([x - this.left, y - this.top]);
  }

  // --- as a context --------------------------------------------------------------------

  fillText(text, x, y, words = `fill="${this.fillStyle}"`) {
    this.flush();
    const anchor = { center: ` text-anchor="middle"`, right: ` text-anchor="end"` }[this.textAlign] ?? "";
    const [, weight, size, family] = /^(\d+ )?([\d.]+)px (.*)$/.exec(this.font);
    const bold = weight ? ` font-weight="${weight.trim()}"` : "";
    const mono = family.includes("monospace") ? ` font-family="monospace"` : "";
    const middle = short(y + 0.36 * Number(size)); // not every program knows dominant-baseline
    this.parts.push(`<text x="${short(x)}" y="${middle}" font-size="${short(Number(size))}"${bold}${mono}${anchor} ${words}>${escaped(text)}</text>`);
  }

  strokeText(text, x, y) {
    this.fillText(text, x, y, `fill="none" stroke-linejoin="round" ${this.pen()}`);
  }

  pen() {
    return `stroke="${this.strokeStyle}" stroke-width="${short(this.lineWidth)}" stroke-opacity="${this.globalAlpha}"`;
  }

  fillRect(x, y, w, h) {
    this.draw(`fill="${this.fillStyle}"`, box(x, y, w, h));
  }

  strokeRect(x, y, w, h) {
    this.draw(`fill="none" ${this.pen()}`, box(x, y, w, h));
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
    if (this.path) this.draw(`fill="none" ${this.pen()}`, this.path);
  }
}

/** A text that is text in XML: escaped, without what XML forbids. */
function escaped(text) {
  return text.replaceAll(/[\p{Cc}\p{Cs}\uFFFE\uFFFF]/gu, "").replaceAll(/[&<>"]/g, (letter) => ESCAPED[letter]);
}

function short(number) {
  return Math.round(10 * number) / 10;
}

function box(...sides) {
  const [x, y, w, h] = sides.map(short);
  return `M${x} ${y}h${w}v${h}h${-w}z`;
}
