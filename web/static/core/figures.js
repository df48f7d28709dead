// SPDX-License-Identifier: Apache-2.0
/** Figures in words. */

import { counted } from "./words.js";

/** Say a number of seconds with a fitting unit. */
export function spokenSeconds(seconds) {
  if (seconds === null || seconds === undefined) return "unknown";
  if (seconds === 0) return "0 s";
  const [factor, unit] = seconds >= 1 ? [1, "s"] : seconds >= 1e-3 ? [1e3, "ms"] : seconds >= 1e-6 ? [1e6, "us"] : [1e9, "ns"];
  return `${rounded(seconds * factor)} ${unit}`;
}

/** Say a time as a range, where its ends differ; one number where they do not. */
export function spokenRange({ low, high }) {
  const [least, most] = [low, high].map(spokenSeconds);
  return least === most ? least : `${least} to ${most}`;
}

/** Say what a link has to carry: its seconds, or its bytes where no bandwidth is known. */
export function spokenLoad(links, i) {
  return links.seconds[i] > 0 ? spokenSeconds(links.seconds[i]) : spokenBytes(links.load[i]);
}

/** Say a number of bytes; GB = 10^9. */
export function spokenBytes(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
  const step = Math.min(Math.max(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), 0), units.length - 1);
  return `${rounded(bytes / 1000 ** step)} ${units[step]}`;
}

/** Three digits that count. */
export function rounded(value) {
  if (value >= 1000) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(3)));
}

/** Say "3 groups, 54 blades". */
export function spokenTouches(touches) {
  return Object.entries(touches).map(([level, number]) => counted(number, level)).join(", ");
}

/** Say how old something is, in seconds. */
export function spokenAge(seconds) {
  const whole = Math.max(Math.round(seconds), 0);
  if (whole < 60) return `${whole < 10 ? whole : Math.floor(whole / 5) * 5} s`;
  if (whole < 7200) return `${Math.floor(whole / 60)} min`;
  return whole < 172800 ? `${Math.floor(whole / 3600)} h` : `${Math.floor(whole / 86400)} days`;
}
