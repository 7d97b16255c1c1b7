// Policies learn on a simulated world. The service runs them; here they are only drawn.

import { broken, jsonLines } from "./api.js";
import { COLOURS, legend, lineChart, onResize, shareChart, short, swatch, table } from "./charts.js";
import { count, decimal, el, field, percent, say, select, slider } from "./dom.js";

const MOST_WORK = 4_000_000;
const PACE = 45; // milliseconds a step is looked at
const WORLDS = [
  ["alternating", "Alternating", "Gaps stay, levels jump: every arm's losses rise and fall together, in ever longer phases. The paper's hard case."],
  ["stochastic", "Stochastic", "Every arm's mean loss stays what it is. The first arm is better by the gap."],
  ["punish-last", "Punish the last", "Whatever was exploited last costs the most in the next round. Commitment is punished; the first arm is a little better elsewhere."],
  ["drifting", "Drifting", "The best arm moves on three times. Regret is against the best fixed arm, so whoever keeps up can go below zero."],
];
const HORIZONS = [500, 1000, 2000, 5000, 10000, 20000, 50000, 100000];
const DASHES = ["", "7 3", "2 3", "9 3 2 3"];

export function simulatorView(host) {
  const world = select("environment", WORLDS.map(([value, text]) => [value, text]), "alternating");
  const story = el("p", { class: "hint", id: "story", "aria-live": "polite" });
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
    el("div", { class: "field wide" }, el("label", { for: "environment" }, "World"), world, story),
    arms.node, gap.node, horizon.node, runs.node, field("Seed", seed),
    el("div", { class: "wide" }, el("p", { class: "actions" }, start, pause), limit, problem));

  const regret = el("div", { class: "chart", id: "regret-chart" });
  const scores = el("div", {});
  const numbers = el("div", {});
  const details = el("details", { hidden: true }, el("summary", {}, "The curves as a table"), numbers);
  const multiples = el("div", { class: "multiples" });
  const names = el("div", {});
  const radio = (value, text) =>
    el("label", { class: "radio" }, el("input", { type: "radio", name: "sim-of", value, checked: value === "exploit" }), text);
  const which = el("fieldset", { class: "radios" }, el("legend", { class: "hidden" }, "Which arms are counted"), radio("exploit", "Exploited"), radio("explore", "Explored"));
  const round = el("span", { class: "hint", id: "sim-round" });
  const results = el("div", { class: "sim-results" },
    el("section", { class: "card" }, el("div", { class: "title-row" }, el("h2", {}, "Regret"), round), regret, scores, details),
    el("section", { class: "card", id: "sim-shares", hidden: true }, el("div", { class: "title-row" }, el("h2", {}, "Which arms they choose"), which), multiples, names));
  host.append(
    el("h1", {}, "Simulator"),
    el("p", { class: "lead" }, "No data needed. The service runs its own compiled policies on a world that you choose, and every policy meets the same luck. Lower regret is better."),
    el("div", { class: "sim" }, form, results));
  regret.append(el("p", { class: "waiting" }, "Choose a world and press start: the curves grow here."));

  let stopAsking = () => {}, told = null, steps = [], seen = 0, playing = false, last = 0, frame = 0;

  const tellWorld = () => say(story, WORLDS.find(([value]) => value === world.value)[2]);
  const rounds = () => HORIZONS[Number(horizon.input.value)];
  const most = () => Math.floor(MOST_WORK / (rounds() * Math.max(8, Number(arms.input.value))));
  function tellLimit() {
    const wanted = Number(runs.input.value);
    say(limit, wanted > most() ? `So many rounds and arms leave time for ${most()} ${most() === 1 ? "run" : "runs"}.` : "");
  }

  function best(at) {
    const { name, period } = told.environment;
    return name === "Drifting" ? Math.floor((at - 1) / period) % told.arms : 0;
  }

  function draw() {
    if (!told || !seen) return;
    const shown = steps.slice(0, seen);
    const now = shown.at(-1);
    say(round, `round ${count(now.round)} of ${count(told.rounds)}, ${told.runs === 1 ? "one run" : `mean of ${told.runs} runs`}`);
    const series = told.policies.map(({ name }, i) => ({
      name, colour: `p-${i}`, dash: DASHES[i],
      points: [[0, 0], ...shown.map((step) => [step.round, step.policies[i].regret])],
      band: told.runs === 1 ? null : [[0, 0, 0], ...shown.map(({ round: at, policies }) =>
        [at, policies[i].regret - policies[i].half_width, policies[i].regret + policies[i].half_width])],
    }));
    lineChart(regret, {
      label: `Regret after ${now.round} rounds: ${told.policies.map(({ name }, i) => `${name} ${decimal(now.policies[i].regret, 1)}`).join(", ")}.`,
      series, xMax: told.rounds, xTitle: told.runs === 1 ? "rounds" : "rounds (bands: 95%, at each moment)", yTitle: "regret",
    });
    told.policies.forEach((_, i) => {
      const at = now.policies[i];
      say(scores.cells[i][0], decimal(at.regret, 1));
      say(scores.cells[i][1], at.half_width === null ? "–" : `± ${decimal(at.half_width, 1)}`);
      say(scores.cells[i][2], percent(at.exploit[best(now.round)]));
    });
    drawShares(shown);
    if (details.open) drawTable(shown);
  }

  function drawShares(shown) {
    const kind = which.querySelector("input:checked").value;
    const xs = shown.map((step) => step.round);
    const few = Math.min(told.arms, told.arms > COLOURS ? COLOURS - 1 : COLOURS);
    told.policies.forEach(({ name }, i) => {
      const layers = layerNames().map(({ name: arm, colour }, k) => ({
        name: arm, colour,
        values: shown.map(({ policies }) => (k < few ? policies[i][kind][k] : policies[i][kind].slice(few).reduce((sum, each) => sum + each, 0))),
      }));
      const word = kind === "exploit" ? "exploited" : "explored";
      shareChart(multiples.hosts[i], {
        label: `${name}: share of rounds in which each arm was ${word}. Latest: ${layers.map((layer) => `${layer.name} ${percent(layer.values.at(-1))}`).join(", ")}.`,
        xs, layers, xMin: 0, xMax: told.rounds, xText: short, height: 170, xWanted: 3,
      });
    });
  }

  const layerNames = () => {
    const few = Math.min(told.arms, told.arms > COLOURS ? COLOURS - 1 : COLOURS);
    const found = Array.from({ length: few }, (_, k) => ({ name: k === 0 ? "Arm 1, the best" : `Arm ${k + 1}`, colour: `s-${k}` }));
    if (told.environment.name === "Drifting") found[0].name = "Arm 1, the best at first";
    if (told.environment.name === "PunishLast") found[0].name = "Arm 1, the better";
    if (told.arms > few) found.push({ name: `${told.arms - few} other arms`, colour: "s-other" });
    return found;
  };

  function drawTable(shown) {
    const step = Math.max(1, Math.floor(shown.length / 10));
    const rows = shown.filter((_, i) => (i + 1) % step === 0 || i === shown.length - 1)
      .map(({ round: at, policies }) => [count(at), ...policies.map((each) => decimal(each.regret, 1))]);
    numbers.replaceChildren(table("Mean regret", ["Round", ...told.policies.map(({ name }) => name)], rows));
  }

  function prepare() {
    scores.cells = told.policies.map(() => [0, 1, 2].map(() => el("td", { class: "number" }, "–")));
    scores.replaceChildren(el("table", { class: "scores", "aria-label": "Regret so far" },
      el("thead", {}, el("tr", {}, ["Policy", "Regret", "95%, at this moment", "On the best arm"].map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, told.policies.map(({ name }, i) =>
        el("tr", { "data-policy": name }, el("th", { scope: "row" }, swatch(`p-${i}`, DASHES[i]), name), scores.cells[i])))));
    multiples.hosts = told.policies.map(() => el("div", { class: "chart" }));
    multiples.replaceChildren(...told.policies.map(({ name }, i) =>
      el("figure", {}, el("figcaption", {}, swatch(`p-${i}`, DASHES[i]), name), multiples.hosts[i])));
    names.replaceChildren(legend(layerNames()));
    details.hidden = false;
    host.querySelector("#sim-shares").hidden = false;
  }

  // Steps come faster than anyone can watch; they are shown one by one, unless motion is unwanted.
  function play(now) {
    frame = 0;
    if (!playing) return;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (seen < steps.length && (still || now - last >= PACE)) {
      last = now;
      seen = still ? steps.length : seen + 1;
      draw();
    }
    if (told && seen === told.steps) return finish();
    frame = requestAnimationFrame(play);
  }

  function setPlaying(value) {
    playing = value;
    say(pause, value || !told || seen === told.steps ? "Pause" : "Go on");
    if (value && !frame) frame = requestAnimationFrame(play);
  }

  function finish() {
    playing = false;
    pause.disabled = true;
    say(start, "Start again");
    results.dataset.state = "done";
  }

  async function ask() {
    stopAsking();
    const asked = new AbortController();
    stopAsking = () => asked.abort();
    told = null;
    steps = [];
    seen = 0;
    problem.hidden = true;
    results.dataset.state = "running";
    const query = new URLSearchParams({
      environment: world.value, arms: arms.input.value, gap: gap.input.value, rounds: rounds(),
      runs: Math.max(1, Math.min(Number(runs.input.value), most())), seed: seed.value,
    });
    say(start, "Start again");
    const slow = setTimeout(() => {
      if (!steps.length) say(limit, "The policies are being compiled for this machine. That is done once, and takes some seconds.");
    }, 1500);
    try {
      for await (const line of jsonLines(`v1/simulator?${query}`, asked.signal)) {
        if (asked.signal.aborted) return;
        if (told === null) {
          told = line;
          prepare();
          pause.disabled = false;
          setPlaying(true);
        } else {
          if (!steps.length) {
            clearTimeout(slow);
            tellLimit();
          }
          steps.push(line);
        }
      }
      if (steps.length !== told?.steps) throw broken();
    } catch (error) {
      clearTimeout(slow);
      if (error.name === "AbortError" || asked.signal.aborted) return;
      problem.textContent = error.message;
      problem.hidden = false;
      finish();
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  pause.addEventListener("click", () => setPlaying(!playing));
  form.addEventListener("input", () => {
    tellWorld();
    tellLimit();
  });
  which.addEventListener("change", draw);
  details.addEventListener("toggle", draw);
  const stopWatching = onResize(regret, draw);
  tellWorld();
  tellLimit();
  return () => {
    stopAsking();
    stopWatching();
    cancelAnimationFrame(frame);
  };
}
