// What is decided, in words: the verdict, the incumbent, and the regret.

import { count, decimal, el, percent, setText } from "./dom.js";

export function verdictPanel() {
  const text = el("bdi", { id: "verdict-text", "data-varies": true });
  const pooled = el("p", { class: "hint", id: "verdict-pooled", "data-varies": true, hidden: true });
  const remark = el("p", { class: "hint", id: "verdict-remark", "data-varies": true, hidden: true });
  const judge = el("p", { class: "hint", id: "verdict-judge", "data-varies": true, hidden: true });
  const warning = el("p", { class: "problem", id: "verdict-warning", role: "alert", hidden: true });
  const incumbent = el("p", { class: "hint", id: "incumbent", hidden: true });
  const node = el("div", { class: "verdict", id: "verdict", "data-state": "open", hidden: true },
    el("h2", {}, "Which arm is best?"), el("p", { class: "answer" }, text), pooled, warning, judge, remark, incumbent);
  return {
    node,
    // With segments, what they say comes first: the mean over all requests may hide it.
    update(verdict, segments) {
      const apart = segments?.segments.length ? segments : null;
      node.hidden = false;
      node.dataset.state = apart ? stateOf(apart.segments) : verdict.state;
      setText(text, capital((apart ?? verdict).text));
      pooled.hidden = apart === null;
      if (apart) setText(pooled, `Over all requests: ${verdict.text}.`);
      judge.hidden = !verdict.judge_report;
      if (verdict.judge_report) setText(judge, judgeText(verdict));
      warning.hidden = !verdict.warning;
      if (verdict.warning) setText(warning, `${verdict.warning[0].toUpperCase()}${verdict.warning.slice(1)}.`);
      const note = noteOf(verdict);
      remark.hidden = note === "";
      setText(remark, note);
      incumbent.hidden = verdict.incumbent === null;
      if (verdict.incumbent !== null) setText(incumbent, incumbentText(verdict));
    },
  };
}

const capital = (text) => (/^too early/.test(text) ? `T${text.slice(1)}` : text); // the name of an arm stays as it is

function stateOf(segments) {
  if (segments.every(({ state }) => state === "decided")) return "decided";
  return segments.some(({ state }) => state !== "open") ? "narrowed" : "open";
}

// In the list of experiments, in a few words.
export function briefly({ state, best, left, arms, segments, others, is_provisional: provisional }) {
  if (segments?.length) {
    const known = segments.filter((each) => each.state === "decided").length;
    return `${count(known)} of ${count(segments.length)}${others ? " listed" : ""} segments decided`;
  }
  if (state === "decided") return `decided${provisional ? " provisionally" : ""}: ${best}`;
  return state === "narrowed" ? `${count(left.length)} of ${count(arms.length)} arms left` : "not decided";
}

// A verdict holds as of the round at which it was decided, and losses may have drifted since.
function noteOf({ decided_at: at, sure, risk, drift, remark }) {
  const now = at === null ? "" : `Decided at round ${count(at)}; the evidence now shows the same at a level of ${percent(Math.min(Math.floor(1000 * sure) / 1000, 0.999), 1)}`
    + (sure < 1 - risk ? " only. A verdict stays; a gate goes by the evidence now, so it may not pass. " : `${drift ? "; what was decided holds as of its round" : ""}. `);
  return now + (remark === null ? "" : `${remark[0].toUpperCase()}${remark.slice(1)}.`);
}

function judgeText({ judge, judge_report: { agreement, labels, missing, awaiting } }) {
  return `The judge alone would say: ${judge}. It agrees with ${count(labels)} labels to ${percent(agreement.estimate, 0)} `
    + `(${percent(agreement.low, 0)} to ${percent(agreement.high, 0)}); ${count(awaiting)} are awaited and ${count(missing)} are missing.`;
}

function incumbentText({ incumbent, incumbent_released: released }) {
  return released
    ? `${incumbent} was the incumbent. Another arm was found to be better, so the policy chooses what is used.`
    : `${incumbent}, the incumbent, is used until another arm is known to be better. Exploring and learning go on.`;
}

// Why the intervals of two means may overlap although one arm is shown to be worse.
export function overlapText({ best, out, arms }) {
  const losses = new Map(arms.filter((each) => each.observed).map((each) => [each.arm, each.loss]));
  const overlaps = losses.has(best) && out.some((arm) => losses.has(arm) && losses.get(arm).low <= losses.get(best).high);
  return overlaps ? " Intervals overlap, although arms are out: arms are compared by their difference, which takes less evidence than two separate means." : "";
}

// Losses with as many digits as their range deserves.
export function lossDigits([low, high]) {
  return Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(high - low))));
}

// What was used so far may be known to have cost more than one arm while it is open which arm is best.
export function regretText({ regret, regret_against: arm, compared, risk, since, state }, lossRange) {
  if (!regret) return "This cannot be estimated yet.";
  const digits = Math.max(0, lossDigits(lossRange) - 1);
  const more = (value) => `${decimal(Math.abs(value), digits)} ${value < 0 ? "less" : "more"}`;
  const from = since === null ? "" : ` since ${new Date(since).toLocaleString("en-GB")}`;
  return `Over ${count(compared)} observed decisions${from}, the exploited arms cost ${more(regret.estimate)} in all than always using ${arm}, which looks best now, would have: `
    + `from ${more(regret.low)} to ${more(regret.high)} (${percent(1 - risk, 0)}, however often you look).`
    + (state === "decided" ? "" : ` This compares all that was used, learning included, with one arm. Which arm is best is another question: see the top of the page.`);
}
