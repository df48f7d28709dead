// SPDX-License-Identifier: Apache-2.0
/** Search by NID, name, cname, job, user, and every label that the page shows. */

import { counted } from "../core/words.js";

const MOST = 12;

/** Letters from which a word is also found inside others. */
const INSIDE = 3;

/** A place where a Cray machine may have a node, and its cabinet. */
const PLACE = /^(c\d+-\d+)c\ds\d+n\d$/;

/**
 * What a few typed words may mean, best first.
 * @param {string} typed
 * @param {any} app the page
 * @returns {Array<{kind: string, title: string, detail: string, row: number, rows: Function, go: Function}>} of
 *   `row`, a node; `rows`, what would be marked; and `go`, one is there
 */
export function searched(typed, app) {
  const { machine, scene, snapshot } = app;
  const text = typed.trim().toLowerCase();
  if (!text) return [];
  const exact = machine.find(text);
  const things = [...marksOf(app), ...jobsOf(snapshot, machine.answer.show_users), ...boxesOf(app), ...switchesOf(app), ...classesOf(app)];
  const ranked = things.map((thing) => [howWell(text, thing.words), thing]).filter(([how]) => how < Infinity).sort((a, b) => a[0] - b[0]);
  const found = exact >= 0 ? [nodeHit(machine, exact)] : vacantHit(text, scene);
  const job = ranked.findIndex(([how, { kind }]) => how === 0 && kind === "job"); // a job's number may be a NID too
  if (job >= 0) found.unshift(ranked.splice(job, 1)[0][1]);
  return [...found, ...ranked.slice(0, MOST / 2).map(([, thing]) => thing), ...nameHits(text, machine, exact)];
}

/** 0 where a text is one of some words, 1 where one begins with it, 2 where it is inside one. */
function howWell(text, words) {
  let best = Infinity;
  for (const word of words) {
    const plain = word.toLowerCase();
    if (plain === text) return 0;
    if (text.length >= INSIDE && plain.startsWith(text)) best = 1;
    else if (text.length >= INSIDE && plain.includes(text)) best = Math.min(best, 2);
  }
  return best;
}

function nodeHit(machine, row) {
  return { kind: "node", title: machine.called(row), detail: machine.where(row), row };
}

function vacantHit(text, scene) {
  const cabinet = PLACE.exec(text)?.[1];
  const there = cabinet && scene.levels.some(({ label }) => label.includes(cabinet));
  return there ? [{ kind: "place", title: text, detail: "a vacant place: no node stands there", go: () => {} }] : [];
}

function marksOf({ marks, stage }) {
  const show = (i) => () => {
    marks.select(i);
    stage.showMark();
  };
  return marks.list.map(({ name, rows }, i) => ({ kind: "mark", title: name, detail: counted(rows.length, "node"), words: [name, `mark ${name}`], go: show(i) }));
}

function jobsOf(snapshot, users) {
  const people = new Map();
  const jobs = snapshot.jobs.map((job) => {
    if (users && job.user) people.set(job.user, [...(people.get(job.user) ?? []), job]);
    const detail = `${job.name}, ${counted(job.list.length, "node")}`;
    return { kind: "job", title: `job ${job.id}`, detail, words: [job.id, job.name, `job ${job.id}`, `${job.id} ${job.name}`], job };
  });
  const ofUsers = [...people].map(([user, own]) => {
    const rows = () => [...new Set(own.flatMap((job) => job.list))];
    return { kind: "user", title: user, detail: counted(own.length, "job"), words: [user], rows };
  });
  return [...ofUsers, ...jobs];
}

function boxesOf(app) {
  return app.scene.levels.flatMap((level, i) =>
    level.label.map((label, box) => ({
      kind: level.name, title: `${level.name} ${label}`, detail: "", words: [label, `${level.name} ${label}`, `${level.name} ${/\d*$/.exec(label)}`],
      rows: () => app.computing(app.scene.rowsOfBox(i, box)),
    })));
}

/** Switches above the leaves: there is nothing to mark, but they can be shown. */
function switchesOf({ scene: { spines, node }, stage }) {
  return (spines?.label ?? []).map((label, i) => ({
    kind: "switch", title: label, detail: "has no nodes of its own", words: [label, `switch ${label}`],
    go: () => stage.fitBoxes([[spines.x[i], spines.y[i]], [spines.x[i] + spines.w[i], spines.y[i] + spines.h[i] + 6 * node.h]]),
  }));
}

/** What the legend shows, and the columns and rows of cabinets that the rulers name. */
function classesOf({ machine, shown, scene }) {
  const ofClass = (code) => () => machine.rowsWhere((row) => shown.codes[row] === code);
  const legend = shown.classes.map(({ label, count }, code) => ({ kind: "legend", title: label, detail: counted(count, "node"), words: label ? [label] : [], rows: ofClass(code) }));
  const cabinets = scene.levelNamed("cabinet");
  const lines = cabinets < 0 ? [] : [...new Set(scene.levels[cabinets].label.flatMap((label) => /^(c\d+)(-\d+)$/.exec(label)?.slice(1) ?? []))];
  const onLine = (line) => () => machine.rowsWhere((row) => (scene.levels[cabinets].label[scene.boxOf[cabinets][row]] ?? "").match(/^c\d+|-\d+/g)?.includes(line) && !machine.service[row]);
  return [...legend, ...lines.map((line) => ({ kind: "cabinets", title: line, detail: line[0] === "c" ? "a column of cabinets" : "a row of cabinets", words: [line], rows: onLine(line) }))];
}

function nameHits(text, machine, exact) {
  const hits = [];
  for (let row = 0; row < machine.count && hits.length < MOST / 2; row++) {
    const near = machine.names[row].toLowerCase().includes(text) || (machine.cnames[row] ?? "").toLowerCase().startsWith(text);
    if (near && row !== exact) hits.push(nodeHit(machine, row));
  }
  return hits;
}
