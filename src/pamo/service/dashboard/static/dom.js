// Elements made from values. Text is always text: nothing here, and nothing that uses it, parses markup.

const SVG = "http://www.w3.org/2000/svg";

/** Where the paths of this project begin: nothing, unless it is one of several. */
export const base = document.documentElement.dataset.base ?? "";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.setAttribute("class", value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** An HTML element: el("p", {class: "lead"}, "text", node). Attributes that begin with "on" are listeners. */
export function el(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element, likewise. */
export function svg(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** The name of a user or an arm: isolated, so that its direction of writing stays its own, and cut where it is too long. */
export function name(text, more = "") {
  return el("bdi", { class: `name ${more}`.trim(), title: text.length > 24 ? text : null }, text);
}

/** An arm: its name, and its id where that is another. */
export function armName(id, given) {
  if (!given || given === id) return name(id);
  return el("span", { class: "named" }, name(given), " ", name(id, "id"));
}

/** A link to a user; ids that a browser would take for a folder are not linked. */
export function userLink(id) {
  if (id === null) return el("span", { class: "soft" }, "erased");
  if (id === "." || id === "..") return name(id);
  return el("a", { href: `${base}/users/${encodeURIComponent(id)}` }, name(id));
}

let count = 0;

/** An id that no other element has. */
export function fresh(prefix) {
  count += 1;
  return `${prefix}-${count}`;
}

/** Replaces what is in a node. */
export function fill(node, ...children) {
  node.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}
