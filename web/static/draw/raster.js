// SPDX-License-Identifier: Apache-2.0
/** A square of packed pixels that rectangles and small pictures are written into, clipped. */

export class Raster {
  /** @param {number} size pixels a side */
  constructor(size) {
    this.size = size;
    this.image = new ImageData(size, size);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.left = 0;
    this.top = 0;
  }

  /** Begin a picture whose corner lies at (left, top) of the world. */
  begin(left, top, colour) {
    this.left = left;
    this.top = top;
    this.pixels.fill(colour);
  }

  /** Fill a rectangle of the world. */
  rect(x, y, w, h, colour) {
    const x0 = Math.max(x - this.left, 0);
    const x1 = Math.min(x - this.left + w, this.size);
    const y1 = Math.min(y - this.top + h, this.size);
    if (x1 <= x0) return;
    for (let row = Math.max(y - this.top, 0); row < y1; row++) {
      this.pixels.fill(colour, row * this.size + x0, row * this.size + x1);
    }
  }

  /** Fill a rectangle and draw its outline, one pixel wide, inside it; 0 is no outline. */
  box(x, y, w, h, colour, line) {
    this.rect(x, y, w, h, colour);
    if (!line) return;
    this.rect(x, y, w, 1, line);
    this.rect(x, y + h - 1, w, 1, line);
    this.rect(x, y, 1, h, line);
    this.rect(x + w - 1, y, 1, h, line);
  }

  /** Draw a dotted outline: where something might stand, and nothing does. */
  dotted(x, y, w, h, colour) {
    for (let at = 0; at < w; at += 4) for (const row of [y, y + h - 1]) this.rect(x + at, row, Math.min(2, w - at), 1, colour);
    for (let at = 0; at < h; at += 4) for (const column of [x, x + w - 1]) this.rect(column, y + at, 1, Math.min(2, h - at), colour);
  }

  /** Draw a node of these looks: a square sprite, whose pixels of 0 are left as they are. */
  node(looks, key, side, x, y) {
    const sprite = looks.sprite(key, side);
    const left = x - this.left;
    const top = y - this.top;
    const c0 = Math.max(-left, 0);
    const c1 = Math.min(this.size - left, side);
    const r1 = Math.min(this.size - top, side);
    for (let r = Math.max(-top, 0); r < r1; r++) {
      const from = r * side;
      const to = (top + r) * this.size + left;
      for (let c = c0; c < c1; c++) {
        const pixel = sprite[from + c];
        if (pixel !== 0) this.pixels[to + c] = pixel;
      }
    }
  }
}

/** A drawing in pixels, of the size that it states. */
export async function painted(drawing) {
  const image = new Image();
  image.src = URL.createObjectURL(drawing);
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
  canvas.getContext("2d").drawImage(image, 0, 0);
  URL.revokeObjectURL(image.src);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
