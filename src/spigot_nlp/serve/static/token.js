// The token that a server may ask for. It stays with this tab, and in no address.

import { find } from "/dom.js";

const NAME = "spigot-token";
let asking = null;

/** What to send along. */
export function authorisation() {
  const token = sessionStorage.getItem(NAME);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

/** Ask the reader, once for all that wait. */
function askToken() {
  asking ??= new Promise((resolve) => {
    const form = find("#token"), field = find("#token input");
    find("#token .trouble").hidden = !sessionStorage.getItem(NAME);
    form.hidden = false;
    field.focus();
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      sessionStorage.setItem(NAME, field.value.trim());
      field.value = "";
      form.hidden = true;
      asking = null;
      resolve();
    }, { once: true });
  });
  return asking;
}

/** Fetch something, with the token if one is wanted. */
export async function fetched(path, { headers = {}, ...options } = {}) {
  for (;;) {
    const response = await fetch(path, { ...options, headers: { ...headers, ...authorisation() } });
    if (response.status !== 401) return response;
    await askToken();
  }
}
