// The reference of the API, from its OpenAPI document: every operation, with a form to try it.

import { access, ask, events, key, restriction, setKey } from "./api.js";
import { el, setText } from "./dom.js";
import { inline, paragraphs, reader } from "./schema.js";
import { tryOut } from "./tryout.js";

const METHODS = ["get", "post", "put", "patch", "delete"];
const view = document.getElementById("view");
const keyForm = document.getElementById("key-form");
const keyNote = document.getElementById("key-note");

function operationsOf(found) {
  return Object.entries(found.paths).flatMap(([path, operations]) =>
    METHODS.filter((method) => operations[method]).map((method) => {
      const described = operations[method];
      return {
        path, described, method: method.toUpperCase(),
        id: `${method}${path.replace(/[^a-z0-9]+/gi, "-")}`.replace(/-$/, ""),
        tag: described.tags?.[0] ?? "other",
        body: described.requestBody?.content?.["application/json"]?.schema,
        parameters: described.parameters ?? [],
      };
    }));
}

function responses({ described }, read) {
  return Object.entries(described.responses).map(([status, each]) => {
    const [kind, media] = Object.entries(each.content ?? {})[0] ?? [];
    const good = status.startsWith("2") && media;
    return el("li", {},
      el("div", { class: "status-row" }, el("code", {}, status), el("span", {}, ...inline(each.description))),
      good ? el("details", {}, el("summary", {}, kind === "application/json" ? "Fields and example" : kind),
        read.fields(media.schema),
        kind === "application/json"
          ? el("pre", { class: "example", tabindex: 0, role: "region", "aria-label": "Example of an answer" },
            el("code", {}, JSON.stringify(read.example(media.schema), null, 2))) : null) : null);
  });
}

function contentOf(operation, read) {
  const { described, parameters, body, id } = operation;
  return el("div", { class: "op-body" },
    described.description ? el("div", {}, paragraphs(described.description)) : null,
    parameters.length ? el("section", {}, el("h3", {}, "Parameters"), el("ul", { class: "fields" },
      parameters.map((each) => read.line(each.name, { ...each.schema, description: each.description ?? each.schema.description }, each.required)))) : null,
    body ? el("section", {}, el("h3", {}, "Body"), read.fields(body, { asked: true })) : null,
    el("section", {}, el("h3", {}, "Responses"), el("ul", { class: "fields" }, responses(operation, read))),
    tryOut(operation, read, id));
}

function card(operation, read) {
  const { described, method, path, id } = operation;
  const node = el("details", { class: "op", id },
    el("summary", {}, el("span", { class: `method m-${method.toLowerCase()}` }, method),
      el("code", { class: "path" }, path), el("span", { class: "hint" }, ...inline(described.summary))));
  // What nobody opens is not drawn.
  node.addEventListener("toggle", () => {
    if (node.open && node.childElementCount === 1) node.append(contentOf(operation, read));
  });
  return node;
}

const words = ({ method, path, tag, described, body, parameters }, read) => [
  method, path, tag, described.summary, described.description,
  ...parameters.flatMap((each) => [each.name, each.description]), body ? read.fields(body).textContent : "",
].join(" ").toLowerCase();

function draw(found) {
  const read = reader(found);
  const operations = operationsOf(found).map((each) => ({ ...each, words: words(each, read), card: card(each, read) }));
  const tags = [...new Set(operations.map((each) => each.tag))];
  const search = el("input", { type: "search", id: "search", placeholder: "Search", "aria-label": "Search the reference", autocomplete: "off" });
  const count = el("p", { class: "hint", role: "status" });
  const groups = tags.map((tag) => {
    const members = operations.filter((each) => each.tag === tag)
      .sort((one, other) => one.path.localeCompare(other.path)); // which keeps the order of methods
    const links = members.map((each) => el("li", {}, el("a", { href: `docs#${each.id}` },
      el("span", { class: `method m-${each.method.toLowerCase()}` }, each.method), el("span", {}, ...inline(each.described.summary)))));
    return {
      members, links,
      list: el("div", {}, el("p", { class: "group" }, tag), el("ul", { class: "list" }, links)),
      section: el("section", {}, el("h2", { class: "group" }, tag), el("div", { class: "ops" }, members.map((each) => each.card))),
    };
  });

  function filter() {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { members, links, list, section } of groups) {
      members.forEach((each, i) => {
        const hidden = !wanted.every((word) => each.words.includes(word));
        each.card.hidden = links[i].hidden = hidden;
        if (!hidden) shown += 1;
      });
      list.hidden = section.hidden = members.every((each) => each.card.hidden);
    }
    setText(count, wanted.length ? `${shown} of ${operations.length} operations` : "");
  }

  function openChosen() {
    const chosen = document.getElementById(location.hash.slice(1));
    if (!chosen?.classList.contains("op")) return;
    chosen.hidden = false;
    chosen.open = true;
    chosen.scrollIntoView({ block: "start" });
    chosen.querySelector("summary").focus({ preventScroll: true });
  }

  search.addEventListener("input", filter);
  addEventListener("hashchange", openChosen);
  const side = el("aside", { class: "side" }, el("div", { class: "search" }, search, count),
    el("nav", { "aria-label": "Operations" }, el("div", {}, groups.map((each) => each.list))));
  view.replaceChildren(el("div", { class: "split" }, side, el("div", {},
    el("div", { class: "title-row" }, el("h1", {}, "API reference"), el("span", { class: "badge" }, found.info.version)),
    el("div", { class: "about" }, paragraphs(found.info.description)), groups.map((each) => each.section))));
  openChosen();
}

function showKey(needed) {
  keyForm.hidden = !needed;
  document.getElementById("key-forget").hidden = !key();
  setText(keyNote, key() ? restriction() || "Key set" : "");
  keyNote.hidden = keyNote.textContent === "";
}

// Without a key the service may be open to all, as on loopback.
const checkKey = () => access().then(() => showKey(false), (error) => showKey(error.status === 401));

keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  const input = document.getElementById("key");
  setKey(input.value.trim());
  input.value = "";
});
document.getElementById("key-forget").addEventListener("click", () => setKey(null));
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  view.focus();
});
events.addEventListener("key", checkKey);
checkKey();
ask("v1/openapi.json").then(draw, (error) => view.replaceChildren(el("p", { class: "problem" }, error.message)));
