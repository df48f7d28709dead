// SPDX-License-Identifier: Apache-2.0
/** The map with all that belongs to it: picture, overlay, mini-map, gestures, tip. */

import { jobOutlines, markOutlines } from "../draw/joboutlines.js";
import { linksOf } from "../draw/links.js";
import { Gestures } from "./gestures.js";
import { MapView } from "./mapview.js";
import { Minimap } from "./minimap.js";
import { Overlay } from "./overlay.js";
import { byId, el, place, refill } from "../ui/dom.js";

/** Ranks that a rank is joined with by lines. */
const MOST_LINES = 400;

const MOST_OUTLINES = 5000;
const NEAR_CSS = 12;

/** Milliseconds in which two clicks may become a double-click. */
const TWICE_MS = 900;

/** The one large map of the page. */
export class MapStage {
  constructor(app) {
    this.app = app;
    this.host = byId("map");
    this.view = new MapView(this.host, byId("picture"));
    this.overlay = new Overlay(this.view, this.host, { label: (level, box) => app.toggleBox(level, box) });
    this.minimap = new Minimap(this.view, byId("minimap"));
    this.lassoing = false;
    this.pointed = [];
    this.gestures = new Gestures(this.view, this.host, {
      click: (x, y, event) => this.clicked(x, y, event),
      twice: () => this.clickedTwice(),
      hover: (x, y) => this.hovered(x, y),
      leave: () => this.left(),
      lasso: (points) => this.lassoed(points),
      lassoing: (points) => this.overlay.drawLasso(points),
      lassoOn: () => this.lassoing,
    });
    byId("zoom-in").addEventListener("click", () => this.view.zoomStep(2));
    byId("zoom-out").addEventListener("click", () => this.view.zoomStep(-2));
    byId("zoom-fit").addEventListener("click", () => this.view.fit());
    byId("zoom-mark").addEventListener("click", () => this.showMark());
    byId("lasso").addEventListener("click", () => this.setLasso(!this.lassoing));
  }

  /** Show a scene, all of it. */
  setScene(scene) {
    this.host.style.setProperty("--aspect", scene.width / scene.height);
    this.view.setScene(scene, (row) => this.app.machine.namesOf(row));
  }

  /** Colour the map as the page says now. */
  recolour(colours) {
    const { looks, same } = this.app.looksFor(colours);
    this.view.setKeys(this.app.keysFor(colours), looks, same);
    this.decorate();
  }

  /** Put outlines and links over the picture. */
  decorate() {
    const { store, scene, snapshot, theme } = this.app;
    const ranks = rankPicture(this.app);
    this.overlay.focus(store.get("focus"));
    this.overlay.jobs = jobOutlines(store.get("way"), scene, snapshot);
    this.overlay.marks = markOutlines(scene, this.app.marks, (mark) => this.app.look(mark).colour);
    const links = store.get("links") ? linksOf(store.get("describe"), scene, theme) : [];
    this.overlay.lines = [...links, ...ranks.lines];
    this.overlay.outline([...ranks.outlines, ...this.pointed]);
  }

  clicked(x, y, event) {
    const row = this.rowAt(x, y);
    const { list, active } = this.app.marks;
    if (!this.before || performance.now() - this.before.since > TWICE_MS) this.before = { list, active, since: performance.now() };
    if (row < 0) return;
    if (event.shiftKey) {
      this.app.range(row);
      this.app.focus(row, { say: false });
    } else this.app.pickNode(row);
  }

  /** A double-click zooms: what its two clicks have marked is taken back. */
  clickedTwice() {
    if (this.before) this.app.marks.restore(this.before.list, this.before.active);
    this.before = null;
  }

  rowAt(x, y) {
    return this.app.scene.at(...this.view.units(x, y));
  }

  lassoed(points) {
    this.overlay.drawLasso([]);
    const rows = this.app.scene.inside(points);
    if (rows.length) this.app.marks.include(this.app.computing(rows));
    this.setLasso(false);
  }

  /** Switch the lasso on or off. */
  setLasso(on) {
    this.lassoing = on;
    this.host.classList.toggle("lassoing", on);
    byId("lasso").setAttribute("aria-pressed", String(on));
    if (!on) this.overlay.drawLasso([]);
  }

  hovered(x, y) {
    const row = this.rowAt(x, y);
    this.tip(row, x, y);
    if (row === this.app.store.get("hover")) return;
    this.app.store.set({ hover: row });
  }

  left() {
    byId("tip").hidden = true;
    this.app.store.set({ hover: -1 });
  }

  tip(row, x, y) {
    const tip = byId("tip");
    const vacant = row < 0 && this.app.scene.vacantAt(...this.view.units(x, y));
    tip.hidden = row < 0 && !vacant;
    if (tip.hidden) return;
    if (vacant) refill(tip, "vacant place");
    else if (this.tipRow !== row) {
      const [name, ...words] = this.app.said(row).split(", ");
      const ranks = this.app.ranksOn(row);
      refill(tip, el("b", { text: name }), words.join(", "), ranks ? el("div", { text: `ranks ${ranks}` }) : null);
    }
    this.tipRow = row;
    const right = x > this.host.clientWidth - 300;
    const low = y > this.host.clientHeight - 110;
    place(tip, right ? x - tip.offsetWidth - 14 : x + 16, low ? y - tip.offsetHeight - 12 : y + 18);
  }

