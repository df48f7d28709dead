// SPDX-License-Identifier: Apache-2.0
/** Questions to the server, and the curl line that asks the same. Paths are the page's: it may stand behind a prefix. */

import { tokenIsOld } from "../ui/token.js";

/** An answer that is not the one wanted; `detail` and `hint` are for people. */
export class Refusal extends Error {
  constructor(status, detail, hint, after) {
    super(detail);
    this.status = status;
    this.hint = hint;
    this.after = after;
  }
}

/** The data of an exported file, or null where a server answers. */
export function embedded() {
  const node = document.getElementById("nidmap-data");
  return node ? JSON.parse(node.textContent) : null;
}

/** GET a path as JSON. */
export async function getJson(path, signal) {
  return answerOf(await asked(path, { signal }));
}

/** GET a path as JSON, and the server's clock in seconds beside it. */
export async function getDated(path) {
  const response = await asked(path, {});
  return [await answerOf(response), Date.parse(response.headers.get("Date")) / 1000];
}

/** POST a body to a path and read JSON. */
export async function postJson(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return answerOf(await asked(path, { method: "POST", headers, body: JSON.stringify(body), signal }));
}

/**
 * POST a question that may take long.
 * @param {Function} told is told `{ text, share, rows }` of a search, meanwhile
 * @returns {Promise<Object>} the answer
 */
export async function postLong(path, body, signal, told) {
  const headers = { "Content-Type": "application/json", Accept: "application/x-ndjson" };
  const response = await asked(path, { method: "POST", headers, body: JSON.stringify(body), signal });
  if (!response.ok) throw await refusalOf(response);
  for await (const { progress, answer, problem } of linesOf(response)) {
    if (progress) told(progress);
    if (answer) return answer;
    if (problem) throw new Refusal(problem.status, problem.detail, problem.hint, problem.status === 429 ? 2 : 0);
  }
  throw new Refusal(0, "the server went away", "is nidmap web serve still running?");
}

async function* linesOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) yield JSON.parse(line);
  }
}

/** POST a body and read the file that comes back. */
export async function postFile(path, body) {
  const headers = { "Content-Type": "application/json" };
  const response = await asked(path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw await refusalOf(response);
  return response.blob();
}

async function asked(path, options) {
  try {
    const response = await fetch(path, { credentials: "same-origin", ...options });
    tokenIsOld(response.status === 401);
    return response;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, "the server does not answer", "is nidmap web serve still running?");
  }
}

async function answerOf(response) {
  if (!response.ok) throw await refusalOf(response);
  return response.json();
}

async function refusalOf(response) {
  const after = Number(response.headers.get("Retry-After")) || 0;
  let said = {};
  try {
    said = await response.json();
  } catch {
    said = { detail: `the server answered ${response.status}` };
  }
  return new Refusal(response.status, said.detail || said.title || "refused", said.hint || "", after);
}

/** Say a refusal in one line. */
export function saidOf(error) {
  const wait = error.after ? ` (again in ${error.after} s)` : "";
  return error.hint ? `${error.message}${wait}: ${error.hint}` : `${error.message}${wait}`;
}

/**
 * Write the curl line of a question.
 * @param {string} path
 * @param {Object} [body] for a POST
 * @returns {string}
 */
export function curlLine(path, body) {
  const head = 'curl -sS --compressed -H "Authorization: Bearer $NIDMAP_TOKEN"';
  const json = body ? ` --json ${quoted(JSON.stringify(body))}` : "";
  return `${head}${json} ${quoted(new URL(path, document.baseURI))}`;
}

function quoted(text) {
  return `'${String(text).replaceAll("'", "'\\''")}'`;
}
