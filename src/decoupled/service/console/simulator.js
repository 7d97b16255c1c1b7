// Policies learn in a simulated environment. The service runs them; this page draws the results.

import { interrupted, jsonLines } from "./api.js";
import { COLOURS, legend, lineChart, onResize, shareChart, short, swatch, table } from "./charts.js";
import { count, decimal, el, field, percent, radios, select, setText, slider } from "./dom.js";

const MOST_WORK = 4_000_000;
const PACE = 45; // milliseconds that a step is shown
const ENVIRONMENTS = [
  ["alternating", "Alternating", "The losses of all arms rise and fall together, in ever longer phases, while the gaps between them stay. The paper's hard case."],
  ["stochastic", "Stochastic", "The mean loss of every arm is constant. The first arm is better by the gap."],
  ["punish-last", "Punish the last", "The arm that was exploited last costs the most in the next round, which punishes commitment. Otherwise the first arm is slightly better."],
  ["drifting", "Drifting", "The best arm changes three times. Regret is measured against the best fixed arm, so a policy that keeps up can go below zero."],
];
const HORIZONS = [500, 1000, 2000, 5000, 10000, 20000, 50000, 100000];
const DASHES = ["", "7 3", "2 3", "9 3 2 3"];

export function simulatorView(host) {
  const environment = select("environment", ENVIRONMENTS.map(([value, text]) => [value, text]), "alternating");
  const description = el("p", { class: "hint", id: "description", "aria-live": "polite" });
  const arms = slider("sim-arms", "Arms", { min: 2, max: 32, step: 1, value: 8 });
  const gap = slider("sim-gap", "Gap", { min: 0.01, max: 0.5, step: 0.005, value: 0.125, format: (value) => value.toFixed(3) });
  const horizon = slider("sim-rounds", "Rounds", { min: 0, max: HORIZONS.length - 1, step: 1, value: 4, format: (value) => count(HORIZONS[value]) });
  const runs = slider("sim-runs", "Runs", { min: 1, max: 32, step: 1, value: 16 });
  const seed = el("input", { id: "sim-seed", type: "number", min: 0, max: 2 ** 52, step: 1, value: 0, required: true });
  const limit = el("p", { class: "hint", role: "status" });
  const start = el("button", { type: "submit", class: "primary", id: "start" }, "Start");
  const pause = el("button", { type: "button", id: "pause", disabled: true }, "Pause");
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const form = el("form", { class: "card form sim-form", id: "simulator" },
    el("div", { class: "field wide" }, el("label", { for: "environment" }, "Environment"), environment, description),
    arms.node, gap.node, horizon.node, runs.node, field("Seed", seed),
    el("div", { class: "wide" }, el("p", { class: "actions" }, start, pause), limit, problem));

  const regret = el("div", { class: "chart", id: "regret-chart" });
  const scores = el("div", {});
  const numbers = el("div", {});
  const details = el("details", { hidden: true }, el("summary", {}, "Show the curves as a table"), numbers);
  const multiples = el("div", { class: "multiples" });
  const names = el("div", {});
  const which = radios("sim-of", [["exploit", "Exploited"], ["explore", "Explored"]]);
  const round = el("span", { class: "hint", id: "sim-round" });
  const results = el("div", { class: "sim-results" },
    el("section", { class: "card" }, el("div", { class: "title-row" }, el("h2", {}, "Regret"), round), regret, scores, details),
    el("section", { class: "card", id: "sim-shares", hidden: true }, el("div", { class: "title-row" }, el("h2", {}, "Arms chosen by each policy"), which), multiples, names));
  host.append(
    el("h1", {}, "Simulator"),
    el("p", { class: "lead" }, "No data needed. The service runs its compiled policies in an environment of your choice, with the same random losses for every policy. Lower regret is better."),
    el("div", { class: "sim" }, form, results));
  regret.append(el("p", { class: "waiting" }, "Choose an environment and press Start to see the curves."));

  let stopRequest = () => {}, setup = null, steps = [], seen = 0, playing = false, last = 0, frame = 0;

  const showDescription = () => setText(description, ENVIRONMENTS.find(([value]) => value === environment.value)[2]);
  const rounds = () => HORIZONS[Number(horizon.input.value)];
  const most = () => Math.floor(MOST_WORK / (rounds() * Math.max(8, Number(arms.input.value))));
  function showLimit() {
    const wanted = Number(runs.input.value);
    setText(limit, wanted > most() ? `With this many rounds and arms, at most ${most()} ${most() === 1 ? "run is" : "runs are"} possible.` : "");
  }

  function best(at) {
    const { name, period } = setup.environment;
    return name === "Drifting" ? Math.floor((at - 1) / period) % setup.arms : 0;
  }

  function draw() {
    if (!setup || !seen) return;
    const shown = steps.slice(0, seen);
    const now = shown.at(-1);
    setText(round, `round ${count(now.round)} of ${count(setup.rounds)}, ${setup.runs === 1 ? "one run" : `mean of ${setup.runs} runs`}`);
    const series = setup.policies.map(({ name }, i) => ({
      name, colour: `p-${i}`, dash: DASHES[i],
      points: [[0, 0], ...shown.map((step) => [step.round, step.policies[i].regret])],
      band: setup.runs === 1 ? null : [[0, 0, 0], ...shown.map(({ round: at, policies }) =>
        [at, policies[i].regret - policies[i].half_width, policies[i].regret + policies[i].half_width])],
    }));
    lineChart(regret, {
      label: `Regret after ${now.round} rounds: ${setup.policies.map(({ name }, i) => `${name} ${decimal(now.policies[i].regret, 1)}`).join(", ")}.`,
      series, xMax: setup.rounds, xTitle: setup.runs === 1 ? "rounds" : "rounds (bands: 95%, at each moment)", yTitle: "regret",
    });
    setup.policies.forEach((_, i) => {
      const at = now.policies[i];
      setText(scores.cells[i][0], decimal(at.regret, 1));
      setText(scores.cells[i][1], at.half_width === null ? "–" : `± ${decimal(at.half_width, 1)}`);
      setText(scores.cells[i][2], percent(at.exploit[best(now.round)]));
    });
    drawShares(shown);
    if (details.open) drawTable(shown);
  }

  function drawShares(shown) {
    const kind = which.querySelector("input:checked").value;
    const xs = shown.map((step) => step.round);
    const few = Math.min(setup.arms, setup.arms > COLOURS ? COLOURS - 1 : COLOURS);
    setup.policies.forEach(({ name }, i) => {
      const layers = layerNames().map(({ name: arm, colour }, k) => ({
        name: arm, colour,
        values: shown.map(({ policies }) => (k < few ? policies[i][kind][k] : policies[i][kind].slice(few).reduce((sum, each) => sum + each, 0))),
      }));
      const word = kind === "exploit" ? "exploited" : "explored";
      shareChart(multiples.hosts[i], {
        label: `${name}: share of rounds in which each arm was ${word}. Latest: ${layers.map((layer) => `${layer.name} ${percent(layer.values.at(-1))}`).join(", ")}.`,
        xs, layers, xMin: 0, xMax: setup.rounds, xText: short, height: 170, xWanted: 3,
      });
    });
  }

  const layerNames = () => {
    const few = Math.min(setup.arms, setup.arms > COLOURS ? COLOURS - 1 : COLOURS);
    const found = Array.from({ length: few }, (_, k) => ({ name: k === 0 ? "Arm 1, the best" : `Arm ${k + 1}`, colour: `s-${k}` }));
    if (setup.environment.name === "Drifting") found[0].name = "Arm 1, best at first";
    if (setup.environment.name === "PunishLast") found[0].name = "Arm 1, the better";
    if (setup.arms > few) found.push({ name: `${setup.arms - few} other arms`, colour: "s-other" });
    return found;
  };

  function drawTable(shown) {
    const step = Math.max(1, Math.floor(shown.length / 10));
    const rows = shown.filter((_, i) => (i + 1) % step === 0 || i === shown.length - 1)
      .map(({ round: at, policies }) => [count(at), ...policies.map((each) => decimal(each.regret, 1))]);
    numbers.replaceChildren(table("Mean regret", ["Round", ...setup.policies.map(({ name }) => name)], rows));
  }

  function prepare() {
    scores.cells = setup.policies.map(() => [0, 1, 2].map(() => el("td", { class: "number" }, "–")));
    scores.replaceChildren(el("table", { class: "scores", "aria-label": "Regret so far" },
      el("thead", {}, el("tr", {}, ["Policy", "Regret", "95%, at this moment", "Share of the best arm"].map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, setup.policies.map(({ name }, i) =>
        el("tr", { "data-policy": name }, el("th", { scope: "row" }, swatch(`p-${i}`, DASHES[i]), name), scores.cells[i])))));
    multiples.hosts = setup.policies.map(() => el("div", { class: "chart" }));
    multiples.replaceChildren(...setup.policies.map(({ name }, i) =>
      el("figure", {}, el("figcaption", {}, swatch(`p-${i}`, DASHES[i]), name), multiples.hosts[i])));
    names.replaceChildren(legend(layerNames()));
    details.hidden = false;
    host.querySelector("#sim-shares").hidden = false;
  }

  // Steps arrive faster than one can watch, so they are shown one by one, unless the visitor prefers reduced motion.
  function play(now) {
    frame = 0;
    if (!playing) return;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (seen < steps.length && (still || now - last >= PACE)) {
      last = now;
      seen = still ? steps.length : seen + 1;
      draw();
    }
    if (setup && seen === setup.steps) return finish();
    frame = requestAnimationFrame(play);
  }

  function setPlaying(value) {
    playing = value;
    setText(pause, value || !setup || seen === setup.steps ? "Pause" : "Resume");
    if (value && !frame) frame = requestAnimationFrame(play);
  }

  function finish() {
    playing = false;
    pause.disabled = true;
    setText(start, "Start again");
    results.dataset.state = "done";
  }

  async function request() {
    stopRequest();
    const controller = new AbortController();
    stopRequest = () => controller.abort();
    setup = null;
    steps = [];
    seen = 0;
    problem.hidden = true;
    results.dataset.state = "running";
    const query = new URLSearchParams({
      environment: environment.value, arms: arms.input.value, gap: gap.input.value, rounds: rounds(),
      runs: Math.max(1, Math.min(Number(runs.input.value), most())), seed: seed.value,
    });
    setText(start, "Start again");
    const slow = setTimeout(() => {
      if (!steps.length) setText(limit, "The service is compiling the policies. This happens once on a machine and takes a few seconds.");
    }, 1500);
    try {
      for await (const line of jsonLines(`v1/simulator?${query}`, controller.signal)) {
        if (controller.signal.aborted) return;
        if (setup === null) {
          setup = line;
          prepare();
          pause.disabled = false;
          setPlaying(true);
        } else {
          if (!steps.length) {
            clearTimeout(slow);
            showLimit();
          }
          steps.push(line);
        }
      }
      if (steps.length !== setup?.steps) throw interrupted();
    } catch (error) {
      clearTimeout(slow);
      if (error.name === "AbortError" || controller.signal.aborted) return;
      problem.textContent = error.message;
      problem.hidden = false;
      finish();
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    request();
  });
  pause.addEventListener("click", () => setPlaying(!playing));
  form.addEventListener("input", () => {
    showDescription();
    showLimit();
  });
  which.addEventListener("change", draw);
  details.addEventListener("toggle", draw);
  const stopWatching = onResize(regret, draw);
  showDescription();
  showLimit();
  return () => {
    stopRequest();
    stopWatching();
    cancelAnimationFrame(frame);
  };
}
