// SPDX-License-Identifier: Apache-2.0
/** Small pictures for legends, drawn by the same sprites as the map. */

import { KEY, Looks } from "./sprites.js";

/** Draw a class's look into a square canvas. */
export function drawSwatch(canvas, theme, kind) {
  const looks = new Looks({ ...theme, inner: theme.map }, [kind], [], false);
  const side = canvas.width;
  const sprite = looks.sprite((kind.shape ?? 2) << KEY.shape, side);
  const image = new ImageData(side, side);
  new Uint32Array(image.data.buffer).set(sprite);
  canvas.getContext("2d").putImageData(image, 0, 0);
}
