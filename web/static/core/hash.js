// SPDX-License-Identifier: Apache-2.0
/** The page's state in the URL's #hash: what a person sends to another. */

import { rangesOf, rowsOf } from "./nodelist.js";

const LONG = 1500;

/**
 * Write the state.
 * @param {Object} state `marks`, `active`, and plain words by name
 * @param {import("./machine.js").Machine} machine
 * @returns {string} without the #
 */
export function hashOf(state, machine) {
  const words = new URLSearchParams();
  for (const mark of state.marks) words.append("m", `${mark.name}:${mark.hue}:${listOf(mark.rows, machine)}`);
  if (state.active > 0) words.set("a", state.active);
  for (const [name, value] of Object.entries(state.words)) if (value !== "" && value !== null) words.set(name, value);
  return words.toString().replaceAll("%3A", ":").replaceAll("%2C", ",").replaceAll("%7E", "~").replaceAll("%40", "@");
}

/**
 * Read what hashOf has written; what cannot be read is left out.
 * @returns {{marks: Array, active: number, words: Object, lost: number}}
 */
export function stateOf(hash, machine) {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const marks = words.getAll("m").map((text) => markOf(text, machine));
  const found = marks.filter((mark) => mark !== null);
  const active = Number(words.get("a")) || 0;
  const plain = Object.fromEntries([...words].filter(([name]) => name !== "m" && name !== "a"));
  const lost = marks.length - found.length + found.reduce((sum, mark) => sum + mark.lost, 0);
  return { marks: found, active, words: plain, lost };
}

/** NIDs where they name nodes uniquely, else rows after an at sign; a bitmap after ~ where that is shorter. */
function listOf(rows, machine) {
  const plain = machine.uniqueNids ? rangesOf(rows.map((row) => machine.nids[row])) : `@${rangesOf(rows)}`;
  const sorted = rows.every((row, i) => i === 0 || row > rows[i - 1]);
  if (plain.length < LONG || !sorted) return plain;
  const bitmap = `~${bitmapOf(rows, machine.count)}`;
  return bitmap.length < plain.length ? bitmap : plain;
}

function markOf(text, machine) {
  const match = /^(.*):(\d+):([^:]*)$/s.exec(text);
  if (!match) return null;
  const [, name, hue, list] = match;
  const wanted = rowsOfList(list, machine);
  const rows = [...new Set(wanted.filter((row) => row >= 0 && row < machine.count))];
  return { name: name.slice(0, 80), hue: Number(hue) % 8, rows, lost: wanted.length - rows.length };
}

function rowsOfList(list, machine) {
  if (list.startsWith("~")) return rowsOfBitmap(list.slice(1), machine.count);
  const numbers = rowsOfText(list.replace(/^@/, ""), machine);
  if (list.startsWith("@") || !machine.uniqueNids) return numbers;
  return numbers.map((nid) => machine.find(String(nid)));
}

/** Ranges of numbers; a span that no machine has is not unfolded. */
function rowsOfText(text, machine) {
  if (!/^(\d+(-\d+)?(,|$))*$/.test(text)) return [-1];
  const wide = text.split(",").some((part) => {
    const [first, last = first] = part.split("-").map(Number);
    return last - first > 4 * machine.count + 100000;
  });
  return wide ? [-1] : rowsOf(text);
}

function bitmapOf(rows, count) {
  const bytes = new Uint8Array(Math.ceil(count / 8));
  for (const row of rows) bytes[row >> 3] |= 1 << (row & 7);
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function rowsOfBitmap(text, count) {
  let bytes = "";
  try {
    bytes = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    return [-1];
  }
  const rows = [];
  for (let row = 0; row < Math.min(count, bytes.length * 8); row++) {
    if ((bytes.charCodeAt(row >> 3) >> (row & 7)) & 1) rows.push(row);
  }
  return rows;
}