  /** Light up what belongs to a node: its job's other nodes. */
  lightUp(row) {
    this.overlay.hover(row);
    const job = row >= 0 ? this.app.snapshot.job(row) : null;
    const key = job ? job.id : "";
    if (key === this.litKey) return;
    this.litKey = key;
    const rows = job && job.list.length <= MOST_OUTLINES ? job.list : [];
    const { scene, theme } = this.app;
    this.pointed = rows.map((each) => ({ x: scene.x[each], y: scene.y[each], w: scene.node.w, h: scene.node.h, colour: theme.ink, wide: 1.5 }));
    this.decorate();
  }

  /** Outline boxes of a level by their place in a list of units; -1 for none. */
  pointAt(level, indices, units) {
    this.pointed = unitBoxes(this.app, level, indices, units);
    this.decorate();
  }

  /** Go to a node: focus, in sight, large enough to be seen. */
  goTo(row, { zoom = true } = {}) {
    const { scene } = this.app;
    this.app.openTab("map");
    const css = this.view.unit * scene.pitch;
    if (zoom && css < NEAR_CSS) {
      const span = (scene.pitch * Math.min(this.host.clientWidth, this.host.clientHeight)) / 20;
      this.view.fit(scene.x[row] - span / 2, scene.y[row] - span / 2, span, span);
    } else this.view.reveal(scene.x[row], scene.y[row]);
    this.app.focus(row);
  }

  /** Show the nodes of the active mark as large as they may be. */
  showMark() {
    const rows = this.app.marks.current?.rows ?? [];
    if (rows.length) this.fitBoxes(rows.map((row) => [this.app.scene.x[row], this.app.scene.y[row]]));
  }

  /** Show some corners of nodes, as [x, y] in units, with some room around them. */
  fitBoxes(corners) {
    const { scene } = this.app;
    this.app.openTab("map");
    const least = corners.reduce((a, b) => [Math.min(a[0], b[0]), Math.min(a[1], b[1])]);
    const most = corners.reduce((a, b) => [Math.max(a[0], b[0]), Math.max(a[1], b[1])]);
    const room = 3 * scene.pitch;
    this.view.fit(least[0] - room, least[1] - room, most[0] - least[0] + 2 * room, most[1] - least[1] + 2 * room);
  }

  /** CSS point of the focus node, the middle of the map where there is none in sight. */
  focusPoint() {
    const row = this.app.store.get("focus");
    const { clientWidth, clientHeight } = this.host;
    if (row >= 0) {
      const [x, y] = this.view.css(this.app.scene.x[row], this.app.scene.y[row]);
      if (x >= 0 && y >= 0 && x < clientWidth && y < clientHeight) return [x, y];
    }
    return [clientWidth / 2, clientHeight / 2];
  }
}

/** Outlines of the boxes of some of a list of units; -1 for none. */
export function unitBoxes({ scene, theme, machine }, level, indices, units) {
  const column = machine.levels.indexOf(level);
  const wanted = [...new Set(indices)].filter((index) => index >= 0 && index < units.length).map((index) => units[index]);
  if (column < 0 || !wanted.length) return [];
  const named = scene.levelNamed(level);
  const at = named < 0 ? sliceLevel(scene, level) : named;
  if (at < 0) return [];
  const { x, y, w, h } = scene.levels[at];
  const boxes = boxesOfUnits(scene, at, machine.coords[column], wanted);
  return boxes.map((box) => ({ x: x[box], y: y[box], w: w[box], h: h[box], colour: theme.hues[1], wide: 2.5 }));
}

/** The slices of a torus are boxes of the axis that they are cut across. */
function sliceLevel(scene, axis) {
  const slices = scene.levelNamed("slice");
  return slices >= 0 && scene.levels[slices].label[0] === `${axis}0` ? slices : -1;
}

function boxesOfUnits(scene, level, coordinate, wanted) {
  const boxes = new Set();
  const of = scene.boxOf[level];
  for (let row = 0; row < of.length; row++) if (wanted.includes(coordinate[row])) boxes.add(of[row]);
  boxes.delete(-1);
  return [...boxes];
}

/** The ranks that a rank talks to. */
export function neighboursOf({ neighbours }, rank) {
  return neighbours ? neighbours.ranks.slice(neighbours.offsets[rank], neighbours.offsets[rank + 1]) : [];
}

/** Outlines and lines of the current rank and those that it talks to. */
function rankPicture(app) {
  const ranks = app.store.get("ranks");
  if (app.store.get("way") !== "rank" || !ranks) return { outlines: [], lines: [] };
  const { scene, theme } = app;
  const rank = Math.min(app.store.get("rank"), ranks.ranks - 1);
  const middle = (row) => [scene.x[row] + scene.node.w / 2, scene.y[row] + scene.node.h / 2];
  const box = (row, colour, wide) => ({ x: scene.x[row], y: scene.y[row], w: scene.node.w, h: scene.node.h, colour, wide });
  const own = ranks.node_rows[rank];
  const others = [...new Set(neighboursOf(ranks, rank).map((other) => ranks.node_rows[other]))].filter((row) => row !== own);
  const [x0, y0] = middle(own);
  const lines = others.slice(0, MOST_LINES).map((row) => {
    const [x1, y1] = middle(row);
    return { x0, y0, x1, y1, share: 0.4, colour: theme.ink };
  });
  return { outlines: [...others.map((row) => box(row, theme.ink, 1.5)), box(own, theme.hues[1], 3)], lines };
}
