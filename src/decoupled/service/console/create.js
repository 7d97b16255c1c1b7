// A form for a new experiment; everything but its name has a default.

import { access, ask, experimentPath, experiments, may } from "./api.js";
import { el, field, select } from "./dom.js";

const OTHER = "other";

export function createView(host, kind) {
  let left = false;
  const attempt = () => access().then(
    () => { if (!left) (may("admin") ? showForm : refuse)(host, kind === "demo"); },
    (error) => { if (!left) fail(host, error, attempt); });
  attempt();
  return () => { left = true; };
}

function refuse(host) {
  host.replaceChildren(el("div", { class: "empty" }, el("h1", {}, "New experiment"),
    el("p", {}, "This key may not create experiments: that needs a key of role admin. ", el("a", { href: "#experiments" }, "See the experiments"), ".")));
}

function fail(host, error, again) {
  host.replaceChildren(el("div", { class: "narrow" }, el("p", { class: "problem", role: "alert" }, error.message),
    el("p", { class: "actions" }, el("button", { type: "button", onclick: again }, "Try again"))));
}

function showForm(host, isDemo) {
  const name = el("input", {
    id: "name", name: "name", required: true, maxlength: 100, autocomplete: "off", spellcheck: "false",
    pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]*", title: "Letters, digits, dots, dashes and underscores; a letter or digit first",
  });
  const arms = el("textarea", { id: "arms", name: "arms", rows: 5, required: true, spellcheck: "false" }, "control\nvariant-a\nvariant-b");
  const policy = select("policy", [["", "Loading…"]], "");
  const custom = el("textarea", { id: "custom", name: "custom", rows: 2, spellcheck: "false" }, '{"name": "FTPL", "alpha": 3.0, "c": 2.0}');
  const customField = field("Policy as JSON", custom, "A name and parameters, as policy.to_dict() writes them.");
  const low = el("input", { id: "low", name: "low", type: "number", step: "any", value: 0, required: true });
  const high = el("input", { id: "high", name: "high", type: "number", step: "any", value: 1, required: true });
  const deadline = el("input", { id: "deadline", name: "deadline", type: "number", step: "any", min: 0.001, placeholder: "none" });
  const expired = el("input", { id: "expired", name: "expired", type: "number", step: "any", placeholder: "nothing" });
  const demo = el("input", { id: "demo", name: "demo", type: "checkbox", checked: isDemo });
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const submit = el("button", { type: "submit", class: "primary" }, "Create the experiment");
  customField.hidden = true;
  policy.addEventListener("change", () => { customField.hidden = policy.value !== OTHER; });

  const form = el("form", { class: "card form", id: "create" },
    el("div", { class: "two" },
      field("Name", name, "Part of its address: letters, digits, dots, dashes, underscores."),
      field("Policy", policy, "How it learns. It cannot be changed later.")),
    customField,
    field("Arms, one on each line", arms, "What can be chosen: prompts, models, layouts. Two at least."),
    el("details", {},
      el("summary", {}, "Losses and deadlines"),
      el("div", { class: "two" },
        field("Lowest loss", low), field("Highest loss", high),
        field("Deadline for feedback, seconds", deadline, "Later feedback is refused and counted. Empty: none."),
        field("An expired decision counts as the loss", expired, "Empty: it counts as nothing."))),
    el("div", { class: "field" },
      el("label", { class: "check", for: "demo" }, demo, "Only for test traffic (a demo)"),
      el("span", { class: "hint", id: "demo-hint" }, "This page can then send it made-up losses. An experiment that decides for real never gets them. It cannot be changed later.")),
    problem,
    el("p", { class: "actions" }, submit, el("a", { href: "#experiments", class: "button quiet" }, "Cancel")));
  demo.setAttribute("aria-describedby", "demo-hint");
  host.replaceChildren(
    el("div", { class: "narrow" },
      el("h1", {}, isDemo ? "New demo experiment" : "New experiment"),
      el("p", { class: "lead" }, "Each decision names an arm to use and an arm to try. The loss of the arm that was tried is sent back, and that is all the learner needs."),
      form));

  // Neither may overwrite what a quick visitor has typed meanwhile.
  const offer = (found) => policy.replaceChildren(
    ...found.map(({ label, policy: described }) => el("option", { value: JSON.stringify(described) }, label)),
    el("option", { value: OTHER }, "Another, as JSON"));
  ask("console/policies.json").then(offer).catch((error) => {
    offer([]);
    customField.hidden = false;
    problem.textContent = `The list of policies could not be loaded. ${error.message}`;
    problem.hidden = false;
  });
  experiments().then((found) => {
    const taken = new Set(found.map((each) => each.name));
    const stem = demo.checked ? "demo" : "experiment";
    let number = 1;
    while (taken.has(`${stem}-${number}`)) number += 1;
    if (!name.value) name.value = `${stem}-${number}`;
  }).catch(() => {});
  if (!host.contains(document.activeElement) || document.activeElement === host) name.focus();

  const number = (input) => (input.value.trim() === "" ? null : Number(input.value));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.hidden = true;
    submit.disabled = true;
    try {
      const made = await ask(experimentPath(name.value), {
        method: "PUT",
        body: {
          policy: JSON.parse(policy.value === OTHER ? custom.value : policy.value),
          arms: arms.value.split("\n").map((arm) => arm.trim()).filter(Boolean),
          loss_range: [number(low), number(high)],
          deadline_seconds: number(deadline),
          expired_loss: number(expired),
          demo: demo.checked,
        },
      });
      location.hash = `experiments/${encodeURIComponent(made.name)}`;
    } catch (error) {
      problem.textContent = error instanceof SyntaxError ? `Policy: is not JSON (${error.message}).` : error.message;
      problem.hidden = false;
      submit.disabled = false;
    }
  });
}
