// SPDX-License-Identifier: Apache-2.0
/** The job that everything is predicted for, one form for all tabs: pattern, ranks, bytes, partition; what is wrong stands next to its field. */

import { counted, grouped } from "../core/words.js";
import { byId, el, refill } from "../ui/dom.js";

const TYPED = ["pattern", "ppn", "bytes"];

/** Most ranks per node. */
const MOST = 4096;

const UNITS = { "": 1, k: 1e3, m: 1e6, g: 1e9, ki: 2 ** 10, mi: 2 ** 20, gi: 2 ** 30 };

/** Wire the form to what is shown. */
export function jobForm(app) {
  const { store } = app;
  byId("job").hidden = !app.served;
  byId("job").addEventListener("submit", (event) => {
    event.preventDefault();
    take(app);
  });
  for (const id of TYPED) byId(id).addEventListener("change", () => take(app));
  byId("partition").addEventListener("change", ({ target }) => store.set({ partition: target.value }));
  refill(byId("patterns"), ...(app.machine.answer.choices?.patterns ?? []).map(({ example, help }) => el("option", { value: example, text: help })));
  const fill = () => {
    for (const key of TYPED) byId(key).value = store.get(key);
    byId("ppn-words").textContent = store.get("ppn") === 1 ? "rank" : "ranks";
    offer(app);
    complain("ppn", "");
    complain("bytes", "");
  };
  store.on([...TYPED, "partition"], fill);
  store.on(["snapshot"], () => offer(app));
  fill();
}

/** What the job may run on, as questions have it: Slurm's partition, or where it says none a kind of nodes. */
export function chosenNodes(app) {
  return { [partitionsOf(app).length ? "partition" : "kind"]: wantedOf(app) ?? "" };
}

/** Say what is wrong with a field, next to it; '' for nothing. */
export function complain(field, words) {
  byId(field).setAttribute("aria-invalid", String(Boolean(words)));
  byId(`${field}-said`).textContent = words ?? "";
}

/** Say a refusal at the field of the form that it is about; false where it is about none. */
export function blame(words) {
  const field = /\b(partition|kind of nodes)\b/.test(words) ? "partition" : /\bpattern\b|\branks\b/.test(words) ? "pattern" : "";
  if (field) complain(field, words);
  return Boolean(field);
}

/** Forget what was wrong with what a server judges. */
export function forgive() {
  for (const field of ["pattern", "partition"]) complain(field, "");
}

function take(app) {
  const ppn = Number(byId("ppn").value || 1);
  const whole = Number.isInteger(ppn) && ppn >= 1 && ppn <= MOST;
  const bytes = readBytes(byId("bytes").value);
  complain("ppn", whole ? "" : `ranks per node: 1 to ${grouped(MOST)}`);
  complain("bytes", bytes === null ? "bytes: a number such as 4096, 1e6, 4k (1,000 each) or 4Ki (1,024 each)" : "");
  if (bytes === null || !whole) return;
  app.store.set({ ppn, pattern: byId("pattern").value.trim() || "alltoall", bytes });
}

/** A number of bytes as text, '' for none; null where it is no number. */
export function readBytes(text) {
  const plain = text.trim().replaceAll(",", "");
  if (!plain) return "";
  const match = /^(\d+(?:\.\d*)?(?:e\d+)?)\s*(|[kmg]i?)b?$/i.exec(plain);
  return match && Number(match[1]) > 0 ? String(Number(match[1]) * UNITS[match[2].toLowerCase()]) : null;
}

/** The partition or kind that is chosen; undefined while there is none of this name. */
function wantedOf(app) {
  const wanted = app.store.get("partition");
  return wanted === "" || offersOf(app).some(([value]) => value === wanted) ? wanted : undefined;
}

/** List what there is to choose from, and keep what is chosen, also while it is not there. */
function offer(app) {
  const offers = offersOf(app);
  const said = JSON.stringify([offers, wantedOf(app)]);
  if (said === byId("partition").dataset.offers) return; // an open list stays open
  byId("partition").dataset.offers = said;
  byId("partition-field").hidden = offers.length < 2;
  byId("partition-words").textContent = partitionsOf(app).length ? "in partition" : "on";
  refill(byId("partition"), ...offers.map(([value, text]) => el("option", { value, text })));
  byId("partition").value = wantedOf(app) ?? "";
}

function offersOf(app) {
  const partitions = partitionsOf(app);
  return partitions.length ? partitionOffers(partitions) : kindOffers(app.machine.answer.choices?.kinds ?? []);
}

/** Slurm's partitions, where there are several to choose from. */
function partitionsOf(app) {
  const { partitions } = app.snapshot.answer;
  return partitions.length > 1 ? partitions : [];
}

/** The values and texts of Slurm's partitions: '' is the default one. */
function partitionOffers(partitions) {
  const text = ({ name, count, free }) => `${name} (${grouped(free)} of ${counted(count, "node")} free)`;
  const usual = partitions.find((partition) => partition.default);
  const others = partitions.filter((partition) => partition !== usual);
  return [["", usual ? text(usual) : "all"], ...others.map((partition) => [partition.name, text(partition)])];
}

/** The values and texts of kinds of nodes. */
function kindOffers(kinds) {
  if (kinds.length < 2) return [];
  return [["", "the usual kind of node"], ...kinds.map(({ name, count }) => [name, `nodes with ${name} (${grouped(count)})`]), ["any", "nodes of all kinds"]];
}
