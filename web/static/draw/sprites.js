// SPDX-License-Identifier: Apache-2.0
/** How one node looks at one size: shape says the state, colour and hatching the class. */

import { layersOf } from "./glyphs.js";
import { mixed, packed, unpacked } from "./theme.js";

/** Bits of a node's key: class, shape, mark, and whether it steps back. */
export const KEY = { shape: 12, mark: 15, faded: 20 };

/** Pixels that a node must have for a mark's frame to leave its colour in sight. */
const LEAST_FRAMED = 10;

const SAMPLES = [1 / 6, 3 / 6, 5 / 6];

/** Pixels of a stroke at most: a name has its room inside. */
const MOST_THICK = 4;

/** Inside of each shape, in [0, 1) coordinates; `t` is the thickness of a stroke. */
const INSIDE = [
  (x, y) => Math.abs(x - 0.5) < 0.17 && Math.abs(y - 0.5) < 0.17,
  (x, y, t) => x < t || y < t || x > 1 - t || y > 1 - t,
  () => true,
  (x, y, t) => Math.abs(x - y) < t * 1.1 || Math.abs(x + y - 1) < t * 1.1,
  (x, y) => Math.abs(x - 0.5) + Math.abs(y - 0.5) < 0.5,
  (x, y, t) => Math.abs(x + y - 1) < t * 1.1 || x < t / 2 || y < t / 2 || x > 1 - t / 2 || y > 1 - t / 2,
  (x, y) => Math.abs(x - 0.5) < 0.2 && Math.abs(y - 0.5) < 0.2,
];

/** Whether a pixel of a hatched area is the light part. */
const HATCHED = [
  () => false,
  (x, y, period) => (x + y) % period < period / 2,
  (x, y, period) => y % period < period / 2,
  (x, y, period) => x % period < period / 2 && y % period < period / 2,
];

/** How strongly a hatched class is coloured where there is no room to hatch. */
const TONES = [1, 0.75, 0.55, 0.4];

/** Sprites for every key of a recolouring, made when first needed. */
export class Looks {
  /**
   * @param {Object} theme of theme.js
   * @param {Array<{colour: string, hatch: number}>} classes
   * @param {Array<{colour: string, hatch: number}>} marks how the marks look, the first being mark 1
   * @param {boolean} marksFill whether a mark colours the whole node (else it frames it)
   */
  constructor(theme, classes, marks, marksFill) {
    this.theme = theme;
    this.ground = packed(theme.inner);
    this.classes = classes.map((each) => ({ fill: packed(each.colour), hatch: each.hatch || 0 }));
    this.marks = [0, ...marks.map((mark) => packed(mark.colour))];
    this.hatches = [0, ...marks.map((mark) => mark.hatch)];
    this.marksFill = marksFill;
    this.down = packed(theme.down);
    this.ghost = packed(theme.ghost);
    this.bySize = new Map();
    this.layersBySize = new Map();
  }

  /** The packed pixels of a node of this key, `side` pixels a side. */
  sprite(key, side) {
    return kept(this.bySize, side, key, () => this.draw(key, side));
  }

  /** The same as paths. */
  layers(key, side) {
    return kept(this.layersBySize, side, key, () => this.outline(key, side));
  }

  /** The one colour that stands for a key where shapes have no room. */
  colour(key) {
    const { fill, mark, shape, faded } = this.parts(key);
    const own = mark && this.marksFill ? mark : shape === 6 ? this.ghost : fill;
    return faded ? mixed(own, this.ground, 0.35) : own;
  }

  parts(key) {
    const shape = (key >>> KEY.shape) & 7;
    const number = (key >>> KEY.mark) & 31;
    const mark = this.marks[number];
    const kind = this.classes[key & 4095] || { fill: this.ghost, hatch: 0 };
    const fill = shape === 6 ? this.ghost : mark && this.marksFill ? mark : kind.fill;
    const hatch = mark && this.marksFill ? this.hatches[number] : kind.hatch;
    return { shape, mark, fill, hatch, faded: (key >>> KEY.faded) & 1 };
  }

  draw(key, side) {
    const parts = this.parts(key);
    const sprite = new Uint32Array(side * side);
    if (side < 4) return sprite.fill(tiny(this, key, parts));
    const paint = { ...parts, strong: this.strong(parts) };
    for (let y = 0; y < side; y++) {
      for (let x = 0; x < side; x++) sprite[y * side + x] = this.pixel(paint, x, y, side);
    }
    if (parts.mark && !this.marksFill && side >= LEAST_FRAMED) frameIn(sprite, side, parts.mark);
    return sprite;
  }

  outline(key, side) {
    const parts = this.parts(key);
    if (side < 4) return layersOf({ shape: 2, hatch: 0, strong: unpacked(tiny(this, key, parts)) }, side);
    const strong = this.strong(parts);
    const [soft, light] = [parts.mark ? 0.6 : 0.22, 0.45].map((share) => unpacked(mixed(strong, this.ground, share)));
    const frame = parts.mark && !this.marksFill && side >= LEAST_FRAMED ? unpacked(parts.mark) : "";
    return layersOf({ ...parts, strong: unpacked(strong), soft, light, ground: unpacked(this.ground), frame }, side);
  }

  strong({ faded, fill }) {
    return faded ? mixed(fill, this.ground, 0.35) : fill;
  }

  pixel({ shape, strong, hatch, mark }, x, y, side) {
    const share = coverage(shape, x, y, side);
    const soft = shape === 1 ? (mark ? 0.6 : 0.22) : 0;
    const behind = soft ? mixed(strong, this.ground, soft) : shape === 0 || shape === 6 ? 0 : this.ground;
    if (share === 0) return behind;
    const light = HATCHED[hatch](x, y, side < 8 ? 2 : Math.round(side / 3));
    const own = light ? mixed(strong, this.ground, 0.45) : strong;
    return share === 1 ? own : mixed(own, behind || this.ground, share);
  }
}

/** What is kept of a size and key, made when it is first needed. */
function kept(bySize, side, key, make) {
  if (!bySize.has(side)) bySize.set(side, new Map());
  const known = bySize.get(side);
  if (!known.has(key)) known.set(key, make());
  return known.get(key);
}

/** A node of one to three pixels: its colour, lighter where it is idle or hatched. */
function tiny(looks, key, { shape, hatch, mark }) {
  const own = looks.colour(key);
  if (mark && looks.marksFill && !hatch) return own;
  return mixed(own, looks.ground, shape === 1 ? 0.6 : TONES[hatch]);
}

/** Share of a pixel that lies inside a shape. */
function coverage(shape, x, y, side) {
  const inside = INSIDE[shape];
  const thick = Math.max(1.001 / side, Math.min(0.14, MOST_THICK / side));
  let hits = 0;
  for (const dy of SAMPLES) {
    for (const dx of SAMPLES) if (inside((x + dx) / side, (y + dy) / side, thick)) hits++;
  }
  return hits / 9;
}

function frameIn(sprite, side, colour) {
  const thick = Math.max(1, Math.min(Math.round(side / 6), MOST_THICK));
  for (let y = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      const edge = x < thick || y < thick || x >= side - thick || y >= side - thick;
      if (edge) sprite[y * side + x] = colour;
    }
  }
}
