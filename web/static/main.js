// SPDX-License-Identifier: Apache-2.0
/** Starts the page: reads the machine, or what an exported file holds of it. */

import { Machine } from "./core/machine.js";
import { embedded, getJson, saidOf } from "./net/api.js";
import { byId } from "./ui/dom.js";
import { App } from "./views/app.js";
import { start, withCount } from "./views/page.js";

async function boot() {
  try {
    const data = embedded();
    const [machine, layout, state] = data ? [data.machine, data.layout, data.state] : await Promise.all(["machine", "layout?view=usual", "state"].map((name) => getJson(`api/v1/${name}`)));
    const app = new App(new Machine(machine), layout, state, !data);
    app.exported = data;
    if (data) app.store.set({ ranks: data.ranks ? withCount(data.ranks) : null, hops: data.hops ?? null });
    start(app, state, data);
  } catch (error) {
    byId("sentence").textContent = saidOf(error);
    throw error;
  }
}

boot();
