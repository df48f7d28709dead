// SPDX-License-Identifier: Apache-2.0
/** Node lists: read and written in the page itself, where no server is asked. */

const MOST = 200000;
const SHOWN = 20;

/**
 * Read names, cnames, NIDs, ranges and folded lists.
 * @param {string} text
 * @param {import("./machine.js").Machine} machine
 * @returns {Object} as /api/v1/resolve answers
 */
export function resolveHere(text, machine) {
  const rows = [];
  const known = new Set();
  const errors = [];
  let repeated = 0;
  let line = 1;
  let lineStart = 0;
  for (const match of listsOf(text).matchAll(/\n|[^\s,;[\]]*(?:\[[^\]\n]*\][^\s,;[\]]*)+|[^\s,;]+/g)) {
    if (match[0] === "\n") {
      line += 1;
      lineStart = match.index + 1;
      continue;
    }
    for (const word of unfolded(match[0])) {
      const row = machine.find(word);
      if (row < 0) errors.push({ token: word, line, column: match.index - lineStart + 1, message: "no such node", hint: "" });
      else if (known.has(row)) repeated += 1;
      else rows.push(row);
      known.add(row);
    }
  }
  const shown = errors.slice(0, SHOWN);
  return { ok: !errors.length, count: rows.length, rows, repeated, errors: shown, more_errors: errors.length - shown.length };
}

/** A text with all but its node lists blanked, every place kept: what Slurm prints, a batch script. */
function listsOf(text) {
  const lines = text.split("\n");
  const head = lines.findIndex((line) => /\bNODELIST\b/.test(line) && /\b(JOBID|PARTITION|STATE|NODES)\b/.test(line));
  if (head >= 0) return tableOf(lines, head);
  if (/^\s*(JobId|NodeName)=/m.test(text)) return kept(lines, /(?:^|\s)(?:NodeList|NodeName)=(?!\(null\))(\S+)/g);
  if (/^\s*#\s?SBATCH\b/m.test(text)) return kept(lines, /(?:\s-w[ =]?|--nodelist[ =])["']?([^\s"']+)/g);
  return text.replaceAll(/["'`]/g, " ");
}

/** The column of a table by squeue or sinfo that its heading stands over. */
function tableOf(lines, head) {
  const from = lines[head].search(/\bNODELIST\b/);
  const others = lines[head].slice(from).trim().split(/\s+/).length > 1;
  return lines.map((line, i) => {
    if (i <= head) return blank(line);
    const rest = line.slice(from);
    const word = others ? /^\S*/.exec(rest)[0] : rest;
    return word.startsWith("(") ? blank(line) : blank(line.slice(0, from)) + word;
  }).join("\n");
}

function kept(lines, pattern) {
  return lines.map((line) => {
    let made = "";
    for (const match of line.matchAll(pattern)) {
      const at = match.index + match[0].lastIndexOf(match[1]);
      made = made.padEnd(at) + match[1];
    }
    return made;
  }).join("\n");
}

function blank(line) {
  return " ".repeat(line.length);
}

/** The words of a folded list, "nid[01-03]" or "5-7". */
function unfolded(token) {
  const bare = /^(\d+)-(\d+)$/.exec(token);
  if (bare) return spanned("", bare[1], bare[2], "", false);
  const folded = /^([^[\]]*)\[([^\]]*)\]([^[\]]*)$/.exec(token);
  if (!folded) return [token];
  const [, before, inside, after] = folded;
  const words = inside.split(",").flatMap((part) => {
    const [first, last = first] = part.trim().split("-");
    return spanned(before, first, last, after, true);
  });
  return words.length > MOST ? [token] : words;
}

function spanned(before, first, last, after, padded) {
  const [from, to] = [Number(first), Number(last)];
  if (!Number.isInteger(from) || !Number.isInteger(to) || to < from || to - from > MOST) return [`${before}${first}-${last}${after}`];
  const width = padded ? first.length : 0;
  return Array.from({ length: to - from + 1 }, (_, i) => `${before}${String(from + i).padStart(width, "0")}${after}`);
}

/**
 * Write a node list in the page itself.
 * @param {string} format nodelist, lines, nids, cnames, hostfile or sbatch
 */
export function writeHere(format, rows, machine) {
  const names = rows.map((row) => machine.names[row]);
  if (format === "nids") return rows.map((row) => machine.nids[row]).join(",");
  if (format === "cnames") return rows.map((row) => machine.cnames[row]).join("\n");
  if (format === "sbatch") return `#SBATCH -N ${rows.length} -w ${names.join(",")}`;
  return names.join(format === "nodelist" ? "," : "\n");
}

/** Read ranges of rows, "0-15,20". */
export function rowsOf(text) {
  const rows = [];
  for (const part of text.split(",")) {
    const [first, last = first] = part.split("-").map(Number);
    if (part !== "") for (let row = first; row <= last; row++) rows.push(row);
  }
  return rows;
}

/** Write numbers as ranges in the order given, "0-15,20,3". */
export function rangesOf(numbers) {
  const parts = [];
  for (let i = 0; i < numbers.length; ) {
    let j = i + 1;
    while (j < numbers.length && numbers[j] === numbers[j - 1] + 1) j++;
    parts.push(j - i === 1 ? `${numbers[i]}` : `${numbers[i]}-${numbers[j - 1]}`);
    i = j;
  }
  return parts.join(",");
}

/** The text by which the server takes rows: "#0-15,#20". */
export function askedRows(rows) {
  return rangesOf(rows).split(",").map((part) => `#${part}`).join(",");
}
