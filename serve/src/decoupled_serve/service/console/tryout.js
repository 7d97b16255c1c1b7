// A form that sends a request of the reference, and shows the answer and the same request for curl.

import { key, newKey } from "./api.js";
import { el, setText } from "./dom.js";

const LONGEST = 100_000; // characters of an answer that are shown
const SHOWN = ["content-type", "retry-after", "etag", "allow", "x-request-id"];

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

async function readable(found, kind) {
  if (!/json|text/.test(kind)) return found.size ? `${found.size.toLocaleString("en-GB")} bytes` : "No body";
  const raw = await found.text();
  try {
    return JSON.stringify(JSON.parse(raw), null, 2);
  } catch {
    return raw; // lines of JSON, CSV or metrics
  }
}

export function tryOut({ method, path, parameters, body }, read, id) {
  const inputs = parameters.map((each) => {
    const schema = read.resolved(each.schema);
    const shown = each.in === "path" ? each.example ?? each.examples?.[0] ?? schema.examples?.[0] ?? "" : "";
    const input = el("input", {
      id: `${id}-${each.name}`, spellcheck: "false", autocomplete: "off", value: shown, required: each.required,
      placeholder: schema.default !== undefined && schema.default !== null ? String(schema.default) : each.required ? null : "left out",
    });
    return { ...each, input };
  });
  const text = body ? JSON.stringify(read.example(body, true), null, 2) : "";
  const area = body ? el("textarea", { id: `${id}-body`, spellcheck: "false" }, text) : null;
  const send = el("button", { type: "submit", class: "primary" }, `Send ${method}`);
  const curl = el("code");
  const status = el("p", { class: "answer-status", role: "status" });
  const headers = el("p", { class: "hint" });
  const content = el("code");
  const answer = el("div", { hidden: true }, el("h3", {}, "Answer"), status, headers,
    el("pre", { class: "example answer", tabindex: 0, role: "region", "aria-label": "Body of the answer" }, content));

  function request() {
    let address = path;
    const query = new URLSearchParams(), sent = {};
    for (const { in: where, name, input } of inputs) {
      if (where === "path") address = address.replace(`{${name}}`, encodeURIComponent(input.value));
      else if (input.value === "") continue;
      else if (where === "query") query.set(name, input.value);
      else if (where === "header") sent[name] = input.value;
    }
    if (area?.value.trim()) sent["Content-Type"] = "application/json";
    const url = new URL(address.slice(1) + (query.size ? `?${query}` : ""), new URL(".", location.href));
    return { url, headers: sent, body: area?.value.trim() || undefined };
  }

  function showCurl() {
    const made = request();
    const options = Object.entries(made.headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`);
    if (key()) options.unshift('-H "Authorization: Bearer $DECOUPLED_KEY"');
    if (made.body) options.push(`-d ${quoted(made.body)}`);
    setText(curl, [`curl -X ${method} ${quoted(made.url.href)}`, ...options].join(" \\\n  "));
  }

  async function submit(event) {
    event.preventDefault();
    send.disabled = true;
    const made = request();
    if (key()) made.headers.Authorization = `Bearer ${key()}`;
    try {
      const response = await fetch(made.url, {
        method, headers: made.headers, body: made.body, credentials: "omit", cache: "no-store",
      });
      await show(response);
    } catch {
      status.dataset.good = "no";
      setText(status, "The service does not respond. Is it running?");
      setText(headers, "");
      setText(content, "");
    }
    answer.hidden = false;
    send.disabled = false;
  }

  async function show(response) {
    const kind = response.headers.get("content-type") ?? "";
    const text = await readable(await response.blob(), kind);
    status.dataset.good = response.ok ? "yes" : "no";
    setText(status, `${response.status} ${response.statusText}`);
    setText(headers, SHOWN.filter((name) => response.headers.has(name)).map((name) => `${name}: ${response.headers.get(name)}`).join(" · "));
    setText(content, text.length > LONGEST ? `${text.slice(0, LONGEST)}\n… and ${(text.length - LONGEST).toLocaleString("en-GB")} more characters` : text);
  }

  for (const each of inputs) {
    if (each.name !== "Idempotency-Key") continue;
    each.input.value = newKey(); // the same request again gives the same decision
  }
  const fields = inputs.map(({ name, in: where, input }) =>
    el("div", { class: "field" }, el("label", { for: input.id }, name, " ", el("span", { class: "hint" }, `in the ${where}`)), input));
  const form = el("form", { class: "form", onsubmit: submit, oninput: showCurl },
    fields.length ? el("div", { class: "two" }, fields) : null,
    area ? el("div", { class: "field" }, el("label", { for: area.id }, "Body"), area) : null,
    el("p", { class: "actions" }, send,
      el("span", { class: "hint" }, method === "GET" ? "It only reads." : "It is a real request to this service.")));
  showCurl();
  return el("section", { class: "try" }, el("h3", {}, "Try it"), form,
    el("details", {}, el("summary", {}, "The same with curl"), el("pre", { class: "example", tabindex: 0, role: "region", "aria-label": "The request for curl" }, curl)),
    answer);
}
