// SPDX-License-Identifier: Apache-2.0
/** The links of a prediction, as lines over a scene. */

import { rampColour } from "./theme.js";

/** Lines for the overlay: the links that have a place in the scene, the busiest last. */
export function linksOf(describe, { routers }, theme) {
  const links = describe?.prediction?.links;
  if (!links || !routers) return [];
  const lines = [];
  for (let i = links.source.length - 1; i >= 0; i--) {
    const [a, b] = [links.source[i], links.target[i]];
    if (!(routers.x[a] >= 0) || !(routers.x[b] >= 0)) continue;
    const colour = rampColour(theme.ramps.load, 0.35 + 0.65 * links.share[i]);
    lines.push({ x0: routers.x[a], y0: routers.y[a], x1: routers.x[b], y1: routers.y[b], share: links.share[i], colour });
  }
  return lines;
}
