// SPDX-License-Identifier: Apache-2.0
/** The picture without a browser: what `nidmap web export` and the API draw, from the data of an exported page. */

import { Machine, Snapshot } from "../core/machine.js";
import { Marks } from "../core/marks.js";
import { Scene } from "../core/scene.js";
import { coloured, distinct, keysOf } from "./colouring.js";
import { jobOutlines, markOutlines } from "./joboutlines.js";
import { linksOf } from "./links.js";
import { pictureOf } from "./picture.js";
import { Looks } from "./sprites.js";
import { themeNamed } from "./theme.js";

/** Draw the data of an exported page, as JSON, with `theme`, `view` and `sentence`; returns an SVG. */
globalThis.draw = (text) => {
  const data = JSON.parse(text);
  const { describe, way } = data;
  const machine = new Machine(data.machine);
  const snapshot = new Snapshot(data.state, machine);
  const scene = new Scene(data.layout.views.find((view) => view.id === data.view));
  const theme = themeNamed(data.theme);
  const ranks = data.ranks && { ...data.ranks, ranks: data.ranks.order.ranks };
  const colours = coloured(way, { machine, snapshot, theme, ranks, hops: data.hops, load: describe?.prediction?.routers, markHues: data.marks.map((mark) => mark.hue) });
  const looks = data.marks.map((mark) => distinct(theme, mark.hue));
  const marks = new Marks(() => {});
  marks.restore(data.marks, 0);
  return pictureOf({
    title: machine.title, sentence: data.sentence, machine, scene, theme, colours,
    looks: new Looks(theme, colours.classes, looks, way === "state"), keys: keysOf(colours, snapshot.shape, marks.ofRows(machine.count), new Set()),
    marks: data.marks.map(({ name, rows }, i) => ({ name: name || "marked", count: rows.length, look: looks[i] })),
    over: { jobs: jobOutlines(way, scene, snapshot), marks: markOutlines(scene, marks, (mark) => distinct(theme, mark.hue).colour), lines: linksOf(describe, scene, theme), outlined: [] },
  });
};
