// Which arms the traffic of the last seconds went to, since the page was opened.

import { COLOURS, legend, onResize, shareChart, table } from "./charts.js";
import { clock, el, percent } from "./dom.js";

const KEPT = 600; // points, a second apart
const SPAN = 10_000; // milliseconds over which a share is taken: one second alone would be mostly noise
const SHORTEST = 30_000; // of the time axis

export function sharePanel() {
  const chart = el("div", { class: "chart", id: "share-chart" }, el("p", { class: "waiting" }, "Waiting for the first numbers."));
  const names = el("div", {});
  const numbers = el("div", {});
  const details = el("details", { hidden: true }, el("summary", {}, "The same as a table"), numbers);
  const choice = (value, text) =>
    el("label", { class: "radio" }, el("input", { type: "radio", name: "share-of", value, checked: value === "plays_exploit" }), text);
  const chosen = el("fieldset", { class: "radios" },
    el("legend", { class: "hidden" }, "Which arms are counted"),
    choice("plays_exploit", "Exploited"), choice("plays_explore", "Explored"));
  const node = el("section", { class: "card" },
    el("div", { class: "title-row" }, el("h2", {}, "Share of traffic"), chosen),
    chart, names, details);
  const history = [];
  const slots = new Map(); // arm -> colour; an arm keeps its colour while it is among the largest
  let arms = [], drawn = "";

  const kind = () => node.querySelector("input:checked").value;

  function shares() {
    let from = 0;
    return history.map((point, i) => {
      while (history[from].at < point.at - SPAN) from += 1;
      const start = history[Math.max(0, Math.min(from, i - 1))];
      const made = point[kind()].map((plays, arm) => plays - (start[kind()][arm] ?? 0));
      const total = made.reduce((sum, each) => sum + each, 0);
      return total > 0 ? made.map((each) => each / total) : null;
    });
  }

  function colours(state) {
    const order = state.arms.map((_, i) => i);
    const most = order.length <= COLOURS ? order
      : order.sort((a, b) => state.plays_exploit[b] - state.plays_exploit[a] || a - b).slice(0, COLOURS - 1);
    for (const arm of [...slots.keys()]) if (!most.includes(arm)) slots.delete(arm);
    for (const arm of most) {
      if (slots.has(arm)) continue;
      const used = new Set(slots.values());
      let slot = arm < COLOURS && !used.has(`s-${arm}`) ? arm : 0;
      while (used.has(`s-${slot}`)) slot += 1;
      slots.set(arm, `s-${slot}`);
    }
    return slots;
  }

  function layers(found) {
    const shown = [...slots.keys()].sort((a, b) => a - b);
    const made = shown.map((arm) => ({
      name: String(arms[arm]), colour: slots.get(arm), values: found.map((each) => (each ? each[arm] : null)),
    }));
    if (arms.length > shown.length) {
      const rest = found.map((each) => (each ? Math.max(0, 1 - shown.reduce((sum, arm) => sum + each[arm], 0)) : null));
      made.push({ name: `${arms.length - shown.length} other arms`, colour: "s-other", values: rest });
    }
    return made;
  }

  function draw() {
    if (!history.length || !node.isConnected) return;
    const found = shares();
    if (found.every((each) => each === null)) {
      chart.replaceChildren(el("p", { class: "waiting" }, "No traffic since this page was opened. Send some below, or from your own program."));
      names.replaceChildren();
      details.hidden = true;
      drawn = "";
      return;
    }
    details.hidden = false;
    const parts = layers(found);
    const xs = history.map((point) => point.at);
    const which = kind() === "plays_exploit" ? "exploited" : "explored";
    const latest = parts.map((part) => `${part.name} ${percent(part.values.findLast((value) => value !== null))}`).join(", ");
    shareChart(chart, {
      label: `Share of decisions in which each arm was ${which}, over the last ten seconds at each moment. Latest: ${latest}.`,
      xs, layers: parts, xText: clock, xTitle: "time (each share is over the last 10 s)", xMax: Math.max(xs.at(-1), xs[0] + SHORTEST),
    });
    const text = JSON.stringify(parts.map((part) => [part.name, part.colour]));
    if (text !== drawn) {
      drawn = text;
      names.replaceChildren(legend(parts));
    }
    if (details.open) {
      const step = Math.max(1, Math.floor(xs.length / 12));
      const rows = [];
      for (let i = xs.length - 1; i >= 0 && rows.length < 12; i -= step) {
        rows.push([clock(xs[i]), ...parts.map((part) => percent(part.values[i]))]);
      }
      numbers.replaceChildren(table(`Share of decisions, ${which}`, ["Time", ...parts.map((part) => part.name)], rows));
    }
  }

  node.addEventListener("change", draw);
  details.addEventListener("toggle", draw);
  const stop = onResize(chart, draw);
  return {
    node,
    stop,
    update(state) {
      if (JSON.stringify(arms) !== JSON.stringify(state.arms)) {
        arms = state.arms;
        history.length = 0; // the places of arms have changed
        slots.clear();
      }
      history.push({ at: Date.now(), plays_exploit: state.plays_exploit, plays_explore: state.plays_explore });
      if (history.length > (arms.length > 200 ? KEPT / 5 : KEPT)) history.shift();
      const found = colours(state);
      draw();
      return found;
    },
  };
}
