// The view, the state of the connection, and the key.

import { access, events, key, may, restriction, setKey } from "./api.js";
import { setText } from "./dom.js";
import { createView } from "./create.js";
import { experimentsView } from "./experiments.js";
import { labelView } from "./label.js";

const view = document.getElementById("view");
const status = document.getElementById("status");
const statusText = document.getElementById("status-text");
const keyForm = document.getElementById("key-form");
const keyInput = document.getElementById("key");
const keyForget = document.getElementById("key-forget");
const keyNote = document.getElementById("key-note");

let leave = () => {};
let reachable = null; // null: not known yet; "key": a key is required

function route() {
  const [name, ...rest] = location.hash.slice(1).split("/");
  const argument = rest.length ? decoded(rest.join("/")) : null;
  return [name === "new" || name === "label" ? name : "experiments", argument];
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // an address typed by hand: the view reports that there is no such experiment
  }
}

function show(first) {
  access().catch(() => {}); // for the note on the permissions of the key; a view reports its own errors
  const [name, argument] = route();
  leave();
  view.replaceChildren();
  const views = { experiments: experimentsView, new: createView, label: labelView };
  leave = views[name](view, argument) ?? (() => {});
  for (const link of document.querySelectorAll("nav [data-route]")) {
    const here = link.dataset.route === (name === "new" ? "experiments" : name);
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const title = name === "new" ? "New experiment" : name === "label" ? "Label answers" : argument ?? `${name[0].toUpperCase()}${name.slice(1)}`;
  document.title = `${title} · decoupled`;
  if (!first) {
    // A view may have set the focus already.
    if (!view.contains(document.activeElement)) view.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

function showStatus() {
  const state = reachable === "key" ? "key" : reachable === false ? "lost" : document.hidden ? "paused" : reachable ? "live" : "wait";
  status.dataset.state = state;
  setText(statusText, { key: "Key required", lost: "Unreachable", paused: "Paused", live: "Live", wait: "Connecting" }[state]);
  keyForm.hidden = state !== "key";
  keyForget.hidden = !key();
  setText(keyNote, restriction());
  keyNote.hidden = keyNote.textContent === "";
}

const known = (value) => () => {
  if (reachable === value) return;
  reachable = value;
  showStatus();
};
events.addEventListener("answered", known(true));
events.addEventListener("unreachable", known(false));
events.addEventListener("unauthorised", known("key"));
events.addEventListener("access", () => {
  showStatus();
  if (may("label") && !may("read") && route()[0] !== "label") location.hash = "#label"; // there is nothing else for it
});
events.addEventListener("key", () => {
  reachable = null;
  showStatus();
  show(false);
});
document.addEventListener("visibilitychange", showStatus);

keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  const value = keyInput.value.trim();
  keyInput.value = "";
  setKey(value);
});
keyForget.addEventListener("click", () => setKey(null));

// The router would take the link's target for a view.
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  view.focus();
});
addEventListener("hashchange", () => show(false));
showStatus();
show(true);
