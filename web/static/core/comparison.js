// SPDX-License-Identifier: Apache-2.0
/** What links are predicted to carry against what they carried. */

import { rounded } from "./figures.js";

/** Links that carry a smaller part of what the busiest one does are not judged: a run's start is as much. */
const JUDGED = 1 / 20;

/**
 * Say how many rounds of a prediction the links carried, and how far each is from that.
 * @param {{name: string[], load: number[], total: number}} predicted bytes of one round, the busiest links first or all
 * @param {{name: string[], load: number[], total: number}} counted bytes by the counters
 * @returns {{rounds: number, words: string}}
 */
export function compareLinks(predicted, counted) {
  const carried = new Map(counted.name.map((name, i) => [name, counted.load[i]]));
  // Where not all are listed, one that is not there may have carried something all the same.
  const known = counted.name.length === counted.total ? () => true : (name) => carried.has(name);
  const both = predicted.name.map((name, i) => ({ name, said: predicted.load[i], counted: carried.get(name) ?? 0 })).filter(({ name }) => known(name));
  const [said, sum] = ["said", "counted"].map((key) => both.reduce((all, link) => all + link[key], 0));
  if (!sum) return { rounds: 1, words: "none of it on links of this prediction" };
  const rounds = sum / said;
  const least = JUDGED * Math.max(...both.map((link) => link.said));
  const off = Math.max(...both.filter((link) => link.said >= least).map((link) => Math.abs(link.counted / (rounds * link.said) - 1)));
  const outside = predicted.name.length === predicted.total ? 1 - sum / counted.load.reduce((all, load) => all + load, 0) : 0;
  const strange = outside > 0.01 ? `, ${rounded(100 * outside)} % on other links` : "";
  return { rounds, words: `${rounded(rounds)} rounds of the prediction with headers, each link within ${percent(off)} of it${strange}` };
}

function percent(share) {
  return `${share < 0.1 ? Math.ceil(1000 * share) / 10 : Math.ceil(100 * share)} %`;
}
