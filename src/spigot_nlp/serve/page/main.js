// What happens when: typing, choosing, forcing, sharing.

import { arrange, card } from "/cards.js";
import { parse, Stale, systems } from "/client.js";
import { debounced, find, make } from "/dom.js";
import { arcMenu, closeMenu, wordMenu } from "/menu.js";
import { added, asRequest, readState, released, removed, surviving, wordsOf, writeState } from "/state.js";

const page = { ...readState(location.hash), systems: [], answer: null };
const text = find("#text"), first = find("#first"), second = find("#second"), overlay = find("#overlay");
let ticket = 0; // of the newest question
let wanted = null; // what to focus after the next drawing

function save() {
  history.replaceState(null, "", writeState(page));
}

function show(element, message) {
  element.textContent = message;
  element.hidden = !message;
}

/** Ask for everything that is on the page. After an edit, constraints stay whose words are still where they were. */
async function ask({ edited = false } = {}) {
  const mine = ++ticket;
  closeMenu({ focus: false });
  save();
  const busy = find("#busy");
  if (!page.text.trim()) {
    page.answer = null;
    page.constraints = [];
    show(find("#error"), "");
    busy.textContent = "";
    save();
    draw();
    return;
  }
  const started = performance.now();
  const late = setTimeout(() => { if (mine === ticket) busy.textContent = "parsing…"; }, 250);
  try {
    let answer = null;
    if (edited && page.constraints.length) {
      answer = await parse(question([]));
      if (mine !== ticket) return;
      page.constraints = surviving(page.constraints, answer.sentences);
      save();
    }
    if (answer === null || page.constraints.length) answer = await parse(question(page.constraints));
    if (mine !== ticket) return;
    page.answer = answer;
    show(find("#error"), "");
    find("#sentences").classList.remove("stale");
    busy.textContent = `${Math.round(performance.now() - started)} ms`;
    draw();
  } catch (error) {
    if (error instanceof Stale || mine !== ticket) return;
    busy.textContent = "";
    show(find("#error"), error.message[0].toUpperCase() + error.message.slice(1));
    await drawWithout(mine);
  } finally {
    clearTimeout(late);
  }
}

/** Constraints that cannot be met stay on the page, over the answer without them, to be taken back. */
async function drawWithout(mine) {
  try {
    if (page.constraints.length) page.answer = await parse(question([]));
  } catch {
    // Then it was not for the constraints; the last answer stays.
  }
  if (mine !== ticket) return;
  find("#sentences").classList.add("stale");
  draw();
}

function question(constraints, more = {}) {
  const names = [page.first, ...(page.second ? [page.second] : [])];
  return { text: page.text, systems: names, constraints: asRequest(constraints), draw: true, ...more };
}

function draw() {
  const cards = (page.answer?.sentences ?? []).map((sentence, k) => card(sentence, k, page, actions));
  find("#sentences").replaceChildren(...cards);
  const several = (page.answer?.out_of_vocabulary ?? []).length > 1;
  const notes = (page.answer?.out_of_vocabulary ?? []).filter((one) => one.note);
  show(find("#unknown"), notes.map((one) => (several ? `${one.system}: ` : "") + one.note).join(" "));
  cards.forEach(arrange);
  if (wanted) {
    const place = find(wanted.arc, find("#sentences")) ?? cards[wanted.sentence];
    if (place && !place.hasAttribute("tabindex")) place.setAttribute("tabindex", "-1");
    place?.focus({ preventScroll: true });
  }
  wanted = null;
  const pair = page.systems.length > 1 && page.second;
  find("#overlay-label").hidden = !pair;
}

/** What to look at after a change: the arc, or else the card of its sentence. */
function sought({ sentence, side, start, end }) {
  return { sentence, arc: `[data-sentence="${sentence}"] .arc[data-side="${side}"][data-start="${start}"][data-end="${end}"]` };
}

