// The interface of the server. A newer question makes the older one stale.

import { fetched } from "/token.js";

export class Stale extends Error {}

let controller = null;

async function answer(response) {
  let body = null;
  try {
    body = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
  }
  if (!response.ok || body === null) throw new Error(body?.error ?? `the server answered ${response.status}.`);
  return body;
}

/** What systems there are. */
export async function systems() {
  return answer(await fetched("/api/systems"));
}

/** Parse; throws `Stale` if another question has been asked since. */
export async function parse(question, { replace = true } = {}) {
  if (replace) controller?.abort();
  const mine = new AbortController();
  if (replace) controller = mine;
  try {
    const response = await fetched("/api/parse", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(question),
      signal: mine.signal,
    });
    return await answer(response);
  } catch (error) {
    if (error.name === "AbortError") throw new Stale();
    if (error instanceof TypeError) throw new Error("the server does not answer; is spigot serve still running?");
    throw error;
  }
}
