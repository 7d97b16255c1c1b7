// The history of an experiment, from its log: the share of traffic of each arm, and its mean loss.

import { may } from "./api.js";
import { COLOURS, legend, lineChart, onResize, shareChart, short, table } from "./charts.js";
import { clock, count, day, decimal, el, percent, radios, setText } from "./dom.js";
import { lossDigits } from "./verdict.js";

const WINDOWS = 25; // a share covers this part of all decisions: fewer would be mostly noise
const ROWS = 12; // of a table
const BANDS = 3; // more than that hide each other
const DAY = 86_400_000;

export function historyPanel(experiment) {
  const shares = chartCard("share", "Share of traffic", radios("share-of", [["exploited", "Exploited"], ["explored", "Explored"]]));
  const losses = chartCard("loss", "Mean loss", null);
  const colours = colourSlots();
  let latest = null;

  function draw() {
    if (!latest || !shares.node.isConnected) return;
    const moments = momentsOf(latest);
    if (moments.length < 2) {
      for (const each of [shares, losses]) each.wait(nothing(experiment));
      return;
    }
    drawShares(shares, latest, moments, colours);
    drawLosses(losses, latest, moments, colours, experiment);
  }

  for (const each of [shares, losses]) {
    each.node.addEventListener("change", draw);
    each.node.addEventListener("toggle", draw, true);
  }
  const stops = [shares, losses].map((each) => onResize(each.chart, draw));
  return {
    nodes: [shares.node, losses.node],
    colours,
    update(history) {
      latest = history;
      setText(shares.note, noteOf(experiment, history));
      draw();
    },
    draw,
    stop: () => stops.forEach((stop) => stop()),
  };
}

function chartCard(name, title, choice) {
  const chart = el("div", { class: "chart", id: `${name}-chart` }, el("p", { class: "waiting" }, "Waiting for data."));
  const note = el("p", { class: "hint", id: `${name}-note`, "data-varies": true });
  const names = el("div", {});
  const numbers = el("div", {});
  const details = el("details", { hidden: true }, el("summary", {}, "Show as a table"), numbers);
  const node = el("section", { class: "card" },
    el("div", { class: "title-row" }, el("h2", {}, title), choice), note, chart, names, details);
  let drawn = "";
  return {
    node, chart, note,
    wait(text) {
      chart.replaceChildren(el("p", { class: "waiting" }, text));
      names.replaceChildren();
      details.hidden = true;
      drawn = "";
    },
    name(parts) {
      const text = JSON.stringify(parts.map((part) => [part.name, part.colour]));
      if (text !== drawn) names.replaceChildren(legend(parts));
      drawn = text;
      details.hidden = false;
    },
    tabulate(make) {
      if (details.open) numbers.replaceChildren(make());
    },
  };
}

// An arm keeps its colour while it is among those that are exploited most.
function colourSlots() {
  const slots = new Map();
  return {
    slots,
    update(state) {
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
    },
  };
}

// The points at which a decision was made since the one before, after a start with none.
function momentsOf(history) {
  const found = [{ point: -1, decisions: 0, at: null }];
  history.decisions.forEach((decisions, point) => {
    const same = found.at(-1).decisions === decisions;
    if (same && point > 0) found.at(-1).point = point;
    else if (!same) found.push({ point, decisions, at: new Date(history.at[point]).getTime() });
  });
  return found;
}

// Arms with a colour, each with its entry of the history.
const shown = (history, { slots }) =>
  history.arms.filter((each) => !each.retired && slots.has(each.arm)).map((each) => ({ ...each, colour: slots.get(each.arm) }));

