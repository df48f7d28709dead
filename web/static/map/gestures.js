// SPDX-License-Identifier: Apache-2.0
/** Mouse, pen and fingers on the map: pan, pinch, wheel, click, range, lasso. */

const STILL = 5;

/** Turns pointer events on a map into what they mean. */
export class Gestures {
  /**
   * @param {import("./mapview.js").MapView} view
   * @param {HTMLElement} host
   * @param {Object} meaning `click(x, y, event)`, `lasso(points)`, `lassoing(points)`, `hover(x, y)`,
   *   `leave()`, `lassoOn()`: CSS pixels of the canvas, but lasso points in units
   */
  constructor(view, host, meaning) {
    this.view = view;
    this.host = host;
    this.meaning = meaning;
    this.pointers = new Map();
    const listen = (kind, call) => host.addEventListener(kind, call, { passive: false });
    listen("pointerdown", (event) => this.down(event));
    listen("pointermove", (event) => this.move(event));
    listen("pointerup", (event) => this.up(event));
    listen("pointercancel", (event) => this.cancel(event));
    listen("pointerleave", () => meaning.leave());
    listen("wheel", (event) => this.wheel(event));
    listen("dblclick", (event) => {
      meaning.twice();
      view.zoomStep(event.shiftKey ? -3 : 3, ...this.at(event));
    });
  }

  at(event) {
    const box = this.host.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  down(event) {
    if (event.button !== 0 || event.target.closest(".minimap")) return;
    this.pointers.set(event.pointerId, this.at(event));
    this.start = this.at(event);
    this.last = this.start;
    this.dragging = false;
    const lasso = this.pointers.size === 1 && (event.shiftKey || this.meaning.lassoOn());
    this.lasso = lasso ? [this.view.units(...this.start)] : null;
    this.onLabel = event.target.closest(".box-label");
  }

  move(event) {
    const at = this.at(event);
    if (!this.pointers.has(event.pointerId)) {
      if (event.pointerType === "mouse") this.meaning.hover(...at);
      return;
    }
    if (this.pointers.size === 2) this.pinch(event.pointerId, at);
    else this.drag(event, at);
    this.pointers.set(event.pointerId, at);
  }

  drag(event, at) {
    const far = Math.hypot(at[0] - this.start[0], at[1] - this.start[1]) > STILL;
    if (!this.dragging && !far) return;
    if (!this.dragging) this.host.setPointerCapture(event.pointerId);
    this.dragging = true;
    if (this.lasso) {
      this.lasso.push(this.view.units(...at));
      this.meaning.lassoing(this.lasso);
    } else this.view.pan(at[0] - this.last[0], at[1] - this.last[1]);
    this.last = at;
  }

  pinch(id, at) {
    const [other] = [...this.pointers].filter(([key]) => key !== id).map(([, point]) => point);
    const before = this.pointers.get(id);
    const spread = (point) => Math.max(Math.hypot(point[0] - other[0], point[1] - other[1]), 1);
    const middle = [(at[0] + other[0]) / 2, (at[1] + other[1]) / 2];
    this.dragging = true;
    this.lasso = null;
    this.view.zoomBy(spread(at) / spread(before), ...middle);
    this.view.pan((at[0] - before[0]) / 2, (at[1] - before[1]) / 2);
  }

  up(event) {
    if (!this.pointers.delete(event.pointerId)) return;
    if (this.dragging && this.lasso) this.meaning.lasso(this.lasso);
    else if (!this.dragging && !this.onLabel) this.meaning.click(...this.at(event), event);
    this.last = [...this.pointers.values()][0] || this.last;
    this.lasso = null;
  }

  cancel(event) {
    this.pointers.delete(event.pointerId);
    this.lasso = null;
    this.meaning.lassoing([]);
  }

  wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    this.view.zoomBy(Math.exp((-event.deltaY * lines) / (event.ctrlKey ? 120 : 420)), ...this.at(event));
  }
}
