// SPDX-License-Identifier: Apache-2.0
/** One place for what the page shows; whoever draws it listens to the keys that concern it. */

/** A table of values that tells listeners which keys have changed, once a turn. */
export class Store {
  /** @param {Object} values what every key begins with */
  constructor(values) {
    this.values = { ...values };
    this.listeners = [];
    this.dirty = new Set();
  }

  /** Return the value of a key. */
  get(key) {
    return this.values[key];
  }

  /** Change some keys; listeners run together at the end of the turn. */
  set(changes) {
    for (const [key, value] of Object.entries(changes)) {
      if (this.values[key] === value) continue;
      this.values[key] = value;
      this.dirty.add(key);
    }
    if (this.dirty.size && !this.waiting) this.waiting = queueMicrotask(() => this.tell()) ?? true;
  }

  /** Say that a value has changed inside. */
  touch(key) {
    this.values[key] = Array.isArray(this.values[key]) ? [...this.values[key]] : this.values[key];
    this.dirty.add(key);
    this.set({});
  }

  /** Call `listener(store)` when any of the keys has changed. */
  on(keys, listener) {
    this.listeners.push({ keys, listener });
  }

  /** Run the listeners now. */
  tell() {
    this.waiting = false;
    const dirty = this.dirty;
    this.dirty = new Set();
    for (const { keys, listener } of this.listeners) {
      if (keys.some((key) => dirty.has(key))) listener(this);
    }
  }
}
