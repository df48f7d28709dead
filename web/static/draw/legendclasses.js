// SPDX-License-Identifier: Apache-2.0
/** What a legend lists. */

/** Classes with a line of their own: those that a node has, and that are no step of a ramp. */
export function usedClasses({ classes, ramp }) {
  return classes.filter((kind) => kind.count > 0 && !(ramp && kind.label === ""));
}

/** The line of places without a node; null where there are none. */
export function vacantClass(scene, theme) {
  const count = scene.vacant.x.length;
  return count ? { label: "vacant place", colour: theme.vacant, hatch: 0, shape: 0, count } : null;
}
