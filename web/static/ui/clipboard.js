// SPDX-License-Identifier: Apache-2.0
/** Text to the clipboard, also where the browser forbids it and a person must press Ctrl-C. */

import { announce, notice } from "./announce.js";

/**
 * Copy a text.
 * @param {string} text
 * @param {string} what for the notice
 * @param {HTMLTextAreaElement|null} shown holds the text, to be selected where copying fails
 */
export async function copyText(text, what, shown = null) {
  try {
    await navigator.clipboard.writeText(text);
    announce(`${what} copied`);
    notice(`${what} copied`);
  } catch {
    shown?.select();
    notice(shown ? `select and press Ctrl-C: the browser does not let the page copy` : "the browser does not let the page copy");
  }
}

/** Let the browser save a file. */
export function saveBlob(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
