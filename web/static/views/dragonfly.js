// SPDX-License-Identifier: Apache-2.0
/** A dragonfly as a circle of groups. */

import { spokenBytes, spokenSeconds } from "../core/figures.js";
import { counted } from "../core/words.js";
import { svgEl } from "../ui/dom.js";
import { label, lettersFor, line, MEDIUM, pairs, round, roomy, SMALL, tally, text, twoLines, unitOfRouters, widthOf } from "./slide.js";

/** Units from the circle to the names at it, and from those to the edge. */
const [NEAR, EDGE] = [{ marked: 44, other: 28 }, 16];

/** Units of a circle's rim that a name within it leaves free. */
const RIM = 24;

/** The least circle that is worth drawing. */
const LEAST = 90;

/** Groups in a circle, what joins them across it. */
export function dragonfly(svg, shown) {
  const { machine, rows, found, group } = shown;
  const unit = unitOfRouters(machine);
  if (group >= 0) return inside(svg, shown, unit);
  const marked = tally(rows.map((row) => machine.coords[0][row]));
  const { a, b, seconds, load } = found.prediction.groups;
  const weight = seconds.some(Boolean) ? seconds : load;
  const top = Math.max(...weight, 0);
  const between = weight.map((value, i) => ({ a: a[i], b: b[i], seconds: value, share: value / shown.most, first: value === top }));
  const busy = new Map(between.filter((link) => link.a === link.b).map((link) => [link.a, link]));
  const all = [...new Set(machine.coords[0])].sort((x, y) => x - y);
  const items = all.map((id) => ({ id, name: `g${id}`, detail: marked.has(id) ? counted(marked.get(id), "node") : "", inside: busy.get(id)?.seconds, worst: busy.get(id)?.first ?? false, marked: marked.has(id), open: id }));
  const edges = between.filter((link) => link.a !== link.b && at(all, link)).sort((x, y) => x.seconds - y.seconds);
  return circle(svg, { ...shown, spoken: seconds.some(Boolean) ? spokenSeconds : spokenBytes }, items, edges);
}

/** Whether both groups of a link are drawn. */
function at(all, { a, b }) {
  return all.includes(a) && all.includes(b);
}

/** The routers of one group. */
function inside(svg, shown, unit) {
  const { machine, rows, found, group } = shown;
  const marked = tally(rows.map((row) => machine.router[row]));
  const names = machine.answer.routers.name;
  const items = names.flatMap((name, id) => (unit[id] === group ? [{ id, name, detail: "", marked: marked.has(id), open: -1 }] : []));
  return circle(svg, shown, items, pairs(found.prediction.links, shown.most, (router) => (unit[router] === group ? router : -1)));
}

/** Things around a circle, what joins them across it; the busiest is named. */
function circle(svg, shown, items, edges) {
  const { theme, hue, frame } = shown;
  const { at, step } = around(items);
  const radius = radiusOf(items, at, frame);
  /** @returns {[number, number]} */
  const point = (angle, far) => [frame.x + far * Math.cos(angle), frame.y + far * Math.sin(angle)];
  const ends = ({ a, b }) => [point(at.get(a), radius), point(at.get(b), radius)];
  const chord = (edge) => {
    const [from, to] = ends(edge);
    return `M${from.map(round)}Q${bend(from, to, frame, radius).map(round)} ${to.map(round)}`;
  };
  for (const edge of edges) svg.append(line(theme, edge.share, chord(edge), 0.9));
  for (const item of items) {
    const angle = at.get(item.id);
    const half = step(item) * 0.44;
    const wide = half > Math.PI / 2 ? 1 : 0;
    const [outer, inner] = [radius + (item.marked ? 26 : 14), radius + 2];
    const corners = [point(angle - half, outer), point(angle + half, outer), point(angle + half, inner), point(angle - half, inner)].map(([x, y]) => `${round(x)},${round(y)}`);
    const arc = `M${corners[0]}A${outer} ${outer} 0 ${wide} 1 ${corners[1]}L${corners[2]}A${inner} ${inner} 0 ${wide} 0 ${corners[3]}Z`;
    svg.append(svgEl("path", { d: arc, fill: item.marked ? hue : theme.vacant, "data-open": item.open, class: item.open >= 0 ? "opens" : null }));
    if (item.inside) {
      const band = [point(angle - half, radius - 8), point(angle + half, radius - 8)].map(([x, y]) => `${round(x)},${round(y)}`);
      svg.append(line(theme, item.inside / shown.most, `M${band[0]}A${radius - 8} ${radius - 8} 0 ${wide} 1 ${band[1]}`));
    }
  }
  const places = new Map(items.map((item) => [item, placeOfName(item, at.get(item.id), point, radius)]));
  for (const item of roomy(items, (one) => places.get(one).box)) named(svg, item, places.get(item), theme);
  const top = edges.find((edge) => edge.first) ?? edges.at(-1);
  const worst = items.find((item) => item.worst);
  const spoken = shown.spoken ?? spokenSeconds;
  if (worst) labelWithin(svg, shown, point(at.get(worst.id), 0.75 * radius), `inside ${worst.name}: ${spoken(worst.inside)}`, radius);
  else if (top) labelWithin(svg, shown, middleOf(...ends(top), frame, radius), `${nameIn(items, top.a)} \u2013 ${nameIn(items, top.b)}: ${spoken(top.seconds)}`, radius);
}

