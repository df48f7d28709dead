// SPDX-License-Identifier: Apache-2.0
/** Which part of the scene is seen, and how large; zoom rests at whole pixels a node. */

/** CSS pixels left free around a scene that is shown as a whole: where its nodes are large, and at least. */
const MARGIN = 12;
const LEAST_MARGIN = 4;

/** Device pixels a pitch from which the larger margin is worth its room. */
const LARGE = 8;

/** A zoom of whole pixels is taken where it shows the scene at least so large as it might be. */
const WORTH = 0.9;

const STEPS = [0.25, 0.35, 0.5, 0.7, 1, 1.4, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 29, 35, 42, 50, 60, 72, 86, 104];

/** CSS pixels that the rulers of a floor of cabinets take. */
const NO_RULERS = { left: 0, top: 0 };
const RULERS = { left: 22, top: 16 };

/** A window on the scene; lengths are device pixels, `k` of them are a node's pitch. */
export class Camera {
  constructor() {
    this.k = 4;
    this.left = 0;
    this.top = 0;
    this.width = 1;
    this.height = 1;
    this.ratio = 1;
    this.inset = { left: 0, top: 0 };
    /** @type {any} set before anything is shown */
    this.scene = null;
  }

  get scale() {
    return this.k / this.scene.pitch;
  }

  /** Take the size of the canvas. */
  resize(width, height, ratio) {
    const middle = this.scene && this.width > 1 ? this.units(this.width / 2, this.height / 2) : null;
    this.width = width;
    this.height = height;
    this.ratio = ratio;
    if (middle) this.centre(...middle);
  }

  /** The units at a pixel of the canvas. */
  units(x, y) {
    return [(x + this.left) / this.scale, (y + this.top) / this.scale];
  }

  /** The pixel of the canvas at some units. */
  pixel(x, y) {
    return [x * this.scale - this.left, y * this.scale - this.top];
  }

  /** CSS pixels of a unit. */
  get unit() {
    return this.scale / this.ratio;
  }

  /** The CSS point at some units. */
  css(x, y) {
    return this.pixel(x, y).map((value) => value / this.ratio);
  }

  /** What is seen of the scene, in units: left, top, width, height. */
  get window() {
    const [[x0, y0], [x1, y1]] = [this.units(0, 0), this.units(this.width, this.height)];
    return [x0, y0, x1 - x0, y1 - y0];
  }

  /** Put some units in the middle. */
  centre(x, y) {
    this.left = Math.round(x * this.scale - this.width / 2);
    this.top = Math.round(y * this.scale - this.height / 2);
    this.hold();
  }

  /** Move the picture by some pixels. */
  pan(dx, dy) {
    this.left -= dx;
    this.top -= dy;
    this.hold();
  }

  /** Zoom so that the units under a pixel stay under it. */
  zoom(k, x, y) {
    const [ux, uy] = this.units(x, y);
    this.k = Math.min(Math.max(k, this.least()), STEPS.at(-1) * Math.max(1, this.ratio));
    this.left = Math.round(ux * this.scale - x);
    this.top = Math.round(uy * this.scale - y);
    this.hold();
  }

  /** The zoom at which all is seen. */
  fitting(width = this.scene.width, height = this.scene.height) {
    const fit = (margin) => {
      const [across, down] = [this.width - this.inset.left, this.height - this.inset.top].map((room) => room - 2 * margin * this.ratio);
      return Math.max(Math.min(across / width, down / height) * this.scene.pitch, 0.05);
    };
    const tight = fit(LEAST_MARGIN);
    const roomy = fit(MARGIN);
    if (tight < 2) return tight;
    const whole = Math.floor(roomy >= LARGE ? roomy : tight);
    return whole >= WORTH * tight ? whole : tight;
  }

  least() {
    return Math.min(this.fitting(), STEPS[5]) * 0.9;
  }

  /** Keep pixels free at the left and at the top of a scene that is shown as a whole, for rulers. */
  leave({ left, top }) {
    this.inset = { left: left * this.ratio, top: top * this.ratio };
  }

  /** Show a box of units in the middle, the whole scene by default; of a part, what stands around is left in sight. */
  fit(x = 0, y = 0, width = this.scene.width, height = this.scene.height) {
    const most = width < this.scene.width ? 40 : STEPS.at(-1);
    this.k = Math.min(this.fitting(width, height), most * this.ratio);
    this.centre(x + width / 2, y + height / 2);
  }

  /** Show all, with rulers where the boxes are too small to be named. */
  fitAll(bare = false) {
    const { scene } = this;
    this.leave(NO_RULERS);
    this.fit();
    if (!scene.ruledBelow || this.k / this.ratio >= scene.ruledBelow || bare) return;
    this.leave(RULERS);
    this.fit();
  }

  /** The resting zoom some steps from here. */
  step(by) {
    const scaled = STEPS.map((step) => step * (this.ratio > 1 && step > 1 ? Math.round(this.ratio) : 1));
    const near = scaled.reduce((best, step, i) => (Math.abs(step - this.k) < Math.abs(scaled[best] - this.k) ? i : best), 0);
    const exact = scaled[near] === this.k;
    const beyond = by > 0 ? scaled[near] > this.k : scaled[near] < this.k;
    const from = exact || !beyond ? near + by : near + by - Math.sign(by);
    return scaled[Math.min(Math.max(from, 0), scaled.length - 1)];
  }

  /** The nearest zoom of whole pixels. */
  resting() {
    return this.k >= 2 ? Math.round(this.k) : this.k;
  }

  /** Keep at least a part of the scene in sight; centre what is smaller than the window. */
  hold() {
    this.left = held(this.left, this.scene.width * this.scale, this.width, this.inset.left);
    this.top = held(this.top, this.scene.height * this.scale, this.height, this.inset.top);
  }
}

function held(offset, length, window, inset) {
  if (length <= window) return Math.round(Math.max(length - window, (length - window - inset) / 2));
  const slack = window * 0.25;
  return Math.round(Math.min(Math.max(offset, -slack), length - window + slack));
}
