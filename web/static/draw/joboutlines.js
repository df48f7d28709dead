// SPDX-License-Identifier: Apache-2.0
/** What stands together told apart: borders around jobs and marks, and the name of each in its largest part. */

/** Nodes of a job that are so near, in units, stand together. */
const BESIDE = [8, 10, 12];

/** Sides of a node: to which neighbour, and the corners between which the border runs. */
const SIDES = [[1, 0], [-1, 0], [0, 1], [0, -1]];

let known = { borders: [], names: [] };

/**
 * Borders and names of the jobs in the scene that is shown, where colours mean jobs.
 * @param {string} way what colours mean
 * @param {import("../core/scene.js").Scene} scene
 * @param {import("../core/machine.js").Snapshot} snapshot
 * @returns {{borders: Array<number[]>, names: Array<{text: string, x: number, y: number, side: number}>}} in units;
 *   `side`, how wide the part is
 */
export function jobOutlines(way, scene, snapshot) {
  if (way !== "job") return { borders: [], names: [] };
  if (known.scene !== scene || known.snapshot !== snapshot) {
    known = { scene, snapshot, borders: bordersOf(scene, snapshot.jobs.flatMap((job) => job.list), snapshot.jobOf), names: namesOfJobs(scene, snapshot) };
  }
  return known;
}

/** The jobs' numbers, in the order in which they get their room: one's own first, then the largest. */
function namesOfJobs(scene, { jobs }) {
  const named = jobs.map(({ id, list, mine }) => ({ ...nameOf(scene, id, list), mine }));
  return named.sort((a, b) => Number(Boolean(b.mine)) - Number(Boolean(a.mine)) || b.side - a.side);
}

/** Nodes of a mark up to which it has a border. */
const MOST_MARKED = 20000;

let marked = {};

/**
 * Borders and names of the marks, the active one last.
 * @param {import("../core/scene.js").Scene} scene
 * @param {import("../core/marks.js").Marks} marks
 * @param {Function} colourOf a mark's colour
 * @returns {Array<{colour: string, borders: Array<number[]>, name: Object}>} in units
 */
export function markOutlines(scene, marks, colourOf) {
  const { list, active } = marks;
  if (marked.scene !== scene || marked.list !== list || marked.active !== active) {
    const seen = list.filter(({ rows }) => rows.length && rows.length <= MOST_MARKED);
    const outlines = seen.sort((a, b) => Number(a === list[active]) - Number(b === list[active])).map((mark) => markOutline(scene, mark));
    marked = { scene, list, active, outlines };
  }
  return marked.outlines.map((outline) => ({ ...outline, colour: colourOf(outline.mark) }));
}

function markOutline(scene, mark) {
  const of = new Int8Array(scene.x.length);
  for (const row of mark.rows) of[row] = 1;
  return { mark, borders: bordersOf(scene, mark.rows, of), name: nameOf(scene, mark.name, mark.rows) };
}

/** Where nodes border on what is not of the same. */
function bordersOf(scene, rows, of) {
  const { x, y, node } = scene;
  const found = [];
  for (const row of rows) {
    const [left, top, right, low] = [x[row] - 0.5, y[row] - 0.5, x[row] + node.w + 0.5, y[row] + node.h + 0.5];
    for (const [dx, dy] of SIDES) {
      const other = neighbour(scene, row, dx, dy);
      if (other >= 0 && of[other] === of[row]) continue;
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

/** A name in the middle of its nodes in the box that holds the most of them. */
function nameOf(scene, text, list) {
  const boxes = scene.boxOf[Math.max(scene.levels.length - 2, 0)] ?? new Int32Array(scene.x.length);
  const inBox = new Map();
  for (const row of list) inBox.set(boxes[row], [...(inBox.get(boxes[row]) ?? []), row]);
  const rows = [...inBox.values()].reduce((most, each) => (each.length > most.length ? each : most), []);
  const mean = (values) => rows.reduce((sum, row) => sum + values[row], 0) / (rows.length || 1);
  return { text, x: mean(scene.x) + scene.node.w / 2, y: mean(scene.y) + scene.node.h / 2, side: scene.pitch * Math.sqrt(rows.length) };
}
