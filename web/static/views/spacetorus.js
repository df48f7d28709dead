// SPDX-License-Identifier: Apache-2.0
/** A torus in space, which turns. */

import { spokenLoad } from "../core/figures.js";
import { svgEl } from "../ui/dom.js";
import { apart, label, labelBox, line, MEDIUM, nameOf, round, text, weightOf, widthOf } from "./slide.js";

/** The room of a name that is not written. */
const NOWHERE = { x: -1, y: -1, w: 0, h: 0 };

/** A torus in space. */
export function torus(svg, shown) {
  const { machine, rows, found, theme, hue, most } = shown;
  const extents = machine.answer.extents.slice(0, -1);
  const place = placesOf(machine, extents);
  const flat = projected(shown, extents);
  const names = frame(svg, shown, extents, flat);
  const { links } = found.prediction;
  const edges = [];
  links.source.forEach((source, i) => {
    const [a, b] = [place[source], place[links.target[i]]];
    if (a && b) edges.push({ a, b, i, share: weightOf(links)[i] / most });
  });
  for (const { a, b, share } of edges.reverse()) {
    for (const [from, to] of stretches(a, b, extents)) svg.append(line(theme, share * 0.8, `M${flat(from).slice(0, 2).map(round)}L${flat(to).slice(0, 2).map(round)}`, 0.35 + 0.6 * share));
  }
  const dots = [...new Set(rows.map((row) => machine.router[row]))].filter((router) => place[router]).map((router) => flat(place[router]));
  const size = Math.max(2.5, 76 / Math.max(...extents));
  for (const [x, y] of dots.sort((a, b) => a[2] - b[2])) svg.append(svgEl("circle", { cx: round(x), cy: round(y), r: round(size), fill: hue, stroke: theme.map, "stroke-width": 1.5 }));
  const top = edges.at(-1);
  if (!top) return;
  const [x, y] = flat(top.a.map((value, k) => (Math.abs(value - top.b[k]) > 1 ? value : (value + top.b[k]) / 2)));
  svg.append(svgEl("circle", { cx: round(x), cy: round(y), r: 22, fill: "none", stroke: theme.ink, "stroke-width": 4 }));
  const words = `${nameOf(links, 0)}: ${spokenLoad(links, 0)}`;
  const free = ([a, b]) => names.every((name) => apart(labelBox(shown, [a, b], words) ?? NOWHERE, name));
  label(svg, shown, [[x, y - 34], [x, y + 52], [x, y - 74]].find(free) ?? [x, y - 34], words);
}

/** Coordinates of every router; x is the fastest where the nodes do not say. */
function placesOf({ answer, router, coords }, extents) {
  const place = new Array(answer.routers.count).fill(null);
  if (extents.reduce((a, b) => a * b, 1) === place.length) {
    for (let i = 0; i < place.length; i++) {
      let rest = i;
      place[i] = extents.map((extent) => {
        const value = rest % extent;
        rest = Math.floor(rest / extent);
        return value;
      });
    }
  }
  router.forEach((at, row) => {
    if (at >= 0) place[at] = extents.map((_, axis) => coords[axis][row]);
  });
  return place;
}

/** From coordinates to the slide, and how near they are to the viewer. */
function projected({ turn, tilt, frame }, extents) {
  const three = [0, 1, 2].map((k) => extents[k] ?? 1);
  const scale = (2.4 * frame.reach) / Math.hypot(...three); // a corner never leaves the frame, however it is turned
  return (at) => {
    const [x, y, z] = [0, 1, 2].map((k) => (at[k] ?? 0) - (three[k] - 1) / 2);
    const [across, deep] = [x * Math.cos(turn) - y * Math.sin(turn), x * Math.sin(turn) + y * Math.cos(turn)];
    return [frame.x + scale * across, frame.y + scale * (deep * Math.sin(tilt) - z * Math.cos(tilt)), deep * Math.cos(tilt) + z * Math.sin(tilt)];
  };
}

/** The edges of the box, its axes named; returns the room that these names take. */
function frame(svg, { theme, machine }, extents, flat) {
  const ends = extents.map((extent) => [-0.6, extent - 0.4]);
  const corners = ends.reduce((all, pair) => all.flatMap((one) => pair.map((value) => [...one, value])), [[]]);
  for (const one of corners) {
    for (const [axis, [low, high]] of ends.entries()) {
      if (one[axis] !== low) continue;
      const other = one.map((value, k) => (k === axis ? high : value));
      svg.append(svgEl("path", { d: `M${flat(one).slice(0, 2).map(round)}L${flat(other).slice(0, 2).map(round)}`, stroke: theme.line, "stroke-width": 2, fill: "none" }));
    }
  }
  return extents.map((extent, axis) => {
    const [x, y] = flat(extents.map((_, k) => (k === axis ? extent : -1)));
    const words = `${machine.levels[axis]} ${extent}`;
    const wide = widthOf(words, MEDIUM);
    text(svg, round(x), round(y), words, { fill: theme.soft, anchor: "middle" });
    return { x: x - wide / 2, y: y - MEDIUM, w: wide, h: 1.3 * MEDIUM };
  });
}

/** A link as the stretches that are drawn of it: two short ones where it goes around. */
function stretches(a, b, extents) {
  const axis = a.findIndex((value, k) => Math.abs(value - b[k]) > 1 && extents[k] > 2);
  if (axis < 0) return [[a, b]];
  const beyond = (at, other) => at.map((value, k) => (k === axis ? value + (value < other[k] ? -0.5 : 0.5) : value));
  return [[a, beyond(a, b)], [b, beyond(b, a)]];
}
