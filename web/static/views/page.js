// SPDX-License-Identifier: Apache-2.0
/** The page: wires its parts to what is shown, and keeps the URL. */

import { hashOf, stateOf } from "../core/hash.js";
import { Snapshot } from "../core/machine.js";
import { waysToColour } from "../draw/colouring.js";
import { themeNow } from "../draw/theme.js";
import { MapStage } from "../map/stage.js";
import { getJson } from "../net/api.js";
import { Live } from "../net/live.js";
import { notice } from "../ui/announce.js";
import { copyText } from "../ui/clipboard.js";
import { byId, el, refill } from "../ui/dom.js";
import { answers } from "./answer.js";
import { figureBar } from "./figurebar.js";
import { helpDialog } from "./help.js";
import { jobForm } from "./jobform.js";
import { jobsTable } from "./jobstable.js";
import { keyboard } from "./keyboard.js";
import { showLegend, showStepper } from "./legend.js";
import { marksPanel } from "./markspanel.js";
import { showNode } from "./nodecard.js";
import { PlanView, withoutPlans } from "./plans.js";
import { saveBox } from "./savebox.js";
import { searchBox } from "./searchbox.js";
import { TableTwin } from "./tabletwin.js";
import { showTraffic } from "./traffic.js";
import { TrafficTab } from "./traffictab.js";

const TABS = ["map", "plans", "traffic", "jobs", "table"];

/** Tabs that need a server. */
const SERVED = ["plans", "traffic", "jobs"];
const THEMES = { "": "auto", light: "light", dark: "dark" };
const LONG_LINK = 8000;
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/** Show the page of a machine; `data` is what an exported page holds, else null. */
export function start(app, state, data) {
  byId("kind").textContent = kindOf(app.machine.answer);
  app.stage = new MapStage(app);
  app.stage.setScene(app.scene);
  wireColours(app);
  recolour(app);
  performance.mark("nidmap-picture");
  marksPanel(app);
  jobForm(app);
  answers(app);
  figureBar(app);
  searchBox(app);
  saveBox(app);
  keyboard(app);
  helpDialog(app);
  app.table = new TableTwin(app);
  jobsTable(app);
  app.traffic = new TrafficTab(app);
  if (app.served) app.plans = new PlanView(app);
  else withoutPlans();
  wireTabs(app);
  wireViews(app);
  wireTheme(app);
  wireQuestions(app);
  wireUrl(app, data);
  follow(app, state);
}

function kindOf({ kind, fabric, count }) {
  const title = { dragonfly: "dragonfly", torus: "torus", fattree: "fat tree", tree: "tree" }[kind] ?? kind;
  const called = fabric === "infiniband" ? "InfiniBand" : fabric && `${fabric[0].toUpperCase()}${fabric.slice(1)}`;
  const named = called ? `${called} ${title}` : title;
  return `${named}, ${count.toLocaleString("en-US")} nodes`;
}

function recolour(app) {
  const colours = app.colours();
  app.shown = colours;
  app.stage.recolour(colours);
  showLegend(app, colours);
}

/** The ways to colour; a page without a server has those by ranks and by hops where it was saved so. */
function waysNow(app) {
  const missing = ({ id }) => ["rank", "hops"].includes(id) && !app.store.get(id === "rank" ? "ranks" : id);
  return waysToColour(app.machine).filter((way) => app.served || !missing(way));
}

function wireColours(app) {
  const select = byId("colour");
  refill(select, ...waysNow(app).map(({ id, title }) => el("option", { value: id, text: title })));
  select.addEventListener("change", () => app.store.set({ way: select.value, hidden: new Set() }));
  app.store.on(["way", "marks", "theme", "hidden", "snapshot", "ranks", "hops", "describe", "scene"], () => recolour(app));
  app.store.on(["way"], () => {
    select.value = app.store.get("way");
  });
  app.store.on(["way", "ranks", "rank", "order"], () => {
    showStepper(app);
    app.stage.decorate();
  });
  app.store.on(["focus", "snapshot", "marks", "ranks", "scene"], () => showNode(app, app.store.get("focus")));
  app.store.on(["focus", "links"], () => app.stage.decorate());
  app.store.on(["hover"], () => app.stage.lightUp(app.store.get("hover")));
  app.store.on(["describe", "marks", "theme"], () => showTraffic(app));
}

/** What is asked of the server when the colours need it. */
function wireQuestions(app) {
  if (!app.served) return;
  app.store.on(["way", "focus"], () => askHops(app));
  app.store.on(["way", "marks", "ppn", "pattern", "order"], () => askRanks(app));
}

