/** Colours of the picture: light, dark, and what the system's forced colours leave. */

/** Hues that are told apart with any colour vision, by lightness too; marks and jobs use them. */
const HUES = {
  light: ["#0a64a8", "#c9451d", "#00805c", "#8a3fa0", "#9c6a00", "#00788f", "#b32d63", "#5a4fcf"],
  dark: ["#5cadf0", "#ff8f66", "#3fcf9f", "#cf98ee", "#ecb84a", "#4fd3e6", "#ff7fae", "#a69dff"],
};

const GROUNDS = {
  light: {
    page: "#f4f5f7", map: "#fbfcfd", box: "#eef1f4", inner: "#e6eaee", line: "#d3d9df",
    vacant: "#c3cad2", ink: "#16202a", soft: "#52606d", idle: "#6f93ad", allocated: "#3d5568",
    down: "#b3261e", service: "#8a7a55", other: "#a3660a", ghost: "#d5dade",
  },
  dark: {
    page: "#11161b", map: "#161c22", box: "#1e262e", inner: "#252e37", line: "#36424d",
    vacant: "#4a5763", ink: "#e8edf2", soft: "#a3b1bd", idle: "#6b93b0", allocated: "#a9c3d6",
    down: "#ff7a6b", service: "#b7a67c", other: "#e0a545", ghost: "#39444e",
  },
};

const RAMPS = {
  rank: {
    light: ["#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#8fd13f", "#d8d02a"],
    dark: ["#8a63d2", "#5f7fdc", "#3f9cd0", "#34b5ab", "#5fca7d", "#a5d95a", "#e4e45c", "#fff7a8"],
  },
  load: {
    light: ["#dfe5ea", "#f5d9a8", "#f0b35a", "#dd7a2b", "#b94a17", "#7d1d0c"],
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
  const name = choice || system;
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
