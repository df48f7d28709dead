/** A recording of states and jobs: a slider through its samples, and playing them. */

import { getJson } from "./api.js";
import { byId } from "./dom.js";
import { Snapshot } from "./machine.js";

/** Milliseconds that a sample stands while the recording is played. */
const STAND = 300;

/** Wire the slider; it is shown where the server replays a recording. */
export function replay(app) {
  const times = app.machine.answer.recording ?? [];
  byId("replay").hidden = times.length < 2;
  if (times.length < 2) return;
  const [slider, button] = [byId("replay-at"), byId("replay-play")];
  slider.max = times.length - 1;
  slider.value = slider.max;
  let playing = false;
  const say = () => {
    const words = new Date(1000 * times[slider.value]).toLocaleString();
    byId("replay-time").textContent = words;
    slider.setAttribute("aria-valuetext", words);
  };
  const show = async () => {
    const at = slider.value;
    say();
    try {
      const state = await getJson(`api/v1/recorded?at=${at}`);
      if (slider.value === at) app.store.set({ snapshot: new Snapshot(state, app.machine) });
    } catch (error) {
      playing = false;
      app.failed(error);
    }
  };
  const play = async () => {
    while (playing && Number(slider.value) < times.length - 1) {
      slider.value = Number(slider.value) + 1;
      await Promise.all([show(), new Promise((resolve) => setTimeout(resolve, STAND))]);
    }
    playing = false;
    button.textContent = "Play";
  };
  slider.addEventListener("input", () => show());
  button.addEventListener("click", () => {
    playing = !playing;
    if (!playing) return;
    button.textContent = "Stop";
    if (Number(slider.value) === times.length - 1) slider.value = 0;
    play();
  });
  say();
}
