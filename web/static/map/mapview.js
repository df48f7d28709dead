// SPDX-License-Identifier: Apache-2.0
/** The map's canvas: copies tiles while it moves, paints what is missing when there is time. */

import { Camera } from "../core/camera.js";
import { TILE, Tiles } from "../draw/tiles.js";
import { calmMotion } from "../ui/dom.js";

const BUDGET = 7;
const GLIDE = 130;

/** Draws one scene into one canvas. */
export class MapView {
  /**
   * @param {HTMLElement} host element whose size the canvas takes
   * @param {HTMLCanvasElement} canvas
   * @param {boolean} bare without rulers
   */
  constructor(host, canvas, bare = false) {
    this.host = host;
    this.bare = bare;
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.camera = new Camera();
    this.tiles = new Tiles();
    this.overview = new Tiles();
    this.moved = [];
    this.settled = [];
    this.frame = 0;
    this.size();
    new ResizeObserver(() => this.resized()).observe(host);
  }

  /** Call back after each frame that moved the picture. */
  onMove(call) {
    this.moved.push(call);
  }

  /** Call back when the picture has come to rest. */
  onSettle(call) {
    this.settled.push(call);
  }

  /** Show another scene, all of it. */
  setScene(scene, namesOf) {
    this.scene = scene;
    this.camera.scene = scene;
    this.tiles.namesOf = namesOf;
    this.overview.namesOf = namesOf;
    for (const tiles of [this.tiles, this.overview]) tiles.setScene(scene);
    this.overview.setZoom((Math.min(TILE / scene.width, TILE / scene.height) * scene.pitch), 1);
    this.backdrop = null;
    this.fit();
  }

  /** Whether all is shown. */
  get fitted() {
    return this.shown?.length === 0;
  }

  /** Recolour. */
  setKeys(keys, looks, same) {
    this.tiles.setKeys(keys, looks, same);
    this.overview.setKeys(keys, looks, false);
    this.page = looks.theme.map;
    this.drawAll();
  }

  /** A small picture of the whole scene, at most 512 pixels a side. */
  small() {
    return this.overview.get(0, 0) || this.overview.paint(0, 0);
  }

  /** Take the host's size; of one that is out of sight the last one is kept. */
  size() {
    const ratio = Math.min(Math.max(devicePixelRatio || 1, 1), 3);
    const box = this.host.getBoundingClientRect();
    if (!box.width || !box.height) return;
    const width = Math.max(1, Math.round(box.width * ratio));
    const height = Math.max(1, Math.round(box.height * ratio));
    if (this.canvas.width !== width) this.canvas.width = width;
    if (this.canvas.height !== height) this.canvas.height = height;
    this.camera.resize(width, height, ratio);
  }

  resized() {
    this.size();
    if (!this.scene) return;
    if (this.shown) this.frameShown();
    this.rest();
    if (this.tiles.keys) this.drawAll();
  }

  /** Move by CSS pixels. */
  pan(dx, dy) {
    this.shown = null;
    this.camera.pan(dx * this.camera.ratio, dy * this.camera.ratio);
    this.ask();
  }