async function askHops(app) {
  const row = app.store.get("focus");
  if (app.store.get("way") !== "hops" || row < 0 || app.store.get("hops")?.from === row) return;
  const path = `api/v1/hops?from=${encodeURIComponent(`#${row}`)}`;
  app.curl("hops", path);
  try {
    const hops = await getJson(path);
    if (app.store.get("focus") === row) app.store.set({ hops });
  } catch (error) {
    app.failed(error);
  }
}

async function askRanks(app) {
  const mark = app.marks.current;
  if (app.store.get("way") !== "rank") return;
  if (!mark?.rows.length) {
    app.store.set({ ranks: null });
    return;
  }
  const [ppn, pattern] = ["ppn", "pattern"].map((key) => app.store.get(key));
  const { name, slots } = app.orderOf(mark);
  const body = { nodes: app.asked(mark), ppn, pattern, strategy: name, slots, format: "slots" };
  const asked = JSON.stringify(body);
  if (asked === app.askedRanks) return;
  app.askedRanks = asked;
  try {
    const answer = await app.ask("ranks", "api/v1/order", body);
    const ranks = answer && withCount(answer);
    if (ranks) app.store.set({ ranks, rank: Math.min(app.store.get("rank"), ranks.ranks - 1) });
  } catch (error) {
    app.store.set({ ranks: null });
    app.failed(error);
  }
}

export function withCount(answer) {
  return { ...answer, ranks: answer.order.ranks };
}

function wireTabs(app) {
  const tabs = TABS.map((name) => byId(`tab-${name}`));
  for (const name of TABS) byId(`tab-${name}`).addEventListener("click", () => app.openTab(name));
  byId("tab-map").parentElement.addEventListener("keydown", (event) => {
    const seen = tabs.filter((tab) => !tab.hidden);
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const next = seen[(seen.indexOf(document.activeElement) + by + seen.length) % seen.length];
    next.click();
    next.focus();
  });
  app.store.on(["tab"], () => {
    for (const name of TABS) {
      const mine = name === app.store.get("tab");
      byId(`panel-${name}`).hidden = !mine;
      byId(`tab-${name}`).setAttribute("aria-selected", String(mine));
      byId(`tab-${name}`).tabIndex = mine ? 0 : -1;
    }
    byId("desk").classList.toggle("wide", ["plans", "traffic", "jobs"].includes(app.store.get("tab")));
    for (const id of ["colour-choice", "map-tools"]) byId(id).hidden = app.store.get("tab") !== "map";
    byId("view-choice").hidden = app.layouts.length < 2 || ["table", "jobs", "traffic"].includes(app.store.get("tab"));
  });
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    app.openTab("map");
    byId("map").focus();
  });
}

function wireViews(app) {
  const select = byId("view");
  byId("view-choice").hidden = app.layouts.length < 2;
  refill(select, ...app.layouts.map(({ id, title }) => el("option", { value: id, text: title })));
  select.addEventListener("change", () => showScene(app, select.value));
}

async function showScene(app, id) {
  app.wantedScene = id;
  const scene = await app.sceneOf(id).catch((error) => app.failed(error));
  if (!scene || scene === app.scene || app.wantedScene !== id) {
    byId("view").value = app.scene.id;
    app.view.ask();
    return;
  }
  byId("view").value = id;
  app.store.set({ scene });
  app.stage.setScene(scene);
  recolour(app);
}

function wireTheme(app) {
  const button = byId("theme");
  const apply = () => {
    const choice = app.store.get("themeChoice");
    if (choice) document.documentElement.dataset.theme = choice;
    else delete document.documentElement.dataset.theme;
    byId("theme-name").textContent = THEMES[choice];
    app.store.set({ theme: themeNow(choice) });
  };
  button.addEventListener("click", () => {
    const names = Object.keys(THEMES);
    app.store.set({ themeChoice: names[(names.indexOf(app.store.get("themeChoice")) + 1) % names.length] });
  });
  app.store.on(["themeChoice"], apply);
  for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) matchMedia(query).addEventListener("change", apply);
}

