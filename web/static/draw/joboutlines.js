// SPDX-License-Identifier: Apache-2.0
/** Jobs told apart where hues are too few: a border around each, and its number in its largest part. */

/** Nodes of a job that are so near, in units, stand together. */
const BESIDE = [8, 10, 12];

/** Sides of a node: to which neighbour, and the corners between which the border runs. */
const SIDES = [[1, 0], [-1, 0], [0, 1], [0, -1]];

let known = { borders: [], names: [] };

/**
 * Borders and names of the jobs in the scene that is shown, where colours mean jobs.
 * @param {string} way what colours mean
 * @param {Scene} scene
 * @param {Snapshot} snapshot
 * @returns {{borders: Array<number[]>, names: Array<{text: string, x: number, y: number, side: number}>}} in units;
 *   `side`, how wide the part is
 */
export function jobOutlines(way, scene, snapshot) {
  if (way !== "job") return { borders: [], names: [] };
  if (known.scene !== scene || known.snapshot !== snapshot) {
    known = { scene, snapshot, borders: bordersOf(scene, snapshot), names: snapshot.jobs.map((job) => nameOf(scene, job)).sort((a, b) => b.side - a.side) };
  }
  return known;
}

function bordersOf(scene, { jobs, jobOf }) {
  const { x, y, node } = scene;
  const found = [];
  for (const row of jobs.flatMap((job) => job.list)) {
    const [left, top, right, low] = [x[row] - 0.5, y[row] - 0.5, x[row] + node.w + 0.5, y[row] + node.h + 0.5];
    for (const [dx, dy] of SIDES) {
      const other = neighbour(scene, row, dx, dy);
      if (other >= 0 && jobOf[other] === jobOf[row]) continue;
      if (dx) found.push(dx > 0 ? [right, top, right, low] : [left, top, left, low]);
      else found.push(dy > 0 ? [left, low, right, low] : [left, top, right, top]);
    }
  }
  return found;
}

function neighbour(scene, row, dx, dy) {
  const [x, y] = [scene.x[row] + scene.node.w / 2, scene.y[row] + scene.node.h / 2];
  for (const far of BESIDE) {
    const other = scene.at(x + far * dx, y + far * dy);
    if (other >= 0 && other !== row) return other;
  }
  return -1;
}

/** A job's number, in the middle of its nodes in the box that holds the most of them. */
function nameOf(scene, { id, list }) {
  const boxes = scene.boxOf[Math.max(scene.levels.length - 2, 0)] ?? new Int32Array(scene.x.length);
  const inBox = new Map();
  for (const row of list) inBox.set(boxes[row], [...(inBox.get(boxes[row]) ?? []), row]);
  const rows = [...inBox.values()].reduce((most, each) => (each.length > most.length ? each : most), []);
  const mean = (values) => rows.reduce((sum, row) => sum + values[row], 0) / (rows.length || 1);
  return { text: id, x: mean(scene.x) + scene.node.w / 2, y: mean(scene.y) + scene.node.h / 2, side: scene.pitch * Math.sqrt(rows.length) };
}
