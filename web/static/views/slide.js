// SPDX-License-Identifier: Apache-2.0
/** What the pictures of the traffic share: the slide, texts and lines on it, links by pairs. */

import { rampColour } from "../draw/theme.js";
import { svgEl } from "../ui/dom.js";

/** A slide: 16 by 9. */
export const SLIDE = { width: 1600, height: 900 };

export const MIDDLE = { x: 1110, y: 500 };

/** Widths of the least busy line and of the busiest. */
const [THIN, THICK] = [1.5, 16];

/** Letters in units of the slide. */
export const LARGE = 38;
export const MEDIUM = 27;
export const SMALL = 21;

/** Write a line in `size`, `fill`, `anchor`, `weight` and with a `halo` of a colour. */
export function text(svg, x, y, words, { size = MEDIUM, fill = "", anchor = "start", weight = 400, halo = "" } = {}) {
  const around = halo ? { stroke: halo, "stroke-width": size / 4, "paint-order": "stroke", "stroke-linejoin": "round" } : {};
  svg.append(svgEl("text", { x, y, "font-size": size, "font-weight": weight, fill, "text-anchor": anchor, ...around, text: words }));
}

/** A link's class and ends, without the number of its lane. */
export function nameOf(links, i) {
  return `${links.kinds[links.kind[i]]} ${links.name[i].replace("->", " \u2192 ").replace(/ \S*$/, (end) => (end.includes("\u2192") ? end : ""))}`;
}

export function line(theme, share, d, opacity = 1) {
  return svgEl("path", { d, fill: "none", stroke: shade(theme, share), "stroke-width": (THIN + (THICK - THIN) * share).toFixed(1), "stroke-opacity": opacity, "stroke-linecap": "butt" });
}

export function shade(theme, share) {
  return rampColour(theme.ramps.load, 0.2 + 0.8 * share);
}

/** The group of each router, also of one without nodes. */
export function unitOfRouters({ answer }) {
  return Int32Array.from(answer.routers.unit);
}

export function tally(values) {
  const seen = new Map();
  for (const value of values) seen.set(value, (seen.get(value) ?? 0) + 1);
  return seen;
}

/** What links are compared by: seconds, or bytes where no bandwidth is known. */
export function weightOf(links) {
  return links.seconds[0] > 0 ? links.seconds : links.load;
}

/** Links between pairs of something, each pair once with its busier direction, the busiest last. */
export function pairs(links, most, endOf) {
  const found = new Map();
  const weight = weightOf(links);
  links.source.forEach((source, i) => {
    const [a, b] = [endOf(source), endOf(links.target[i])].sort((x, y) => x - y);
    if (a < 0 || a === b) return;
    const known = found.get(`${a} ${b}`);
    if (!known || known.seconds < weight[i]) found.set(`${a} ${b}`, { a, b, seconds: weight[i], share: weight[i] / most, first: i === 0 });
  });
  return [...found.values()].sort((x, y) => x.seconds - y.seconds);
}

/** The busiest link's name, on the picture. */
export function label(svg, { theme }, [x, y], words, anchor = "middle") {
  const wide = 0.58 * MEDIUM * words.length + 16; // a ground of its own: no line runs through it
  const left = x - { start: 8, middle: wide / 2, end: wide - 8 }[anchor];
  svg.append(svgEl("rect", { x: round(left), y: round(y - MEDIUM), width: round(wide), height: 1.36 * MEDIUM, rx: 6, fill: theme.map, "fill-opacity": 0.88 }));
  text(svg, round(x), round(y), words, { fill: theme.ink, anchor, weight: 650, halo: theme.map });
}

export function round(value) {
  return Math.round(value * 10) / 10;
}
