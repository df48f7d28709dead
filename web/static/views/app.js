// SPDX-License-Identifier: Apache-2.0
/** The page's heart: what is shown, and who is told when it changes. */

import { Snapshot } from "../core/machine.js";
import { FULL, Marks, OWN_ORDER } from "../core/marks.js";
import { askedRows, rangesOf, resolveHere, writeHere } from "../core/nodelist.js";
import { Scene } from "../core/scene.js";
import { Store } from "../core/store.js";
import { counted, grouped } from "../core/words.js";
import { coloured, distinct, keysOf } from "../draw/colouring.js";
import { Looks } from "../draw/sprites.js";
import { themeNow } from "../draw/theme.js";
import { getJson, postJson, postLong, saidOf } from "../net/api.js";
import { announce, notice } from "../ui/announce.js";

const BUSY = 429;
const MOST_TURNS = 15;

/** What every part of the page works with. */
export class App {
  /**
   * @param {import("../core/machine.js").Machine} machine
   * @param {Object} layout answer of /api/v1/layout
   * @param {Object} state answer of /api/v1/state
   * @param {boolean} served whether a server answers (else the page is an exported file)
   */
  constructor(machine, layout, state, served) {
    this.machine = machine;
    this.served = served;
    this.layouts = layout.views;
    const first = new Scene(layout.views[0]);
    this.scenes = new Map([[first.id, first]]);
    this.marks = new Marks(() => this.store.touch("marks"));
    this.store = new Store({
      snapshot: new Snapshot(state, machine), scene: first, theme: themeNow(""), themeChoice: "",
      way: "state", hidden: new Set(), marks: 0, focus: -1, hover: -1, tab: "map", ranks: null, hops: null,
      describe: null, order: "row-major", rank: 0, links: true, pattern: "alltoall", ppn: 1, bytes: "", partition: "", curl: [],
    });
    this.questions = new Map();
    /** @type {any} the large map, set when the page starts */
    this.stage = null;
    /** @type {any} what an exported file holds */
    this.exported = null;
  }

  /** The scene of a layout, asked for and made when it is first shown; null where there is none of that name. */
  async sceneOf(id) {
    const known = this.layouts.find((each) => each.id === id);
    if (!known || this.scenes.has(id)) return this.scenes.get(id) ?? null;
    this.stage.host.dataset.settled = "false";
    const view = known.node ? known : (await getJson(`api/v1/layout?view=${encodeURIComponent(id)}`)).views[0];
    this.scenes.set(id, new Scene(view));
    return this.scenes.get(id);
  }

  get scene() {
    return this.store.get("scene");
  }

  get snapshot() {
    return this.store.get("snapshot");
  }

  get theme() {
    return this.store.get("theme");
  }

  /** Work out colours and keys of all nodes; `marks` false leaves the marks out. */
  colours() {
    const load = this.store.get("describe")?.prediction?.routers ?? null;
    const { machine, snapshot, theme } = this;
    const now = { machine, snapshot, theme, hops: this.store.get("hops"), ranks: this.store.get("ranks"), load, markHues: this.marks.list.map((mark) => mark.hue % theme.hues.length) };
    return coloured(this.store.get("way"), now);
  }

  /** Sprites for some colours; the last ones again where they would look the same. */
  looksFor(colours) {
    const hues = this.marks.list.map((mark) => this.look(mark));
    const fill = this.store.get("way") === "state";
    const signature = JSON.stringify([this.theme.name, hues, fill, colours.classes.map((each) => [each.colour, each.hatch])]);
    const same = signature === this.signature;
    if (!same) this.looks = new Looks(this.theme, colours.classes, hues, fill);
    this.signature = signature;
    return { looks: this.looks, same };
  }

  /** Keys of all nodes for the map. */
  keysFor(colours) {
    const markOf = this.marks.ofRows(this.machine.count);
    return keysOf(colours, this.snapshot.shape, markOf, this.store.get("hidden"));
  }

  /** Colour (#rrggbb) and hatching of a mark; the system's forced colours are too few for all marks. */
  look(mark) {
    return distinct(this.theme, mark.hue);
  }

  /** Put the focus on a node and say what it is. */
  focus(row, { say = true } = {}) {
    this.store.set({ focus: row });
    if (say && row >= 0) announce(this.said(row));
  }

  /** A node in words. */
  said(row) {
    const { machine, snapshot } = this;
    const job = snapshot.job(row);
    const marks = this.marksOf(row).map((mark) => `marked ${mark.name}`);
    const role = machine.service[row] ? "service node" : snapshot.word(row);
    const words = [machine.called(row), role, job ? `job ${job.id}` : "", machine.where(row), ...marks];
    return words.filter(Boolean).join(", ");
  }

  /** The marks that a node is in. */
  marksOf(row) {
    return this.marks.list.filter((mark) => mark.rows.includes(row));
  }

  /** Compute nodes among some rows; all of them where none computes. */
  computing(rows) {
    const plain = rows.filter((row) => !this.machine.service[row]);
    return plain.length ? plain : rows;
  }

  /** Mark or unmark a set of nodes and say it. */
  toggle(rows, what) {
    if (!rows.length) return;
    const before = this.marks.current?.rows.length ?? 0;
    const added = this.marks.toggle(rows);
    const now = this.marks.current?.rows.length ?? 0;
    const number = Math.abs(now - before);
    announce(`${added ? "marked" : "unmarked"} ${what ?? counted(number, "node")}; ${grouped(now)} in mark ${this.marks.current?.name}`);
  }

