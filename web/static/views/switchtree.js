// SPDX-License-Identifier: Apache-2.0
/** A fat tree with its cables. */

import { spokenLoad } from "../core/figures.js";
import { counted } from "../core/words.js";
import { svgEl } from "../ui/dom.js";
import { label, line, MEDIUM, pairs, round, SMALL, tally, text } from "./slide.js";

/** Leaves below their spines. */
export function tree(svg, shown) {
  const { machine, rows, found, theme, hue, most } = shown;
  const { links } = found.prediction;
  const names = machine.answer.routers.name;
  const marked = tally(rows.map((row) => machine.router[row]));
  const level = levelsOf(machine, links);
  const depth = Math.max(...level);
  const floors = Array.from({ length: depth + 1 }, (_, i) => [...level.keys()].filter((router) => level[router] === i));
  const place = new Map();
  floors.forEach((routers, i) => {
    const y = depth ? 700 - (i * 400) / depth : 700;
    routers.forEach((router, k) => place.set(router, [60 + (1480 * (k + 0.5)) / routers.length, y]));
  });
  const edges = pairs(links, most, (router) => router);
  for (const { a, b, share } of edges) {
    const [low, high] = [place.get(a), place.get(b)];
    svg.append(line(theme, share, `M${low.map(round)}C${round(low[0])} ${(low[1] + high[1]) / 2} ${round(high[0])} ${(low[1] + high[1]) / 2} ${high.map(round)}`, 0.9));
  }
  floors.forEach((routers, i) => routers.forEach((router) => {
    const [x, y] = place.get(router);
    const wide = Math.min((1480 / routers.length) * 0.86, 220);
    svg.append(svgEl("rect", { x: round(x - wide / 2), y: i ? y - 56 : y, width: round(wide), height: 56, rx: 6, fill: marked.has(router) ? hue : theme.box, stroke: theme.line, "stroke-width": 2 }));
    const size = Math.min(MEDIUM, (1.6 * wide) / names[router].length);
    if (size < 9) return;
    text(svg, x, i ? y - 19 : y + 37, names[router], { size, fill: theme.ink, anchor: "middle", halo: marked.has(router) ? theme.map : "" });
    if (marked.has(router)) text(svg, x, y + 86, wide > 110 ? counted(marked.get(router), "node") : String(marked.get(router)), { size: SMALL, fill: theme.ink, anchor: "middle" });
  }));
  const top = edges.find((edge) => edge.first);
  if (!top) return;
  const [low, high] = [place.get(top.a), place.get(top.b)];
  label(svg, shown, [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2], `${names[top.a]} \u2013 ${names[top.b]}: ${spokenLoad(links, 0)}`);
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