/** Name the busiest near a point, as far towards the middle as lets the name end within the circle. */
function labelWithin(svg, shown, [x, y], words, radius) {
  const { frame } = shown;
  for (const share of [1, 0.75, 0.5, 0.25, 0]) {
    const down = share * (y - frame.y);
    const half = Math.sqrt(Math.max((radius - RIM) ** 2 - (Math.abs(down) + MEDIUM) ** 2, 0));
    if (lettersFor(words, 2 * half) !== MEDIUM && share > 0) continue;
    label(svg, shown, [frame.x + share * (x - frame.x), frame.y + down], words, { left: frame.x - half, right: frame.x + half });
    return;
  }
}

/** How large the circle may be, so that all names at its sides have room. */
function radiusOf(items, at, frame) {
  const right = Math.min(frame.x, frame.width - frame.x) - EDGE;
  const most = items.map((item) => {
    const side = Math.cos(at.get(item.id));
    if (anchorOf(side) === "middle") return frame.reach;
    return (right - sizeOf(item).wide) / Math.abs(side) - (item.marked ? NEAR.marked : NEAR.other);
  });
  return Math.max(Math.min(frame.reach, ...most), LEAST);
}

/** The angle of each thing, and how much room it has: those with marked nodes two thirds of the circle together. */
function around(items) {
  const marked = items.filter((item) => item.marked).length;
  const others = items.length - marked;
  const weight = (item) => (item.marked || !marked ? 1 : Math.min(1, marked / (2 * others)));
  const whole = items.reduce((sum, item) => sum + weight(item), 0);
  const step = (item) => (2 * Math.PI * weight(item)) / whole;
  const at = new Map();
  let angle = -Math.PI / 2 - (items.length ? step(items[0]) / 2 : 0);
  for (const item of items) {
    at.set(item.id, angle + step(item) / 2);
    angle += step(item);
  }
  return { at, step };
}

/** Where a chord is pulled to: near the rim between neighbours, near the middle across the circle. */
function bend(from, to, frame, radius) {
  const pull = 0.3 + 0.25 * (Math.hypot(from[0] - to[0], from[1] - to[1]) / radius);
  return [frame.x, frame.y].map((m, k) => pull * m + ((1 - pull) / 2) * (from[k] + to[k]));
}

/** @returns {any} the middle of a chord */
function middleOf(from, to, frame, radius) {
  return bend(from, to, frame, radius).map((value, k) => 0.25 * (from[k] + to[k]) + 0.5 * value);
}

function nameIn(items, id) {
  return items.find((item) => item.id === id)?.name ?? "";
}

/** How a text is anchored that stands at the left (below 0) or right of something. */
function anchorOf(side) {
  return side > 0.2 ? "start" : side < -0.2 ? "end" : "middle";
}

/** How wide and high the words at an item's arc are, and their letters. */
function sizeOf({ name, detail, marked }) {
  const size = marked ? MEDIUM : SMALL;
  const wide = Math.max(widthOf(`${name}:`, size, Boolean(marked)), widthOf(detail ?? "", size));
  return { size, wide, high: (marked && detail ? 2.2 : 1.1) * size };
}

/** Where an item's name stands: outside its arc, and the room that it takes. */
function placeOfName(item, angle, point, radius) {
  const [x, y] = point(angle, radius + (item.marked ? NEAR.marked : NEAR.other));
  const { size, wide, high } = sizeOf(item);
  const anchor = anchorOf(Math.cos(angle));
  const left = x - { start: 0, middle: wide / 2, end: wide }[anchor];
  const top = y - (high / 2) * (1 - Math.sin(angle)); // above a circle's top, below its bottom
  return { x, size, anchor, box: { x: left, y: top, w: wide, h: high } };
}

/** Write a name beside its arc. */
function named(svg, { name, detail, marked }, { x, size, anchor, box }, theme) {
  const y = round(box.y + 0.85 * size);
  if (marked && detail) twoLines(svg, round(x), y, [name, detail], { size, fill: theme.ink, anchor });
  else text(svg, round(x), y, name, { size, fill: marked ? theme.ink : theme.soft, anchor, weight: marked ? 650 : 400 });
}
