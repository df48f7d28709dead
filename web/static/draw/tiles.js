// SPDX-License-Identifier: Apache-2.0
/** The picture in squares of pixels, painted once a zoom and copied while panning. */

import { Raster } from "./raster.js";
import { KEY } from "./sprites.js";
import { mixed, packed, unpacked } from "./theme.js";

export const TILE = 512;
const KEPT = 96;

/** CSS pixels that a node, or a box that stands for its nodes, must have to be drawn. */
const LEAST_NODE = 2.6;
const LEAST_BOX = 2;

/** CSS pixels of the smallest name of a node, and the width of a character of a name of one pixel. */
const LEAST_NAME = 8;
const CHARACTER = 0.61;

/** CSS pixels of a node from which it has its name in it. */
const NAMED = 34;

/** Paints tiles of one scene with one recolouring, and keeps them. */
export class Tiles {
  /** @param {Raster|import("./paper.js").Paper} raster what is painted on */
  /** @param {any} raster a Raster, or the Paper of a picture */
  constructor(raster = new Raster(TILE)) {
    this.raster = raster;
    /** @type {(row: number) => string[]} names of a node, the longest first */
    this.namesOf = () => [];
    this.tiles = new Map();
    this.spare = [];
    this.k = 0;
  }

  /** Draw another scene from now on. */
  setScene(scene) {
    this.scene = scene;
    this.keys = null;
    this.drop();
  }

  /**
   * Recolour: only tiles with a node that changed are painted again.
   * @param {Uint32Array} keys one a node
   * @param {import("./sprites.js").Looks} looks
   * @param {boolean} same whether the looks mean what they meant
   */
  setKeys(keys, looks, same) {
    const old = this.keys;
    this.keys = keys;
    this.looks = looks;
    this.grounds = groundsOf(looks.theme);
    this.boxColours = new Map();
    if (!same || !old || old.length !== keys.length) return this.drop();
    const touched = new Set();
    for (let row = 0; row < keys.length; row++) if (keys[row] !== old[row]) this.touch(row, touched);
    for (const name of touched) this.release(name);
    return undefined;
  }

  /** Names of the tiles that a node (or, far away, its box) reaches into. */
  touch(row, into) {
    const { scene, scale } = this;
    const level = this.boxLevel();
    const box = level < 0 ? -1 : scene.boxOf[level][row];
    const at = scene.levels[level];
    const [x, y] = box < 0 ? [scene.x[row], scene.y[row]] : [at.x[box], at.y[box]];
    const [w, h] = box < 0 ? [scene.pitch, scene.pitch] : [at.w[box], at.h[box]];
    for (let tx = Math.floor((x * scale - 1) / TILE); tx <= Math.floor(((x + w) * scale + 1) / TILE); tx++) {
      for (let ty = Math.floor((y * scale - 1) / TILE); ty <= Math.floor(((y + h) * scale + 1) / TILE); ty++) {
        into.add(`${tx},${ty}`);
      }
    }
  }

  /** Set the device pixels a node's pitch gets, and of a CSS pixel. */
  setZoom(k, ratio) {
    if (k === this.k && ratio === this.ratio) return;
    this.k = k;
    this.ratio = ratio;
    this.drop();
  }

  get scale() {
    return this.k / this.scene.pitch;
  }

  /** The level whose boxes stand for their nodes at this zoom, -1 for the nodes themselves. */
  boxLevel() {
    const css = this.k / this.ratio;
    if (css >= LEAST_NODE) return -1;
    const { levels, pitch } = this.scene;
    for (let i = levels.length - 1; i >= 0; i--) {
      if (levels[i].count && Math.min(levels[i].w[0], levels[i].h[0]) * (css / pitch) >= LEAST_BOX) return i;
    }
    return levels.length - 1;
  }

  /** A painted tile, or null where it is not painted yet. */
  get(tx, ty) {
    return this.tiles.get(`${tx},${ty}`) || null;
  }

  /** Paint a tile and keep it. */
  paint(tx, ty) {
    const canvas = this.spare.pop() || blank();
    const context = canvas.getContext("2d", { alpha: false, willReadFrequently: true });
    this.raster.begin(tx * TILE, ty * TILE, this.grounds.map);
    this.paintAll();
    context.putImageData(this.raster.image, 0, 0);
    this.writeNames(context);
    this.keep(`${tx},${ty}`, canvas);
    return canvas;
  }

