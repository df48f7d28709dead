// SPDX-License-Identifier: Apache-2.0
/** Plans side by side on a slide: each with its time and range, its gain, where it puts the job, and why. */

import { spokenRange, spokenSeconds, spokenTouches } from "../core/figures.js";
import { counted } from "../core/words.js";
import { cameraOn, drawMap } from "../draw/picture.js";
import { SHEET } from "../draw/sheet.js";
import { sheetOf } from "./slidefoot.js";

/** Pixels between two plans, and how high a map is at most. */
const [GAP, HIGHEST] = [36, 440];

/** Letters of a plan's name, of its time and of all else. */
const [NAME, TIME, WORDS] = [34, 38, 25];

/**
 * Draw the plans.
 * @param {import("./app.js").App} app
 * @param {Object} answer of compare, with the rows that are shown
 * @param {Array<Object>} cards `row`, `view` (the small map) and `title`
 * @param {Array<number>|null} window the part of the scene that the small maps show; null for all
 * @returns {string} an SVG
 */
export function planSlide(app, answer, cards, window) {
  const sheet = sheetOf(app, `Plans for ${counted(cards[0].row.node_rows.length, "node")} on ${app.machine.title}`, answer.sentence);
  const wide = (SHEET.width - 2 * SHEET.side - GAP * (cards.length - 1)) / cards.length;
  const slowest = Math.max(...cards.map(({ row }) => row.between.high), 1e-12);
  cards.forEach((card, i) => drawPlan(sheet, app, answer, card, { left: SHEET.side + i * (wide + GAP), wide, slowest, window }));
  return sheet.svg();
}

function drawPlan(sheet, app, { timeless }, { row, view, tag, gain }, { left, wide, slowest, window }) {
  const { theme, top } = sheet;
  const write = (text, y, style) => sheet.write(text, left, y, { room: wide, ...style });
  write(row.strategy, top + 30, { size: NAME, weight: 650 });
  write([tag, gain].filter(Boolean).join(": "), top + 70, { size: WORDS, colour: theme.soft });
  if (timeless) write(timeless, top + 120, { size: WORDS, colour: theme.soft });
  else {
    write(spokenRange(row.between), top + 120, { size: TIME, weight: 600 });
    write(`likely ${spokenSeconds(row.time_s)}`, top + 160, { size: WORDS, colour: theme.soft });
    sheet.bar(left, top + 194, wide, { likely: row.time_s / slowest, low: row.between.low / slowest, high: row.between.high / slowest });
  }
  const high = Math.min(wide / (app.scene.width / app.scene.height), HIGHEST);
  const camera = cameraOn(app.scene, Math.round(wide), Math.round(high));
  if (window) camera.fit(...window);
  else camera.fit();
  drawMap(sheet.paper, camera, { x: left, y: top + 222, w: camera.width, h: camera.height }, { machine: app.machine, scene: app.scene, theme, looks: view.tiles.looks, keys: view.tiles.keys, over: { jobs: { borders: [], names: [] }, lines: [], outlined: [] } });
  let y = top + 258 + high;
  for (const words of factsOf(row)) y = sheet.writeLines(words, left, y, { size: WORDS, colour: theme.ink, room: wide, most: 2 });
}

function factsOf(row) {
  const order = row.own_order?.slots ? "its own order of ranks" : `order ${row.order}`;
  const bound = row.bound_s > 0 ? [`${Math.round(row.percent_of_bound)} % of the attainable limit`] : [];
  return [spokenTouches(row.touches), row.limited_by_text, ...bound, order];
}
