// One card for each sentence: constraints, drawings, classes.

import { find, make, percent, signed } from "/dom.js";
import { described } from "/state.js";

/** The card of a sentence. `actions` has `select(arc or word, element)`, `release(constraint)`, `save(panel)`. */
export function card(sentence, index, page, actions) {
  const held = page.constraints.filter((one) => one.sentence === index);
  const pair = sentence.answers.length === 2;
  const panels = sentence.answers.map((answer, k) => {
    const svg = pair && sentence.compare ? sentence.compare[["first", "second"][k]] : answer.svg;
    return panel(answer, svg, { index, k, page, actions });
  });
  if (pair && page.overlay && sentence.compare) {
    for (const one of panels) one.querySelectorAll(".drawing, .save").forEach((part) => part.remove());
    const telling = panels.filter((one) => one.querySelector(".classes, .ignored"));
    panels.splice(0, 2, overlay(sentence, { index, page, actions }), ...telling);
  }
  const whole = make("article", { class: "sentence", "data-sentence": index, "aria-label": sentence.forms.join(" ") },
    held.length ? chips(held, actions) : null,
    make("div", { class: pair ? "panels pair" : "panels" }, ...panels));
  return whole;
}

function overlay(sentence, context) {
  const names = sentence.answers.map((answer) => answer.system);
  const one = make("section", { class: "panel both" },
    make("header", {}, make("h3", {}, `${names[1]} over ${names[0]}`), saver(context.index, "both", context.actions)),
    drawing(sentence.compare.both, sentence.answers[1], context));
  return one;
}

function panel(answer, svg, context) {
  const about = context.page.systems.find((system) => system.name === answer.system);
  const gives = about.gives.map((name) => about.called[name] ?? name).join(", ") || "nothing";
  return make("section", { class: "panel", "data-system": answer.system },
    make("header", {},
      make("h3", {}, answer.system, make("small", {}, `${about.system} · ${gives}`)),
      saver(context.index, context.k, context.actions)),
    drawing(svg, answer, context),
    answer.probabilities ? classes(answer, about) : null,
    ...notes(answer, about),
    passed(answer, about, context.page),
    answer.ignored.length ? make("p", { class: "ignored" }, "Some of the constraints mean nothing to this system and are not used here.") : null,
    about.tagger ? null : make("p", { class: "ignored" }, "This system was trained with tags from files and has no tagger, so it reads text without tags."));
}

/** A line for each annotation that says something about the whole sentence, under a name of its own. */
function notes(answer, about) {
  const said = Object.entries(answer.annotations).filter(([, one]) => one.note);
  return said.map(([name, one]) => {
    const sure = one.probabilities ? Math.max(...Object.values(one.probabilities)) : null;
    const before = answer.free?.annotations?.[name]?.note;
    const changed = before && before !== one.note ? ` (without constraints: ${before})` : "";
    return make("p", { class: "said", "data-annotation": name }, `${one.note}${sure === null ? "" : `, ${percent(sure)}`}${changed}`);
  });
}

/** What passed each wire: the structure that one stage found and the next one read. */
function passed(answer, about, page) {
  const wires = about.wires.filter((wire) => answer.passed?.[wire.name]);
  if (!wires.length) return null;
  const part = (wire) => {
    const holder = make("div", { class: "picture" });
    holder.innerHTML = answer.passed[wire.name]; // see `drawing`
    const mixed = wire.hard ? "" : "; the reader sees a mixture, of which this is the best one";
    return make("div", { class: "wire", "data-wire": wire.name },
      make("h4", {}, wire.name.replace("->", "→"), make("small", {}, `${wire.noun} · ${wire.estimator}${mixed}`)), holder);
  };
  const inside = make("div", {});
  const toggle = (event) => {
    page.unfolded = event.target.open; // and stays so while the text is edited
    inside.replaceChildren(...(page.unfolded ? wires.map(part) : []));
  };
  return make("details", { class: "passed", open: page.unfolded, ontoggle: toggle },
    make("summary", {}, `What passed the wire${wires.length > 1 ? "s" : ""}`), inside);
}

function saver(index, which, actions) {
  return make("button", { type: "button", class: "save", onclick: () => actions.save(index, which) }, "Save SVG");
}