  /** Paint what the raster covers, all but the names of nodes. */
  paintAll() {
    this.paintBoxes();
    const level = this.boxLevel();
    if (level < 0) this.paintNodes();
    else this.paintFar(level);
  }

  keep(name, canvas) {
    if (this.tiles.size >= KEPT) this.release(this.tiles.keys().next().value);
    this.tiles.set(name, canvas);
  }

  release(name) {
    const canvas = this.tiles.get(name);
    if (!canvas) return;
    this.tiles.delete(name);
    this.spare.push(canvas);
  }

  drop() {
    for (const name of [...this.tiles.keys()]) this.release(name);
  }

  /** Units that the raster's square covers, with a margin for what reaches in. */
  reach(margin) {
    const { left, top, size } = this.raster;
    const { scale } = this;
    return [left / scale - margin, top / scale - margin, (left + size) / scale, (top + size) / scale];
  }

  paintBoxes() {
    const [x0, y0, x1, y1] = this.reach(0);
    const { levels } = this.scene;
    for (let i = 0; i < levels.length; i++) {
      const style = this.boxStyle(i);
      if (style) paintLevel(this.raster, levels[i], this.scale, [x0, y0, x1, y1], style);
    }
    const { spines } = this.scene;
    if (spines) paintLevel(this.raster, spines, this.scale, [x0, y0, x1, y1], { fill: this.grounds.box, line: this.grounds.line });
  }

  /** Fill and line of a level's boxes at this zoom; null where they would only clutter. */
  boxStyle(i) {
    const { levels, pitch } = this.scene;
    const css = this.k / this.ratio / pitch;
    const level = levels[i];
    if (!level.count || Math.min(level.w[0], level.h[0]) * css < 6) return null;
    const inner = i === levels.length - 1;
    const { box, inner: deep, line, map } = this.grounds;
    if (inner && levels.length > 1) return { fill: deep, line: css * pitch >= 9 ? line : 0 };
    const shade = [mixed(box, map, 0.5), box, mixed(deep, box, 0.5)][Math.min(i, 2)];
    return { fill: levels.length === 1 ? deep : shade, line };
  }

  /** Whether nodes stand farther apart than a gap: one on each router of a torus. */
  get sparse() {
    return this.scene.pitch > this.scene.node.w + 1;
  }

  /** Pixels of a node. */
  get side() {
    const { k, scale, scene, sparse } = this;
    return Math.max(1, sparse ? Math.floor(scene.node.w * scale) : Math.floor(k) - gapOf(k));
  }

  paintNodes() {
    const { scene, scale, keys, looks, raster, k, side } = this;
    const shift = this.sparse ? 0 : Math.floor((gapOf(k) * (scene.node.w / scene.pitch)) / 2);
    const [x0, y0, x1, y1] = this.reach(scene.pitch + 1);
    scene.vacantWithin(x0, y0, x1, y1, (i) => {
      const x = Math.round(scene.vacant.x[i] * scale) + shift;
      const dot = Math.max(1, Math.round(side / 5));
      const middle = Math.floor((side - dot) / 2);
      raster.rect(x + middle, Math.round(scene.vacant.y[i] * scale) + shift + middle, dot, dot, this.grounds.vacant);
    });
    scene.within(x0, y0, x1, y1, (row) => {
      raster.node(looks, keys[row], side, Math.round(scene.x[row] * scale) + shift, Math.round(scene.y[row] * scale) + shift);
    });
  }

  paintFar(level) {
    const { scene, scale, raster } = this;
    if (!this.boxColours.has(level)) this.boxColours.set(level, dominant(this, level));
    const colours = this.boxColours.get(level);
    const { x, y, w, h, count } = scene.levels[level];
    const gap = count && Math.min(w[0], h[0]) * scale >= 5 ? 1 : 0;
    const edge = gap ? Math.round : Math.ceil;
    for (let box = 0; box < count; box++) {
      if (!colours[box]) continue;
      const [left, top] = [Math.round(x[box] * scale), Math.round(y[box] * scale)];
      const width = Math.max(1, edge((x[box] + w[box]) * scale) - left - gap);
      const height = Math.max(1, edge((y[box] + h[box]) * scale) - top - gap);
      raster.rect(left, top, width, height, colours[box]);
    }
  }

