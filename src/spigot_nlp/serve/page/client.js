// The interface of the server, and the token that it may ask for. A newer question makes the older one stale.

import { find, make } from "/dom.js";

export class Stale extends Error {}

const TOKEN = "spigot-token"; // it stays with this tab, and in no address
let controller = null;
let asking = null;

/** Ask the reader for the token, once for all that wait. */
function askToken() {
  asking ??= new Promise((resolve) => {
    const wrong = sessionStorage.getItem(TOKEN) !== null;
    const field = make("input", { type: "password", id: "token-field", required: true, pattern: "[!-~]+", autocomplete: "off" });
    const use = (event) => {
      event.preventDefault();
      sessionStorage.setItem(TOKEN, field.value.trim());
      form.remove();
      asking = null;
      resolve();
    };
    const form = make("form", { id: "token", autocomplete: "off", onsubmit: use },
      make("label", { for: "token-field" }, "This server answers those who have its token"),
      make("div", { class: "row" }, field, make("button", { type: "submit" }, "Use it")),
      wrong ? make("p", { class: "trouble", role: "alert" }, "That was not the token.") : null);
    find("main > header").after(form);
    field.focus();
  });
  return asking;
}

/** Fetch something, with the token if one is wanted. */
export async function fetched(path, { headers = {}, ...options } = {}) {
  for (;;) {
    const token = sessionStorage.getItem(TOKEN);
    const response = await fetch(path, { ...options, headers: { ...headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) } });
    if (response.status !== 401) return response;
    await askToken();
  }
}

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
