/**
 * The server's event stream, one for all tabs of a browser: a browser keeps six connections to a
 * server, and a stream holds one for good.
 *
 * The tab that has the lock opens the stream and tells the others; when it is closed, the next one
 * gets the lock. Browsers give locks on https and on this computer's own addresses alone; elsewhere
 * each tab has a stream of its own while it is in sight.
 */

/** By the page's path: one host may show several machines, each behind a prefix of its own. */
const NAME = `nidmap-events ${location.pathname}`;

/** What a tab that has just been opened asks the others. */
const HELLO = "hello";

/**
 * Follow what the server says.
 * @param {Object} calls `told(news)`, `reached(yes)`, `refused()` once where the server has no stream left
 */
export function follow(calls) {
  if (!navigator.locks || !window.BroadcastChannel) {
    whileSeen(calls);
    return;
  }
  const channel = new BroadcastChannel(NAME);
  channel.addEventListener("message", ({ data }) => data !== HELLO && calls[data.call](data.value));
  channel.postMessage(HELLO);
  navigator.locks.request(NAME, () => new Promise(() => lead(calls, channel)));
}

/** Open the stream for all tabs; what was said last is said again to a new one. */
function lead(calls, channel) {
  const last = new Map();
  const all = (call) => (value) => {
    last.set(call, value);
    channel.postMessage({ call, value });
    calls[call](value);
  };
  channel.addEventListener("message", ({ data }) => {
    if (data === HELLO) for (const [call, value] of last) channel.postMessage({ call, value });
  });
  open({ told: all("told"), reached: all("reached"), refused: all("refused") });
}

function open(calls) {
  const stream = new EventSource("api/v1/events");
  stream.addEventListener("state", (event) => calls.told(JSON.parse(event.data)));
  stream.addEventListener("open", () => calls.reached(true));
  stream.addEventListener("error", () => {
    calls.reached(false);
    if (stream.readyState === EventSource.CLOSED) calls.refused();
  });
  return stream;
}

function whileSeen(calls) {
  let stream = document.hidden ? null : open(calls);
  document.addEventListener("visibilitychange", () => {
    stream?.close();
    stream = document.hidden ? null : open(calls);
  });
}
