// SPDX-License-Identifier: Apache-2.0
/** Traffic drawn for the back row, with its words and its scale. */

import { spokenBytes, spokenLoad, spokenRange, spokenSeconds } from "../core/figures.js";
import { grouped } from "../core/words.js";
import { svgEl } from "../ui/dom.js";
import { dragonfly } from "./dragonfly.js";
import { FRAMES, line, MEDIUM, nameOf, SMALL, text, unitOfRouters, widthOf } from "./slide.js";
import { torus } from "./spacetorus.js";
import { tree } from "./switchtree.js";

/** Units that a name takes above a picture, at most. */
const ABOVE = 110;

/**
 * Draw a prediction.
 * @param {Object} shown `machine`, `theme`, `found` (answer of describe), `rows`, `title`, `hue` of the nodes,
 *   `most` seconds of the darkest line, `turn` and `tilt` of a torus in radians, `group` whose routers are shown (-1: all groups),
 *   `frame` where it is drawn (`FRAMES` of slide.js)
 * @returns {SVGElement}
 */
export function trafficPicture(shown) {
  const { theme, found, title } = shown;
  const { kind } = shown.machine.answer;
  const draw = { dragonfly, "dragonfly+": dragonfly, torus }[kind] ?? tree;
  const { width, height } = shown.frame;
  const svg = svgEl("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "font-family": "system-ui, sans-serif", "aria-label": `${title}. ${found.sentence}` });
  svg.append(svgEl("rect", { width, height, fill: theme.map }));
  const low = head(svg, shown, entitle(svg, shown));
  draw(svg, { ...shown, frame: loweredTo(shown.frame, low) });
  scale(svg, shown);
  return svg;
}

/** Write the title, in two lines where one has no room for it; returns where the next line stands. */
function entitle(svg, { theme, title, frame }) {
  const room = frame.width - 80;
  const size = [frame.title, MEDIUM].find((each) => widthOf(title, each, true) <= room) ?? MEDIUM;
  const lines = wrapped(title, Math.floor(room / widthOf("x", size, true)));
  lines.forEach((words, i) => text(svg, 40, 62 + 36 * i, words, { size, weight: 650, fill: theme.ink }));
  return 68 + 36 * lines.length;
}

/** A frame whose picture and the names at it begin below a text that reaches so low. */
function loweredTo(frame, low) {
  if (frame === FRAMES.wide) return frame; // there the text stands beside the picture
  const less = Math.max(low + ABOVE - (frame.y - frame.reach), 0) / 2;
  return { ...frame, y: frame.y + less, reach: frame.reach - less, top: Math.max(frame.top, low + ABOVE) };
}

/** What the picture says in words, and how low that reaches: the time, and the busiest link of what is shown. */
function head(svg, { machine, found, theme, group, frame }, below) {
  const { links, between, limited_by_text } = found.prediction;
  const limit = limited_by_text?.replace("->", " \u2192 ");
  const time = found.said ?? (found.timeless ? `no time: ${found.timeless}` : `${spokenRange(between)}: ${limit}`);
  const inside = machine.answer.kind.startsWith("dragonfly") && group >= 0;
  const unit = inside ? unitOfRouters(machine) : null;
  const busiest = inside ? links.source.findIndex((source, i) => unit[source] === group && unit[links.target[i]] === group) : 0;
  const where = inside ? `busiest inside g${group}` : "busiest";
  const words = links.name[busiest] ? `${where}: ${nameOf(links, busiest)}, ${spokenLoad(links, busiest)}` : inside ? `no link inside g${group} is among the busiest` : "no traffic leaves a router";
  const some = inside && links.name.length < links.total ? [`links among the ${grouped(links.name.length)} busiest of ${grouped(links.total)}`] : [];
  const lines = [time, words, ...some].flatMap((said) => wrapped(said, frame.letters)).slice(0, 5);
  lines.forEach((line, i) => text(svg, 40, below + 34 * i, line, { fill: theme.soft }));
  return below + 34 * (lines.length - 1) + 10;
}

/** A text in lines of at most so many letters. */
function wrapped(words, most) {
  const lines = [""];
  for (const word of words.split(/(?<!\d) /)) { // a number keeps its unit
    if (lines.at(-1) && lines.at(-1).length + word.length >= most) lines.push(word);
    else lines.push(`${lines.pop()} ${word}`.trim());
  }
  return lines;
}

/** What width and colour mean. */
function scale(svg, { theme, most, found, shared, frame }) {
  const { links } = found.prediction;
  const low = frame.height - 14;
  const words = (x, y, said, style = {}) => text(svg, x, y, said, { size: SMALL, fill: theme.soft, ...style });
  for (let i = 0; i <= 10; i++) svg.append(line(theme, i / 10, `M${40 + 22 * i} ${low - 36}h22`));
  const below = frame === FRAMES.narrow ? [300, low - 29] : [40, low - 60];
  words(...below, shared ? "busiest link, one scale for both" : "busiest link");
  words(40, low, "0");
  words(282, low, links.seconds[0] > 0 || !links.load.length ? spokenSeconds(most) : spokenBytes(most), { anchor: "end" });
}
