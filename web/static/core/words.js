// SPDX-License-Identifier: Apache-2.0
/** Numbers and plurals in words. */

/** Write a number with groups of three, as 6,174. */
export function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Say "1 node", "3 nodes". */
export function counted(number, word) {
  const plural = /(s|sh|ch|x)$/.test(word) ? `${word}es` : `${word}s`;
  const known = { chassis: "chassis", class: "classes" }[word];
  return `${grouped(number)} ${number === 1 ? word : (known ?? plural)}`;
}
