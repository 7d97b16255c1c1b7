// Two answers, side by side and in an order drawn at random: which is better? A person decides, with a key or a tap.

import { access, ask, experimentPath, may } from "./api.js";
import { count, el, field, setText } from "./dom.js";

const AGAIN = 10_000; // milliseconds until it looks whether a pair has come
const KEYS = { 1: "first", 2: "second", t: "tie" };

export function labelView(host, name) {
  if (name) return labelling(host, name);
  const which = el("input", { id: "which", name: "which", required: true, autocomplete: "off", spellcheck: "false" });
  const form = el("form", { class: "form narrow" }, el("h1", {}, "Label answers"),
    field("Experiment", which, "The name that you were given."),
    el("p", { class: "actions" }, el("button", { type: "submit", class: "primary" }, "Start")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    location.hash = `#label/${encodeURIComponent(which.value.trim())}`;
  });
  host.append(form);
  which.focus();
}

function labelling(host, name) {
  const path = `${experimentPath(name)}/pairs`;
  const heading = el("h1", { tabindex: -1 }, "Which answer is better?");
  const left = el("p", { class: "hint" });
  const message = el("p", { class: "hint", role: "status" });
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const question = el("section", { class: "card", "aria-label": "Request" });
  const texts = { first: el("div", { class: "text", dir: "auto" }), second: el("div", { class: "text", dir: "auto" }) };
  const answers = el("div", { class: "answers" }, Object.entries(texts).map(([which, text], i) =>
    el("section", { class: "card", "aria-labelledby": `answer-${which}` }, el("h2", { id: `answer-${which}` }, `Answer ${i + 1}`), text)));
  const button = (choice, key, text) =>
    el("button", { type: "button", onclick: () => choose(choice), "aria-keyshortcuts": key }, text, el("kbd", { "aria-hidden": "true" }, key));
  const buttons = el("div", { class: "choices", role: "group", "aria-label": "Your choice" },
    button("first", "1", "Answer 1"), button("tie", "T", "Tie"), button("second", "2", "Answer 2"));
  const shown = el("div", { hidden: true }, question, answers, buttons);
  host.append(el("div", { class: "title-row" }, heading, left), problem, message, shown);

  let pair = null, busy = false, timer = null, ended = false;

  function show(found) {
    pair = found.pair;
    shown.hidden = pair === null;
    setText(left, pair === null ? "" : `${count(found.waiting)} waiting`);
    if (pair === null) {
      setText(message, found.waiting > 0
        ? "Others are labelling what is left. This page looks again by itself."
        : "Nothing awaits a label now. This page looks again by itself.");
      timer = setTimeout(next, AGAIN);
      return;
    }
    question.replaceChildren(pair.title ? el("h2", {}, el("bdi", {}, pair.title)) : "", el("div", { class: "text", dir: "auto" }, pair.request));
    question.hidden = !pair.title && !pair.request;
    for (const which of Object.keys(texts)) setText(texts[which], pair[which] || "(empty)");
    for (const node of host.querySelectorAll(".text")) node.scrollTop = 0;
    heading.focus({ preventScroll: true });
    scrollTo(0, 0);
  }

  // Runs one request at a time; a pair that can be labelled no longer makes way for the next.
  async function attempt(work) {
    if (busy || ended) return;
    busy = true;
    clearTimeout(timer);
    problem.hidden = true;
    for (const each of buttons.children) each.disabled = true;
    try {
      await work();
    } catch (error) {
      if (ended) return;
      setText(problem, error.message);
      problem.hidden = false;
      if (error.status === 409 || error.status === 410) pair = null;
      if (pair === null) {
        shown.hidden = true;
        timer = setTimeout(next, error.status === 409 || error.status === 410 ? AGAIN / 5 : AGAIN);
      }
    } finally {
      busy = false;
      for (const each of buttons.children) each.disabled = false;
    }
  }

  const lease = async () => {
    const found = await ask(`${path}/lease`, { method: "POST" });
    if (!ended) show(found);
  };
  const next = () => (document.hidden ? (timer = setTimeout(next, AGAIN)) : attempt(lease));
  const choose = (choice) => pair && attempt(async () => {
    await ask(`${path}/label`, { method: "POST", body: { lease: pair.lease, choice } });
    pair = null;
    setText(message, choice === "tie" ? "Saved: a tie." : `Saved: answer ${choice === "first" ? 1 : 2}.`);
    await lease();
  });

  function pressed(event) {
    const choice = KEYS[event.key.toLowerCase()];
    const typing = event.target.closest("input, textarea, select");
    if (!choice || event.repeat || event.ctrlKey || event.metaKey || event.altKey || typing) return;
    event.preventDefault();
    choose(choice);
  }
  addEventListener("keydown", pressed);
  access().then(() => {
    if (may("label")) return next();
    setText(problem, "This key cannot label: that requires a key with the role label, or admin.");
    problem.hidden = false;
  }, (error) => {
    setText(problem, error.message);
    problem.hidden = false;
  });
  return () => {
    ended = true;
    clearTimeout(timer);
    removeEventListener("keydown", pressed);
  };
}