  writeNames(context) {
    const { scene, scale, keys, looks, k, side } = this;
    if (k / this.ratio < NAMED) return;
    const room = side + gapOf(k);
    const sizes = this.namesOf(scene.x.length - 1).map((name) => Math.floor(Math.min(room / 4, (room - 8) / (CHARACTER * name.length))));
    const fitting = sizes.findIndex((size) => size >= LEAST_NAME * this.ratio);
    if (fitting < 0) return;
    const size = sizes[fitting];
    context.font = `${size}px ui-monospace, monospace`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    const half = side / 2;
    const [x0, y0, x1, y1] = this.reach(scene.pitch + 1);
    scene.within(x0, y0, x1, y1, (row) => {
      const x = Math.round(scene.x[row] * scale) + half - this.raster.left;
      const y = Math.round(scene.y[row] * scale) + half - this.raster.top;
      context.fillStyle = inkOn(looks, keys[row]);
      context.fillText(this.namesOf(row)[fitting], x, y);
    });
  }
}

function blank() {
  const canvas = document.createElement("canvas");
  canvas.width = TILE;
  canvas.height = TILE;
  return canvas;
}

/** Pixels between neighbours at a zoom. */
export function gapOf(k) {
  if (k < 3) return 0;
  if (k < 10) return 1;
  return k < 24 ? 2 : 3;
}

function groundsOf(theme) {
  const names = ["map", "box", "inner", "line", "vacant", "ghost"];
  return Object.fromEntries(names.map((name) => [name, packed(theme[name])]));
}

function paintLevel(raster, level, scale, [x0, y0, x1, y1], { fill, line }) {
  const { x, y, w, h, count } = level;
  for (let box = 0; box < count; box++) {
    if (x[box] > x1 || y[box] > y1 || x[box] + w[box] < x0 || y[box] + h[box] < y0) continue;
    const left = Math.round(x[box] * scale);
    const top = Math.round(y[box] * scale);
    const width = Math.round((x[box] + w[box]) * scale) - left;
    const height = Math.round((y[box] + h[box]) * scale) - top;
    if (level.vacant[box]) {
      raster.dotted(left, top, width, height, line || fill);
      continue;
    }
    raster.box(left, top, width, height, fill, line);
  }
}

/** One colour a box: its marked nodes by their share, else what most of its nodes are. */
function dominant(tiles, level) {
  const { scene, keys, looks, grounds } = tiles;
  const { starts, rows } = scene.members(level);
  const colours = new Uint32Array(scene.levels[level].count);
  const seen = new Int32Array(4096);
  for (let box = 0; box < colours.length; box++) {
    const mine = rows.subarray(starts[box], starts[box + 1]);
    if (!mine.length) continue;
    const { most, marked, mark } = tally(mine, keys, seen);
    const share = 0.35 + (0.65 * marked) / mine.length;
    colours[box] = marked ? mixed(looks.colour(mark), grounds.inner, share) : plainColour(looks, most);
  }
  return colours;
}

/** The key of the commonest class among some rows, and how many of them are marked. */
function tally(rows, keys, seen) {
  let most = keys[rows[0]];
  let marked = 0;
  let mark = 0;
  for (const row of rows) {
    const key = keys[row];
    if (++seen[key & 4095] > seen[most & 4095]) most = key;
    if ((key >>> KEY.mark) & 31) {
      marked++;
      mark = key;
    }
  }
  for (const row of rows) seen[keys[row] & 4095] = 0;
  return { most, marked, mark };
}

function plainColour(looks, key) {
  const idle = ((key >>> KEY.shape) & 7) === 1;
  return idle ? mixed(looks.colour(key), looks.ground, 0.6) : looks.colour(key);
}

/** Black or white, whichever is read on a node of this key. */
function inkOn(looks, key) {
  const hollow = ((key >>> KEY.shape) & 7) !== 2;
  if (hollow && !((key >>> KEY.mark) & 31)) return looks.theme.ink;
  const colour = looks.colour(key);
  const bright = 0.3 * (colour & 255) + 0.59 * ((colour >>> 8) & 255) + 0.11 * ((colour >>> 16) & 255);
  return unpacked(packed(bright > 140 ? "#10161c" : "#ffffff"));
}
