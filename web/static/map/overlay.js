// SPDX-License-Identifier: Apache-2.0
/** What lies over the canvas: labels that can be clicked, the focus ring, outlines and links. */

import { labelsIn } from "../draw/labels.js";
import { drawOverlay } from "../draw/over.js";
import { el, place, svgEl } from "../ui/dom.js";

const MOST_LABELS = 260;

/** Labels, rings and lines of one map view. */
export class Overlay {
  /**
   * @param {import("./mapview.js").MapView} view
   * @param {HTMLElement} host
   * @param {Object} calls `label(level, box, event)` when a label is clicked
   */
  constructor(view, host, calls) {
    this.view = view;
    this.calls = calls;
    this.labels = el("div", { class: "labels" });
    this.glow = el("canvas", { class: "glow", "aria-hidden": "true" });
    this.ring = el("div", { class: "ring", hidden: true, "aria-hidden": "true" });
    this.hoverRing = el("div", { class: "ring hover", hidden: true, "aria-hidden": "true" });
    this.lasso = svgEl("svg", { class: "lasso", "aria-hidden": "true" });
    this.lassoPath = svgEl("path", { d: "" });
    this.lasso.append(this.lassoPath);
    host.append(this.glow, this.labels, this.hoverRing, this.ring, this.lasso);
    this.pool = [];
    this.outlined = [];
    this.lines = [];
    this.jobs = { borders: [], names: [] };
    this.marks = [];
    view.onMove(() => this.follow());
    view.onSettle(() => this.settle());
    this.labels.addEventListener("click", (event) => this.clicked(event));
  }

  clicked(event) {
    const button = event.target.closest(".box-label");
    if (button) this.calls.label(Number(button.dataset.level), Number(button.dataset.box), event);
  }

  /** Keep up with a picture in motion: move what is there, redraw later. */
  follow() {
    const { view } = this;
    if (!this.base || view.camera.k !== this.base.k) {
      this.labels.hidden = true;
      this.glow.hidden = true;
    } else {
      const { ratio } = view.camera;
      const dx = (this.base.left - view.camera.left) / ratio;
      const dy = (this.base.top - view.camera.top) / ratio;
      place(this.labels, dx, dy);
      place(this.glow, dx, dy);
    }
    this.moveRings();
  }

  /** Draw all anew for where the picture rests. */
  settle() {
    const { k, left, top } = this.view.camera;
    this.base = { k, left, top };
    this.labels.hidden = false;
    this.glow.hidden = false;
    place(this.labels, 0, 0);
    place(this.glow, 0, 0);
    this.writeLabels();
    this.moveRings();
    this.redraw();
  }

  /** Ring around the focus cell; -1 for none. */
  focus(row) {
    this.focused = row;
    this.moveRings();
  }

  /** Ring around the node under the pointer, or that another picture points at; -1 for none. */
  hover(row) {
    if (this.hovered === row) return;
    this.hovered = row;
    this.moveRings();
  }

  moveRings() {
    this.moveRing(this.ring, this.focused ?? -1);
    this.moveRing(this.hoverRing, this.hovered ?? -1);
  }

  moveRing(ring, row) {
    const { scene, unit } = this.view;
    ring.hidden = row < 0 || !scene;
    if (ring.hidden) return;
    const side = Math.max(scene.pitch * unit, 5);
    const [x, y] = this.view.css(scene.x[row], scene.y[row]);
    ring.style.width = `${side + 4}px`;
    ring.style.height = `${side + 4}px`;
    place(ring, x - 3, y - 3);
  }

  /** The lasso so far: points in units, [] for none. */
  drawLasso(points) {
    const path = points.map((point) => this.view.css(...point).map(Math.round).join(" ")).join("L");
    this.lassoPath.setAttribute("d", path ? `M${path}Z` : "");
  }

  /**
   * Outline nodes and boxes: lists of {x, y, w, h} in units with a colour each.
   * @param {Array} outlines
   */
  outline(outlines) {
    this.outlined = outlines;
    this.redraw();
  }

  /**
   * Draw links: {x0, y0, x1, y1, share, colour} in units.
   * @param {Array} lines
   */
  links(lines) {
    this.lines = lines;
    this.redraw();
  }

  redraw() {
    const { view, glow } = this;
    if (!view.scene) return;
    const empty = [this.outlined, this.lines, this.marks, this.jobs.borders].every((each) => !each.length);
    if (empty && this.clean) return;
    glow.width = view.camera.width;
    glow.height = view.camera.height;
    drawOverlay(glow.getContext("2d"), view.camera, view.tiles.looks?.theme, this);
    this.clean = empty;
  }

  writeLabels() {
    const wanted = labelsIn(this.view.scene, this.view.camera).slice(0, MOST_LABELS);
    while (this.pool.length < wanted.length) this.pool.push(this.newLabel());
    this.pool.forEach((node, i) => showLabel(node, wanted[i]));
  }

  newLabel() {
    const node = el("button", { type: "button", class: "box-label", tabindex: "-1" });
    this.labels.append(node);
    return node;
  }
}

function showLabel(node, label) {
  node.hidden = !label;
  if (!label) return;
  const fixed = label.level < 0;
  node.className = fixed ? `box-label fixed ${label.anchor}` : "box-label";
  node.disabled = fixed;
  node.textContent = label.text;
  node.dataset.level = label.level;
  node.dataset.box = label.box ?? -1;
  node.style.fontSize = `${label.size}px`;
  node.style.width = label.width ? `${Math.floor(label.width)}px` : "auto";
  node.style.height = label.height ? `${Math.floor(label.height)}px` : "auto";
  node.style.lineHeight = label.height ? `${Math.floor(label.height)}px` : "1.2";
  place(node, label.left, label.top);
}
