// SPDX-License-Identifier: Apache-2.0
/** The tab Traffic: what the mark's job does to the wires, the scheduler's own choice at one key or beside it. */

import { bodyOf } from "./answer.js";
import { rounded, spokenAge } from "../core/figures.js";
import { counted } from "../core/words.js";
import { compareLinks } from "../core/comparison.js";
import { painted } from "../draw/raster.js";
import { getJson, saidOf } from "../net/api.js";
import { saveBlob } from "../ui/clipboard.js";
import { byId, el, refill, svgEl } from "../ui/dom.js";
import { FRAMES, SLIDE, text, weightOf } from "./slide.js";
import { footOf } from "./slidefoot.js";
import { trafficPicture } from "./trafficpicture.js";

const LINKS = 2000;

/** Units of a slide below its picture. */
const FOOT = 40;

/** CSS pixels below which a slide's letters cannot be read: a taller picture with the same letters is drawn. */
const PHONE = 770;

/** Radians of a pixel, and of a key. */
const [DRAGGED, PRESSED] = [0.008, 0.15];

/** Draws the mark's prediction and that of the nodes that the scheduler would choose. */
export class TrafficTab {
  constructor(app) {
    this.app = app;
    this.view = { turn: 0.6, tilt: 0.5, group: -1, other: false, both: false, measured: false };
    this.counters = null;
    this.found = [];
    const host = byId("traffic-picture");
    byId("traffic-swap").addEventListener("click", () => this.swap());
    byId("traffic-both").addEventListener("change", ({ target }) => this.see({ both: target.checked }));
    byId("traffic-counters").addEventListener("change", ({ target }) => this.measure(target.checked));
    byId("traffic-group").addEventListener("change", ({ target }) => this.see({ group: Number(target.value) }));
    for (const kind of ["svg", "png"]) byId(`traffic-${kind}`).addEventListener("click", () => this.save(kind));
    host.addEventListener("click", ({ target }) => target.dataset.open >= 0 && this.see({ group: Number(target.dataset.open) }));
    host.addEventListener("pointermove", (event) => event.buttons === 1 && this.turn(event.movementX * DRAGGED, event.movementY * DRAGGED));
    host.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!by || app.machine.answer.kind !== "torus") return;
      event.preventDefault();
      this.turn(...by.map((each) => each * PRESSED));
    });
    app.store.on(["tab", "describe"], () => this.ask());
    app.store.on(["theme"], () => this.draw());
    new ResizeObserver(() => this.frame !== this.frameNow && this.draw()).observe(host);
  }

  /** Two pictures at a time: both of the mark and the default, or the prediction and the counters. */
  get two() {
    return this.view.measured || (this.view.both && this.found.length > 1);
  }

  /** The frame for the room that there is on the screen. */
  get frameNow() {
    const width = byId("traffic-picture").clientWidth;
    return width < PHONE ? FRAMES.tall : this.two ? FRAMES.narrow : FRAMES.wide;
  }

  /** Ask for the links of the mark and of the default, when they are looked at. */
  async ask() {
    const { app } = this;
    const [mark, describe] = [app.marks.current, app.store.get("describe")];
    if (app.store.get("tab") !== "traffic" || this.of === describe) return;
    this.of = describe;
    this.found = [];
    this.view = { ...this.view, group: -1, other: false };
    if (!describe?.prediction) return this.draw();
    this.draw();
    try {
      const asked = { ...bodyOf(app, mark), links: LINKS, groups: app.machine.answer.kind.startsWith("dragonfly") };
      const own = await app.ask("traffic", "api/v1/describe", asked);
      const nodes = describe.default?.nodelist;
      const other = nodes ? await app.ask("traffic", "api/v1/describe", { ...asked, nodes, slots: [], order: "row-major" }) : null;
      if (own?.prediction && this.of === describe) this.found = [{ ...own, rows: mark.rows }, ...(other?.prediction ? [{ ...other, rows: describe.default.rows }] : [])];
    } catch (error) {
      app.failed(error);
    }
    return this.draw();
  }

  /** Show the other one of the mark and the default. */
  swap() {
    if (this.found.length > 1) this.see({ other: !this.view.other, group: -1, both: false });
  }

  /** Show both side by side, or one again. */
  beside() {
    if (this.found.length > 1) this.see({ both: !this.view.both, group: -1 });
  }

  /** Show what the links' counters say beside what is predicted, or the prediction alone again. */
  async measure(yes = !this.view.measured) {
    if (yes) {
      const path = `api/v1/measured?links=${LINKS}`;
      this.app.curl("measured", path);
      this.counters = await getJson(path).catch((error) => this.app.failed(error));
    }
    this.see({ measured: Boolean(yes && this.counters), both: false, other: false });
  }

  turn(across, down) {
    if (this.app.machine.answer.kind === "torus") this.see({ turn: this.view.turn + across, tilt: Math.min(Math.max(this.view.tilt + down, 0), 1.57) });
  }

  see(changes) {
    Object.assign(this.view, changes);
    this.draw();
  }

  draw() {
    const { app, view, found } = this;
    if (app.store.get("tab") !== "traffic") return;
    const [shown, both] = [found[view.other ? 1 : 0], view.both && found.length > 1];
    byId("traffic-measured").hidden = !shown || !app.machine.answer.measured;
    byId("traffic-counters").checked = view.measured;
    for (const id of ["traffic-swap", "traffic-svg", "traffic-png"]) byId(id).disabled = !shown;
    byId("traffic-swap").hidden = byId("traffic-beside").hidden = found.length < 2;
    byId("traffic-both").checked = both;
    byId("traffic-groups").hidden = !shown || !app.machine.answer.kind.startsWith("dragonfly");
    const none = this.none;
    if (!shown) {
      refill(byId("traffic-picture"), none);
      return;
    }
    const rows = (both ? found : [shown]).flatMap((one) => one.rows);
    const touched = [...new Set(rows.map((row) => app.machine.coords[0][row]))].sort((a, b) => a - b);
    refill(byId("traffic-group"), el("option", { value: -1, text: "all groups" }), ...touched.map((id) => el("option", { value: id, text: `the routers of g${id}`, selected: id === view.group })));
    byId("traffic-swap").textContent = view.other ? "Show the mark (x)" : `Show ${this.words} (x)`;
    this.frame = this.frameNow;
    refill(byId("traffic-picture"), ...this.pictures(this.frame));
  }

  /** What is shown, drawn for a frame. */
  pictures(frame) {
    const { view } = this;
    if (view.measured) return this.picturesOfCounters(frame);
    return (this.two ? [0, 1] : [view.other ? 1 : 0]).map((which) => this.picture(which, frame));
  }

  /** What stands where there is no picture. */
  get none() {
    const { app } = this;
    if (!app.marks.current?.rows.length) return "Mark a job's nodes to see its traffic.";
    const describe = app.store.get("describe");
    return describe && !describe.prediction ? describe.reason || "No prediction." : "Calculating the traffic …";
  }

  /** What the scheduler would choose, in words. */
  get words() {
    return this.app.store.get("describe").default?.words;
  }

  /** Draw the mark (0) or the default (1), both to the same scale. */
  picture(which, frame) {
    const { app, found, view } = this;
    const { rows, prediction } = found[which];
    const mark = app.marks.current;
    const who = which ? this.words.replace(/(.{40}.*) \(.*\)$/, "$1") : `Mark ${mark.name}`; // the button has it in full
    return trafficPicture({
      ...view, frame, machine: app.machine, theme: app.theme, found: found[which], rows,
      title: `${who.charAt(0).toUpperCase()}${who.slice(1)}: ${counted(rows.length, "node")}, ${prediction.pattern}`,
      hue: which ? app.theme.soft : app.look(mark).colour, most: Math.max(...found.map(busiest)) || 1, shared: found.length > 1,
    });
  }

  /** The mark's prediction in bytes beside the counters, to one scale: a run is many rounds of a pattern. */
  picturesOfCounters(frame) {
    const [found] = this.found;
    const { links, groups, sentence, taken } = this.counters;
    const { rounds, words } = compareLinks(found.prediction.links, links);
    const own = found.prediction;
    const prediction = { ...own, links: inBytes(own.links, rounds), groups: own.groups && inBytes(own.groups, rounds) };
    const aged = `${sentence}, ${spokenAge(Date.now() / 1000 - taken)} old; ${words}`;
    const most = Math.max(weightOf(prediction.links)[0] ?? 0, links.load[0]) || 1;
    const often = rounds === 1 ? "" : `, ${rounded(rounds)} rounds`;
    return [
      this.pictureBeside({ ...found, prediction }, `Predicted for mark ${this.app.marks.current.name}${often}`, most, frame),
      this.pictureBeside({ prediction: { links, groups }, sentence: aged, said: aged, timeless: "", rows: found.rows }, "Measured", most, frame),
    ];
  }

  pictureBeside(found, title, most, frame) {
    const { app, view } = this;
    return trafficPicture({ ...view, frame, machine: app.machine, theme: app.theme, found, rows: found.rows, title, hue: app.look(app.marks.current).colour, most, shared: true });
  }

  /** What is shown as a slide, null where nothing is; its foot stands below the picture. */
  slide() {
    if (!byId("traffic-picture").querySelector("svg")) return null;
    const pictures = this.pictures(this.two ? FRAMES.narrow : FRAMES.wide); // the screen's may be a phone's
    const { theme } = this.app;
    const { width, height } = SLIDE;
    const svg = svgEl("svg", { viewBox: `0 0 ${width} ${height}`, width: 1920, height: 1080, fill: theme.map });
    svg.append(svgEl("rect", { width, height }), ...pictures);
    pictures.forEach((picture, i) => {
      const half = { x: (i * width) / pictures.length, width: width / pictures.length, height: height - FOOT };
      for (const [name, value] of Object.entries(half)) picture.setAttribute(name, String(value));
    });
    text(svg, 40, height - 14, footOf(this.app), { size: 16, fill: theme.soft });
    svg.setAttribute("font-family", "system-ui, sans-serif");
    return new XMLSerializer().serializeToString(svg);
  }

  /** Save what is shown, at the size of a slide. */
  async save(kind) {
    const drawing = new Blob([this.slide()], { type: "image/svg+xml" });
    try {
      saveBlob(kind === "svg" ? drawing : await painted(drawing), `traffic.${kind}`);
    } catch (error) {
      this.app.failed(new Error(saidOf(error)));
    }
  }
}

/** Links without their seconds, so that bytes are drawn, those of so many rounds. */
function inBytes(links, rounds) {
  return { ...links, seconds: links.seconds.map(() => 0), load: links.load.map((load) => load * rounds) };
}

function busiest({ prediction }) {
  return weightOf(prediction.links)[0] ?? 0;
}
