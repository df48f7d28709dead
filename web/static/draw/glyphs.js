// SPDX-License-Identifier: Apache-2.0
/** The shapes of sprites.js as paths, for pictures of any size. */

/**
 * The layers of a node, the lowest first.
 * @param {Object} paint `shape`, `hatch`, and #rrggbb colours: `strong` of the class, `soft` inside an idle node, `light` of the
 *   hatching, `ground` behind, `frame` of a mark ("" for none)
 * @param {number} side
 * @returns {Array<Object>} `from`: where a path begins, as seen from the node's corner, both ways; `d` the rest of it; `fill`; `stroke` and its width `wide`
 */
export function layersOf({ shape, hatch, strong, soft, light, ground, frame }, side) {
  const thick = Math.min(Math.max(1, 0.14 * side), 4);
  const around = Math.max(1, Math.min(Math.round(side / 6), 4));
  const [back, half] = [{ ...square(0, side), fill: ground }, side / 2];
  const own = [
    [{ ...square(0.33 * side, side), fill: strong }],
    [{ ...square(thick / 2, side), fill: soft, stroke: strong, wide: thick }],
    [{ ...square(0, side), fill: strong }],
    [back, { from: 0, d: `l${side} ${side}m0 ${-side}l${-side} ${side}`, fill: "none", stroke: strong, wide: 1.5 * thick }],
    [back, { from: 0, d: `m${half} 0l${half} ${half}l${-half} ${half}l${-half} ${-half}z`, fill: strong }],
    [back, { ...square(thick / 4, side), fill: "none", stroke: strong, wide: thick / 2 }, { from: 0, d: `m0 ${side}l${side} ${-side}`, fill: "none", stroke: strong, wide: 1.5 * thick }],
    [{ ...square(0.3 * side, side), fill: strong }],
  ][shape];
  const stripes = shape === 2 && hatch ? [{ from: 0, d: HATCHINGS[hatch](side, Math.max(2, Math.round(side / 3))), fill: light }] : [];
  const marked = frame ? [{ ...square(around / 2, side), fill: "none", stroke: frame, wide: around }] : [];
  return [...own, ...stripes, ...marked];
}

/** A square so far inside a node on all sides. */
function square(inset, side) {
  const [a, b] = [short(side - 2 * inset), short(2 * inset - side)];
  return { from: inset, d: `h${a}v${a}h${b}z` };
}

function short(number) {
  return Math.round(10 * number) / 10;
}

/** What is light of a hatched square of a side and period: nothing, rising stripes, bands, and small squares. */
const HATCHINGS = [
  () => "",
  (side, period) => steps(2 * side, period).map((sum) => stripe(side, sum, Math.min(sum + period / 2, 2 * side))).join(""),
  (side, period) => steps(side, period).map((y) => rectangle(0, y, side, Math.min(period / 2, side - y))).join(""),
  (side, period) => steps(side, period).flatMap((y) => steps(side, period).map((x) => rectangle(x, y, Math.min(period / 2, side - x), Math.min(period / 2, side - y)))).join(""),
];

function steps(end, by) {
  return Array.from({ length: Math.ceil(end / by) }, (_, i) => i * by);
}

/** A rectangle of a path that begins at a node's corner, and the way back there. */
function rectangle(x, y, w, h) {
  return polygon([[x, y], [x + w, y], [x + w, y + h], [x, y + h]]);
}

/** What of a square lies between two rising lines, x + y from one sum to the other. */
function stripe(side, from, to) {
  const along = (sum) => [Math.min(sum, side), Math.max(sum - side, 0)];
  const edge = [along(from), ...(from < side && side < to ? [[side, 0]] : []), along(to)];
  return polygon([...edge, ...edge.map(([x, y]) => [y, x]).reverse()]);
}

function polygon(points) {
  const moves = points.map(([x, y], i) => [x - (points[i - 1]?.[0] ?? 0), y - (points[i - 1]?.[1] ?? 0)].map(short).join(" "));
  return `m${moves.join("l")}zm${points[0].map((value) => short(-value)).join(" ")}`;
}
