// SPDX-License-Identifier: Apache-2.0
/** What is drawn over the nodes: links, outlines, borders and numbers of jobs. */

import { LEAST_FONT } from "./labels.js";

/** CSS pixels that more than a few links must be long in the mean: shorter ones only hide the nodes. */
const LEAST_LINK = 26;
const FEW = 24;

/** Half the width of a bold letter, in its height. */
const WIDE = 0.35;

/** CSS pixels of a node from which jobs have borders, and from which these may be as dark as the ink. */
const [LEAST_BORDERED, WELL_BORDERED] = [4, 9];

/**
 * Draw what lies over the nodes.
 * @param {CanvasRenderingContext2D|import("./paper.js").Paper} context
 * @param {import("../core/camera.js").Camera} camera
 * @param {Object} theme
 * @param {Object} over `jobs` of jobOutlines(), `marks` of markOutlines(), `lines` of linksOf() and `outlined` boxes
 */
export function drawOverlay(context, camera, theme, { jobs, marks = [], lines, outlined }) {
  const ink = inkOf(lines, camera.unit);
  const taken = [];
  if (theme) for (const mark of marks) drawBorder(context, mark, camera, theme);
  const named = drawBorders(context, jobs, camera, theme);
  for (const line of lines) drawLink(context, line, camera, ink);
  if (theme) writeNames(context, marks.map(({ name, colour }) => ({ ...name, colour })).reverse(), camera, theme, taken);
  if (named) writeNames(context, jobs.names, camera, theme, taken);
  for (const box of outlined) drawOutline(context, box, camera);
}

function drawOutline(context, { x, y, w, h, colour, wide = 2 }, camera) {
  const [left, top] = camera.pixel(x, y);
  const thick = Math.min(wide, Math.max(1, (0.3 * w * camera.scale) / camera.ratio)) * camera.ratio;
  context.strokeStyle = colour;
  context.lineWidth = thick;
  context.strokeRect(left - thick / 2, top - thick / 2, w * camera.scale + thick, h * camera.scale + thick);
}

/** A mark's border: thick and of its colour, on a ground that keeps it apart from what it borders on. */
function drawBorder(context, { borders, colour }, camera, theme) {
  const css = camera.k / camera.ratio;
  const wide = Math.max(1.5, Math.min(css / 6, 4)) * camera.ratio;
  for (const [style, width] of [[theme.map, wide + camera.ratio], [colour, wide]]) {
    context.strokeStyle = style;
    context.lineWidth = width;
    strokeAll(context, borders, camera);
  }
}

function strokeAll(context, borders, camera) {
  context.beginPath();
  for (const [x0, y0, x1, y1] of borders) {
    context.moveTo(...camera.pixel(x0, y0));
    context.lineTo(...camera.pixel(x1, y1));
  }
  context.stroke();
}

/** Borders around jobs, where nodes are large enough for them; returns whether they are. */
function drawBorders(context, { borders }, camera, theme) {
  const css = camera.k / camera.ratio;
  if (!theme || css < LEAST_BORDERED) return false;
  context.strokeStyle = theme.ink;
  context.lineWidth = Math.max(1, Math.min(css / 8, 2)) * camera.ratio;
  context.globalAlpha = css < WELL_BORDERED ? 0.4 : 1;
  strokeAll(context, borders, camera);
  context.globalAlpha = 1;
  return true;
}

/** Names in the middle of what they name, where they have room; marks' in their own colour, and always. */
function writeNames(context, names, camera, theme, taken) {
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineJoin = "round";
  for (const { text, x, y, side, colour } of names) {
    const most = 18 * camera.ratio;
    const size = colour ? Math.max(Math.min(side * camera.scale, most), 12 * camera.ratio) : Math.min((side * camera.scale) / (0.62 * text.length), most);
    if (size < LEAST_FONT * camera.ratio) continue;
    const [left, top, half] = [...camera.pixel(x, y), WIDE * size * text.length + size / 6]; // with the ground around it
    if (taken.some((other) => Math.abs(other.left - left) < other.half + half && Math.abs(other.top - top) < 0.65 * (other.size + size))) continue;
    taken.push({ left, top, half, size });
    context.font = `600 ${size}px system-ui, sans-serif`;
    context.strokeStyle = theme.map;
    context.lineWidth = size / 3;
    context.strokeText(text, left, top);
    context.fillStyle = colour ?? theme.ink;
    context.fillText(text, left, top);
  }
}

/** How dark a line is drawn: many or short ones lightly, so that the nodes stay in sight. */
function inkOf(lines, unit) {
  const length = lines.reduce((sum, { x0, y0, x1, y1 }) => sum + Math.hypot(x1 - x0, y1 - y0), 0) * unit;
  const mean = length / (lines.length || 1);
  if (mean < LEAST_LINK && lines.length > FEW) return 0;
  return Math.min(Math.max((24 / (lines.length || 1)) * Math.min(mean / 90, 1), 0.035), 0.85);
}

function drawLink(context, { x0, y0, x1, y1, share, colour }, camera, ink) {
  const [ax, ay] = camera.pixel(x0, y0);
  const [bx, by] = camera.pixel(x1, y1);
  const bend = 0.12;
  context.strokeStyle = colour;
  context.globalAlpha = ink * (0.4 + 0.6 * share);
  context.lineWidth = (0.6 + 1.4 * share) * camera.ratio;
  context.beginPath();
  context.moveTo(ax, ay);
  context.quadraticCurveTo((ax + bx) / 2 + (ay - by) * bend, (ay + by) / 2 + (bx - ax) * bend, bx, by);
  context.stroke();
  context.globalAlpha = 1;
}
