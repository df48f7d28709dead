// SPDX-License-Identifier: Apache-2.0
/** A slide of 16 by 9 in large type: a title, a sentence, what is shown, and at the foot what it holds for. */

import { grouped } from "../core/words.js";
import { Paper } from "./paper.js";

/** Pixels of a slide, and what is free at its sides. */
export const SHEET = { width: 1920, height: 1080, side: 40 };

/** How wide a letter is a pixel of its height, and a bold one. */
const [LETTER, BOLD] = [0.55, 0.62];

/** The sentence: its letters and its lines at most; letters of the title and of the foot. */
const [LETTERS, LINES, TITLE, FOOT] = [28, 2, 40, 20];

/** A slide with its words; what it shows goes below `top`. */
export class Sheet {
  /**
   * @param {Object} theme
   * @param {Object} words `title`, `sentence` and `foot`
   */
  constructor(theme, { title, sentence, foot }) {
    this.theme = theme;
    this.words = { title, sentence };
    this.paper = new Paper(SHEET.width, SHEET.height);
    this.fill(0, 0, SHEET.width, SHEET.height, theme.map);
    this.write(title, SHEET.side, 50, { size: TITLE, weight: 700 });
    const lines = linesOf(sentence, (SHEET.width - 2 * SHEET.side) / (LETTERS * LETTER), LINES);
    lines.forEach((line, i) => this.write(line, SHEET.side, 104 + 36 * i, { size: LETTERS, colour: theme.soft }));
    this.top = 104 + 36 * lines.length;
    this.write(foot, SHEET.side, SHEET.height - 22, { size: FOOT, colour: theme.soft });
  }

  fill(x, y, w, h, colour) {
    this.paper.fillStyle = colour;
    this.paper.fillRect(x, y, w, h);
  }

  /** Write a line around the middle `y`; one that is wider than `room` is written smaller, and cut where it would be too small. */
  write(text, x, y, { size, weight = 400, colour = this.theme.ink, align = "left", room = Infinity }) {
    const letter = weight >= 600 ? BOLD : LETTER;
    const fitting = Math.min(size, room / (letter * Math.max(text.length, 1)));
    const letters = Math.floor(room / (letter * 0.6 * size));
    const words = fitting < 0.6 * size ? `${text.slice(0, Math.max(letters - 1, 1))}…` : text;
    writeOn(this.paper, words, x, y, { size: Math.max(fitting, 0.6 * size), weight, colour, align });
  }

  /** Write a text in lines; returns the y below them. */
  writeLines(text, x, y, { size, colour, room, most = 3 }) {
    const lines = linesOf(text, room / (LETTER * size), most);
    lines.forEach((line, i) => this.write(line, x, y + 1.25 * size * i, { size, colour, room }));
    return y + 1.25 * size * lines.length;
  }

  /** A bar with a whisker for its range; lengths are shares of the room. */
  bar(x, y, w, { likely, low, high }) {
    const { theme } = this;
    const at = (share) => x + w * Math.min(Math.max(share, 0), 1);
    this.fill(x, y - 7, w, 14, theme.line);
    this.fill(x, y - 7, at(likely) - x, 14, theme.hues[0]);
    this.fill(at(low), y - 1.5, at(high) - at(low), 3, theme.ink);
    for (const end of [low, high]) this.fill(at(end) - 1.5, y - 10, 3, 20, theme.ink);
  }

  svg() {
    return this.paper.svg(this.words.title, this.words.sentence);
  }
}

export function writeOn(context, text, x, y, { size, weight = 400, colour, align = "left" }) {
  context.font = `${weight} ${size}px system-ui`;
  context.fillStyle = colour;
  context.textAlign = align;
  context.fillText(text, x, y);
}

/** A text in lines of so many letters, of which there may be so many. */
export function linesOf(text, letters, most) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (longer.length > letters) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines.length > most ? [...lines.slice(0, most - 1), `${lines[most - 1]} …`] : lines;
}

/**
 * Draw a table from `sheet.top` on: as many rows as fit.
 * @param {Sheet} sheet
 * @param {Array<string>} heads
 * @param {number} [total] rows that there are
 * @param {Array<Array<string|{text: string, bar: Object}>>} rows a cell may have a bar beside its words
 */
export function drawTable(sheet, heads, rows, total = rows.length) {
  const { theme, top } = sheet;
  const step = 44;
  const most = Math.floor((SHEET.height - 70 - top - step) / step);
  const shown = total > most ? rows.slice(0, most - 1) : rows;
  const wide = heads.map((head, i) => Math.min(Math.max(head.length, ...shown.map((row) => lengthOf(row[i]))), 34));
  const letter = (SHEET.width - 2 * SHEET.side) / wide.reduce((sum, each) => sum + each + 2, 0);
  const size = Math.min(26, letter / LETTER);
  const starts = wide.map((_, i) => SHEET.side + wide.slice(0, i).reduce((sum, each) => sum + (each + 2) * letter, 0));
  const line = (cells, y, weight, colour) => cells.forEach((cell, i) => drawCell(sheet, cell, starts[i], y, { size, weight, colour, room: wide[i] * letter }));
  line(heads, top + 24, 650, theme.soft);
  sheet.fill(SHEET.side, top + 46, SHEET.width - 2 * SHEET.side, 2, theme.line);
  shown.forEach((cells, i) => line(cells, top + 24 + step * (i + 1), 400, theme.ink));
  if (shown.length < total) sheet.write(`and ${grouped(total - shown.length)} more`, SHEET.side, top + 24 + step * (shown.length + 1), { size, colour: theme.soft });
}

/** Letters that a bar takes in a cell. */
const BAR = 12;

function lengthOf(cell) {
  return typeof cell === "string" ? cell.length : cell.text.length + BAR;
}

function drawCell(sheet, cell, x, y, style) {
  const { text, bar } = typeof cell === "string" ? { text: cell } : cell;
  const wide = bar ? LETTER * style.size * BAR : 0;
  sheet.write(text, x, y, { ...style, room: style.room - wide });
  if (bar) sheet.bar(x + style.room - wide + 8, y, wide - 8, bar);
}
