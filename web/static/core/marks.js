// SPDX-License-Identifier: Apache-2.0
/** Named marks: ordered sets of nodes, each with a colour of its own. */

/** The order of ranks that a plan's nodes were chosen with, where orders are chosen by name. */
export const OWN_ORDER = "own";

export const MOST_MARKS = 8;

/** What is said where there is no room for another mark. */
export const FULL = "there are 8 marks already; remove one first";

const UNDO = 50;

/** One mark: a name, rows in order, which of the theme's hues it has, and where it is a plan's, the slot of each rank. */
export function newMark(name, rows, hue) {
  return { name, rows: Array.from(rows), hue, planned: null };
}

/** All marks and which is active; every change makes new objects, so that undo is a list. */
export class Marks {
  /** @param {Function} changed called after each change */
  constructor(changed) {
    this.changed = changed;
    this.list = [];
    this.active = -1;
    this.past = [];
  }

  /** The active mark, or null. */
  get current() {
    return this.list[this.active] ?? null;
  }

  /** Whether there is no room for another mark, nor an empty one to fill. */
  get full() {
    return this.list.length >= MOST_MARKS && this.current?.rows.length !== 0;
  }

  keep() {
    this.past.push({ list: this.list, active: this.active });
    if (this.past.length > UNDO) this.past.shift();
  }

  put(list, active) {
    this.keep();
    this.list = list;
    this.active = Math.min(active, list.length - 1);
    this.changed();
  }

  /** Take back the last change; false where there is none. */
  undo() {
    const before = this.past.pop();
    if (!before) return false;
    Object.assign(this, before);
    this.changed();
    return true;
  }

  /** Replace all, as a link or file says. */
  restore(list, active) {
    this.list = list.slice(0, MOST_MARKS);
    this.active = this.list.length ? Math.min(Math.max(active, 0), this.list.length - 1) : -1;
    this.changed();
  }

  /**
   * Add a mark and make it active; it takes the place of `instead`, else of the active one where that is empty.
   * @returns {Object|null} null where there are too many already
   */
  add(name, rows, instead) {
    const empty = this.current?.rows.length === 0 ? this.active : -1;
    const at = this.list.includes(instead) ? this.list.indexOf(instead) : empty;
    if (at >= 0) {
      const known = this.list[at];
      const filled = newMark(name && name !== known.name ? this.freeName(name) : known.name, rows, known.hue);
      this.put(this.list.map((mark, i) => (i === at ? filled : mark)), at);
      return filled;
    }
    if (this.list.length >= MOST_MARKS) return null;
    const mark = newMark(this.freeName(name), rows, this.freeHue());
    this.put([...this.list, mark], this.list.length);
    return mark;
  }

  /** The name, or it with a number where it is taken; a letter where none is given. */
  freeName(name) {
    const taken = new Set(this.list.map((mark) => mark.name));
    const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    if (!name) return [...letters].find((letter) => !taken.has(letter)) ?? "A";
    if (!taken.has(name)) return name;
    let number = 2;
    while (taken.has(`${name} ${number}`)) number++;
    return `${name} ${number}`;
  }

  freeHue() {
    const taken = new Set(this.list.map((mark) => mark.hue));
    for (let hue = 0; hue < MOST_MARKS; hue++) if (!taken.has(hue)) return hue;
    return 0;
  }

  remove(index) {
    const active = this.active > index || this.active === this.list.length - 1 ? this.active - 1 : this.active;
    this.put(this.list.filter((_, i) => i !== index), Math.max(active, 0));
  }

  rename(index, name) {
    const plain = name.trim();
    if (plain) this.put(this.list.map((mark, i) => (i === index ? { ...mark, name: plain } : mark)), this.active);
  }

  select(index) {
    this.active = index;
    this.changed();
  }

  setRows(rows) {
    if (!this.current) return this.add("", rows);
    const marks = this.list.map((mark, i) => (i === this.active ? { ...mark, rows, planned: null } : mark));
    this.put(marks, this.active);
    return this.current;
  }

  /** Add rows to the active mark (a new one where none is), in their order. */
  include(rows) {
    const known = new Set(this.current?.rows ?? []);
    return this.setRows([...(this.current?.rows ?? []), ...rows.filter((row) => !known.has(row))]);
  }

  /** Take rows out of the active mark. */
  exclude(rows) {
    const gone = new Set(rows);
    if (this.current) this.setRows(this.current.rows.filter((row) => !gone.has(row)));
  }

  /** Add rows, or take them out where all of them are in already; true where they were added. */
  toggle(rows) {
    const known = new Set(this.current?.rows ?? []);
    const add = rows.some((row) => !known.has(row));
    if (add) this.include(rows);
    else this.exclude(rows);
    return add;
  }

  /** Number of each node's mark, the active one on top; null where nothing is marked. */
  ofRows(count) {
    if (!this.list.some((mark) => mark.rows.length)) return null;
    const of = new Uint8Array(count);
    this.list.forEach((mark, i) => {
      for (const row of mark.rows) of[row] = i + 1;
    });
    for (const row of this.current?.rows ?? []) of[row] = this.active + 1;
    return of;
  }
}
