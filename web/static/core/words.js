// SPDX-License-Identifier: Apache-2.0
/** Numbers and plurals in words. */

/** Write a number with groups of three, as 6,174. */
export function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Say "1 node", "3 nodes". */
export function counted(number, word) {
  const name = unitName(word);
  return `${grouped(number)} ${number === 1 ? name : plural(name)}`;
}

/** The common name of one of a topology's levels; nodes of one x are a plane of a torus. */
export function unitName(word) {
  if (word === "leaf") return "leaf switch";
  if (word.length === 1) return `${word} plane`;
  return word.replace(/^level(\d+)$/, "level-$1 switch");
}

/** Several of a thing. */
function plural(word) {
  if (word === "chassis") return word;
  return /(s|sh|ch|x)$/.test(word) ? `${word}es` : `${word}s`;
}
