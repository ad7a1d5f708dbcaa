// The small menu of an arc or a word.

import { find, make, percent, signed } from "/dom.js";
import { standing, wordsOf } from "/state.js";

const menu = find("#menu");
let opener = null;

/** Close the menu; the focus goes back to what opened it. */
export function closeMenu({ focus = true } = {}) {
  if (menu.hidden) return;
  menu.hidden = true;
  menu.replaceChildren();
  if (focus && opener?.isConnected) opener.focus({ preventScroll: true });
  opener = null;
}

document.addEventListener("click", (event) => {
  if (!menu.contains(event.target)) closeMenu({ focus: false });
});
document.addEventListener("keydown", (event) => {
  if (menu.hidden) return;
  if (event.key === "Escape") closeMenu();
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  if (event.target.tagName === "SELECT") return;
  const items = [...menu.querySelectorAll("button, select")];
  const next = items.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
  items[(next + items.length) % items.length]?.focus();
  event.preventDefault();
});

function open(element, ...children) {
  opener = element;
  menu.replaceChildren(...children.filter(Boolean));
  menu.hidden = false;
  const at = element.getBoundingClientRect();
  const width = menu.offsetWidth;
  const left = Math.max(8, Math.min(at.left + at.width / 2 - width / 2, document.documentElement.clientWidth - width - 8));
  const below = at.bottom + 8 + menu.offsetHeight <= window.innerHeight || at.top < menu.offsetHeight + 8;
  menu.style.left = `${left + window.scrollX}px`;
  menu.style.top = `${(below ? at.bottom + 8 : at.top - 8 - menu.offsetHeight) + window.scrollY}px`;
  find("button, select", menu)?.focus({ preventScroll: true });
}

const button = (name, action, attributes = {}) =>
  make("button", { type: "button", ...attributes, onclick: (event) => { event.stopPropagation(); action(); } }, name);

/** The menu of an arc. `actions` has `force(arc)`, `forbid(arc)`, `release(arc)`, `selectWord`. */
export function arcMenu(arc, answer, element, page, actions) {
  const about = page.systems.find((system) => system.name === answer.system);
  const [from, to] = wordsOf(arc, answer.forms);
  const isTree = arc.side === "below";
  const isTop = !isTree && arc.start === 0;
  const title = isTop ? `top: ${to}` : `${from} → ${to}${arc.role ? `: ${arc.role}` : ""}`;
  const note = (find("title", element)?.textContent ?? "").split("\n").slice(1).join("; "); // its first line is the title
  if (!about.holds[arc.side]) { // it follows a rule, or there are several that might be meant
    open(element, make("h4", { id: "menu-title" }, title), note ? make("p", {}, note) : null, make("p", {}, "Nothing of this structure can be forced or forbidden."), button("Close", closeMenu));
    return;
  }
  const held = standing(page.constraints, arc);
  const row = make("div", { class: "row" },
    held === "force" ? null : button("Force", () => actions.force(arc), { class: "primary", "data-action": "force" }),
    held === "forbid" ? null : button("Forbid", () => actions.forbid(arc), { "data-action": "forbid" }),
    !isTree && !isTop && held !== "forbid" ? button("Forbid in any role", () => actions.forbid({ ...arc, role: "" }), { "data-action": "forbid-all" }) : null,
    held ? button("Release", () => actions.release(arc), { "data-action": "release" }) : null);
  const scored = (answer.scores ?? []).find((one) => one.arc[0] === arc.start && one.arc[1] === arc.end);
  const roles = !isTree && !isTop && scored?.next_roles.length ? [
    make("h5", {}, "Force another role instead (difference of scores)"),
    make("ul", { class: "choices" }, ...scored.next_roles.map((one) => make("li", {}, choice(one.role, null, one.difference, false, () => actions.force({ ...arc, role: one.role }))))),
  ] : [];
  const more = isTree ? button(`Other heads of ${to}`, () => actions.selectWord(arc.sentence, arc.end, answer, element), { "data-action": "heads" }) : null;
  open(element, make("h4", { id: "menu-title" }, title), note ? make("p", {}, note) : null, row, ...roles, more ? make("div", { class: "row" }, more) : null);
}

/** The menu of a word: its next-best heads, and graph arcs to force. */
export function wordMenu(sentence, place, answer, element, page, actions) {
  const about = page.systems.find((system) => system.name === answer.system);
  const form = answer.forms[place - 1];
  const facts = [answer.upos?.[place - 1], answer.tags?.[place - 1], answer.lemmas?.[place - 1]].filter(Boolean).join(" · ");
  const parts = [make("h4", { id: "menu-title" }, form), facts ? make("p", {}, facts) : null];
  const heads = answer.next_heads?.[place - 1] ?? [];
  if (heads.length && about.holds.below) {
    const marginals = heads.some((one) => one.marginal !== null);
    parts.push(make("h5", {}, `Heads, best first: ${marginals ? "marginal, " : ""}difference of scores; select one to force it`));
    parts.push(make("ul", { class: "choices", id: "heads" }, ...heads.map((one) => {
      const arc = { sentence, side: "below", start: one.head, end: place, role: "" };
      const name = `${one.head === 0 ? "root" : answer.forms[one.head - 1]}${one.relation ? ` (${one.relation})` : ""}`;
      const chosen = answer.heads[place - 1] === one.head;
      return make("li", {}, choice(name, one.marginal, one.difference, chosen, () => actions.force(arc), one.head));
    })));
  }
  if (about.holds.above) parts.push(...arcForm(sentence, place, answer, about, actions));
  if (parts.length < 3) parts.push(make("p", {}, "There is nothing to choose here."), button("Close", closeMenu));
  open(element, ...parts);
}

function choice(name, share, gap, chosen, action, head = null) {
  const fill = make("span", { class: "fill" });
  if (share !== null) fill.style.width = `${100 * share}%`;
  const one = button("", action, { class: chosen ? "chosen" : "", "data-head": head, "aria-label": `force ${name}${share === null ? "" : `, marginal ${percent(share)}`}` });
  one.append(make("span", { class: "name" }, chosen ? `${name} ✓` : name),
    make("span", { class: "share" }, share === null ? "" : percent(share)),
    make("span", { class: "gap" }, signed(gap)), fill);
  return one;
}

function arcForm(sentence, place, answer, about, actions) {
  const other = make("select", { "aria-label": "the other word" }, make("option", { value: 0 }, "root (a top)"), ...answer.forms.flatMap((form, k) =>
    k + 1 === place ? [] : [make("option", { value: k + 1 }, form)]));
  const way = make("select", { "aria-label": "direction" }, make("option", { value: "out" }, "→"), make("option", { value: "in" }, "←"));
  const role = make("select", { "aria-label": "role" }, make("option", { value: "" }, "any role"),
    ...about.roles.filter((name) => name !== "TOP").map((name) => make("option", { value: name }, name)));
  const go = () => {
    const there = Number(other.value);
    if (there === 0) return actions.force({ sentence, side: "above", start: 0, end: place, role: "" });
    const [start, end] = way.value === "out" ? [place, there] : [there, place];
    return actions.force({ sentence, side: "above", start, end, role: role.value });
  };
  other.value = String(place > 1 ? place - 1 : place + 1);
  return [make("h5", {}, "Force a graph arc"), make("div", { class: "row" }, way, other, role, button("Force", go, { "data-action": "force-arc" }))];
}
