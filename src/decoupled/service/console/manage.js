// What is done to an experiment rather than seen of it: arms that come and go, the log, its end.

import { ask, experimentPath, may, open } from "./api.js";
import { confirmation, el, field, say } from "./dom.js";

const SHOWN = 5; // arms of a question

// `changed` is called with the experiment as it is now, and what to tell of it.
export function managePanel(experiment, changed, news = "") {
  const path = experimentPath(experiment.name);
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const said = el("p", { class: "hint", role: "status", id: "managed", tabindex: -1 }, news);

  const sure = confirmation();
  const itself = () => el("strong", {}, el("bdi", {}, experiment.name));

  async function attempt(work) {
    problem.hidden = true;
    say(said, "");
    try {
      await work();
    } catch (error) {
      say(problem, error.message);
      problem.hidden = false;
    }
  }

  const names = el("textarea", { id: "names", name: "names", rows: 2, required: true, spellcheck: "false" });
  const numbered = experiment.arms.every((arm) => typeof arm === "number");
  const known = new Map(experiment.arms.map((arm) => [String(arm), arm]));
  // A name as it is known; one that is new is a number where all are.
  const arm = (line) => known.get(line) ?? (numbered && /^\d+$/.test(line) ? Number(line) : line);
  const arms = el("form", { class: "form" },
    field("Arms to add or to retire, one on each line", names,
      "A newcomer starts level with the best of the others. An arm that is retired is not named again; feedback for it is still taken."),
    el("p", { class: "actions" },
      el("button", { type: "submit", value: "" }, "Add them …"),
      el("button", { type: "submit", value: "/retire" }, "Retire them …")));
  arms.addEventListener("submit", (event) => {
    event.preventDefault();
    const { value } = event.submitter;
    const listed = names.value.split("\n").map((line) => line.trim()).filter(Boolean).map(arm);
    if (!listed.length) {
      attempt(() => { throw new Error("Name at least one arm."); });
      return;
    }
    const [verb, effect] = value
      ? ["Retire", " No decision names a retired arm again. If it is added later it starts as a new arm: what was learned of it is lost."]
      : ["Add", " A new arm starts level with the best of the others, so it is used and tried at once."];
    const question = [`${verb} `, el("bdi", {}, some(listed)), value ? " from " : " to ", itself(), "?", effect];
    sure.ask(question, { yes: value ? "Retire for good" : "Add now" }, () => attempt(async () => {
      const now = await ask(`${path}/arms${value}`, { method: "POST", body: { arms: listed } });
      changed(now, `${value ? "Retired" : "Added"}: ${listed.join(", ")}.`);
    }));
  });

  const download = (format, label) =>
    el("button", { type: "button", onclick: () => attempt(() => save(`${path}/log?format=${format}`, `${experiment.name}.${format}`)) }, label);

  const archive = el("button", { type: "button", onclick: () => sure.ask(
    ["Archive ", itself(), "? It makes no more decisions, and that cannot be taken back. Its log stays, and feedback for pending decisions is still taken."],
    { yes: "Archive for good", no: "Keep it" },
    () => attempt(async () => changed(await ask(`${path}/archive`, { method: "POST" }), "Archived."))) }, "Archive it …");
  const changeable = may("admin") && !experiment.archived_at;

  return el("section", { class: "card" }, el("h2", {}, "Manage"),
    el("p", { class: "actions" },
      download("csv", "Download the log as CSV"), download("parquet", "As Parquet"),
      changeable ? archive : null),
    changeable ? el("details", { open: news !== "" }, el("summary", {}, "Add or retire arms"), arms) : null,
    sure.node, problem, said,
    el("details", {}, el("summary", {}, "The policy's parameters"),
      el("pre", { class: "example" }, el("code", {}, JSON.stringify(experiment.policy, null, 1)))));
}

const some = (arms) =>
  arms.length <= SHOWN ? arms.join(", ") : `${arms.slice(0, SHOWN).join(", ")} and ${arms.length - SHOWN} more`;

// Through a script, because a link could not send the key.
async function save(path, name) {
  const address = URL.createObjectURL(await (await open(path)).blob());
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
