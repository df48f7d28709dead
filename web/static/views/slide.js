// SPDX-License-Identifier: Apache-2.0
/** What the pictures of the traffic share: the slide, texts and lines on it, links by pairs. */

import { rampColour } from "../draw/theme.js";
import { svgEl } from "../ui/dom.js";

/** A slide: 16 by 9. */
export const SLIDE = { width: 1600, height: 900 };

/**
 * Where a picture is drawn: on a slide, next to another one, and on a phone. `x` and `y` are the middle of what is
 * round and `reach` its most radius; `top` and `bottom` the switches of a tree; `title` the size of the title and
 * `letters` those in a line below it.
 * Each is shown so wide that its letters are 10 pixels high at least.
 */
export const FRAMES = {
  wide: { ...SLIDE, x: 1040, y: 480, reach: 300, top: 300, bottom: 690, title: 38, letters: 38 },
  narrow: { width: 1200, height: 1000, x: 600, y: 562, reach: 275, top: 360, bottom: 760, title: 30, letters: 68 },
  tall: { width: 720, height: 1080, x: 360, y: 590, reach: 220, top: 400, bottom: 780, title: 32, letters: 39 },
};

/** Widths of the least busy line and of the busiest. */
const [THIN, THICK] = [1.5, 16];

/** Units between two names. */
const GAP = 10;

/** Letters in units of a picture. */
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

/** How wide a text is at most, bold or not, in the fonts that a page may have. */
export function widthOf(words, size, bold = false) {
  return (bold ? 0.65 : 0.61) * size * words.length;
}

/** The letters in which the busiest link's name has so much room, ground and all; undefined for none. */
export function lettersFor(words, room) {
  return [MEDIUM, SMALL].find((each) => widthOf(words, each, true) + 16 <= room);
}

/** The room that the busiest link's name takes near a point, null where it has none. */
export function labelBox({ frame }, [x, y], words, { left = 20, right = frame.width - 20 } = {}) {
  const size = lettersFor(words, right - left);
  if (!size) return null;
  const half = widthOf(words, size, true) / 2 + 8;
  const at = Math.min(Math.max(x, left + half), right - half);
  return { size, x: at - half, y: y - size, w: 2 * half, h: 1.36 * size };
}

/** The busiest link's name, on the picture; it is left out where it has no room, as the words above say it too. */
export function label(svg, shown, at, words, room) {
  const { theme } = shown;
  const box = labelBox(shown, at, words, room);
  if (!box) return;
  const { size, x, y, w, h } = box; // a ground of its own: no line runs through it
  svg.append(svgEl("rect", { x: round(x), y: round(y), width: round(w), height: round(h), rx: 6, fill: theme.map, "fill-opacity": 0.88 }));
  text(svg, round(x + w / 2), round(y + size), words, { size, fill: theme.ink, anchor: "middle", weight: 650, halo: theme.map });
}

/** A name and what stands below it, in one text. */
export function twoLines(svg, x, y, [name, detail], { size = MEDIUM, fill = "", anchor = "start", weight = 650 } = {}) {
  svg.append(svgEl("text", { y, "font-size": size, fill, "text-anchor": anchor }, svgEl("tspan", { x, "font-weight": weight, text: `${name}: ` }), svgEl("tspan", { x, dy: round(1.1 * size), text: detail })));
}

/** Whether two boxes leave room between them. */
export function apart(a, b) {
  return a.x + a.w + GAP < b.x || b.x + b.w + GAP < a.x || a.y + a.h < b.y || b.y + b.h < a.y;
}

/**
 * The things of a row or ring that are named: as many as have room, those with marked nodes before all, of the
 * others each or every second, fifth … one.
 * @param {Array<{marked: any}>} items in the order in which they stand
 * @param {function(any): {x: number, y: number, w: number, h: number}} boxOf the room that an item's name takes
 */
export function roomy(items, boxOf) {
  const added = (chosen, item) => {
    const box = boxOf(item);
    return chosen.every((other) => apart(other.box, box)) ? [...chosen, { item, box }] : chosen;
  };
  const first = items.filter((item) => item.marked).reduce(added, []);
  const others = items.filter((item) => !item.marked);
  for (const every of [1, 2, 5, 10, 20, 50, 100, 200, 500]) {
    const some = others.filter((_, i) => i % every === 0);
    const alone = some.reduce(added, []);
    if (alone.length === some.length) return some.reduce(added, first).map(({ item }) => item);
  }
  return first.map(({ item }) => item);
}

export function round(value) {
  return Math.round(value * 10) / 10;
}
