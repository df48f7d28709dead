// SPDX-License-Identifier: Apache-2.0
/** Small helpers to build pages from text: foreign text only ever becomes text nodes. */

const SVG_SPACE = "http://www.w3.org/2000/svg";

/**
 * Make an HTML element.
 * @param {string} tag
 * @param {Object} [props] attributes; `text` sets the text, `on` adds listeners, booleans toggle
 * @param {...(Node|string|null)} children
 * @returns {any} an element of that tag
 */
export function el(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/**
 * Make an SVG element.
 * @param {string} tag
 * @param {Object} [props]
 * @param {...(Node|string|null)} children
 * @returns {SVGElement}
 */
export function svgEl(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG_SPACE, tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) setProp(node, name, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function setProp(node, name, value) {
  if (name === "text") node.textContent = value;
  else if (name === "on") for (const [kind, call] of Object.entries(value)) node.addEventListener(kind, call);
  else if (name === "value" || name === "checked" || name === "disabled" || name === "selected") node[name] = value;
  else if (value === true) node.setAttribute(name, "");
  else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
}

/** Find the one element of an id, whatever its tag.
 *  @returns {any} */
export function byId(id) {
  return document.getElementById(id);
}

/** Put these children, and nothing else, into a node. */
export function refill(node, ...children) {
  node.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
}

/** The same, and who had the focus inside has it again: the one of the same name. */
export function renew(node, ...children) {
  const held = node.contains(document.activeElement) ? nameOf(document.activeElement) : "";
  refill(node, ...children);
  if (held) [...node.querySelectorAll("button, input")].find((each) => nameOf(each) === held)?.focus({ preventScroll: true });
}

function nameOf(element) {
  return element.dataset.id ?? element.getAttribute("aria-label") ?? element.textContent;
}

/** Move a node to a place of its parent, in CSS pixels. */
export function place(node, x, y) {
  node.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
}

/** Whether the viewer asked for little motion. */
export function calmMotion() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
