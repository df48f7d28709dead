// SPDX-License-Identifier: Apache-2.0
/** Names of what is seen: boxes, switches, rulers along a floor of cabinets. */

import { LEAST_STRIP } from "../core/scene.js";

/** CSS pixels of the smallest letters. */
export const LEAST_FONT = 9;

/** CSS pixels of a box that is named even without a strip of its own. */
const LEAST_WIDE = 18;

/** CSS pixels between a ruler and the cabinets. */
const RULER_GAP = 5;

/**
 * The names that have room.
 * @param {import("../core/scene.js").Scene} scene
 * @param {import("../core/camera.js").Camera} camera
 * @returns {Array<Object>} `text`, `left`, `top`, `size` of its letters, all in CSS pixels; `width` and `height` of the room,
 *   `anchor` of what is no box; `level` (-1: none) and `box` that it names
 */
export function labelsIn(scene, camera) {
  const { unit } = camera;
  const labels = [];
  const strips = stripsOf(scene, unit);
  strips.forEach((strip, i) => strip && boxLabels(scene, camera, i, strip, labels));
  for (const text of scene.texts) if (text.size * unit >= LEAST_STRIP) labels.push(textLabel(text, camera));
  if (scene.spines) spineLabels(scene.spines, camera, labels);
  const cabinets = scene.levelNamed("cabinet");
  if (cabinets >= 0 && !strips[cabinets]) rulers(scene.levels[cabinets], scene.levels[0], camera, labels);
  return labels;
}

/**
 * Height of each level's label strip in CSS pixels, 0 where its labels have no room. Where a
 * strip is too low it takes those of the levels inside, whose labels are left out then; the
 * outermost boxes, if they are wide, are named in the gap above them even so.
 */
function stripsOf(scene, unit) {
  const tops = scene.levels.map((level) => Math.max(scene.pad[level.name]?.[0] ?? 0, 0) * unit);
  const strips = tops.map(() => 0);
  for (let i = 0; i < tops.length; i++) {
    let strip = tops[i];
    let last = i;
    while (tops[i] && strip < LEAST_STRIP && last + 1 < tops.length) strip += tops[++last];
    if (strip >= LEAST_STRIP) strips[i] = strip;
    if (strip >= LEAST_STRIP) i = last;
  }
  const widest = scene.levels[0]?.count ? scene.levels[0].w[0] * unit : 0;
  if (strips.length && tops[0] && !strips.some(Boolean) && widest >= LEAST_WIDE) strips[0] = tops[0];
  return strips;
}

/** Labels of the boxes in sight whose width has room for them. */
function boxLabels(scene, camera, i, strip, into) {
  const level = scene.levels[i];
  const size = Math.min(Math.max(strip * 0.78, LEAST_FONT), 17);
  const { unit } = camera;
  const [x0, y0, across, down] = camera.window;
  for (let box = 0; box < level.count; box++) {
    const text = level.label[box];
    const [x, y, w] = [level.x[box], level.y[box], level.w[box]];
    if (!text || x > x0 + across || y > y0 + down || x + w < x0 || y + level.h[box] < y0) continue;
    if (text.length * size * 0.6 > w * unit) continue;
    const [left, top] = camera.css(x, y);
    const height = Math.max(strip, LEAST_STRIP);
    into.push({ text, left, top: top + strip - height, width: w * unit, height, size, level: i, box });
  }
}

/** Names of the switches above the leaves, in their boxes. */
function spineLabels(spines, camera, into) {
  const { unit } = camera;
  for (let i = 0; i < spines.count; i++) {
    const size = Math.min(spines.h[i] * unit * 0.55, 15, (spines.w[i] * unit) / (0.62 * spines.label[i].length));
    if (size < LEAST_FONT) continue;
    const [left, top] = camera.css(spines.x[i], spines.y[i]);
    into.push({ text: spines.label[i], left, top, width: spines.w[i] * unit, height: spines.h[i] * unit, size, level: -1, anchor: "centred" });
  }
}

/** Where cabinets are too small to be named: their columns along the top, their rows at the left. */
function rulers(cabinets, outer, camera, into) {
  const columns = new Map();
  const rows = new Map();
  cabinets.label.forEach((label, box) => {
    const match = /^c(\d+)-(\d+)$/.exec(label);
    if (!match) return;
    columns.set(match[1], cabinets.x[box] + cabinets.w[box] / 2);
    rows.set(match[2], cabinets.y[box] + cabinets.h[box] / 2);
  });
  const room = cabinets.w[0] * camera.unit;
  const step = Math.max(1, Math.ceil(26 / room));
  const [edge, ceiling] = camera.css(Math.min(...outer.x), Math.min(...outer.y));
  const beside = Math.max(edge - RULER_GAP, 22);
  const above = Math.max(ceiling - RULER_GAP - 12, 2);
  for (const [name, x] of columns) {
    const [left] = camera.css(x, 0);
    if (Number(name) % step === 0 && left > 24) into.push({ text: `c${name}`, left, top: above, size: 10, anchor: "ruler middle", level: -1 });
  }
  for (const [name, y] of rows) {
    const [, top] = camera.css(0, y);
    if (top > 20 && top < camera.height / camera.ratio - 6) into.push({ text: `-${name}`, left: beside, top: top - 6, size: 10, anchor: "ruler end", level: -1 });
  }
}

function textLabel(text, camera) {
  const [left, top] = camera.css(text.x, text.y);
  const size = Math.min(text.size * camera.unit, 14);
  return { text: text.text, left, top: top - size, size, anchor: text.anchor, level: -1 };
}
