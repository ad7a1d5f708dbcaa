// The state of the page, and of it what must and must not be in the structures. It lives in the address of the page, so
// that it can be shared and comes back.
//
// A constraint is { sentence, side: "below" | "above", start, end, role, force, words }: the tree is below the words,
// the graph above; `words` are the two words it was made for, so that it can be dropped when the text changes.

const SIDES = ["below", "above"];

/** The state that an address stands for; whatever is wrong in it is left out. */
export function readState(fragment) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  return {
    text: given.get("text") ?? "",
    first: given.get("system") ?? "",
    second: given.get("with") ?? "",
    overlay: given.get("view") === "one",
    constraints: readConstraints(given.get("c")),
  };
}

/** The address of a state. */
export function writeState(state) {
  const made = new URLSearchParams();
  if (state.text) made.set("text", state.text);
  if (state.first) made.set("system", state.first);
  if (state.second) made.set("with", state.second);
  if (state.overlay) made.set("view", "one");
  if (state.constraints.length) {
    const rows = state.constraints.map((one) => [one.sentence, SIDES.indexOf(one.side), one.force ? 1 : 0, one.start, one.end, one.role, ...one.words]);
    made.set("c", JSON.stringify(rows));
  }
  const text = made.toString();
  return text ? `#${text}` : "#";
}

function readConstraints(text) {
  let rows = [];
  try {
    rows = JSON.parse(text ?? "[]");
  } catch {
    return [];
  }
  if (!Array.isArray(rows)) return [];
  const isCount = (value) => Number.isInteger(value) && value >= 0 && value < 1000;
  return rows
    .filter((row) => Array.isArray(row) && row.length === 8 && row.slice(0, 5).every(isCount) && row.slice(5).every((word) => typeof word === "string"))
    .map(([sentence, side, force, start, end, role, from, to]) => ({
      sentence, side: SIDES[side] ?? "below", force: force === 1, start, end, role, words: [from, to],
    }));
}

const same = (a, b) => a.sentence === b.sentence && a.side === b.side && a.start === b.start && a.end === b.end;
const isExactly = (a, b) => same(a, b) && a.role === b.role;

/** The list with one more, without what contradicts it or says the same. */
export function added(list, one) {
  const rivals = (other) => {
    if (same(other, one)) {
      if (one.force) return other.force || other.role === "" || other.role === one.role; // one role for two words
      return one.role === "" || other.role === one.role;
    }
    const sameWord = other.sentence === one.sentence && other.side === one.side && other.end === one.end;
    return sameWord && one.side === "below" && one.force && other.force; // one head for a word
  };
  return [...list.filter((other) => !rivals(other)), one];
}

/** The list without one. */
export const removed = (list, one) => list.filter((other) => !isExactly(other, one));

/** What holds for an arc: "force", "forbid" or "". */
export function standing(list, arc) {
  const found = list.find((one) => same(one, arc) && (one.role === arc.role || one.role === "" || arc.role === ""));
  return found ? (found.force ? "force" : "forbid") : "";
}

/** The list without all that holds for an arc. */
export const released = (list, arc) => list.filter((one) => !(same(one, arc) && (one.role === arc.role || one.role === "" || arc.role === "")));

/** Those whose words are still where they were. */
export function surviving(list, sentences) {
  return list.filter((one) => {
    const forms = sentences[one.sentence]?.forms ?? [];
    return wordsOf(one, forms).join("\n") === one.words.join("\n");
  });
}

/** The words of an arc; 0 is the root. */
export const wordsOf = (arc, forms) => [arc.start, arc.end].map((place) => (place === 0 ? "root" : forms[place - 1] ?? ""));

/** As the interface wants them: one object for each sentence. */
export function asRequest(list) {
  if (list.length === 0) return undefined;
  const count = 1 + Math.max(...list.map((one) => one.sentence));
  return Array.from({ length: count }, (_, k) => {
    const mine = list.filter((one) => one.sentence === k);
    const heads = (force) => mine.filter((one) => one.side === "below" && one.force === force).map((one) => [one.end, one.start]);
    const arcs = (force) => mine.filter((one) => one.side === "above" && one.force === force).map((one) => [one.start, one.end, one.role]);
    return mine.length ? { heads: heads(true), not_heads: heads(false), arcs: arcs(true), not_arcs: arcs(false) } : null;
  });
}

/** What a chip says. */
export function described(one) {
  const [from, to] = one.words;
  if (one.side === "above" && one.start === 0) return `top: ${to}`;
  const role = one.role ? `: ${one.role}` : one.side === "above" ? (one.force ? ": any role" : ": in no role") : "";
  return `${from} → ${to}${role}`;
}
