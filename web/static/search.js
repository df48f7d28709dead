/** Search by NID, name, cname, job, user, cabinet or group. */

import { counted } from "./dom.js";

const MOST = 12;

/**
 * What a few typed words may mean, best first.
 * @param {string} typed
 * @param {App} app
 * @returns {Array<{kind: string, title: string, detail: string, rows: number[]|Function}>}
 */
export function searched(typed, app) {
  const { machine, scene, snapshot } = app;
  const text = typed.trim().toLowerCase();
  if (!text) return [];
  const found = [];
  const exact = machine.find(text);
  if (exact >= 0) found.push(nodeHit(machine, exact));
  found.push(...jobHits(text, snapshot, machine.answer.show_users));
  found.push(...boxHits(text, scene, app));
  found.push(...nameHits(text, machine, exact));
  return found.slice(0, MOST);
}

function nodeHit(machine, row) {
  return { kind: "node", title: machine.called(row), detail: machine.where(row), row, rows: () => [row] };
}

function jobHits(text, snapshot, users) {
  const hits = [];
  const people = new Map();
  for (const job of snapshot.jobs) {
    const named = job.name.toLowerCase().includes(text) || job.id.toLowerCase().startsWith(text);
    if (named) hits.push({ kind: "job", title: `job ${job.id}`, detail: `${job.name}, ${counted(job.list.length, "node")}`, rows: () => job.list });
    const user = users && job.user ? job.user : "";
    if (user && user.toLowerCase().includes(text)) people.set(user, [...(people.get(user) ?? []), ...job.list]);
  }
  const ofUsers = [...people].map(([user, rows]) => ({ kind: "user", title: user, detail: counted(rows.length, "node"), rows: () => [...new Set(rows)] }));
  return [...ofUsers.slice(0, 4), ...hits.slice(0, 6)];
}

function boxHits(text, scene, app) {
  const hits = [];
  scene.levels.forEach((level, i) => {
    for (let box = 0; box < level.count && hits.length < 6; box++) {
      const label = String(level.label[box]).toLowerCase();
      const full = `${level.name} ${label}`;
      if (label === text || full === text || (text.length > 2 && (label.startsWith(text) || full.startsWith(text)))) {
        hits.push({ kind: level.name, title: `${level.name} ${level.label[box]}`, detail: "", rows: () => app.computing(scene.rowsOfBox(i, box)) });
      }
    }
  });
  return hits;
}

function nameHits(text, machine, exact) {
  const hits = [];
  for (let row = 0; row < machine.count && hits.length < 6; row++) {
    const near = machine.names[row].toLowerCase().includes(text) || (machine.cnames[row] ?? "").toLowerCase().startsWith(text);
    if (near && row !== exact) hits.push(nodeHit(machine, row));
  }
  return hits;
}
