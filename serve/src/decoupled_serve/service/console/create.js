// The form for a new experiment. Everything but the name has a default.

import { access, ask, experimentPath, experiments, may } from "./api.js";
import { el, field, select } from "./dom.js";
import { BUDGET, GUARDRAILS, LABELS, settingFields } from "./guardrails.js";

const OTHER = "other";
const BY_CONTEXT = "by context";
const TYPES = ["text", "number", "boolean"];

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
    el("p", {}, "This key cannot create experiments: that requires a key with the role admin. ", el("a", { href: "#experiments" }, "See the experiments"), ".")));
}

function fail(host, error, again) {
  host.replaceChildren(el("div", { class: "narrow" }, el("p", { class: "problem", role: "alert" }, error.message),
    el("p", { class: "actions" }, el("button", { type: "button", onclick: again }, "Try again"))));
}

function showForm(host, isDemo) {
  const name = el("input", {
    id: "name", name: "name", required: true, maxlength: 100, autocomplete: "off", spellcheck: "false",
    pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]*", title: "Letters, digits, dots, dashes and underscores, starting with a letter or digit",
  });
  const arms = el("textarea", { id: "arms", name: "arms", rows: 5, required: true, spellcheck: "false" }, "control\nvariant-a\nvariant-b");
  const policy = select("policy", [["", "Loading…"]], "");
  const custom = el("textarea", { id: "custom", name: "custom", rows: 2, spellcheck: "false" }, '{"name": "FTPL", "alpha": 3.0, "c": 2.0}');
  const customField = field("Policy as JSON", custom, "The name and parameters, as policy.to_dict() returns them.");
  const low = el("input", { id: "low", name: "low", type: "number", step: "any", value: 0, required: true });
  const high = el("input", { id: "high", name: "high", type: "number", step: "any", value: 1, required: true });
  const deadline = el("input", { id: "deadline", name: "deadline", type: "number", step: "any", min: 0.001, placeholder: "none" });
  const expired = el("input", { id: "expired", name: "expired", type: "number", step: "any", placeholder: "none" });
  const context = el("textarea", { id: "context", name: "context", rows: 3, spellcheck: "false", placeholder: "subject: text\ntokens: number" });
  const risk = el("input", { id: "risk", name: "risk", type: "number", step: "any", min: 0, max: 1, value: 0.05, required: true });
  const guardrails = settingFields("guardrails", GUARDRAILS, { drift: true });
  guardrails.node.prepend(field("Risk of the verdict", risk, "The probability that the verdict or the intervals are ever wrong."));
  const budget = settingFields("budget", BUDGET, {});
  const labels = settingFields("labels", LABELS, {});
  const demo = el("input", { id: "demo", name: "demo", type: "checkbox", checked: isDemo });
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const submit = el("button", { type: "submit", class: "primary" }, "Create experiment");
  customField.hidden = true;
  const requests = el("details", {},
    el("summary", {}, "By segment"),
    field("What is known of a request, one field per line", context, "A name and a type: text, number or boolean. It is sent with each decision, and logged. To learn by it, choose the policy ContextualLadder."));
  policy.addEventListener("change", () => {
    customField.hidden = policy.value !== OTHER;
    if (policy.value === BY_CONTEXT) requests.open = true;
  });

  const form = el("form", { class: "card form", id: "create" },
    el("div", { class: "two" },
      field("Name", name, "Letters, digits, dots, dashes and underscores. It becomes part of the address."),
      field("Policy", policy, "How the experiment learns. You cannot change it later.")),
    customField,
    field("Arms, one per line", arms, "The options to choose from, such as prompts, models or layouts. At least two."),
    el("details", {},
      el("summary", {}, "Losses and deadlines"),
      el("div", { class: "two" },
        field("Lowest loss", low), field("Highest loss", high),
        field("Deadline for feedback, in seconds", deadline, "Later feedback is rejected and counted. Empty: no deadline."),
        field("Loss of an expired decision", expired, "Empty: expired decisions do not count."))),
    requests,
    el("details", {}, el("summary", {}, "Verdict and guardrails"),
      guardrails.node),
    el("details", {}, el("summary", {}, "Budget for exploring"), budget.node),
    el("details", {}, el("summary", {}, "Labels, if losses come from a judge"), labels.node),
    el("div", { class: "field" },
      el("label", { class: "check", for: "demo" }, demo, "For test traffic only (demo)"),
      el("span", { class: "hint", id: "demo-hint" }, "This page can then send made-up losses to the experiment. Other experiments never receive any. You cannot change this later.")),
    problem,
    el("p", { class: "actions" }, submit, el("a", { href: "#experiments", class: "button quiet" }, "Cancel")));
  demo.setAttribute("aria-describedby", "demo-hint");
  host.replaceChildren(
    el("div", { class: "narrow" },
      el("h1", {}, isDemo ? "New demo experiment" : "New experiment"),
      el("p", { class: "lead" }, "Each decision names one arm to use and one to try. Send back the loss of the arm that you tried: that is all the policy needs to learn."),
      form));

  // Neither of these may overwrite what the visitor has typed in the meantime.
  const offer = (found) => policy.replaceChildren(
    ...found.map(({ label, policy: described }) => el("option", { value: JSON.stringify(described) }, label)),
    el("option", { value: BY_CONTEXT }, "ContextualLadder, by request"),
    el("option", { value: OTHER }, "Other, as JSON"));
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
      const fields = fieldsOf(context.value), labelled = labels.read();
      if (Object.keys(labelled).length && !("share" in labelled)) throw new Error("Labels: enter a share of decisions, or leave all their fields empty.");
      const made = await ask(experimentPath(name.value), {
        method: "PUT",
        body: {
          policy: policy.value === BY_CONTEXT ? byContext(fields) : JSON.parse(policy.value === OTHER ? custom.value : policy.value),
          context: fields,
          arms: arms.value.split("\n").map((arm) => arm.trim()).filter(Boolean),
          loss_range: [number(low), number(high)],
          deadline_seconds: number(deadline),
          expired_loss: number(expired),
          demo: demo.checked,
          risk: number(risk),
          labels: "share" in labelled ? labelled : null,
          guardrails: guardrails.read(),
          budget: budget.read(),
        },
      });
      location.hash = `experiments/${encodeURIComponent(made.name)}`;
    } catch (error) {
      problem.textContent = error instanceof SyntaxError ? `Policy: not valid JSON (${error.message}).` : error.message;
      problem.hidden = false;
      submit.disabled = false;
    }
  });
}

// The fields of a context by their types, from lines such as "subject: text".
function fieldsOf(text) {
  const fields = Object.create(null);  // a field may be called as a property of every object is
  for (const line of text.split("\n").map((each) => each.trim()).filter(Boolean)) {
    const [, name, type] = line.match(/^([^\s:]+)\s*:?\s*(\S*)$/) ?? [];
    if (!TYPES.includes(type) || name in fields) throw new Error(`Fields of a request: “${line}” must be a new name and text, number or boolean, such as “subject: text”.`);
    fields[name] = type;
  }
  return fields;
}

// Texts and booleans tell segments apart, and numbers are for the regression.
function byContext(fields) {
  const names = Object.keys(fields);
  if (!names.length) throw new Error("Fields of a request: ContextualLadder needs at least one, such as “subject: text”.");
  const numbers = names.filter((name) => fields[name] === "number");
  return { name: "ContextualLadder", segments: names.filter((name) => !numbers.includes(name)), numbers };
}
