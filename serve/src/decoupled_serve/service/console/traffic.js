// Test traffic: decisions and made-up losses, through the same API that a program would use.

import { Problem, ask, experimentPath, newKey } from "./api.js";
import { count, el, field, select, setText, slider } from "./dom.js";
import { keyForm } from "./sticky.js";

const TICK = 250; // milliseconds between batches
const MOVE = 400; // decisions between two changes of the best arm

const ENVIRONMENTS = [
  ["steady", "Steady: one arm is best"],
  ["moving", "Moving: the best arm changes"],
  ["alternating", "Alternating: losses rise and fall together"],
  ["alike", "Equal: no arm is better"],
];

// The mean loss, from 0 to 1, of an arm in the given decision.
function meanLoss(environment, arm, best, arms, gap, number) {
  if (environment === "alike") return 0.5;
  if (environment === "moving") return arm === (best + Math.floor(number / MOVE)) % arms ? 0.5 - gap : 0.5;
  if (environment === "alternating") {
    const high = Math.floor(Math.log2(number + 2)) % 2;
    return (high ? 1 - gap : 0) + (arm === best ? 0 : gap);
  }
  return arm === best ? 0.5 - gap : 0.5;
}

export function trafficPanel(experiment) {
  const arms = experiment.arms;
  const environment = select("world", ENVIRONMENTS, "steady");
  const best = select("best", arms.slice(0, 200).map((arm, i) => [String(i), String(arm)]), String(Math.min(1, arms.length - 1)));
  const gap = slider("traffic-gap", "Gap", { min: 0.05, max: 0.5, step: 0.05, value: 0.3, format: (value) => value.toFixed(2) });
  const rate = slider("rate", "Decisions per second", { min: 4, max: 400, step: 4, value: 100 });
  const total = slider("total", "Total decisions", { min: 100, max: 10000, step: 100, value: 2000, format: count });
  const lost = slider("lost", "Missing feedback", { min: 0, max: 50, step: 5, value: 0, format: (value) => `${value}%` });
  const button = el("button", { type: "submit", class: "primary", id: "send" }, "Send test traffic");
  const progress = el("progress", { max: 1, value: 0, hidden: true, "aria-label": "Test traffic sent" });
  const message = el("p", { class: "hint", role: "status", id: "traffic-message" });
  const form = el("form", { class: "form" },
    el("div", { class: "two" }, field("Environment", environment, `The best arm changes every ${MOVE} decisions.`), field("Best arm", best, "The first best arm."), gap.node, rate.node, total.node, lost.node),
    el("p", { class: "actions" }, button, progress), message);
  const node = el("section", { class: "card" }, el("h2", {}, "Test traffic"),
    el("p", { class: "hint" }, "This experiment was created for test traffic. The page requests real decisions and sends back a made-up loss for each explored arm, as a program would. The policy learns from these losses."), form, keyForm(experiment));
  const showHints = () => {
    for (const hint of form.querySelectorAll("#world-hint, #best-hint")) hint.hidden = environment.value !== "moving";
  };
  environment.addEventListener("change", showHints);
  showHints();
  const place = new Map(arms.map((arm, i) => [JSON.stringify(arm), i]));
  const [low, high] = experiment.loss_range;
  let running = null;

  async function send(task) {
    const wanted = Math.min(Math.ceil((task.rate * TICK) / 1000), task.total - task.asked);
    const { decisions } = await withRetries(() => task.stopped, `${experimentPath(experiment.name)}/decisions`, { count: wanted }, { "Idempotency-Key": newKey() });
    const items = [];
    for (const decision of decisions) {
      const mean = (arm) => meanLoss(task.environment, place.get(JSON.stringify(arm)) ?? -1, task.best, arms.length, task.gap, task.asked);
      const feedback = experiment.feedback === "preference"
        ? { preference: Math.random() < 0.5 + (mean(decision.exploit) - mean(decision.explore)) / 2 ? "explore" : "exploit" }
        : { loss: Math.random() < mean(decision.explore) ? high : low };
      task.asked += 1;
      // A decision beyond the budget explores nothing.
      if (decision.explore !== null && Math.random() >= task.lost) items.push({ decision: decision.id, ...feedback });
    }
    if (!items.length) return;
    const { results } = await withRetries(() => false, "v1/feedback", { items });
    for (const result of results) {
      if (result.status === 200) task.learned += 1;
      else task.refused += 1;
    }
  }

  async function run(task) {
    running = task;
    setText(button, "Stop");
    progress.hidden = false;
    let problem = "";
    try {
      while (task.asked < task.total && !task.stopped) {
        const started = performance.now();
        await send(task);
        progress.value = task.asked / task.total;
        setText(message, `${count(task.asked)} of ${count(task.total)} decisions, ${count(task.learned)} losses applied${task.refused ? `, ${count(task.refused)} refused` : ""}.`);
        await new Promise((done) => setTimeout(done, Math.max(0, TICK - (performance.now() - started))));
      }
    } catch (error) {
      problem = ` Stopped: ${error.message}`;
    }
    running = null;
    setText(button, "Send test traffic");
    progress.hidden = true;
    message.textContent += task.stopped || problem ? problem || " Stopped." : " Done.";
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (running) {
      running.stopped = true;
      return;
    }
    run({
      environment: environment.value, best: Number(best.value), gap: Number(gap.input.value), rate: Number(rate.input.value),
      total: Number(total.input.value), lost: Number(lost.input.value) / 100, asked: 0, learned: 0, refused: 0, stopped: false,
    });
  });
  return { node, stop: () => { if (running) running.stopped = true; } };
}

// Repeats a request after a temporary error. Its key, or its idempotence, makes that safe.
async function withRetries(stopped, path, body, headers) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await ask(path, { method: "POST", body, headers });
    } catch (error) {
      const temporary = error instanceof Problem && [0, 429, 503].includes(error.status);
      if (!temporary || attempt === 4 || stopped()) throw error;
      await new Promise((done) => setTimeout(done, 500 * attempt));
    }
  }
}