function drawShares(card, history, moments, colours) {
  const which = card.node.querySelector("input:checked").value;
  const total = moments.at(-1).decisions;
  const span = Math.max(1, Math.ceil(total / WINDOWS));
  const at = (counts, point) => (point < 0 ? 0 : counts[point]);
  let from = 0;
  const windows = moments.slice(1).map((moment, i) => {
    while (moments[from + 1].decisions <= moment.decisions - span) from += 1;
    return [Math.min(from, i), i + 1];
  });
  const made = (counts) => windows.map(([then, now]) => at(counts, moments[now].point) - at(counts, moments[then].point));
  const wholes = made(history[which]); // decisions may only exploit, or only explore
  const share = (values) => values.map((value, i) => (wholes[i] > 0 ? value / wholes[i] : null));
  const arms = shown(history, colours);
  const layers = arms.map((each) => ({ name: String(each.arm), colour: each.colour, values: share(made(each[which])) }));
  const rest = wholes.map((whole, i) => (whole > 0 ? Math.max(0, 1 - layers.reduce((sum, each) => sum + each.values[i], 0)) : null));
  const retired = history.arms.some((each) => each.retired);
  const others = history.others + history.arms.length - arms.length - history.arms.filter((each) => each.retired).length;
  if (rest.some((value) => value > 1e-9)) {
    const name = [others > 0 ? `${count(others)} other arms` : "", retired ? "retired arms" : ""].filter(Boolean).join(", ") || "other arms";
    layers.push({ name, colour: "s-other", values: rest });
  }
  if (wholes.every((whole) => whole === 0)) {
    card.wait(`No arm was ${which} yet.`);
    return;
  }
  const xs = moments.slice(1).map((moment) => moment.decisions);
  const latest = layers.map((part) => `${part.name} ${percent(part.values.findLast((value) => value !== null))}`).join(", ");
  shareChart(card.chart, {
    label: `Share of decisions in which each arm was ${which}, over the last ${count(span)} decisions at each moment. Latest: ${latest}.`,
    xs, layers, xText: short, xTitle: span === 1 ? "decisions" : `decisions (share of the last ${count(span)})`, xMin: 0, xMax: total,
  });
  card.name(layers);
  card.tabulate(() => table(`Share of decisions, ${which}`, ["Decisions", ...layers.map((part) => part.name)],
    newest(moments, (moment, i) => [momentText(moment, moments), ...layers.map((part) => percent(part.values[i]))])));
}

function drawLosses(card, history, moments, colours, experiment) {
  const digits = lossDigits(experiment.loss_range);
  const later = moments.slice(1);
  const series = shown(history, colours).map((each) => {
    const values = later.map(({ point, decisions }) => [decisions, each.loss.estimate[point], each.loss.low[point], each.loss.high[point]])
      .filter(([, estimate]) => estimate !== null);
    return {
      name: String(each.arm), colour: each.colour, values: each,
      points: values.map(([x, estimate]) => [x, estimate]), band: values.map(([x, , low, high]) => [x, low, high]),
    };
  }).filter((each) => each.points.length > 0);
  if (!series.length) {
    card.wait("No loss was observed yet.");
    return;
  }
  const level = percent(history.level, 0);
  const best = series.reduce((lowest, each) => (each.points.at(-1)[1] < lowest.points.at(-1)[1] ? each : lowest));
  if (series.length > BANDS) for (const each of series) if (each !== best) delete each.band;
  const bands = series.length > BANDS ? `the interval of ${best.name}, the lowest now` : "its interval";
  setText(card.note, `The mean loss of each arm as it was known at each moment, with ${bands}. Intervals hold at every moment at once (${level}): look as often as you like.`);
  const latest = series.map((each) => `${each.name} ${decimal(each.points.at(-1)[1], digits)}`).join(", ");
  lineChart(card.chart, {
    label: `Mean loss of each arm by the number of decisions, with ${level} intervals. Latest: ${latest}.`,
    series, xMax: moments.at(-1).decisions, xTitle: "decisions", yTitle: "mean loss", yRange: experiment.loss_range,
  });
  card.name(series);
  card.tabulate(() => table("Mean loss, with its interval", ["Decisions", ...series.map((each) => each.name)],
    newest(moments, (moment) => [momentText(moment, moments), ...series.map(({ values: { loss } }) => lossText(loss, moment.point, digits))])));
}

function lossText(loss, point, digits) {
  if (loss.estimate[point] === null) return "–";
  return `${decimal(loss.estimate[point], digits)} (${decimal(loss.low[point], digits)} to ${decimal(loss.high[point], digits)})`;
}

// Rows of a table, the newest first.
function newest(moments, row) {
  const later = moments.slice(1);
  const step = Math.max(1, Math.floor(later.length / ROWS));
  const rows = [];
  for (let i = later.length - 1; i >= 0 && rows.length < ROWS; i -= step) rows.push(row(later[i], i));
  return rows;
}

const momentText = (moment, moments) =>
  `${count(moment.decisions)} (${(moments.at(-1).at - moments[1].at > DAY ? day : clock)(moment.at)})`;

function nothing(experiment) {
  if (experiment.archived_at !== null) return "Archived without a decision.";
  const more = experiment.demo && may("decide") ? "Send some below, or from your program." : "Decisions appear here when programs request them.";
  return `No traffic yet. ${more}`;
}

function noteOf(experiment, history) {
  const archived = experiment.archived_at === null ? "" : `Archived ${new Date(experiment.archived_at).toLocaleString("en-GB")}. `;
  const since = history.since === null ? "" : `Losses count since ${new Date(history.since).toLocaleString("en-GB")}.`;
  return `${archived}${since}`.trim();
}
