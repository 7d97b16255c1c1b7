// Guardrails and the budget of an experiment: the kill switch, the rules that hold, and what was spent.

import { ask, experimentPath, may } from "./api.js";
import { confirmation, count, decimal, el, percent, select, setText } from "./dom.js";

const RELEASED = "Another arm was found to be better than the incumbent, so the policy chooses now.";
const LISTED = 1000; // arms to choose a pin from

// `changed` is called with the changed experiment and a message.
export function guardPanel(experiment, changed) {
  const path = experimentPath(experiment.name);
  const rules = experiment.guardrails, budget = experiment.budget;
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const sure = confirmation();
  const strong = (text) => el("strong", {}, el("bdi", {}, String(text)));

  async function pin(arm, news) {
    problem.hidden = true;
    try {
      changed(await ask(`${path}/guardrails`, { method: "PATCH", body: { pinned: arm } }), news);
    } catch (error) {
      setText(problem, error.message);
      problem.hidden = false;
    }
  }

  const choice = select("pin-arm", experiment.arms.slice(0, LISTED).map((arm, i) => [String(i), String(arm)]), "0");
  const on = el("button", { type: "button", class: "danger", id: "pin", onclick: () => {
    const arm = experiment.arms[Number(choice.value)];
    sure.ask(["Pin ", strong(arm), " in ", strong(experiment.name), "? Every decision uses it from then on, whatever the policy draws. Exploring and learning go on, and you can undo this."],
      { yes: "Pin now" }, () => pin(arm, `Pinned: ${arm}.`));
  } }, "Pin …");
  const off = el("button", { type: "button", id: "unpin", onclick: () => sure.ask(
    ["Unpin ", strong(rules.pinned), " in ", strong(experiment.name), "? The policy chooses the arm to use again, from what it has learned in the meantime."],
    { yes: "Unpin now" }, () => pin(null, "Unpinned.")) }, "Unpin …");
  const changeable = may("admin") && !experiment.archived_at;
  const pinned = rules.pinned === null
    ? (changeable ? el("div", {}, el("p", { class: "actions" }, el("label", { for: "pin-arm" }, "Kill switch: use only"), choice, on)) : null)
    : el("div", {}, el("p", { class: "problem", id: "pinned" }, "Pinned: every decision uses ", strong(rules.pinned), ". Exploring and learning go on."),
      changeable ? el("p", { class: "actions" }, off) : null);

  const rows = limits(budget).map(([name, limit]) => [name, limit, el("td", { class: "number", "data-used": name }, "–")]);
  const table = rows.length ? el("table", { class: "budget" },
    el("caption", { class: "hidden" }, "The budget for exploring"),
    el("thead", {}, el("tr", {}, ...["Budget for exploring", "Limit", "Used"].map((title, i) => el("th", { scope: "col", class: i ? "number" : null }, title)))),
    el("tbody", {}, rows.map(([name, limit, used]) => el("tr", {}, el("th", { scope: "row" }, TITLES[name]), el("td", { class: "number" }, limit), used)))) : null;
  const released = el("p", { class: "hint", id: "released" });
  const others = sentences(rules);
  const nothing = !others.length && !table && rules.pinned === null;
  const node = el("section", { class: "card", id: "guardrails" }, el("h2", {}, "Guardrails and budget"),
    pinned, sure.node, problem,
    others.length ? el("ul", { class: "rules" }, others.map((text) => el("li", {}, text))) : null,
    released, table, nothing ? el("p", { class: "hint" }, "No other guardrail holds, and exploring has no budget.") : null);

  return {
    node,
    update(state) {
      if (state.incumbent_released !== null) setText(released, state.incumbent_released ? RELEASED : "");
      for (const [name, , cell] of rows) setText(cell, used(name, state.budget_used[name]));
    },
  };
}

const TITLES = { share: "Share of decisions", rate: "Explorations", total: "Spent in all", allowance: "Spent in this period" };

const used = (name, value) =>
  value === undefined ? "–" : name === "share" ? percent(value) : name === "rate" ? count(value) : decimal(value);

function limits(budget) {
  const found = [];
  if (budget.share !== null) found.push(["share", percent(budget.share)]);
  if (budget.rate !== null) found.push(["rate", `${count(budget.rate[0])} in ${seconds(budget.rate[1])}`]);
  if (budget.total !== null) found.push(["total", decimal(budget.total)]);
  if (budget.allowance !== null) found.push(["allowance", `${decimal(budget.allowance[0])} in ${seconds(budget.allowance[1])}`]);
  return found;
}

const UNITS = [[86400, "day", "days"], [3600, "hour", "hours"], [60, "minute", "minutes"]];

function seconds(value) {
  for (const [length, one, many] of UNITS) {
    if (value % length === 0) return value === length ? `a ${one}`.replace("a hour", "an hour") : `${count(value / length)} ${many}`;
  }
  return value === 1 ? "a second" : `${value} s`;
}

function sentences(rules) {
  const name = (arm) => el("bdi", {}, String(arm));
  const found = Object.entries(rules.floors).map(([arm, least]) => [`At least ${percent(least)} of the decisions use `, name(arm), "."]);
  if (rules.holdout > 0) {
    found.push([`Hold-out: ${percent(rules.holdout)} of the decisions use `, rules.control === null ? "an arm drawn evenly" : name(rules.control), "."]);
  }
  if (rules.incumbent !== null) {
    found.push(["Incumbent: ", name(rules.incumbent), `, used until another arm is known to be better, with a risk of ${percent(rules.risk)}.`]);
  }
  if (rules.down.length) found.push(["Down: ", name(rules.down.join(", ")), "."]);
  return found;
}