function wireUrl(app, data) {
  const read = () => restore(app, stateOf(location.hash, app.machine));
  let waiting = 0;
  const write = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const [hash, view] = [`#${hashOf(wordsOf(app), app.machine)}`, viewOf(app)];
      const other = history.state && !sameView(history.state, view);
      if (other) history.pushState(view, "", hash);
      else if (!history.state || hash !== location.hash) history.replaceState(view, "", hash);
    }, 60);
  };
  app.stateNow = () => hashOf(wordsOf(app, windowOf(app)), app.machine);
  if (data?.hash && !location.hash) restore(app, stateOf(data.hash, app.machine));
  else if (data && !location.hash) {
    app.marks.restore(data.marks.map((mark, i) => ({ name: mark.name || LETTERS[i % 26], rows: rowsIn(mark), hue: mark.hue ?? i % 8 })), 0);
    app.store.set({ way: data.way });
  } else read();
  window.addEventListener("popstate", ({ state }) => (state ? showView(app, state) : read()));
  app.store.on(["marks", "way", "scene", "tab", "focus", "hidden", "pattern", "ppn", "bytes", "partition", "order", "rank", "themeChoice", "plan", "links"], write);
  byId("share").addEventListener("click", () => {
    const link = `${location.href.replace(/[?#].*$/s, "")}#${app.stateNow()}`;
    copyText(link, "Link");
    if (link.length > LONG_LINK) notice(`the link has ${link.length} characters; some programs cut such links`);
  });
}

function rowsIn(mark) {
  return Array.isArray(mark.rows) ? mark.rows : [];
}

/** What Back brings back; marks, and all that is not a view, stay as they are. */
function viewOf({ store, layouts, wantedScene, scene }) {
  const known = layouts.some((each) => each.id === wantedScene);
  return { tab: store.get("tab"), way: store.get("way"), scene: known ? wantedScene : scene.id };
}

/** What the map shows of its scene, '' for all. */
function windowOf({ view }) {
  return view.fitted ? "" : view.camera.window.map((side) => side.toFixed(1)).join(",");
}

function sameView(a, b) {
  return a.tab === b.tab && a.way === b.way && a.scene === b.scene;
}

function showView(app, { tab, way, scene }) {
  showScene(app, scene);
  app.store.set({ tab, way });
}

/** What of the page goes into the URL; what is as usual is left out. */
function wordsOf(app, seen = "") {
  const { store, marks } = app;
  const usual = { by: usualWay(app), v: app.layouts[0].id, t: "map", f: -1, p: "alltoall", n: 1, b: "", k: "", o: "row-major", r: 0, c: "", l: true, w: "" };
  const now = {
    by: store.get("way"), v: viewOf(app).scene, t: store.get("tab"), f: store.get("focus"), p: store.get("pattern"), n: store.get("ppn"),
    b: store.get("bytes"), k: store.get("partition"), o: store.get("order"), r: store.get("rank"), c: store.get("themeChoice"), l: store.get("links"), w: seen,
  };
  const words = Object.fromEntries(Object.entries(now).filter(([key, value]) => value !== usual[key]));
  if (words.f !== undefined) words.f = app.machine.names[words.f];
  const hidden = [...store.get("hidden")].map(encodeURIComponent).join(" ");
  if (hidden) words.x = hidden;
  if (store.get("plan")) words.plan = store.get("plan");
  return { marks: marks.list, active: marks.active, words };
}

function restore(app, { marks, active, words, lost }) {
  const { machine, store } = app;
  const ways = waysNow(app).map((way) => way.id);
  const seen = (words.w ?? "").split(",").map(Number);
  showScene(app, words.v ?? app.layouts[0].id).then(() => seen.length === 4 && seen.every(Number.isFinite) && app.view.fit(...seen));
  store.set({
    way: ways.includes(words.by) ? words.by : usualWay(app), tab: TABS.includes(words.t) && (app.served || !SERVED.includes(words.t)) ? words.t : "map",
    focus: words.f ? machine.find(words.f) : -1, pattern: words.p ?? "alltoall", ppn: Math.min(Math.max(Number(words.n) || 1, 1), 4096),
    bytes: words.b ?? "", partition: words.k ?? "", order: words.o ?? "row-major", rank: Math.max(Math.round(Number(words.r)) || 0, 0),
    themeChoice: words.c in THEMES ? words.c : "", links: words.l !== "false", hidden: new Set((words.x ?? "").split(" ").filter(Boolean).map(decoded)),
  });
  app.marks.restore(marks, active);
  if (lost) notice(`the link names ${lost} ${lost === 1 ? "thing" : "things"} that this machine does not have`, "error");
  if (words.plan && app.plans && words.plan !== store.get("plan")) {
    app.plans.restore(words.plan);
    if (store.get("tab") === "plans") app.plans.run();
  }
}

/** What colours mean until somebody says otherwise: the jobs, where any are known. */
function usualWay({ snapshot }) {
  return snapshot.jobs.length ? "job" : "state";
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function follow(app, state) {
  const live = new Live({
    state: (answer) => app.store.set({ snapshot: new Snapshot(answer, app.machine) }),
    status: (words, level) => {
      byId("live").hidden = false;
      byId("live").textContent = words;
      byId("live").dataset.level = level;
    },
  });
  live.start(state, app.served ? app.machine.answer.refresh : 0);
}
