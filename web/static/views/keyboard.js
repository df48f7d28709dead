// SPDX-License-Identifier: Apache-2.0
/** Every deed of the mouse by keys: one focus cell on the map, and short cuts for the page. */

import { byId } from "../ui/dom.js";
import { openHelp } from "./help.js";
import { stepTo } from "./legend.js";

const LEVELS = { b: ["blade", "switch", "leaf", "chassis", "slice"], c: ["chassis"], k: ["cabinet"], g: ["group"] };

/** Wire the keys. */
export function keyboard(app) {
  byId("map").addEventListener("keydown", (event) => onMap(app, event));
  document.addEventListener("keydown", (event) => onPage(app, event));
}

function onPage(app, event) {
  const typing = event.target.closest?.("input, textarea, select, dialog[open]");
  if (event.altKey || event.metaKey) return;
  if (event.ctrlKey) {
    if (event.key === "z" && !typing && app.marks.undo()) event.preventDefault();
    return;
  }
  if (typing) return;
  const deeds = {
    "/": () => byId("search").focus(),
    "?": () => openHelp(),
    n: () => app.newMark("", []),
    m: () => app.openTab("map"),
    p: () => app.served && app.openTab("plans"),
    w: () => app.served && app.openTab("traffic"),
    x: () => app.traffic.swap(),
    v: () => app.traffic.beside(),
    u: () => app.machine.answer.measured && app.traffic.measure(),
    o: () => app.served && app.openTab("jobs"),
    t: () => app.openTab("table"),
    ...zooming(app),
    l: () => app.stage.setLasso(!app.stage.lassoing),
    Escape: () => app.stage.setLasso(false),
    "[": () => stepTo(app, app.store.get("rank") - 1),
    "]": () => stepTo(app, app.store.get("rank") + 1),
  };
  const number = Number(event.key) - 1;
  const deed = deeds[event.key] ?? (app.marks.list[number] ? () => app.marks.select(number) : null);
  if (!deed) return;
  event.preventDefault();
  deed();
}

/** What moves the map's window, wherever the focus is. */
function zooming(app) {
  const step = (by) => () => app.view.zoomStep(by, ...app.stage.focusPoint());
  return { "+": step(1), "=": step(1), "-": step(-1), 0: () => app.view.fit(), z: () => app.stage.showMark() };
}

function onMap(app, event) {
  if (event.altKey || event.metaKey || event.target.closest("button")) return;
  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const row = app.store.get("focus");
  const deeds = {
    " ": () => row >= 0 && app.pickNode(row, false),
    Enter: () => row >= 0 && app.pickNode(row, false),
    Home: () => app.goTo(0),
    End: () => app.goTo(app.machine.count - 1),
    j: () => markJob(app, row),
    ...Object.fromEntries(Object.entries(LEVELS).map(([key, names]) => [key, () => markLevel(app, row, names)])),
  };
  const deed = arrows[event.key] ? () => move(app, row, arrows[event.key], event) : event.ctrlKey ? null : deeds[event.key];
  if (!deed) return;
  event.preventDefault();
  event.stopPropagation();
  deed();
}

function markLevel(app, row, names) {
  const level = names.map((name) => app.scene.levelNamed(name)).find((index) => index >= 0);
  const box = row >= 0 && level !== undefined ? app.scene.boxOf[level][row] : -1;
  if (box >= 0) app.toggleBox(level, box);
}

function markJob(app, row) {
  const job = row >= 0 ? app.snapshot.job(row) : null;
  if (job) app.markJob(job, { show: false });
}

function move(app, row, way, event) {
  const to = row < 0 ? firstInSight(app) : nextNode(app.scene, row, way, event.ctrlKey);
  if (to < 0) return;
  if (event.shiftKey) app.range(to);
  app.goTo(to, { zoom: false });
}

function firstInSight(app) {
  const [x, y] = app.view.units(0, 0);
  const [x1, y1] = app.view.units(app.view.host.clientWidth, app.view.host.clientHeight);
  let best = -1;
  app.scene.within(x, y, x1, y1, (row) => {
    if (best < 0 || row < best) best = row;
  });
  return Math.max(best, 0);
}

/** The nearest node in a direction: straight ahead counts for more than near; with `far` in another box. */
function nextNode(scene, row, [dx, dy], far) {
  const boxes = scene.boxOf[Math.max(scene.levels.length - 2, 0)];
  let best = -1;
  let least = Infinity;
  for (let other = 0; other < scene.x.length; other++) {
    const ahead = (scene.x[other] - scene.x[row]) * dx + (scene.y[other] - scene.y[row]) * dy;
    if (ahead < scene.node.w / 2 || (far && boxes && boxes[other] === boxes[row])) continue;
    const aside = Math.abs((scene.x[other] - scene.x[row]) * dy) + Math.abs((scene.y[other] - scene.y[row]) * dx);
    const cost = ahead + 4 * aside;
    if (cost < least) [best, least] = [other, cost];
  }
  return best;
}
