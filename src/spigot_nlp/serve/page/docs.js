// The description of the interface as a page, on which it can be tried.

import { fetched } from "/client.js";
import { find, make } from "/dom.js";

const named = (reference) => reference.split("/").at(-1);

/** A type in words, with links to what has a name. */
function type(schema) {
  if (schema.$ref) return [make("a", { href: `#${named(schema.$ref)}` }, named(schema.$ref))];
  if (schema.anyOf) return schema.anyOf.flatMap((one, k) => [...(k ? [" or "] : []), ...type(one)]);
  if (schema.enum) return [schema.enum.map((one) => JSON.stringify(one)).join(" or ")];
  if (schema.const !== undefined) return [JSON.stringify(schema.const)];
  if (schema.prefixItems) return ["[", ...schema.prefixItems.flatMap((one, k) => [...(k ? [", "] : []), ...type(one)]), "]"];
  if (schema.type === "array") return ["list of ", ...type(schema.items ?? {})];
  if (schema.type === "object" && schema.additionalProperties) return ["object of ", ...type(schema.additionalProperties)];
  return [schema.type ?? "anything"];
}

function fields(schema) {
  const rows = Object.entries(schema.properties ?? {}).map(([name, one]) => make("tr", {},
    make("th", { scope: "row" }, make("code", {}, name)),
    make("td", {}, ...type(one), (schema.required ?? []).includes(name) ? "" : ", optional"),
    make("td", {}, one.description ?? "")));
  return make("table", {}, make("tbody", {}, ...rows));
}

/** A form that sends a request as the page describes it, and shows what comes back. */
function attempt(path, method, example) {
  const body = example === undefined ? null : make("textarea", { rows: 5, spellcheck: "false", "aria-label": "Body" });
  if (body) body.value = JSON.stringify(example, null, 2);
  const answer = make("pre", { hidden: true, tabindex: 0, role: "status" });
  const send = async (event) => {
    event.preventDefault();
    const started = performance.now();
    const options = body ? { body: body.value, headers: { "Content-Type": "application/json" } } : {};
    try {
      const response = await fetched(path, { method: method.toUpperCase(), ...options });
      let text = await response.text();
      try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { /* then it is no JSON */ }
      answer.textContent = `${response.status}, ${Math.round(performance.now() - started)} ms\n${text}`;
    } catch {
      answer.textContent = "The server does not answer; is spigot serve still running?";
    }
    answer.hidden = false;
  };
  return make("form", { onsubmit: send }, body, make("div", { class: "row" }, make("button", { type: "submit" }, "Send")), answer);
}

function operation(path, method, one, schemas) {
  const asked = one.requestBody?.content["application/json"].schema;
  const example = asked ? schemas[named(asked.$ref)].examples?.[0] ?? {} : undefined;
  const answers = Object.entries(one.responses).map(([code, found]) => {
    const schema = Object.values(found.content ?? {})[0]?.schema ?? {};
    return make("li", {}, make("b", {}, code), ` ${found.description} `, ...type(schema));
  });
  return make("section", { class: "sentence", "data-path": path },
    make("h2", {}, make("code", {}, `${method.toUpperCase()} ${path}`), ` ${one.summary}`),
    one.description ? make("p", {}, one.description) : null,
    one.security ? make("p", { class: "note" }, "It needs the token of this server: Authorization: Bearer TOKEN.") : null,
    asked ? make("p", {}, "Send ", ...type(asked), ":") : null,
    asked ? fields(schemas[named(asked.$ref)]) : null,
    make("ul", {}, ...answers),
    attempt(path, method, example));
}

async function start() {
  const response = await fetch("/openapi.json");
  const described = await response.json(), schemas = described.components.schemas;
  find("#about").textContent = `${described.info.title} ${described.info.version}. ${described.info.description}`;
  find("#operations").replaceChildren(...Object.entries(described.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => operation(path, method, one, schemas))));
  find("#schemas").replaceChildren(...Object.entries(schemas).map(([name, schema]) =>
    make("section", { class: "sentence", id: name }, make("h3", {}, name), make("p", {}, schema.description ?? ""), fields(schema))));
  document.documentElement.dataset.ready = "true";
}

start().catch((error) => {
  find("#error").textContent = error.message;
  find("#error").hidden = false;
});
