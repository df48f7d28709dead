// SPDX-License-Identifier: Apache-2.0
/** Numbers and plurals in words. */

/** Write a number with groups of three, as 6,174. */
export function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Say "1 node", "3 nodes". */
export function counted(number, word) {
  return `${grouped(number)} ${number === 1 ? word : plural(word)}`;
}

/** Several of a thing; axes and numbered levels have no other word for that. */
function plural(word) {
  if (/^(chassis|.|.*\d)$/.test(word)) return word;
  if (word === "leaf") return "leaves";
  return /(s|sh|ch|x)$/.test(word) ? `${word}es` : `${word}s`;
}
