// SPDX-License-Identifier: Apache-2.0
/** The whole machine small, with the window that the map shows of it; drag to go there. */

const MOST = 168;

export class Minimap {
  /**
   * @param {import("./mapview.js").MapView} view
   * @param {HTMLElement} host holds a canvas and the window's frame
   */
  constructor(view, host) {
    this.view = view;
    this.host = host;
    this.canvas = host.querySelector("canvas");
    /** @type {any} */
    this.window = host.querySelector(".window");
    view.onMove(() => this.follow());
    view.onSettle(() => this.draw());
    host.addEventListener("pointerdown", (event) => this.go(event, true));
    host.addEventListener("pointermove", (event) => this.go(event, event.buttons === 1));
  }

  draw() {
    const { scene } = this.view;
    const share = Math.min(MOST / scene.width, (MOST * 0.75) / scene.height);
    this.share = share;
    this.width = Math.round(scene.width * share);
    this.height = Math.round(scene.height * share);
    const ratio = this.view.camera.ratio;
    this.canvas.width = this.width * ratio;
    this.canvas.height = this.height * ratio;
    this.host.style.width = `${this.width}px`;
    this.host.style.height = `${this.height}px`;
    const { overview } = this.view;
    const context = this.canvas.getContext("2d", { alpha: false });
    const [w, h] = [scene.width * overview.scale, scene.height * overview.scale];
    context.drawImage(this.view.small(), 0, 0, w, h, 0, 0, this.canvas.width, this.canvas.height);
    this.follow();
  }

  follow() {
    if (!this.share) return;
    const [x0, y0] = this.view.units(0, 0);
    const [x1, y1] = this.view.units(this.view.host.clientWidth, this.view.host.clientHeight);
    const { scene } = this.view;
    this.host.hidden = x1 - x0 >= scene.width && y1 - y0 >= scene.height;
    const left = Math.max(x0 * this.share, 0);
    const top = Math.max(y0 * this.share, 0);
    this.window.style.left = `${left}px`;
    this.window.style.top = `${top}px`;
    this.window.style.width = `${Math.max(Math.min(x1 * this.share, this.width) - left, 4)}px`;
    this.window.style.height = `${Math.max(Math.min(y1 * this.share, this.height) - top, 4)}px`;
  }

  go(event, pressed) {
    if (!pressed) return;
    event.preventDefault();
    event.stopPropagation();
    const box = this.host.getBoundingClientRect();
    this.view.shown = null;
    this.view.camera.centre((event.clientX - box.left) / this.share, (event.clientY - box.top) / this.share);
    this.view.ask();
  }
}
