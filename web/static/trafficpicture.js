/** Traffic drawn for the back row: a dragonfly as a circle of groups, a fat tree with its cables, a torus in space. */

import { counted, grouped, svgEl } from "./dom.js";
import { spokenBytes, spokenLoad, spokenRange, spokenSeconds } from "./figures.js";
import { rampColour } from "./theme.js";

/** A slide: 16 by 9. */
export const SLIDE = { width: 1600, height: 900 };

const MIDDLE = { x: 1110, y: 500 };

/** Letters in a line of what stands above a picture. */
const LINE = 36;

/** How much smaller a picture is drawn that stands next to another one: below its lines of text. */
const SMALLER = 0.84;

/** Width of a picture that stands beside another one; a tree needs all of it. */
const NARROW = 1200;
const RADIUS = 330;

/** Widths of the least busy line and of the busiest. */
const [THIN, THICK] = [1.5, 16];

/** Letters in units of the slide. */
const [LARGE, MEDIUM, SMALL] = [38, 27, 21];

/**
 * Draw a prediction.
 * @param {Object} shown `machine`, `theme`, `found` (answer of describe), `rows`, `title`, `hue` of the nodes,
 *   `most` seconds of the darkest line, `turn` and `tilt` of a torus in radians, `group` whose routers are shown (-1: all groups),
 *   `both` where it stands beside another one
 * @returns {SVGElement}
 */