  /** Make a new mark; says so where there is no colour left for it. */
  newMark(name, rows, instead) {
    const mark = this.marks.add(name, rows, instead);
    if (!mark) notice(FULL, "error");
    else announce(`mark ${mark.name} with ${counted(mark.rows.length, "node")}`);
    return mark;
  }

  /** Make a mark of what was found, and show it: the arrows move from its first node on. Returns the mark. */
  markFound(name, rows, instead) {
    const mark = rows.length ? this.newMark(name, rows, instead) : null;
    if (!mark) return null;
    this.stage.showMark();
    this.focus(rows[0], { say: false });
    return mark;
  }

  /** Make a mark of a job, with the ranks per node that it runs with where it tells them. Returns the mark. */
  markJob(job, { instead = undefined, show = true } = {}) {
    const name = `job ${job.id}`;
    const mark = show ? this.markFound(name, job.list, instead) : this.newMark(name, job.list, instead);
    if (mark && job.ppn) this.store.set({ ppn: job.ppn });
    return mark;
  }

  /** Mark or unmark the nodes of a box of the scene. */
  toggleBox(level, box) {
    const { name, label } = this.scene.levels[level];
    this.toggle(this.computing(this.scene.rowsOfBox(level, box)), `${name} ${label[box]}`);
  }

  /** Mark or unmark one node, and remember it as the beginning of a range. */
  pickNode(row, say = true) {
    this.anchor = row;
    this.focus(row, { say });
    this.toggle([row], this.machine.names[row]);
  }

  /** Mark from the last picked node to this one, in NID order. */
  range(row) {
    const from = this.anchor ?? (this.store.get("focus") >= 0 ? this.store.get("focus") : row);
    this.anchor = from;
    const [low, high] = [Math.min(from, row), Math.max(from, row)];
    const rows = this.computing(Array.from({ length: high - low + 1 }, (_, i) => low + i));
    this.marks.include(rows);
    announce(`${counted(rows.length, "node")} in the range`);
  }

  /** Ranks on a node, as ranges; '' where none are known. */
  ranksOn(row) {
    const ranks = this.store.get("ranks");
    if (!ranks) return "";
    ranks.byRow ??= ranksByRow(ranks.node_rows);
    return rangesOf(ranks.byRow.get(row) ?? []);
  }

  /** Names of the marks of a node, for tables. */
  markName(row) {
    return this.marksOf(row).map((mark) => mark.name).join(", ");
  }

  /** Open one of the tabs. */
  openTab(tab) {
    this.store.set({ tab });
  }

  /** The map's view of the scene. */
  get view() {
    return this.stage.view;
  }

  /** Go to a node on the map. */
  goTo(row, options) {
    this.stage.goTo(row, options);
  }

  /** The text by which the server knows a mark's nodes. */
  asked(mark) {
    return askedRows(mark.rows);
  }

  /**
   * The order of a mark's ranks: the one that its nodes were planned with while it is chosen and they are as
   * planned, else the chosen one by name.
   * @returns {Object} `name` and `slots`, of which one is empty
   */
  orderOf(mark) {
    const name = this.store.get("order");
    if (name !== OWN_ORDER) return { name, slots: [] };
    const fits = mark.planned?.length === mark.rows.length * this.store.get("ppn");
    return fits ? { name: "", slots: mark.planned } : { name: "row-major", slots: [] };
  }

  /**
   * Ask, so that only the newest answer of a name counts.
   * @returns {Promise<Object|null>} null where a newer question was asked meanwhile
   */
  async ask(name, path, body, told) {
    this.questions.get(name)?.abort();
    const control = new AbortController();
    this.questions.set(name, control);
    this.curl(name, path, body);
    try {
      const post = () => (told ? postLong(path, body, control.signal, told) : postJson(path, body, control.signal));
      return await patiently(post, control.signal);
    } catch (error) {
      if (error.name === "AbortError") return null;
      throw error;
    } finally {
      if (this.questions.get(name) === control) this.questions.delete(name);
    }
  }

  /** Remember how a part of the page asked, for the curl lines; null takes it away. */
  curl(name, path, body) {
    const others = this.store.get("curl").filter((line) => line.name !== name);
    this.store.set({ curl: path ? [...others, { name, path, body }] : others });
  }

  /** Resolve pasted text to rows. */
  async resolve(text) {
    if (!this.served) return resolveHere(text, this.machine);
    return this.ask("paste", "api/v1/resolve", { text });
  }

  /** Write a mark in a format. */
  async emit(mark, format) {
    if (!this.served) return writeHere(format, mark.rows, this.machine);
    const body = { nodes: this.asked(mark), format, ppn: this.store.get("ppn") };
    return (await this.ask("copy", "api/v1/emit", body))?.text ?? "";
  }

  /** Say what went wrong. */
  failed(error) {
    notice(saidOf(error), "error");
  }
}

/** Ask again when a server that is busy says to come back; a question that is no longer wanted ends. */
async function patiently(ask, signal) {
  for (let turn = 0; ; turn++) {
    try {
      return await ask();
    } catch (error) {
      if (error.status !== BUSY || !error.after || turn >= MOST_TURNS) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1000 * error.after));
      signal.throwIfAborted();
    }
  }
}

function ranksByRow(rows) {
  const found = new Map();
  rows.forEach((row, rank) => {
    if (!found.has(row)) found.set(row, []);
    found.get(row).push(rank);
  });
  return found;
}
