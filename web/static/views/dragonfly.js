// SPDX-License-Identifier: Apache-2.0
/** A dragonfly as a circle of groups. */

import { spokenBytes, spokenSeconds } from "../core/figures.js";
import { counted } from "../core/words.js";
import { svgEl } from "../ui/dom.js";
import { label, line, MEDIUM, MIDDLE, pairs, round, SMALL, tally, text, unitOfRouters } from "./slide.js";

const RADIUS = 330;

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
  const { theme, hue } = shown;
  const { at, step } = around(items);
  /** @returns {[number, number]} */
  const point = (angle, radius) => [MIDDLE.x + radius * Math.cos(angle), MIDDLE.y + radius * Math.sin(angle)];
  const chord = ({ a, b }) => {
    const [from, to] = [point(at.get(a), RADIUS), point(at.get(b), RADIUS)];
    return `M${from.map(round)}Q${bend(from, to).map(round)} ${to.map(round)}`;
  };
  for (const edge of edges) svg.append(line(theme, edge.share, chord(edge), 0.9));
  for (const item of items) {
    const angle = at.get(item.id);
    const half = step(item) * 0.44;
    const wide = half > Math.PI / 2 ? 1 : 0;
    const [outer, inner] = [RADIUS + (item.marked ? 26 : 14), RADIUS + 2];
    const ends = [point(angle - half, outer), point(angle + half, outer), point(angle + half, inner), point(angle - half, inner)].map(([x, y]) => `${round(x)},${round(y)}`);
    const arc = `M${ends[0]}A${outer} ${outer} 0 ${wide} 1 ${ends[1]}L${ends[2]}A${inner} ${inner} 0 ${wide} 0 ${ends[3]}Z`;
    svg.append(svgEl("path", { d: arc, fill: item.marked ? hue : theme.vacant, "data-open": item.open, class: item.open >= 0 ? "opens" : null }));
    if (item.inside) {
      const band = [point(angle - half, RADIUS - 8), point(angle + half, RADIUS - 8)].map(([x, y]) => `${round(x)},${round(y)}`);
      svg.append(line(theme, item.inside / shown.most, `M${band[0]}A${RADIUS - 8} ${RADIUS - 8} 0 ${wide} 1 ${band[1]}`));
    }
  }
  const taken = [];
  for (const item of [...items].sort((a, b) => b.marked - a.marked)) {
    const angle = at.get(item.id);
    named(svg, item, point(angle, RADIUS + (item.marked ? 38 : 26)), Math.cos(angle), { theme, many: items.length > 40, taken });
  }
  const top = edges.find((edge) => edge.first) ?? edges.at(-1);
  const worst = items.find((item) => item.worst);
  if (worst) label(svg, shown, point(at.get(worst.id), RADIUS - 62), `inside ${worst.name}: ${(shown.spoken ?? spokenSeconds)(worst.inside)}`, beside(-Math.cos(at.get(worst.id))));
  else if (top) label(svg, shown, chordMiddle(point(at.get(top.a), RADIUS), point(at.get(top.b), RADIUS)), `${nameIn(items, top.a)} \u2013 ${nameIn(items, top.b)}: ${(shown.spoken ?? spokenSeconds)(top.seconds)}`);
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
function bend(from, to) {
  const pull = 0.3 + 0.25 * (Math.hypot(from[0] - to[0], from[1] - to[1]) / RADIUS);
  return [MIDDLE.x, MIDDLE.y].map((m, k) => pull * m + ((1 - pull) / 2) * (from[k] + to[k]));
}

function nameIn(items, id) {
  return items.find((item) => item.id === id)?.name ?? "";
}

/** How a text is anchored that stands at the left (below 0) or right of something. */
function beside(side) {
  return side > 0.2 ? "start" : side < -0.2 ? "end" : "middle";
}

/** Write a name beside its arc, unless it would stand on another one. */
function named(svg, { name, detail, marked }, [x, y], side, { theme, many, taken }) {
  const anchor = beside(side);
  const size = (marked ? MEDIUM : SMALL) * (many ? 0.8 : 1);
  const words = marked && detail ? `${name}: ${detail}` : name;
  const wide = 0.6 * size * words.length;
  const left = x - { start: 0, middle: wide / 2, end: wide }[anchor];
  if (taken.some((other) => Math.abs(other.y - y) < size && left < other.left + other.wide && other.left < left + wide)) return;
  taken.push({ left, wide, y });
  text(svg, round(x), round(y + size / 3), words, { size, fill: marked ? theme.ink : theme.soft, anchor, weight: marked ? 650 : 400 });
}

/** @returns {any} */
function chordMiddle(from, to) {
  return bend(from, to).map((value, k) => 0.25 * (from[k] + to[k]) + 0.5 * value);
}
