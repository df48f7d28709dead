// SPDX-License-Identifier: Apache-2.0
/** Traffic drawn for the back row, with its words and its scale. */

import { spokenBytes, spokenLoad, spokenRange, spokenSeconds } from "../core/figures.js";
import { grouped } from "../core/words.js";
import { svgEl } from "../ui/dom.js";
import { dragonfly } from "./dragonfly.js";
import { LARGE, line, MIDDLE, nameOf, SLIDE, SMALL, text, unitOfRouters } from "./slide.js";
import { torus } from "./spacetorus.js";
import { tree } from "./switchtree.js";

/** Letters in a line of what stands above a picture. */
const LINE = 36;

/** How much smaller a picture is drawn that stands next to another one: below its lines of text. */
const SMALLER = 0.84;

/** Width of a picture that stands beside another one; a tree needs all of it. */
const NARROW = 1200;
/**
 * Draw a prediction.
 * @param {Object} shown `machine`, `theme`, `found` (answer of describe), `rows`, `title`, `hue` of the nodes,
 *   `most` seconds of the darkest line, `turn` and `tilt` of a torus in radians, `group` whose routers are shown (-1: all groups),
 *   `both` where it stands beside another one
 * @returns {SVGElement}
 */
export function trafficPicture(shown) {
  const { theme, found, title } = shown;
  const { kind } = shown.machine.answer;
  const draw = { dragonfly, "dragonfly+": dragonfly, torus }[kind] ?? tree;
  const { height } = SLIDE;
  const width = shown.both && draw !== tree ? NARROW : SLIDE.width;
  const svg = svgEl("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "font-family": "system-ui, sans-serif", "aria-label": `${title}. ${found.sentence}` });
  svg.append(svgEl("rect", { width, height, fill: theme.map }));
  const sheet = svgEl("g", width === NARROW ? { transform: `translate(${NARROW / 2 - SMALLER * MIDDLE.x} ${545 - SMALLER * MIDDLE.y}) scale(${SMALLER})` } : {});
  svg.append(sheet);
  draw(sheet, shown);
  text(svg, 40, 62, title, { size: Math.min(LARGE, (width - 80) / (0.57 * title.length)), weight: 650, fill: theme.ink });
  head(svg, shown, width);
  scale(svg, shown);
  return svg;
}

/** What the picture says in words: the time, and the busiest link of what is shown. */
function head(svg, { machine, found, theme, group }, width) {
  const { links, between, binding } = found.prediction;
  const time = found.said ?? (found.timeless ? `no time: ${found.timeless}` : `${spokenRange(between)}: ${binding}`);
  const inside = machine.answer.kind.startsWith("dragonfly") && group >= 0;
  const unit = inside ? unitOfRouters(machine) : null;
  const busiest = inside ? links.source.findIndex((source, i) => unit[source] === group && unit[links.target[i]] === group) : 0;
  const where = inside ? `busiest inside g${group}` : "busiest";
  const words = links.name[busiest] ? `${where}: ${nameOf(links, busiest)}, ${spokenLoad(links, busiest)}` : inside ? `no link inside g${group} is among the busiest` : "no traffic leaves a router";
  const some = inside && links.name.length < links.total ? [`links among the ${grouped(links.name.length)} busiest of ${grouped(links.total)}`] : [];
  const most = width === NARROW ? 2 * LINE : LINE;
  [time, words, ...some].flatMap((text) => wrapped(text, most)).slice(0, 5).forEach((line, i) => text(svg, 40, 104 + 34 * i, line, { fill: theme.soft }));
}

/** A text in lines of at most so many letters. */
function wrapped(words, most) {
  const lines = [""];
  for (const word of words.split(" ")) {
    if (lines.at(-1) && lines.at(-1).length + word.length >= most) lines.push(word);
    else lines.push(`${lines.pop()} ${word}`.trim());
  }
  return lines;
}

/** What width and colour mean. */
function scale(svg, { theme, most, found, shared }) {
  for (let i = 0; i <= 10; i++) svg.append(line(theme, i / 10, `M${40 + 22 * i} 850h22`));
  const { links } = found.prediction;
  text(svg, 40, 826, shared ? "busiest link, one scale for both" : "busiest link", { size: SMALL, fill: theme.soft });
  text(svg, 40, 886, "0", { size: SMALL, fill: theme.soft });
  text(svg, 282, 886, links.seconds[0] > 0 || !links.load.length ? spokenSeconds(most) : spokenBytes(most), { size: SMALL, fill: theme.soft, anchor: "end" });
}
