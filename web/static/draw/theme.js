// SPDX-License-Identifier: Apache-2.0
/** Colours of the picture: light, dark, and what the system's forced colours leave. */

/** Hues that are told apart with any colour vision (a test simulates each); marks and jobs use them. */
const HUES = {
  light: ["#3280fc", "#cf075c", "#00654d", "#858a00", "#5b43b5", "#a26e9b", "#860309", "#73065a"],
  dark: ["#3f7bf5", "#ef93a1", "#3fe6d2", "#aca907", "#acb6ff", "#a6678d", "#d9ee97", "#6f8049"],
};

const GROUNDS = {
  light: {
    page: "#f4f5f7", map: "#fbfcfd", box: "#eef1f4", inner: "#e6eaee", line: "#d3d9df",
    vacant: "#c3cad2", ink: "#16202a", soft: "#52606d", idle: "#6087a3", allocated: "#3c5568",
    down: "#a0231d", service: "#8a7a5a", other: "#a86905", ghost: "#d5dade",
  },
  dark: {
    page: "#11161b", map: "#161c22", box: "#1e262e", inner: "#252e37", line: "#36424d",
    vacant: "#4a5763", ink: "#e8edf2", soft: "#a3b1bd", idle: "#6b93b0", allocated: "#a9c3d6",
    down: "#da655b", service: "#c7b893", other: "#e0a545", ghost: "#39444e",
  },
};

const RAMPS = {
  rank: {
    light: ["#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#46b86a", "#84c53c", "#dcd428"],
    dark: ["#6343b5", "#5674d6", "#3f9cd0", "#34b5ab", "#58c477", "#9bd052", "#e6e455", "#fffbd0"],
  },
  load: {
    light: ["#eef1f3", "#f5d9a8", "#f0b35a", "#dd7a2b", "#b94a17", "#7d1d0c"],
    dark: ["#2b343d", "#5b4524", "#94661f", "#cf8a2d", "#f4b860", "#fff0c9"],
  },
};

/**
 * Work out the colours for now: the viewer's choice, else the system's.
 * @param {string} choice "light", "dark" or "" (as the system has it)
 * @returns {Object} ground colours, `hues`, `ramps`, `name`, `forced`
 */
export function themeNow(choice) {
  if (matchMedia("(forced-colors: active)").matches) return forcedTheme();
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  return themeNamed(choice || system);
}

/** The colours of a theme: "light" or "dark". */
export function themeNamed(name) {
  const ramps = { rank: RAMPS.rank[name], load: RAMPS.load[name] };
  return { name, forced: false, ...GROUNDS[name], hues: HUES[name], ramps };
}

/** The system's own few colours: shapes and hatching say the rest. */
function forcedTheme() {
  const probe = document.createElement("span");
  document.body.append(probe);
  const seen = (word) => {
    probe.style.color = word;
    return hexOf(getComputedStyle(probe).color);
  };
  const [page, ink, mark, link, grey] = ["Canvas", "CanvasText", "Highlight", "LinkText", "GrayText"].map(seen);
  probe.remove();
  const ground = { page, map: page, box: page, inner: page, line: grey, vacant: grey, ink, soft: ink };
  const states = { idle: ink, allocated: ink, down: ink, service: ink, other: ink, ghost: grey };
  const ramps = { rank: [page, ink], load: [page, ink] };
  return { name: "forced", forced: true, ...ground, ...states, hues: [mark, link, ink], ramps };
}

function hexOf(rgb) {
  const parts = rgb.match(/[\d.]+/g).slice(0, 3).map(Number);
  return `#${parts.map((part) => Math.round(part).toString(16).padStart(2, "0")).join("")}`;
}

/** Read #rrggbb as three numbers. */
export function rgbOf(hex) {
  const value = Number.parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** Pack #rrggbb as ImageData keeps it on this (little-endian) machine. */
export function packed(hex) {
  const [r, g, b] = rgbOf(hex);
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

/** Mix two packed colours; `share` of the first. */
export function mixed(a, b, share) {
  const part = (shift) => {
    const x = (a >>> shift) & 255;
    const y = (b >>> shift) & 255;
    return Math.round(y + (x - y) * share) << shift;
  };
  return ((255 << 24) | part(16) | part(8) | part(0)) >>> 0;
}

/** Write a packed colour as #rrggbb. */
export function unpacked(colour) {
  const parts = [colour & 255, (colour >>> 8) & 255, (colour >>> 16) & 255];
  return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

/** The colour at a share of a ramp, as #rrggbb. */
export function rampColour(stops, share) {
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  return unpacked(mixed(packed(stops[low + 1]), packed(stops[low]), at - low));
}
