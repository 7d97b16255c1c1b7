// One experiment, live: its verdict, counts, a table of its arms, its history, and its management.

import { ask, experimentPath, may, mirrored } from "./api.js";
import { armsTable } from "./arms.js";
import { count, decimal, el, setText } from "./dom.js";
import { guardPanel } from "./guardrails.js";
import { historyPanel } from "./history.js";
import { poll } from "./live.js";
import { managePanel } from "./manage.js";
import { mirrorPanel, programPanel } from "./program.js";
import { segmentsPanel } from "./segments.js";
import { trafficPanel } from "./traffic.js";
import { regretText, verdictPanel } from "./verdict.js";

const TILES = [
  ["decisions", "Decisions", "made so far"],
  ["rate", "Per second", "decisions, over the last 5 s"],
  ["pending", "Pending", "waiting for feedback"],
  ["applied", "Applied", "losses learned from"],
  ["late", "Late", "feedback after its deadline"],
  ["expired", "Expired", "no feedback in time"],
];

const BADGES = { compiling: "compiling…", failed: "does not compile" };
const COMPILING = "The service is compiling the policy of this experiment. This happens once on a machine and takes from a few seconds to a minute. Then the experiment can decide.";

export function experimentPanel(host, experiment, changed, news) {
  const values = Object.fromEntries(TILES.map(([name]) => [name, el("dd", { "data-tile": name }, "–")]));
  const tiles = el("dl", { class: "tiles" },
    TILES.map(([name, title, hint]) => el("div", { class: "tile" }, el("dt", {}, title), values[name], el("dd", { class: "hint" }, hint))));
  const regret = el("p", { class: "regret", id: "regret", "data-varies": true });
  const cost = el("div", { hidden: true }, el("h3", {}, "What did the exploited arms cost so far?"), regret);
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  if (experiment.status === "failed") Object.assign(problem, { textContent: experiment.problem, hidden: false });
  const table = armsTable(experiment);
  const verdict = verdictPanel();
  const history = historyPanel(experiment);
  const segments = segmentsPanel(experiment);
  const guards = guardPanel(experiment, changed);
  const sender = senderPanel(experiment);
  host.replaceChildren(
    el("div", { class: "title-row" },
      el("h1", {}, el("bdi", {}, experiment.name)),
      experiment.demo ? el("span", { class: "badge", title: "Created for test traffic" }, "demo") : null,
      experiment.guardrails.pinned === null ? null : el("span", { class: "badge alarm" }, "pinned"),
      experiment.status === "ready" ? null : el("span", { class: "badge" }, BADGES[experiment.status] ?? experiment.status)),
    verdict.node, el("p", { class: "lead small" }, about(experiment)),
    ...(experiment.status === "compiling" ? [el("p", { class: "notice", role: "status" }, COMPILING)] : []),
    problem, tiles, el("section", { class: "card" }, el("h2", {}, "Arms"), table.node,
      cost), ...(segments ? [segments.node] : []), ...history.nodes,
    guards.node, ...(sender ? [sender.node] : []),
    managePanel(experiment, changed, news));
  if (news) host.querySelector("#managed").focus();

  // What takes longer to compute is requested less often, and only after something has happened.
  let looked = -Infinity, seen = "";
  async function look(state) {
    const happened = JSON.stringify([state.decisions, state.state_version, state.applied]);
    if (happened === seen || performance.now() - looked < (state.arms.length > 100 ? 10_000 : 2000)) return;
    const path = experimentPath(experiment.name);
    try {
      const [judged, past] = await Promise.all([ask(`${path}/verdict`), ask(`${path}/history`)]);
      verdict.update(judged, await segments?.look());
      table.judge(judged);
      setText(regret, regretText(judged, experiment.loss_range));
      cost.hidden = false;
      history.update(past);
      seen = happened;
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
    }
    looked = performance.now();
  }

  const recent = [];
  let arms = 0;
  const watching = poll(async () => {
    if (experiment.status in BADGES) return; // it has no state yet; the list opens it again when it has
    let state;
    try {
      state = await ask(`${experimentPath(experiment.name)}/state`);
      problem.hidden = true;
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
      return;
    }
    const now = performance.now();
    arms = state.arms.length;
    recent.push([now, state.decisions]);
    while (recent.length > 2 && now - recent[1][0] > 5000) recent.shift();
    const [then, before] = recent[0];
    const rate = recent.length > 1 ? (1000 * (state.decisions - before)) / (now - then) : 0;
    for (const name of ["decisions", "pending", "applied", "late", "expired"]) setText(values[name], count(state[name]));
    setText(values.rate, rate < 10 && rate > 0 ? decimal(rate, 1) : count(rate));
    table.update(state, history.colours.update(state));
    guards.update(state);
    await look(state);
  }, () => (arms > 1000 ? 5000 : 1000));

  return () => {
    watching.stop();
    sender?.stop();
    history.stop();
  };
}

// Only experiments that were created for it receive made-up losses, since learning cannot be undone.
function senderPanel(experiment) {
  if (experiment.archived_at || !may("decide")) return null;
  if (experiment.demo) return trafficPanel(experiment);
  return experiment.name === mirrored() ? mirrorPanel() : programPanel(experiment);
}

function about(experiment) {
  const [low, high] = experiment.loss_range;
  const deadline = experiment.deadline_seconds === null ? "no deadline" : `feedback within ${experiment.deadline_seconds} s`;
  const feedback = experiment.feedback === "preference" ? "preferences" : `losses from ${low} to ${high}`;
  return `${experiment.policy_label} · ${feedback} · ${deadline} · created ${new Date(experiment.created_at).toLocaleString("en-GB")}`;
}
