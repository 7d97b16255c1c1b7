// The share of recent traffic that each arm received, since the page was opened.

import { may } from "./api.js";
import { COLOURS, legend, onResize, shareChart, table } from "./charts.js";
import { clock, day, el, percent, radios, setText } from "./dom.js";

const KEPT = 600; // points, a second apart
const SPAN = 10_000; // milliseconds that a share covers: a single second would be mostly noise
const LONGEST_GAP = 2 * SPAN; // between two points; after a longer gap there is no recent share
const SHORTEST = 30_000; // the shortest time axis
const DAY = 86_400_000;

// Kept while the page is open, so that an experiment shows its history when it is archived or opened again.
// slots: arm -> colour. An arm keeps its colour while it is among the largest.
const seen = new Map();
const MOST_SEEN = 20; // experiments

function memory(experiment) {
  const name = JSON.stringify([experiment.name, experiment.created_at]);
  const found = seen.get(name) ?? { history: [], arms: [], slots: new Map() };
  seen.delete(name);
  seen.set(name, found);
  if (seen.size > MOST_SEEN) seen.delete(seen.keys().next().value);
  return found;
}

const sum = (numbers) => numbers.reduce((all, each) => all + each, 0);

export function sharePanel(experiment) {
  const archived = experiment.archived_at !== null;
  const chart = el("div", { class: "chart", id: "share-chart" }, el("p", { class: "waiting" }, "Waiting for data."));
  const note = el("p", { class: "hint", id: "share-note" });
  const names = el("div", {});
  const numbers = el("div", {});
  const details = el("details", { hidden: true }, el("summary", {}, "Show as a table"), numbers);
  const chosen = radios("share-of", [["plays_exploit", "Exploited"], ["plays_explore", "Explored"]]);
  const node = el("section", { class: "card" },
    el("div", { class: "title-row" }, el("h2", {}, "Share of traffic"), chosen),
    note, chart, names, details);
  const kept = memory(experiment);
  const { history, slots } = kept;
  let drawn = "", latest = null;

  const kind = () => node.querySelector("input:checked").value;

  // For each moment, the share of every present arm.
  function shares() {
    const which = kind();
    const places = new Map(); // a list of arms -> the place of each present arm in it
    const placesIn = (list) => {
      if (!places.has(list)) {
        const at = new Map(list.map((arm, i) => [arm, i]));
        places.set(list, kept.arms.map((arm) => at.get(arm)));
      }
      return places.get(list);
    };
    let from = 0;
    return history.map((point, i) => {
      while (history[from].at < point.at - SPAN) from += 1;
      const start = history[Math.max(0, Math.min(from, i - 1))];
      if (point.at - start.at > LONGEST_GAP) return null; // the page was hidden
      const [now, then] = [placesIn(point.arms), placesIn(start.arms)];
      const made = now.map((place, arm) => Math.max(0, (point[which][place] ?? 0) - (start[which][then[arm]] ?? 0)));
      const total = point.arms === start.arms ? sum(point[which]) - sum(start[which]) : sum(made);
      return total > 0 ? made.map((each) => each / total) : null;
    });
  }

  // All traffic as one block, for an experiment that was archived before the page was opened.
  function wholeLife() {
    const plays = latest[kind()];
    const total = sum(plays);
    const all = total > 0 ? plays.map((each) => each / total) : null;
    const [from, to] = [experiment.created_at, experiment.archived_at].map((each) => new Date(each).getTime());
    return [[from, Math.max(to, from + 1000)], [all, all]];
  }

  function colours(state) {
    const order = state.arms.map((_, i) => i);
    const most = (order.length <= COLOURS ? order
      : order.sort((a, b) => state.plays_exploit[b] - state.plays_exploit[a] || a - b).slice(0, COLOURS - 1)).map((i) => state.arms[i]);
    for (const arm of [...slots.keys()]) if (!most.includes(arm)) slots.delete(arm);
    for (const arm of most) {
      if (slots.has(arm)) continue;
      const used = new Set(slots.values());
      const place = state.arms.indexOf(arm);
      let slot = place < COLOURS && !used.has(`s-${place}`) ? place : 0;
      while (used.has(`s-${slot}`)) slot += 1;
      slots.set(arm, `s-${slot}`);
    }
    return new Map(state.arms.map((arm, i) => [i, slots.get(arm)]));
  }

  function layers(found) {
    const { arms } = kept;
    const shown = arms.map((_, i) => i).filter((i) => slots.has(arms[i]));
    const made = shown.map((i) => ({
      name: String(arms[i]), colour: slots.get(arms[i]), values: found.map((each) => (each ? each[i] : null)),
    }));
    const others = arms.length - shown.length;
    const retired = found.some((each) => each && sum(each) < 1 - 1e-9);
    if (others || retired) {
      const name = [others ? `${others} other arms` : "", retired ? "retired arms" : ""].filter(Boolean).join(", ");
      const values = found.map((each) => (each ? Math.max(0, 1 - shown.reduce((all, i) => all + each[i], 0)) : null));
      made.push({ name, colour: "s-other", values });
    }
    return made;
  }

  function nothing() {
    if (archived) return "Archived without a decision.";
    const more = experiment.demo && may("decide") ? "Send some below, or from your program." : "Decisions appear here when programs request them.";
    return `No traffic since this page was opened. ${more}`;
  }

  function draw() {
    if (!latest || !node.isConnected) return;
    let xs = history.map((point) => point.at), found = shares();
    const whole = archived && found.every((each) => each === null);
    if (whole) [xs, found] = wholeLife();
    setText(note, archived ? `Archived ${new Date(experiment.archived_at).toLocaleString("en-GB")}. ${whole ? "The chart shows all its traffic combined." : "The chart shows the traffic seen until then."}` : "");
    if (found.every((each) => each === null)) {
      chart.replaceChildren(el("p", { class: "waiting" }, nothing()));
      names.replaceChildren();
      details.hidden = true;
      drawn = "";
      return;
    }
    details.hidden = false;
    const parts = layers(found);
    const xText = xs.at(-1) - xs[0] > DAY ? day : clock;
    const over = whole ? "all its traffic" : "the last ten seconds at each moment";
    const which = kind() === "plays_exploit" ? "exploited" : "explored";
    const latestShares = parts.map((part) => `${part.name} ${percent(part.values.findLast((value) => value !== null))}`).join(", ");
    shareChart(chart, {
      label: `Share of decisions in which each arm was ${which}, over ${over}. Latest: ${latestShares}.`,
      xs, layers: parts, xText, xTitle: whole ? "time (share of all traffic)" : "time (share of the last 10 s)",
      xMax: whole ? xs.at(-1) : Math.max(xs.at(-1), xs[0] + SHORTEST),
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
        rows.push([xText(xs[i]), ...parts.map((part) => percent(part.values[i]))]);
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
      // Points with the same arms share one list: plays are by place, and places change with the arms.
      if (JSON.stringify(kept.arms) !== JSON.stringify(state.arms)) kept.arms = state.arms;
      latest = { at: Date.now(), arms: kept.arms, plays_exploit: state.plays_exploit, plays_explore: state.plays_explore };
      if (!archived) history.push(latest);
      if (history.length > (kept.arms.length > 200 ? KEPT / 5 : KEPT)) history.shift();
      const found = colours(state);
      draw();
      return found;
    },
  };
}
