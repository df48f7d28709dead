// SPDX-License-Identifier: Apache-2.0
/** The machine as the page keeps it: typed columns, and rows by name. */

import { rowsOf } from "./nodelist.js";

/** Nodes, names and coordinates of one machine; state and jobs come later and change. */
export class Machine {
  /** @param {Object} answer of /api/v1/machine */
  constructor(answer) {
    this.answer = answer;
    this.title = answer.name;
    this.count = answer.count;
    this.levels = answer.levels;
    this.names = answer.nodes.name;
    this.cnames = answer.nodes.cname;
    this.nids = answer.nodes.nid;
    this.coords = answer.nodes.coords.map((column) => Int32Array.from(column));
    this.router = Int32Array.from(answer.nodes.router);
    this.service = maskOf(answer.nodes.role, "service", this.count);
    this.routerNames = answer.routers.name;
    this.uniqueNids = new Set(this.nids).size === this.count && !this.nids.includes(-1);
    /** @type {Map<string, number>|null} rows by name, made when first asked for */
    this.index = null;
  }

  /** Row of a node by name, cname or NID text; -1 where there is none. */
  find(text) {
    this.index ??= indexOf(this);
    return this.index.get(text.trim().toLowerCase()) ?? -1;
  }

  /** The word that a dictionary-coded column has for a row. */
  word(column, row) {
    const coded = this.answer.nodes[column];
    return coded ? coded.values[coded.codes[row]] : "";
  }

  /** Where a node is, in words: "group 3, chassis 1, blade 7, node 2"; switches of a tree by their names. */
  where(row) {
    return this.levels.map((level, i) => this.switchOf(i, row) ?? `${level} ${this.coords[i][row]}`).join(", ");
  }

  /** The name of the switch that a level stands for: the one of a tree that the node is cabled to; else undefined. */
  switchOf(level, row) {
    const tree = ["fattree", "tree"].includes(this.answer.kind);
    return tree && level === this.levels.length - 2 ? this.routerNames[this.router[row]] : undefined;
  }

  /** Rows of which something holds. */
  rowsWhere(holds) {
    return Array.from({ length: this.count }, (_, row) => row).filter(holds);
  }

  /** Names that stand in a node, the longest first: its NID alone where its name ends with it. */
  namesOf(row) {
    const [name, nid] = [this.names[row], this.nids[row]];
    return nid >= 0 && Number(/\d*$/.exec(name)[0]) === nid ? [name, String(nid)] : [name];
  }

  /** Name, and cname where it has one. */
  called(row) {
    const cname = this.cnames[row];
    return cname && cname !== this.names[row] ? `${this.names[row]} (${cname})` : this.names[row];
  }
}

function maskOf(coded, word, count) {
  const wanted = coded.values.indexOf(word);
  const mask = new Uint8Array(count);
  for (let row = 0; row < count; row++) mask[row] = coded.codes[row] === wanted ? 1 : 0;
  return mask;
}

function indexOf(machine) {
  const index = new Map();
  for (let row = machine.count - 1; row >= 0; row--) {
    if (machine.nids[row] >= 0) index.set(String(machine.nids[row]), row);
    if (machine.cnames[row]) index.set(machine.cnames[row].toLowerCase(), row);
  }
  for (let row = machine.count - 1; row >= 0; row--) index.set(machine.names[row].toLowerCase(), row);
  return index;
}

/** What the shapes of the picture say of a node. */
export const SHAPES = ["vacant", "idle", "allocated", "down", "service", "other", "ghost"];

/** The shape of each kind of node that the server tells apart. */
const SHAPE_OF = { free: 1, busy: 2, down: 3, service: 4, held: 5 };

/** States and jobs at one moment. */
export class Snapshot {
  /**
   * @param {Object} answer of /api/v1/state
   * @param {Machine} machine
   */
  constructor(answer, machine) {
    this.answer = answer;
    this.codes = Uint16Array.from(answer.state.codes);
    this.words = answer.state.values;
    this.jobs = answer.jobs.map((job) => ({ ...job, list: rowsOf(job.rows) }));
    this.jobOf = jobsOfRows(this.jobs, machine.count);
    this.planned = new Set(answer.planned);
    const shapes = answer.kinds.values.map((kind) => SHAPE_OF[kind]);
    this.shape = Uint8Array.from(answer.kinds.codes, (code) => shapes[code]);
  }

  /** The job on a row, or null. */
  job(row) {
    const index = this.jobOf[row];
    return index < 0 ? null : this.jobs[index];
  }

  /** The state's word of a row. */
  word(row) {
    return this.planned.has(row) ? "planned" : this.words[this.codes[row]];
  }
}

function jobsOfRows(jobs, count) {
  const jobOf = new Int32Array(count).fill(-1);
  jobs.forEach((job, index) => {
    for (const row of job.list) jobOf[row] = index;
  });
  return jobOf;
}
