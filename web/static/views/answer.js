// SPDX-License-Identifier: Apache-2.0
/** The sentence above the picture: the prediction of the active mark, else what the machine is doing. */

import { spokenTouches } from "../core/figures.js";
import { SHAPES } from "../core/machine.js";
import { counted, grouped } from "../core/words.js";
import { saidOf } from "../net/api.js";
import { byId } from "../ui/dom.js";
import { blame, chosenNodes, complain, forgive } from "./jobform.js";

const WAIT_MS = 180;

/** What was last found out about the mark or the machine; the plans' sentence stands over it in their tab. */
const told = { text: "" };

/** Keep the sentence true: of the active mark, else of the machine. */
export function answers(app) {
  let waiting = 0;
  const later = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => describe(app), WAIT_MS);
  };
  app.store.on(["marks"], () => {
    if (!changed(app)) return;
    app.store.set({ describe: null }); // another mark's figures are not this one's
    if (app.served && app.marks.current?.rows.length) say(app, `${plainWords(app, app.marks.current)} Predicting …`);
    later();
  });
  app.store.on(["pattern", "ppn", "bytes", "partition", "order"], later);
  app.store.on(["snapshot"], () => !app.marks.current?.rows.length && say(app, machineWords(app)));
  app.store.on(["tab", "comparison"], () => showSentence(app));
  say(app, machineWords(app));
}

/** Whether the active mark's nodes are others than those last described. */
function changed(app) {
  const rows = app.marks.current?.rows ?? null;
  const same = rows === app.described;
  app.described = rows;
  return !same;
}

async function describe(app) {
  const mark = app.marks.current;
  if (!mark?.rows.length) {
    app.questions.get("describe")?.abort();
    app.curl("describe", null);
    app.store.set({ describe: null });
    say(app, machineWords(app));
    return;
  }
  if (!app.served) {
    const known = exported(app, mark);
    app.store.set({ describe: known });
    say(app, known?.sentence ?? plainWords(app, mark));
    return;
  }
  say(app, `${plainWords(app, mark)} Predicting …`);
  byId("sentence").classList.add("busy");
  try {
    const answer = await app.ask("describe", "api/v1/describe", bodyOf(app, mark));
    if (!answer) return;
    app.store.set({ describe: answer });
    forgive();
    if (answer.reason) refused(answer.reason);
    say(app, `${answer.sentence}${outOfOrder(app, mark)}`);
  } catch (error) {
    app.store.set({ describe: { prediction: null, default: null, reason: saidOf(error), notes: [] } });
    refused(saidOf(error));
    say(app, plainWords(app, mark));
  }
}

/** Say at a field of the form why nothing is predicted. */
function refused(words) {
  if (!blame(words)) complain("pattern", words);
}

/** What of a mark is predicted though it is out of order, in words. */
function outOfOrder({ snapshot }, { rows }) {
  const down = rows.filter((row) => SHAPES[snapshot.shape[row]] === "down").length;
  return down ? `; ${grouped(down)} of them ${down === 1 ? "is" : "are"} down` : "";
}

/** What an exported file knows of its own first mark, null of others. */
function exported(app, mark) {
  const { marks, describe: known } = app.exported ?? {};
  const own = marks?.[0]?.rows ?? [];
  const same = own.length === mark.rows.length && own.every((row, i) => row === mark.rows[i]);
  return known && same ? known : null;
}

/** How the server is asked about a mark. */
export function bodyOf(app, mark) {
  const bytes = Number(app.store.get("bytes")) || null;
  const [ppn, pattern] = ["ppn", "pattern"].map((key) => app.store.get(key));
  const { name, slots } = app.orderOf(mark);
  return { nodes: app.asked(mark), ppn, pattern, bytes, order: name, slots, ...chosenNodes(app), links: 200 };
}

function say(app, text) {
  told.text = text;
  showSentence(app);
}

/** One sentence at a time: the plans' in their tab, else the mark's or the machine's. */
function showSentence(app) {
  const plans = app.store.get("tab") === "plans";
  const text = (plans && app.store.get("comparison")) || told.text;
  const node = byId("sentence");
  node.classList.remove("busy");
  if (node.textContent !== text) node.textContent = text;
}

/** What a mark touches, where no server says more. */
function plainWords(app, mark) {
  const { machine } = app;
  const levels = machine.levels.slice(0, -1);
  const number = (depth) => new Set(mark.rows.map((row) => prefix(machine, row, depth))).size;
  const torus = machine.answer.kind === "torus";
  const touched = torus ? [["router", number(levels.length - 1)]] : levels.map((level, i) => [level, number(i)]);
  return `${counted(mark.rows.length, "node")} ${torus ? "on" : "in"} ${spokenTouches(Object.fromEntries(touched))}.`;
}

function prefix(machine, row, last) {
  return machine.coords.slice(0, last + 1).map((column) => column[row]).join("/");
}

/** What the machine is doing, where nothing is marked. */
function machineWords(app) {
  const { machine, snapshot } = app;
  const counts = new Array(SHAPES.length).fill(0);
  for (const shape of snapshot.shape) counts[shape]++;
  const [, idle, busy, down, service, other] = counts;
  const parts = [snapshot.answer.assumed ? "which of them are free is not known" : `${grouped(idle)} free`];
  if (busy) parts.push(`${grouped(busy)} in use${snapshot.jobs.length ? ` by ${counted(snapshot.jobs.length, "job")}` : ""}`);
  if (down) parts.push(`${grouped(down)} down`);
  if (other) parts.push(`${grouped(other)} not usable`);
  const served = service ? `, and ${counted(service, "service node")}` : "";
  return `${machine.title} has ${grouped(machine.count - service)} compute nodes: ${parts.join(", ")}${served}. Paste a job's nodes to see where it sits and what that costs.`;
}
