// SPDX-License-Identifier: Apache-2.0
/** Where everything stands: one view of the layout, with indexes for picking and drawing. */

const BUCKET = 32;

/** CSS pixels of the lowest strip that a label stands in. */
export const LEAST_STRIP = 9;

/** One view's places in layout units. */
export class Scene {
  /** @param {Object} view of /api/v1/layout */
  constructor(view) {
    this.id = view.id;
    this.title = view.title;
    this.width = view.width;
    this.height = view.height;
    this.node = view.node;
    this.x = Float32Array.from(view.node.x);
    this.y = Float32Array.from(view.node.y);
    this.levels = view.levels.map(levelOf);
    this.boxOf = boxesOfNodes(this.levels, view.node.box);
    this.vacant = view.vacant;
    this.routers = view.routers;
    this.spines = view.spines ? levelOf(view.spines) : null;
    this.texts = view.texts || [];
    this.pad = view.pad || {};
    this.pitch = pitchOf(this);
    this.ruledBelow = ruledBelow(this);
    this.buckets = bucketsOf(this.x, this.y, this);
    this.vacantBuckets = bucketsOf(view.vacant.x, view.vacant.y, this);
    this.sorted = [];
  }

  /** Row of the node at a point, -1 where none is; the gap around a node counts as its own. */
  at(x, y) {
    const reach = (this.pitch - this.node.w) / 2;
    let found = -1;
    this.within(x - this.pitch, y - this.pitch, x + reach, y + reach, (row) => {
      const dx = x - this.x[row];
      const dy = y - this.y[row];
      if (dx >= -reach && dy >= -reach && dx < this.node.w + reach && dy < this.node.h + reach) found = row;
    });
    return found;
  }

  /** Call `each(row)` for the nodes whose corner lies in a box of units. */
  within(x0, y0, x1, y1, each) {
    walk(this.buckets, this.x, this.y, [x0, y0, x1, y1], each);
  }

  /** Call `each(index)` for the vacant places whose corner lies in a box of units. */
  vacantWithin(x0, y0, x1, y1, each) {
    walk(this.vacantBuckets, this.vacant.x, this.vacant.y, [x0, y0, x1, y1], each);
  }

  /** Whether a point lies on a vacant place. */
  vacantAt(x, y) {
    let found = false;
    this.vacantWithin(x - this.node.w, y - this.node.h, x, y, () => {
      found = true;
    });
    return found;
  }

  /** Rows inside a closed polygon of [x, y] points, by the nodes' middles. */
  inside(polygon) {
    const xs = polygon.map((point) => point[0]);
    const ys = polygon.map((point) => point[1]);
    const [w, h] = [this.node.w / 2, this.node.h / 2];
    const rows = [];
    this.within(Math.min(...xs) - w, Math.min(...ys) - h, Math.max(...xs), Math.max(...ys), (row) => {
      if (encloses(polygon, this.x[row] + w, this.y[row] + h)) rows.push(row);
    });
    return rows.sort((a, b) => a - b);
  }

  /** Rows of a box of a level. */
  rowsOfBox(level, box) {
    const { starts, rows } = this.members(level);
    return Array.from(rows.subarray(starts[box], starts[box + 1]));
  }

  /** Rows sorted by their box of a level: those of box b are rows[starts[b]] up to rows[starts[b + 1]]. */
  members(level) {
    this.sorted[level] ??= sortedByBox(this.boxOf[level], this.levels[level].count);
    return this.sorted[level];
  }

  /** Index of a level by name, -1 where the view has none. */
  levelNamed(name) {
    return this.levels.findIndex((level) => level.name === name);
  }
}

function levelOf(level) {
  return {
    name: level.level,
    x: Float32Array.from(level.x),
    y: Float32Array.from(level.y),
    w: Float32Array.from(level.w),
    h: Float32Array.from(level.h),
    label: level.label,
    parent: level.parent,
    vacant: level.vacant,
    count: level.x.length,
  };
}

/** For each level, the box of every node: innermost given, the others by parents. */
function boxesOfNodes(levels, innermost) {
  const boxOf = levels.map(() => null);
  let current = Int32Array.from(innermost);
  for (let i = levels.length - 1; i >= 0; i--) {
    boxOf[i] = current;
    const parent = levels[i].parent;
    current = current.map((box) => (box < 0 ? -1 : parent[box]));
  }
  return boxOf;
}

/** The commonest distance of neighbours in x: what a whole number of pixels is given to. */
function pitchOf(scene) {
  const seen = new Map();
  const rows = Math.min(scene.x.length, 4000);
  for (let row = 1; row < rows; row++) {
    const dx = Math.abs(scene.x[row] - scene.x[row - 1]) || Math.abs(scene.y[row] - scene.y[row - 1]);
    if (dx >= scene.node.w) seen.set(dx, (seen.get(dx) || 0) + 1);
  }
  const best = [...seen].sort((a, b) => b[1] - a[1] || a[0] - b[0])[0];
  return best && best[0] < 2 * scene.node.w ? best[0] : scene.node.w + 1;
}

/** CSS pixels a pitch below which cabinets have no room for their names; 0 where there are none. */
function ruledBelow(scene) {
  const strip = scene.levelNamed("cabinet") < 0 ? 0 : scene.pad.cabinet?.[0];
  return strip ? (LEAST_STRIP * scene.pitch) / strip : 0;
}

function sortedByBox(of, count) {
  const starts = new Int32Array(count + 1);
  for (const box of of) if (box >= 0) starts[box + 1]++;
  for (let box = 0; box < count; box++) starts[box + 1] += starts[box];
  const next = starts.slice();
  const rows = new Int32Array(starts[count]);
  for (let row = 0; row < of.length; row++) if (of[row] >= 0) rows[next[of[row]]++] = row;
  return { starts, rows };
}

function bucketsOf(x, y, scene) {
  const columns = Math.ceil((scene.width + 1) / BUCKET) + 1;
  const rows = Math.ceil((scene.height + 1) / BUCKET) + 1;
  const starts = new Int32Array(columns * rows + 1);
  const at = (i) => Math.floor(y[i] / BUCKET) * columns + Math.floor(x[i] / BUCKET);
  for (let i = 0; i < x.length; i++) starts[at(i) + 1]++;
  for (let i = 1; i < starts.length; i++) starts[i] += starts[i - 1];
  const next = starts.slice();
  const items = new Int32Array(x.length);
  for (let i = 0; i < x.length; i++) items[next[at(i)]++] = i;
  return { columns, rows, starts, items };
}

function walk(buckets, x, y, [x0, y0, x1, y1], each) {
  const c0 = Math.max(Math.floor(x0 / BUCKET), 0);
  const c1 = Math.min(Math.floor(x1 / BUCKET), buckets.columns - 1);
  const r1 = Math.min(Math.floor(y1 / BUCKET), buckets.rows - 1);
  for (let r = Math.max(Math.floor(y0 / BUCKET), 0); r <= r1; r++) {
    const from = buckets.starts[r * buckets.columns + c0];
    const to = c1 < c0 ? from : buckets.starts[r * buckets.columns + c1 + 1];
    for (let i = from; i < to; i++) {
      const item = buckets.items[i];
      if (x[item] >= x0 && x[item] <= x1 && y[item] >= y0 && y[item] <= y1) each(item);
    }
  }
}

function encloses(polygon, x, y) {
  let odd = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [xi, yi] = polygon[i];
    const [xj, yj] = polygon[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) odd = !odd;
  }
  return odd;
}
