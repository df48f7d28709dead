// SPDX-License-Identifier: Apache-2.0
/** What Slurm says now: asked for again and again, its age always told. */

import { spokenAge } from "../core/figures.js";
import { getDated } from "./api.js";

/** Between two questions: thrice as often as the server asks its sources, four times a minute at least. */
const LEAST_S = 1, MOST_S = 15;
const TICK_MS = 1000;

/** Fetches /api/v1/state while the page is in sight; the server answers 304 where nothing is new. */
export class Live {
  /** @param {Object} calls `state(answer)`, `status(words, level)` */
  constructor(calls) {
    this.calls = calls;
    this.version = null;
    this.taken = null;
    this.stale = false;
    this.source = "";
    this.offset = 0;
    this.lost = false;
    this.words = "";
  }

  /** Begin with the state that the page was opened with; `refresh` in seconds, 0 where it never changes. */
  start(state, refresh) {
    this.take(state);
    this.live = refresh > 0;
    if (this.live) {
      setInterval(() => document.hidden || this.fetch(), 1000 * Math.min(Math.max(refresh / 3, LEAST_S), MOST_S));
      document.addEventListener("visibilitychange", () => document.hidden || this.fetch());
      this.fetch();
    }
    setInterval(() => this.tick(), TICK_MS);
    this.tick();
  }

  reached(yes) {
    this.lost = !yes;
    this.tick();
  }

  async fetch() {
    if (this.fetching) return;
    this.fetching = true;
    try {
      const [state, now] = await getDated("api/v1/state");
      this.offset = now - Date.now() / 1000 || 0;
      this.take(state);
      this.reached(true);
    } catch {
      this.reached(false);
    }
    this.fetching = false;
  }

  take(state) {
    const first = this.version === null;
    const changed = state.version !== this.version;
    const { version, taken, stale, error, source } = state;
    Object.assign(this, { version, taken, stale, error, source });
    if (changed && !first) this.calls.state(state);
    this.tick();
  }

  /** Say how old the data is. */
  tick() {
    const [words, level] = this.said();
    if (words === this.words) return;
    this.words = words;
    this.calls.status(words, level);
  }

  said() {
    const age = this.taken === null || this.taken === undefined ? "" : spokenAge(Date.now() / 1000 + this.offset - this.taken);
    if (this.lost) return [`server not reached${age ? `; data of ${age} ago` : ""}`, "stale"];
    if (this.stale) return [`${this.source === "file" ? "the file cannot be read" : "Slurm does not answer"}; ${age ? `data of ${age} ago` : "no states yet"}`, "stale"];
    if (this.source === "slurm") return [`${this.live ? "live " : ""}from Slurm, ${age} ago`, this.live ? "live" : "file"];
    if (this.source === "dump") return [age ? `from the machine's dump of ${age} ago` : "not live: states as described", "file"];
    return [`from a file of ${age} ago`, "file"];
  }
}
