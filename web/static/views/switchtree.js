// SPDX-License-Identifier: Apache-2.0
/** A fat tree with its cables. */

import { spokenLoad } from "../core/figures.js";
import { counted } from "../core/words.js";
import { svgEl } from "../ui/dom.js";
import { label, line, MEDIUM, pairs, round, roomy, SMALL, tally, text, widthOf } from "./slide.js";

/** Units beside the switches, and how high one is. */
const [EDGE, HIGH] = [40, 56];

/** Leaves below their spines. */
export function tree(svg, shown) {
  const { machine, rows, found, theme, hue, most, frame } = shown;
  const { links } = found.prediction;
  const names = machine.answer.routers.name;
  const marked = tally(rows.map((row) => machine.router[row]));
  const level = levelsOf(machine, links);
  const depth = Math.max(...level);
  const floors = Array.from({ length: depth + 1 }, (_, i) => [...level.keys()].filter((router) => level[router] === i));
  const place = new Map();
  const across = frame.width - 2 * EDGE;
  floors.forEach((routers, i) => {
    const y = frame.bottom - (depth ? (i * (frame.bottom - frame.top)) / depth : 0);
    routers.forEach((router, k) => place.set(router, [EDGE + (across * (k + 0.5)) / routers.length, y]));
  });
  const edges = pairs(links, most, (router) => router);
  for (const { a, b, share } of edges) {
    const [low, high] = [place.get(a), place.get(b)];
    svg.append(line(theme, share, `M${low.map(round)}C${round(low[0])} ${(low[1] + high[1]) / 2} ${round(high[0])} ${(low[1] + high[1]) / 2} ${high.map(round)}`, 0.9));
  }
  floors.forEach((routers, i) => {
    const wide = Math.min((across / routers.length) * 0.86, 220);
    for (const router of routers) {
      const [x, y] = place.get(router);
      svg.append(svgEl("rect", { x: round(x - wide / 2), y: i ? y - HIGH : y, width: round(wide), height: HIGH, rx: 6, fill: marked.has(router) ? hue : theme.box, stroke: theme.line, "stroke-width": 2 }));
    }
    nameFloor(svg, routers.map((router) => ({ name: names[router], nodes: marked.get(router) ?? 0, marked: marked.has(router), at: place.get(router) })), { wide, above: i > 0, theme, frame });
  });
  const top = edges.find((edge) => edge.first);
  if (!top) return;
  const [low, high] = [place.get(top.a), place.get(top.b)];
  label(svg, shown, [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2], `${names[top.a]} \u2013 ${names[top.b]}: ${spokenLoad(links, 0)}`);
}

/** Name the switches of a floor: in their boxes where these are wide enough, else outside as many as have room. */
function nameFloor(svg, switches, { wide, above, theme, frame }) {
  const longest = Math.max(...switches.map(({ name }) => name.length));
  const size = Math.min(MEDIUM, (wide - 8) / widthOf("x", 1) / longest);
  const inside = size >= SMALL;
  const detail = ({ nodes }) => (inside && wide > widthOf("100 nodes", SMALL) ? counted(nodes, "node") : String(nodes));
  const boxOf = (one) => {
    const w = widthOf(inside ? detail(one) : one.name, SMALL, true);
    return { x: Math.min(Math.max(one.at[0] - w / 2, 8), frame.width - 8 - w), y: 0, w, h: 1 };
  };
  if (inside) for (const { name, marked, at: [x, y] } of switches) text(svg, x, above ? y - 19 : y + 37, name, { size, fill: theme.ink, anchor: "middle", halo: marked ? theme.map : "" });
  for (const one of roomy(inside ? switches.filter(({ marked }) => marked) : switches, boxOf)) {
    const { name, marked, at: [, y] } = one;
    const box = boxOf(one);
    const x = box.x + box.w / 2;
    const write = (line, words, weight = 400) => text(svg, round(x), above ? y - HIGH - 12 : y + HIGH + 4 + 26 * line, words, { size: SMALL, fill: theme.ink, anchor: "middle", weight });
    if (inside) write(1, detail(one));
    else write(1, name, marked ? 650 : 400);
    if (!inside && marked && !above) write(2, detail(one));
  }
}

/** How high each switch stands: leaves, then what their cables lead up to; of the others by their names. */
function levelsOf(machine, links) {
  const names = machine.answer.routers.name;
  const kindOf = (name) => name.replace(/\d+$/, "");
  const level = new Array(names.length).fill(-1);
  for (const router of machine.router) if (router >= 0) level[router] = 0;
  links.source.forEach((source, i) => {
    const up = /^up(\d+)$/.exec(links.kinds[links.kind[i]]);
    if (!up) return;
    level[source] = Number(up[1]) - 1;
    level[links.target[i]] = Number(up[1]);
  });
  const known = new Map(names.flatMap((name, i) => (level[i] >= 0 ? [[kindOf(name), level[i]]] : [])));
  return level.map((value, i) => (value >= 0 ? value : known.get(kindOf(names[i])) ?? 1));
}