function drawing(svg, answer, { index, page, actions }) {
  const holder = make("div", { class: "drawing" });
  holder.innerHTML = svg; // words and labels in it were escaped by the server; scripts cannot run under the page's policy
  for (const arc of holder.querySelectorAll(".arc")) {
    const what = arcOf(arc, index);
    arc.setAttribute("role", "button");
    arc.setAttribute("tabindex", "0");
    arc.setAttribute("aria-haspopup", "dialog");
    onSelect(arc, () => actions.selectArc(what, answer, arc));
  }
  for (const word of holder.querySelectorAll(".word")) {
    const place = Number(word.dataset.word);
    if (!(place > 0)) continue;
    word.setAttribute("tabindex", "0");
    word.setAttribute("role", "button");
    word.setAttribute("aria-haspopup", "dialog");
    onSelect(word, () => actions.selectWord(index, place, answer, word));
  }
  return holder;
}

function onSelect(element, action) {
  element.addEventListener("click", (event) => {
    event.stopPropagation();
    action();
  });
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    action();
  });
}

/** The arc that an element draws. */
export function arcOf(element, sentence) {
  const { side, start, end, label } = element.dataset;
  const isTop = side !== "below" && start === "0";
  return { sentence, side, start: Number(start), end: Number(end), role: side !== "below" && !isTop ? label ?? "" : "" };
}

/** All that is forced, and all that is forbidden, whether the drawing has it or not. */
function chips(held, actions) {
  const rows = [["forced", true], ["forbidden", false]].map(([name, force]) => {
    const mine = held.filter((one) => one.force === force);
    if (!mine.length) return null;
    const list = make("ul", { "aria-label": name }, ...mine.map((one) => make("li", {}, chip(one, name, actions))));
    return make("div", { class: `held ${name}` }, make("h4", {}, name[0].toUpperCase() + name.slice(1)), list);
  });
  const all = held.length > 1 ? make("button", { type: "button", class: "all", onclick: () => actions.releaseAll(held) }, "Release all") : null;
  return make("div", { class: "chips", role: "group", "aria-label": "Constraints" }, ...rows, all);
}

function chip(one, name, actions) {
  const attributes = { type: "button", class: one.force ? "force" : "forbid", "aria-label": `release ${described(one)}`, title: "Release" };
  return make("button", { ...attributes, onclick: () => actions.release(one) },
    find(`#sign-${name}`).content.cloneNode(true),
    make("span", {}, described(one)),
    make("small", {}, one.side === "above" ? "graph" : "tree"),
    make("span", { class: "cross", "aria-hidden": "true" }, "×"));
}

function classes(answer, about) {
  const rows = about.classes.flatMap((label, k) => {
    const share = answer.probabilities[label];
    const before = answer.free?.probabilities?.[label];
    const fill = make("div", { class: "fill" });
    fill.style.width = `${100 * share}%`;
    const bar = make("div", { class: "bar" }, fill);
    if (before !== undefined && before !== null) {
      const mark = make("div", { class: "before", title: `without constraints: ${percent(before)}` });
      mark.style.left = `min(${100 * before}%, calc(100% - 2px))`;
      bar.append(mark);
    }
    const changed = before === undefined || before === null || Math.abs(share - before) < 0.0005 ? null
      : make("span", { class: "change" }, ` ${signed(100 * (share - before))}`);
    return [
      make("span", { class: label === answer.label ? "name best" : "name" }, about.class_names[k]),
      bar,
      make("span", { class: "value" }, percent(share), changed),
    ];
  });
  return make("div", { class: "classes", "data-label": answer.label, role: "group", "aria-label": "Classes" }, ...rows);
}

/** Two drawings of one sentence stand side by side if both fit, and scroll together. */
export function arrange(card) {
  const panels = card.querySelector(".panels");
  const drawings = [...card.querySelectorAll(".drawing")];
  const widest = Math.max(0, ...drawings.map((one) => one.querySelector("svg")?.getBoundingClientRect().width ?? 0));
  panels.style.setProperty("--need", `${Math.ceil(widest) + 8}px`);
  const beside = () => {
    const [first, second] = panels.querySelectorAll(":scope > .panel");
    panels.classList.toggle("beside", Boolean(second) && first.offsetTop === second.offsetTop);
  };
  beside();
  new ResizeObserver(beside).observe(panels);
  for (const one of drawings) {
    one.addEventListener("scroll", () => {
      for (const other of drawings) if (other !== one && other.scrollLeft !== one.scrollLeft) other.scrollLeft = one.scrollLeft;
    });
  }
}
