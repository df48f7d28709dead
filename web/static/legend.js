/** The legend: what each colour and shape means, how many there are, and a filter. */

import { announce } from "./announce.js";
import { byId, el, grouped, refill } from "./dom.js";
import { drawSwatch } from "./swatch.js";
import { rampColour } from "./theme.js";

const MOST = 200;

/** Show the legend of some colours. */
export function showLegend(app, colours) {
  const { ramp, note } = colours;
  const used = usedClasses(colours);
  const rows = used.slice(0, MOST).map((each) => entry(app, each));
  const more = used.length > MOST ? el("p", { class: "soft", text: `and ${used.length - MOST} more` }) : null;
  const list = el("div", { class: "legend", role: "group", "aria-label": "Shown classes" }, ...rows, vacantEntry(app));
  refill(byId("legend"), note ? el("p", { class: "soft", text: note }) : null, ramp ? rampBar(ramp) : null, list, more);
}

/** Classes with a line of their own: those that a node has, and that are no step of a ramp. */
export function usedClasses({ classes, ramp }) {
  return classes.filter((kind) => kind.count > 0 && !(ramp && kind.label === ""));
}

/** The line of places without a node; null where there are none. */
export function vacantClass(scene, theme) {
  const count = scene.vacant.x.length;
  return count ? { label: "vacant place", colour: theme.vacant, hatch: 0, shape: 0, count } : null;
}

function entry(app, kind) {
  const hidden = app.store.get("hidden");
  const swatch = el("canvas", { class: "swatch", width: 32, height: 32, "aria-hidden": "true" });
  drawSwatch(swatch, app.theme, kind);
  const box = el("input", { type: "checkbox", checked: !hidden.has(kind.id), on: { change: () => flip(app, kind) } });
  const words = el("span", { class: hidden.has(kind.id) ? "words off" : "words", text: kind.label, title: kind.label });
  return el("label", {}, box, swatch, words, el("span", { class: "num soft", text: grouped(kind.count) }));
}

function vacantEntry(app) {
  const kind = vacantClass(app.scene, app.theme);
  if (!kind) return null;
  const swatch = el("canvas", { class: "swatch", width: 32, height: 32, "aria-hidden": "true" });
  drawSwatch(swatch, app.theme, kind);
  return el("label", { class: "vacant" }, el("span"), swatch, el("span", { class: "words", text: kind.label }), el("span", { class: "num soft", text: grouped(kind.count) }));
}

function flip(app, kind) {
  const hidden = new Set(app.store.get("hidden"));
  if (!hidden.delete(kind.id)) hidden.add(kind.id);
  app.store.set({ hidden });
  announce(`${kind.label} ${hidden.has(kind.id) ? "hidden" : "shown"}`);
}

function rampBar({ stops, low, high }) {
  const canvas = el("canvas", { width: 160, height: 1, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  for (let x = 0; x < 160; x++) {
    context.fillStyle = rampColour(stops, x / 159);
    context.fillRect(x, 0, 1, 1);
  }
  return el("div", { class: "ramp" }, el("span", { text: low }), canvas, el("span", { text: high }));
}