function constrain(arc, force) {
  const forms = page.answer.sentences[arc.sentence].forms;
  page.constraints = added(page.constraints, { ...arc, force, words: wordsOf(arc, forms) });
  wanted = sought(arc);
  ask();
}

const actions = {
  selectArc: (arc, answer, element) => arcMenu(arc, answer, element, page, actions),
  selectWord: (sentence, place, answer, element) => wordMenu(sentence, place, answer, element, page, actions),
  force: (arc) => constrain(arc, true),
  forbid: (arc) => constrain(arc, false),
  release: (arc) => {
    wanted = sought(arc);
    page.constraints = "force" in arc ? removed(page.constraints, arc) : released(page.constraints, arc);
    ask();
  },
  releaseAll: (held) => {
    if (held.length) wanted = sought(held[0]);
    page.constraints = page.constraints.filter((one) => !held.includes(one));
    ask();
  },
  save: saveDrawing,
};

/** Fetch the drawing as a file of its own, which looks the same anywhere. */
async function saveDrawing(index, which) {
  try {
    const answer = await parse(question(page.constraints, { draw: "file" }), { replace: false });
    const sentence = answer.sentences[index];
    const svg = sentence.compare ? sentence.compare[["first", "second"][which] ?? which] : sentence.answers[which].svg;
    const link = make("a", { href: URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" })), download: `sentence-${index + 1}.svg` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  } catch (error) {
    if (!(error instanceof Stale)) show(find("#error"), error.message);
  }
}

function fill() {
  text.value = page.text;
  first.value = page.first;
  second.value = page.second;
  overlay.checked = page.overlay;
  offer();
}

/** Take the state from the address. Whoever comes without one sees an example at once, and two systems compared. */
function arrive() {
  const names = page.systems.map((system) => system.name);
  const fresh = !location.hash.replace("#", "");
  Object.assign(page, readState(location.hash));
  if (!names.includes(page.first)) page.first = names[0];
  if (fresh) page.second = names[1] ?? "";
  if (!names.includes(page.second) || page.second === page.first) page.second = "";
  if (!page.text.trim()) page.text = examples()[0] ?? "";
  fill();
}

const examples = () => page.systems.find((system) => system.name === page.first)?.examples ?? [];

function offer() {
  find("#examples").replaceChildren(...examples().map((example) => make("button", { type: "button", onclick: () => {
    page.text = text.value = example;
    page.constraints = [];
    ask();
  } }, example)));
}

const option = (value, name) => make("option", { value }, name);

async function start() {
  try {
    page.systems = (await systems()).systems;
  } catch (error) {
    show(find("#error"), error.message);
    return;
  }
  const names = page.systems.map((system) => system.name);
  first.replaceChildren(...names.map((name) => option(name, name)));
  second.replaceChildren(option("", "nothing"), ...names.map((name) => option(name, name)));
  find("#with").hidden = names.length < 2;
  const edit = debounced(() => ask({ edited: true }), 150);
  text.addEventListener("input", () => {
    page.text = text.value;
    edit();
  });
  first.addEventListener("change", () => {
    if (first.value === page.second) page.second = page.first; // swap
    page.first = first.value;
    fill();
    ask({ edited: true }); // it may cut words in another way
  });
  second.addEventListener("change", () => {
    page.second = second.value === page.first ? "" : second.value;
    fill();
    ask();
  });
  overlay.addEventListener("change", () => {
    page.overlay = overlay.checked;
    save();
    draw();
  });
  find("#ask").addEventListener("submit", (event) => event.preventDefault());
  find("#share").addEventListener("click", share);
  window.addEventListener("hashchange", () => {
    arrive();
    ask();
  });
  arrive();
  await ask();
  document.documentElement.dataset.ready = "true";
}

async function share() {
  save();
  try {
    await navigator.clipboard.writeText(location.href);
    show(find("#notice"), "The link to this view is in the clipboard.");
  } catch {
    show(find("#notice"), "The address of this page is the link to this view; copy it from there.");
  }
  setTimeout(() => show(find("#notice"), ""), 4000);
}

start();
