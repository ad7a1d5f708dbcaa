// Elements from values. Text is always set as text, never as markup.

/** An element with attributes, listeners (`onclick`) and children. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const find = (selector, within = document) => within.querySelector(selector);

/** A share in per cent. */
export const percent = (share) => `${(100 * share).toFixed(1)} %`;

/** A difference with its sign. */
export const signed = (value) => (value === null ? "" : `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`);

/** Run `action` once it has not been asked for during so many milliseconds. */
export function debounced(action, milliseconds) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, milliseconds);
  };
}