  /** Zoom about a CSS point of the canvas, at once; `rest` follows when the gesture ends. */
  zoomBy(factor, x, y) {
    this.zoomTo(this.camera.k * factor, x, y);
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.comeToRest(x, y), 140);
  }

  comeToRest(x, y) {
    this.zoomTo(this.camera.resting(), x, y);
    this.rest();
  }

  zoomTo(k, x = this.host.clientWidth / 2, y = this.host.clientHeight / 2) {
    this.shown = null;
    this.camera.zoom(k, x * this.camera.ratio, y * this.camera.ratio);
    this.ask();
  }

  /** Go some steps nearer or away, gliding where motion is welcome. */
  zoomStep(by, x, y) {
    const from = this.glide ? this.glide.to : this.camera.k;
    this.camera.k = from === this.camera.k ? from : this.camera.k;
    const to = by === 0 ? from : stepFrom(this.camera, from, by);
    if (calmMotion()) {
      this.zoomTo(to, x, y);
      this.rest();
      return;
    }
    this.glide = { from: this.camera.k, to, x, y, since: performance.now() };
    this.ask();
  }

  /** Show all, or a box of units, also where the host gets its size later: as that of a tab that is opened. */
  fit(...box) {
    this.glide = null;
    this.shown = box;
    this.frameShown();
    this.rest();
  }

  frameShown() {
    if (this.fitted) this.camera.fitAll(this.bare);
    else this.camera.fit(...this.shown);
  }

  /** Bring units into sight if they are not. */
  reveal(x, y) {
    const [px, py] = this.camera.pixel(x, y);
    const edge = 30 * this.camera.ratio;
    const inside = px > edge && py > edge && px < this.camera.width - edge && py < this.camera.height - edge;
    if (inside) return;
    this.shown = null;
    this.camera.centre(x, y);
    this.rest();
  }

  /** Units at a CSS point of the canvas. */
  units(x, y) {
    return this.camera.units(x * this.camera.ratio, y * this.camera.ratio);
  }

  /** CSS point of some units. */
  css(x, y) {
    return this.camera.css(x, y);
  }

  /** CSS pixels of a unit. */
  get unit() {
    return this.camera.unit;
  }

  /** Take the camera's zoom for the tiles: they are painted anew. */
  rest() {
    if (this.tiles.k !== this.camera.k && this.tiles.keys && this.tiles.k) this.keepBackdrop();
    this.tiles.setZoom(this.camera.k, this.camera.ratio);
    this.ask();
  }

  keepBackdrop() {
    const { canvas } = this;
    if (!this.drawn) return;
    const picture = this.backdrop?.picture ?? document.createElement("canvas");
    if (picture.width !== canvas.width) picture.width = canvas.width;
    if (picture.height !== canvas.height) picture.height = canvas.height;
    picture.getContext("2d", { alpha: false }).drawImage(canvas, 0, 0);
    this.backdrop = { picture, ...this.drawn };
  }

  ask() {
    this.host.dataset.settled = "false";
    this.frame ||= requestAnimationFrame((now) => this.step(now));
  }

  /** One frame. */
  step(now) {
    this.frame = 0;
    if (!this.tiles.keys) return;
    const gliding = this.advance(now);
    const missing = this.draw(BUDGET);
    for (const call of this.moved) call();
    if (gliding || missing) this.ask();
    else if (this.tiles.k === this.camera.k) this.finish();
  }

  advance(now) {
    const { glide } = this;
    if (!glide) return false;
    const share = Math.min(Math.max((now - glide.since) / GLIDE, 0), 1); // a late frame's time may lie before the glide
    this.zoomTo(glide.from * (glide.to / glide.from) ** share, glide.x, glide.y);
    if (share < 1) return true;
    this.glide = null;
    this.zoomTo(glide.to, glide.x, glide.y);
    this.rest();
    return true;
  }

  /** Paint all that is seen, now. */
  drawAll() {
    if (this.tiles.k !== this.camera.k && !this.glide) this.tiles.setZoom(this.camera.k, this.camera.ratio);
    this.draw(Infinity);
    for (const call of this.moved) call();
    this.finish();
  }

  finish() {
    this.host.dataset.settled = "true";
    for (const call of this.settled) call();
  }

  /** Copy what there is; paint missing tiles for at most `budget` ms; return how many are missing. */
  draw(budget) {
    const { camera, tiles, context } = this;
    context.fillStyle = this.page;
    context.fillRect(0, 0, camera.width, camera.height);
    const factor = camera.k / tiles.k;
    const span = TILE * factor;
    const seen = tilesSeen(camera, this.scene, span);
    const missing = factor === 1 ? this.paintMissing(seen, budget) : 0;
    if (missing || factor !== 1) this.drawBehind();
    context.imageSmoothingEnabled = factor < 1;
    for (const [tx, ty] of seen) {
      const tile = tiles.get(tx, ty);
      if (!tile) continue;
      if (factor === 1) context.drawImage(tile, tx * TILE - camera.left, ty * TILE - camera.top);
      else context.drawImage(tile, tx * span - camera.left, ty * span - camera.top, span, span);
    }
    this.drawn = { k: camera.k, left: camera.left, top: camera.top };
    return missing;
  }

  paintMissing(seen, budget) {
    const start = performance.now();
    let missing = 0;
    for (const [tx, ty] of seen) {
      if (this.tiles.get(tx, ty)) continue;
      if (missing || performance.now() - start > budget) missing++;
      else this.tiles.paint(tx, ty);
    }
    return missing;
  }

  /** The whole scene, coarse, and the last picture over it: what shows until tiles are painted. */
  drawBehind() {
    const { camera, context, backdrop } = this;
    context.imageSmoothingEnabled = false;
    const far = camera.k / this.overview.k;
    context.drawImage(this.small(), -camera.left, -camera.top, TILE * far, TILE * far);
    if (!backdrop || this.tiles.k !== camera.k) return;
    const near = camera.k / backdrop.k;
    const { width, height } = backdrop.picture;
    const x = backdrop.left * near - camera.left;
    context.drawImage(backdrop.picture, x, backdrop.top * near - camera.top, width * near, height * near);
  }
}

function stepFrom(camera, from, by) {
  const now = camera.k;
  camera.k = from;
  const to = camera.step(by);
  camera.k = now;
  return Math.max(to, camera.least());
}

/** The tiles of the scene that the camera sees. */
function tilesSeen(camera, scene, span) {
  const last = (length) => Math.floor((length * camera.scale) / span);
  const x1 = Math.min(Math.floor((camera.left + camera.width) / span), last(scene.width));
  const y1 = Math.min(Math.floor((camera.top + camera.height) / span), last(scene.height));
  const seen = [];
  for (let ty = Math.max(Math.floor(camera.top / span), 0); ty <= y1; ty++) {
    for (let tx = Math.max(Math.floor(camera.left / span), 0); tx <= x1; tx++) seen.push([tx, ty]);
  }
  return seen;
}
