// The state of the page lives in its address, so that it can be shared and comes back.

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
