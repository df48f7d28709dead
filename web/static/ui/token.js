// SPDX-License-Identifier: Apache-2.0
/** What an open tab says when its token is no longer the server's: it was started again. */

import { byId } from "./dom.js";

/**
 * Show the way to the new server, or take it away again.
 * @param {boolean} yes whether the server has just refused the tab's token
 */
export function tokenIsOld(yes) {
  const form = byId("token-old");
  if (form.hidden !== yes) return;
  form.hidden = !yes;
  form.onsubmit = reload;
}

/** Open the page with the token of a pasted URL, its marks and view as they are; with none as another tab opened it. */
function reload(event) {
  event.preventDefault();
  const typed = byId("token-new").value.trim();
  const token = /[?&]token=([^&#\s]+)/.exec(typed)?.[1] ?? encodeURIComponent(typed);
  const { pathname, hash } = location;
  if (token) location.replace(`${pathname}?token=${token}${hash}`);
  else location.reload();
}
