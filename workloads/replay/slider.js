// SPDX-License-Identifier: Apache-2.0
/** Draws who sat where at the moment of the slider, and plays it: of a page that needs no network. */
(() => {
  "use strict";

  const home = document.getElementById("slider");
  const data = JSON.parse(document.getElementById("played").textContent);
  const range = home.querySelector("input");
  const button = home.querySelector("button");
  const figures = [...home.querySelectorAll("figure")];
  const namespace = home.querySelector("svg").namespaceURI;
  const widest = Math.max(...data.sizes, 1);

  /** Milliseconds in which all of it is played. */
  const LENGTH = 30_000;

  /** Return a time in the trace as people read it. */
  function timeText(seconds) {
    const parts = [seconds / 3600, seconds / 60, seconds].map((t, k) => Math.floor(t) % (k ? 60 : 24));
    return `day ${Math.floor(seconds / 86400)}, ${parts.map((p) => String(p).padStart(2, "0")).join(":")}`;
  }

  /** Return a bar of a row: its nodes are its width. */
  function makeBar(unit, left, nodes, colour, words) {
    const bar = document.createElementNS(namespace, "rect");
    const place = { x: left, y: unit + 0.06, width: nodes, height: 0.88, fill: colour };
    for (const [name, value] of Object.entries(place)) bar.setAttribute(name, value);
    const title = document.createElementNS(namespace, "title");
    title.textContent = `${data.level} ${unit}: ${words}, ${nodes} of ${data.sizes[unit]} nodes`;
    bar.append(title);
    return bar;
  }

  function drawReplay(figure, replay, now) {
    const filled = data.sizes.map(() => 0);
    const bars = [];
    for (const [job, first, after, ...where] of replay.jobs) {
      if (now < first || now >= after) continue;
      for (let k = 0; k < where.length; k += 2) {
        const [unit, nodes] = where.slice(k, k + 2);
        const colour = `hsl(${(job * 137.508) % 360} 65% ${42 + (job % 3) * 11}%)`;
        bars.push(makeBar(unit, filled[unit], nodes, colour, `job ${data.ids[job]}`));
        filled[unit] += nodes;
      }
    }
    for (const [unit, size] of data.sizes.entries()) {
      if (size > filled[unit]) bars.push(makeBar(unit, filled[unit], size - filled[unit], "#ddd", "free"));
    }
    const words = `${replay.running[now]} running, ${replay.waiting[now]} waiting`;
    figure.querySelector("span").textContent = words;
    figure.querySelector("svg").setAttribute("aria-label", words);
    figure.querySelector("svg").replaceChildren(...bars);
  }

  function draw() {
    const now = Number(range.value);
    const time = timeText(now * data.interval);
    home.querySelector("output").textContent = time;
    range.setAttribute("aria-valuetext", time);
    for (const [k, figure] of figures.entries()) drawReplay(figure, data.replays[k], now);
  }

  let begun = 0; // when its beginning would have been played; 0 while it rests

  function playOn(when) {
    if (!begun) return;
    range.value = String(Math.floor(((when - begun) / LENGTH) * Number(range.max)));
    draw();
    if (range.value === range.max) setPlaying(false);
    else requestAnimationFrame(playOn);
  }

  function setPlaying(playing) {
    button.textContent = playing ? "Pause" : "Play";
    if (playing && range.value === range.max) range.value = "0";
    begun = playing ? performance.now() - (Number(range.value) / (Number(range.max) || 1)) * LENGTH : 0;
    if (playing) requestAnimationFrame(playOn);
  }

  button.addEventListener("click", () => setPlaying(!begun));
  range.addEventListener("input", () => {
    setPlaying(false);
    draw();
  });
  for (const figure of figures) {
    const picture = figure.querySelector("svg");
    picture.setAttribute("viewBox", `0 0 ${widest} ${data.sizes.length}`);
    picture.style.height = `${Math.min(14 * data.sizes.length, 260)}px`;
  }
  draw();
})();
