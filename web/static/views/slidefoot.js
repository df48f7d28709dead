// SPDX-License-Identifier: Apache-2.0
/** What every slide says at its foot: the machine, the job, how old the states are, and what drew it. */

import { spokenBytes } from "../core/figures.js";
import { counted } from "../core/words.js";
import { Sheet } from "../draw/sheet.js";

/** What a slide holds for, in one line. */
export function footOf(app) {
  const { machine, snapshot, store, marks } = app;
  const { source, taken, assumed } = snapshot.answer;
  const mark = marks.current?.rows.length ? [`${marks.current.name}: ${counted(marks.current.rows.length, "node")}`] : [];
  const states = assumed ? "states not known" : `states of ${taken ? minute(new Date(1000 * taken)) : "the site's description"} from ${source}`;
  const version = machine.answer.version ? ` ${machine.answer.version}` : "";
  return [machine.title, ...mark, ...jobWords(store), states, `drawn ${minute(new Date())} by nidmap${version}`].join("  \u00b7  ");
}

/** A slide in the page's colours, with its foot. */
export function sheetOf(app, title, sentence) {
  return new Sheet(app.theme, { title, sentence, foot: footOf(app) });
}

function jobWords(store) {
  const bytes = Number(store.get("bytes"));
  return [`${store.get("pattern")}${bytes ? ` of ${spokenBytes(bytes)}` : ""}, ${counted(store.get("ppn"), "rank")} per node`];
}

function minute(date) {
  return `${date.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}