export function trafficPicture(shown) {
  const { theme, found, title, group } = shown;
  const { kind } = shown.machine.answer;
  const draw = { dragonfly, "dragonfly+": dragonfly, torus }[kind] ?? tree;
  const { height } = SLIDE;
  const width = shown.both && draw !== tree ? NARROW : SLIDE.width;
  const svg = svgEl("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "font-family": "system-ui, sans-serif", "aria-label": `${title}. ${found.sentence}` });
  svg.append(svgEl("rect", { width, height, fill: theme.map }));
  const sheet = svgEl("g", width === NARROW ? { transform: `translate(${NARROW / 2 - SMALLER * MIDDLE.x} ${545 - SMALLER * MIDDLE.y}) scale(${SMALLER})` } : {});
  svg.append(sheet);
  draw(sheet, shown);
  text(svg, 40, 62, title, { size: Math.min(LARGE, (width - 80) / (0.57 * title.length)), weight: 650, fill: theme.ink });
  head(svg, shown, width);
  scale(svg, shown);
  return svg;
}

function text(svg, x, y, words, { size = MEDIUM, fill, anchor = "start", weight = 400, halo = "" } = {}) {
  const around = halo ? { stroke: halo, "stroke-width": size / 4, "paint-order": "stroke", "stroke-linejoin": "round" } : {};
  svg.append(svgEl("text", { x, y, "font-size": size, "font-weight": weight, fill, "text-anchor": anchor, ...around, text: words }));
}

/** What the picture says in words: the time, and the busiest link of what is shown. */
function head(svg, { machine, found, theme, group }, width) {
  const { links, between, binding } = found.prediction;
  const time = found.timeless ? `no time: ${found.timeless}` : `${spokenRange(between)}: ${binding}`;
  const inside = machine.answer.kind.startsWith("dragonfly") && group >= 0;
  const unit = inside ? unitOfRouters(machine) : null;
  const busiest = inside ? links.source.findIndex((source, i) => unit[source] === group && unit[links.target[i]] === group) : 0;
  const where = inside ? `busiest inside g${group}` : "busiest";
  const words = links.name[busiest] ? `${where}: ${nameOf(links, busiest)}, ${spokenLoad(links, busiest)}` : inside ? `no link inside g${group} is among the busiest` : "no traffic leaves a router";
  const some = inside && links.name.length < links.total ? [`links among the ${grouped(links.name.length)} busiest of ${grouped(links.total)}`] : [];
  const most = width === NARROW ? 2 * LINE : LINE;
  [time, words, ...some].flatMap((text) => wrapped(text, most)).slice(0, 5).forEach((line, i) => text(svg, 40, 104 + 34 * i, line, { fill: theme.soft }));
}

/** A text in lines of at most so many letters. */
function wrapped(words, most) {
  const lines = [""];
  for (const word of words.split(" ")) {
    if (lines.at(-1) && lines.at(-1).length + word.length >= most) lines.push(word);
    else lines.push(`${lines.pop()} ${word}`.trim());
  }
  return lines;
}

/** A link's class and ends, without the number of its lane. */
function nameOf(links, i) {
  return `${links.kinds[links.kind[i]]} ${links.name[i].replace("->", " \u2192 ").replace(/ \S*$/, (end) => (end.includes("\u2192") ? end : ""))}`;
}

/** What width and colour mean. */
function scale(svg, { theme, most, found, shared }) {
  for (let i = 0; i <= 10; i++) svg.append(line(theme, i / 10, `M${40 + 22 * i} 850h22`));
  const { links } = found.prediction;
  text(svg, 40, 826, shared ? "busiest link, one scale for both" : "busiest link", { size: SMALL, fill: theme.soft });
  text(svg, 40, 886, "0", { size: SMALL, fill: theme.soft });
  text(svg, 282, 886, links.seconds[0] > 0 || !links.load.length ? spokenSeconds(most) : spokenBytes(most), { size: SMALL, fill: theme.soft, anchor: "end" });
}

function line(theme, share, d, opacity = 1) {
  return svgEl("path", { d, fill: "none", stroke: shade(theme, share), "stroke-width": (THIN + (THICK - THIN) * share).toFixed(1), "stroke-opacity": opacity, "stroke-linecap": "butt" });
}

function shade(theme, share) {
  return rampColour(theme.ramps.load, 0.2 + 0.8 * share);
}

/** The group of each router, also of one without nodes. */
function unitOfRouters({ answer }) {
  return Int32Array.from(answer.routers.unit);
}

function tally(values) {
  const seen = new Map();
  for (const value of values) seen.set(value, (seen.get(value) ?? 0) + 1);
  return seen;
}

/** What links are compared by: seconds, or bytes where no bandwidth is known. */
export function weightOf(links) {
  return links.seconds[0] > 0 ? links.seconds : links.load;
}

/** Links between pairs of something, each pair once with its busier direction, the busiest last. */
function pairs(links, most, endOf) {
  const found = new Map();
  const weight = weightOf(links);
  links.source.forEach((source, i) => {
    const [a, b] = [endOf(source), endOf(links.target[i])].sort((x, y) => x - y);
    if (a < 0 || a === b) return;
    const known = found.get(`${a} ${b}`);
    if (!known || known.seconds < weight[i]) found.set(`${a} ${b}`, { a, b, seconds: weight[i], share: weight[i] / most, first: i === 0 });
  });
  return [...found.values()].sort((x, y) => x.seconds - y.seconds);
}

// --- dragonfly ------------------------------------------------------------------------

function dragonfly(svg, shown) {
  const { machine, rows, found, group } = shown;
  const unit = unitOfRouters(machine);
  if (group >= 0) return inside(svg, shown, unit);
  const marked = tally(rows.map((row) => machine.coords[0][row]));
  const { a, b, seconds, load } = found.prediction.groups;
  const weight = seconds.some(Boolean) ? seconds : load;
  const top = Math.max(...weight, 0);
  const between = weight.map((value, i) => ({ a: a[i], b: b[i], seconds: value, share: value / shown.most, first: value === top }));
  const busy = new Map(between.filter((link) => link.a === link.b).map((link) => [link.a, link]));
  const all = [...new Set(machine.coords[0])].sort((x, y) => x - y);
  const items = all.map((id) => ({ id, name: `g${id}`, detail: marked.has(id) ? counted(marked.get(id), "node") : "", inside: busy.get(id)?.seconds, worst: busy.get(id)?.first ?? false, marked: marked.has(id), open: id }));
  const edges = between.filter((link) => link.a !== link.b && at(all, link)).sort((x, y) => x.seconds - y.seconds);
  return circle(svg, { ...shown, spoken: seconds.some(Boolean) ? spokenSeconds : spokenBytes }, items, edges);
}

/** Whether both groups of a link are drawn. */
function at(all, { a, b }) {
  return all.includes(a) && all.includes(b);
}

/** The routers of one group. */
function inside(svg, shown, unit) {
  const { machine, rows, found, group } = shown;
  const marked = tally(rows.map((row) => machine.router[row]));
  const names = machine.answer.routers.name;
  const items = names.flatMap((name, id) => (unit[id] === group ? [{ id, name, detail: "", marked: marked.has(id), open: -1 }] : []));
  return circle(svg, shown, items, pairs(found.prediction.links, shown.most, (router) => (unit[router] === group ? router : -1)));
}

/** Things around a circle, what joins them across it; the busiest is named. */
function circle(svg, shown, items, edges) {
  const { theme, hue } = shown;
  const { at, step } = around(items);
  const point = (angle, radius) => [MIDDLE.x + radius * Math.cos(angle), MIDDLE.y + radius * Math.sin(angle)];
  const chord = ({ a, b }) => {
    const [from, to] = [point(at.get(a), RADIUS), point(at.get(b), RADIUS)];
    return `M${from.map(round)}Q${bend(from, to).map(round)} ${to.map(round)}`;
  };
  for (const edge of edges) svg.append(line(theme, edge.share, chord(edge), 0.9));
  for (const item of items) {
    const angle = at.get(item.id);
    const half = step(item) * 0.44;
    const wide = half > Math.PI / 2 ? 1 : 0;
    const [outer, inner] = [RADIUS + (item.marked ? 26 : 14), RADIUS + 2];
    const ends = [point(angle - half, outer), point(angle + half, outer), point(angle + half, inner), point(angle - half, inner)].map((p) => p.map(round));
    const arc = `M${ends[0]}A${outer} ${outer} 0 ${wide} 1 ${ends[1]}L${ends[2]}A${inner} ${inner} 0 ${wide} 0 ${ends[3]}Z`;
    svg.append(svgEl("path", { d: arc, fill: item.marked ? hue : theme.vacant, "data-open": item.open, class: item.open >= 0 ? "opens" : null }));
    if (item.inside) {
      const band = [point(angle - half, RADIUS - 8), point(angle + half, RADIUS - 8)].map((p) => p.map(round));
      svg.append(line(theme, item.inside / shown.most, `M${band[0]}A${RADIUS - 8} ${RADIUS - 8} 0 ${wide} 1 ${band[1]}`));
    }
  }
  const taken = [];
  for (const item of [...items].sort((a, b) => b.marked - a.marked)) {
    const angle = at.get(item.id);
    named(svg, item, point(angle, RADIUS + (item.marked ? 38 : 26)), Math.cos(angle), { theme, many: items.length > 40, taken });
  }
  const top = edges.find((edge) => edge.first) ?? edges.at(-1);
  const worst = items.find((item) => item.worst);
  if (worst) label(svg, shown, point(at.get(worst.id), RADIUS - 62), `inside ${worst.name}: ${(shown.spoken ?? spokenSeconds)(worst.inside)}`, beside(-Math.cos(at.get(worst.id))));
  else if (top) label(svg, shown, chordMiddle(point(at.get(top.a), RADIUS), point(at.get(top.b), RADIUS)), `${nameIn(items, top.a)} \u2013 ${nameIn(items, top.b)}: ${(shown.spoken ?? spokenSeconds)(top.seconds)}`);
}

/** The angle of each thing, and how much room it has: those with marked nodes two thirds of the circle together. */
function around(items) {
  const marked = items.filter((item) => item.marked).length;
  const others = items.length - marked;
  const weight = (item) => (item.marked || !marked ? 1 : Math.min(1, marked / (2 * others)));
  const whole = items.reduce((sum, item) => sum + weight(item), 0);
  const step = (item) => (2 * Math.PI * weight(item)) / whole;
  const at = new Map();
  let angle = -Math.PI / 2 - (items.length ? step(items[0]) / 2 : 0);
  for (const item of items) {
    at.set(item.id, angle + step(item) / 2);
    angle += step(item);
  }
  return { at, step };
}

/** Where a chord is pulled to: near the rim between neighbours, near the middle across the circle. */
function bend(from, to) {
  const pull = 0.3 + 0.25 * (Math.hypot(from[0] - to[0], from[1] - to[1]) / RADIUS);
  return [MIDDLE.x, MIDDLE.y].map((m, k) => pull * m + ((1 - pull) / 2) * (from[k] + to[k]));
}

function nameIn(items, id) {
  return items.find((item) => item.id === id)?.name ?? "";
}

/** How a text is anchored that stands at the left (below 0) or right of something. */
function beside(side) {
  return side > 0.2 ? "start" : side < -0.2 ? "end" : "middle";
}

/** Write a name beside its arc, unless it would stand on another one. */
function named(svg, { name, detail, marked }, [x, y], side, { theme, many, taken }) {
  const anchor = beside(side);
  const size = (marked ? MEDIUM : SMALL) * (many ? 0.8 : 1);
  const words = marked && detail ? `${name}: ${detail}` : name;
  const wide = 0.6 * size * words.length;
  const left = x - { start: 0, middle: wide / 2, end: wide }[anchor];
  if (taken.some((other) => Math.abs(other.y - y) < size && left < other.left + other.wide && other.left < left + wide)) return;
  taken.push({ left, wide, y });
  text(svg, round(x), round(y + size / 3), words, { size, fill: marked ? theme.ink : theme.soft, anchor, weight: marked ? 650 : 400 });
}

function chordMiddle(from, to) {
  return bend(from, to).map((value, k) => 0.25 * (from[k] + to[k]) + 0.5 * value);
}

/** The busiest link's name, on the picture. */
function label(svg, { theme }, [x, y], words, anchor = "middle") {
  const wide = 0.58 * MEDIUM * words.length + 16; // a ground of its own: no line runs through it
  const left = x - { start: 8, middle: wide / 2, end: wide - 8 }[anchor];
  svg.append(svgEl("rect", { x: round(left), y: round(y - MEDIUM), width: round(wide), height: 1.36 * MEDIUM, rx: 6, fill: theme.map, "fill-opacity": 0.88 }));
  text(svg, round(x), round(y), words, { fill: theme.ink, anchor, weight: 650, halo: theme.map });
}

function round(value) {
  return Math.round(value * 10) / 10;
}

// --- fat tree and tree ----------------------------------------------------------------

function tree(svg, shown) {
  const { machine, rows, found, theme, hue, most } = shown;
  const { links } = found.prediction;
  const names = machine.answer.routers.name;
  const marked = tally(rows.map((row) => machine.router[row]));
  const level = levelsOf(machine, links);
  const depth = Math.max(...level);
  const floors = Array.from({ length: depth + 1 }, (_, i) => [...level.keys()].filter((router) => level[router] === i));
  const place = new Map();
  floors.forEach((routers, i) => {
    const y = depth ? 700 - (i * 400) / depth : 700;
    routers.forEach((router, k) => place.set(router, [60 + (1480 * (k + 0.5)) / routers.length, y]));
  });
  const edges = pairs(links, most, (router) => router);
  for (const { a, b, share } of edges) {
    const [low, high] = [place.get(a), place.get(b)];
    svg.append(line(theme, share, `M${low.map(round)}C${round(low[0])} ${(low[1] + high[1]) / 2} ${round(high[0])} ${(low[1] + high[1]) / 2} ${high.map(round)}`, 0.9));
  }
  floors.forEach((routers, i) => routers.forEach((router) => {
    const [x, y] = place.get(router);
    const wide = Math.min((1480 / routers.length) * 0.86, 220);
    svg.append(svgEl("rect", { x: round(x - wide / 2), y: i ? y - 56 : y, width: round(wide), height: 56, rx: 6, fill: marked.has(router) ? hue : theme.box, stroke: theme.line, "stroke-width": 2 }));
    const size = Math.min(MEDIUM, (1.6 * wide) / names[router].length);
    if (size < 9) return;
    text(svg, x, i ? y - 19 : y + 37, names[router], { size, fill: theme.ink, anchor: "middle", halo: marked.has(router) ? theme.map : "" });
    if (marked.has(router)) text(svg, x, y + 86, wide > 110 ? counted(marked.get(router), "node") : String(marked.get(router)), { size: SMALL, fill: theme.ink, anchor: "middle" });
  }));
  const top = edges.find((edge) => edge.first);
  if (!top) return;
  const [low, high] = [place.get(top.a), place.get(top.b)];
  label(svg, shown, [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2], `${names[top.a]} \u2013 ${names[top.b]}: ${spokenLoad(links, 0)}`);
}

/** How high each switch stands: leaves, then what their cables lead up to; of the others by their names. */
function levelsOf(machine, links) {
  const names = machine.answer.routers.name;
  const kindOf = (name) => name.replace(/\d+$/, "");
  const level = new Array(names.length).fill(-1);
  for (const router of machine.router) if (router >= 0) level[router] = 0;
  links.source.forEach((source, i) => {
    const up = /^up(\d+)$/.exec(links.kinds[links.kind[i]]);
    if (!up) return;
    level[source] = Number(up[1]) - 1;
    level[links.target[i]] = Number(up[1]);
  });
  const known = new Map(names.flatMap((name, i) => (level[i] >= 0 ? [[kindOf(name), level[i]]] : [])));
  return level.map((value, i) => (value >= 0 ? value : known.get(kindOf(names[i])) ?? 1));
}

// --- torus ----------------------------------------------------------------------------

function torus(svg, shown) {
  const { machine, rows, found, theme, hue, most } = shown;
  const extents = machine.answer.extents.slice(0, -1);
  const place = placesOf(machine, extents);
  const flat = projected(shown, extents);
  frame(svg, shown, extents, flat);
  const { links } = found.prediction;
  const edges = [];
  links.source.forEach((source, i) => {
    const [a, b] = [place[source], place[links.target[i]]];
    if (a && b) edges.push({ a, b, i, share: weightOf(links)[i] / most });
  });
  for (const { a, b, share } of edges.reverse()) {
    for (const [from, to] of stretches(a, b, extents)) svg.append(line(theme, share * 0.8, `M${flat(from).slice(0, 2).map(round)}L${flat(to).slice(0, 2).map(round)}`, 0.35 + 0.6 * share));
  }
  const dots = [...new Set(rows.map((row) => machine.router[row]))].filter((router) => place[router]).map((router) => flat(place[router]));
  const size = Math.max(2.5, 76 / Math.max(...extents));
  for (const [x, y] of dots.sort((a, b) => a[2] - b[2])) svg.append(svgEl("circle", { cx: round(x), cy: round(y), r: round(size), fill: hue, stroke: theme.map, "stroke-width": 1.5 }));
  const top = edges.at(-1);
  if (!top) return;
  const [x, y] = flat(top.a.map((value, k) => (Math.abs(value - top.b[k]) > 1 ? value : (value + top.b[k]) / 2)));
  svg.append(svgEl("circle", { cx: round(x), cy: round(y), r: 22, fill: "none", stroke: theme.ink, "stroke-width": 4 }));
  label(svg, shown, [x, y - 34], `${nameOf(links, 0)}: ${spokenLoad(links, 0)}`);
}

/** Coordinates of every router; x is the fastest where the nodes do not say. */
function placesOf({ answer, router, coords }, extents) {
  const place = new Array(answer.routers.count).fill(null);
  if (extents.reduce((a, b) => a * b, 1) === place.length) {
    for (let i = 0; i < place.length; i++) {
      let rest = i;
      place[i] = extents.map((extent) => {
        const value = rest % extent;
        rest = Math.floor(rest / extent);
        return value;
      });
    }
  }
  router.forEach((at, row) => {
    if (at >= 0) place[at] = extents.map((_, axis) => coords[axis][row]);
  });
  return place;
}

/** From coordinates to the slide, and how near they are to the viewer. */
function projected({ turn, tilt }, extents) {
  const three = [0, 1, 2].map((k) => extents[k] ?? 1);
  const scale = 560 / Math.hypot(...three);
  return (at) => {
    const [x, y, z] = [0, 1, 2].map((k) => (at[k] ?? 0) - (three[k] - 1) / 2);
    const [across, deep] = [x * Math.cos(turn) - y * Math.sin(turn), x * Math.sin(turn) + y * Math.cos(turn)];
    return [MIDDLE.x + 1.35 * scale * across, MIDDLE.y + 1.35 * scale * (deep * Math.sin(tilt) - z * Math.cos(tilt)), deep * Math.cos(tilt) + z * Math.sin(tilt)];
  };
}

/** The edges of the box, its axes named. */
function frame(svg, { theme, machine }, extents, flat) {
  const ends = extents.map((extent) => [-0.6, extent - 0.4]);
  const corners = ends.reduce((all, pair) => all.flatMap((one) => pair.map((value) => [...one, value])), [[]]);
  for (const one of corners) {
    for (const [axis, [low, high]] of ends.entries()) {
      if (one[axis] !== low) continue;
      const other = one.map((value, k) => (k === axis ? high : value));
      svg.append(svgEl("path", { d: `M${flat(one).slice(0, 2).map(round)}L${flat(other).slice(0, 2).map(round)}`, stroke: theme.line, "stroke-width": 2, fill: "none" }));
    }
  }
  extents.forEach((extent, axis) => {
    const [x, y] = flat(extents.map((_, k) => (k === axis ? extent : -1)));
    text(svg, round(x), round(y), `${machine.levels[axis]} ${extent}`, { fill: theme.soft, anchor: "middle" });
  });
}

/** A link as the stretches that are drawn of it: two short ones where it goes around. */
function stretches(a, b, extents) {
  const axis = a.findIndex((value, k) => Math.abs(value - b[k]) > 1 && extents[k] > 2);
  if (axis < 0) return [[a, b]];
  const beyond = (at, other) => at.map((value, k) => (k === axis ? value + (value < other[k] ? -0.5 : 0.5) : value));
  return [[a, beyond(a, b)], [b, beyond(b, a)]];
}
