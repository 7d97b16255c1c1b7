// Manage an experiment: add and retire arms, download the log, archive it.

import { ask, experimentPath, may, open } from "./api.js";
import { changesPanel } from "./changes.js";
import { confirmation, el, field, setText } from "./dom.js";

const SHOWN = 5; // arms that a question names

// `changed` is called with the changed experiment and a message.
export function managePanel(experiment, changed, news = "") {
  const path = experimentPath(experiment.name);
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const message = el("p", { class: "hint", role: "status", id: "managed", tabindex: -1 }, news);

  const sure = confirmation();
  const itself = () => el("strong", {}, el("bdi", {}, experiment.name));

  async function attempt(work) {
    problem.hidden = true;
    setText(message, "");
    try {
      await work();
    } catch (error) {
      setText(problem, error.message);
      problem.hidden = false;
    }
  }

  const names = el("textarea", { id: "names", name: "names", rows: 2, required: true, spellcheck: "false" });
  const numbered = experiment.arms.every((arm) => typeof arm === "number");
  const known = new Map(experiment.arms.map((arm) => [String(arm), arm]));
  // An existing arm, or a new one: a number if all arms are numbers.
  const arm = (line) => known.get(line) ?? (numbered && /^\d+$/.test(line) ? Number(line) : line);
  const arms = el("form", { class: "form" },
    field("Arms to add or retire, one per line", names,
      "A new arm starts level with the best of the others. Decisions no longer name a retired arm; feedback for it is still accepted."),
    el("p", { class: "actions" },
      el("button", { type: "submit", value: "" }, "Add arms …"),
      el("button", { type: "submit", value: "/retire" }, "Retire arms …")));
  arms.addEventListener("submit", (event) => {
    event.preventDefault();
    const { value } = event.submitter;
    const listed = names.value.split("\n").map((line) => line.trim()).filter(Boolean).map(arm);
    if (!listed.length) {
      attempt(() => { throw new Error("Enter at least one arm."); });
      return;
    }
    const [verb, effect] = value
      ? ["Retire", " Decisions no longer name a retired arm. If you add it again later, it starts as a new arm: what was learned about it is lost."]
      : ["Add", " A new arm starts level with the best of the others, so it can be used and tried at once."];
    const question = [`${verb} `, el("bdi", {}, some(listed)), value ? " from " : " to ", itself(), "?", effect];
    sure.ask(question, { yes: value ? "Retire permanently" : "Add now" }, () => attempt(async () => {
      const now = await ask(`${path}/arms${value}`, { method: "POST", body: { arms: listed } });
      changed(now, `${value ? "Retired" : "Added"}: ${listed.join(", ")}.`);
    }));
  });

  const download = (format, label) =>
    el("button", { type: "button", onclick: () => attempt(() => save(`${path}/log?format=${format}`, `${experiment.name}.${format}`)) }, label);

  const archive = el("button", { type: "button", onclick: () => sure.ask(
    ["Archive ", itself(), "? It will make no more decisions, and you cannot undo this. Its log is kept, and feedback for pending decisions is still accepted."],
    { yes: "Archive permanently", no: "Keep it" },
    () => attempt(async () => changed(await ask(`${path}/archive`, { method: "POST" }), "Archived."))) }, "Archive …");
  const changeable = may("admin") && !experiment.archived_at;

  return el("section", { class: "card" }, el("h2", {}, "Manage"),
    el("p", { class: "actions" },
      download("csv", "Download log as CSV"), download("parquet", "Download log as Parquet"),
      experiment.labels && may("label") ? el("a", { class: "button", href: `#label/${encodeURIComponent(experiment.name)}` }, "Label answers") : null,
      changeable ? archive : null),
    changeable ? el("details", { open: news !== "" }, el("summary", {}, "Add or retire arms"), arms) : null,
    sure.node, problem, message,
    changesPanel(experiment),
    el("details", {}, el("summary", {}, "Policy parameters"),
      el("pre", { class: "example" }, el("code", {}, JSON.stringify(experiment.policy, null, 1)))));
}

const some = (arms) =>
  arms.length <= SHOWN ? arms.join(", ") : `${arms.slice(0, SHOWN).join(", ")} and ${arms.length - SHOWN} more`;

// A link could not send the key, so a script downloads the file.
async function save(path, name) {
  const address = URL.createObjectURL(await (await open(path)).blob());
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
