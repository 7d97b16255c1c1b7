// What is decided, in words: the verdict, the incumbent, and the regret.

import { count, decimal, el, percent, setText } from "./dom.js";

export function verdictPanel() {
  const text = el("bdi", { id: "verdict-text", "data-varies": true });
  const remark = el("p", { class: "hint", id: "verdict-remark", "data-varies": true, hidden: true });
  const judge = el("p", { class: "hint", id: "verdict-judge", "data-varies": true, hidden: true });
  const warning = el("p", { class: "problem", id: "verdict-warning", role: "alert", hidden: true });
  const incumbent = el("p", { class: "hint", id: "incumbent", hidden: true });
  const node = el("div", { class: "verdict", id: "verdict", "data-state": "open", hidden: true },
    el("h2", {}, "Which arm is best?"), el("p", { class: "answer" }, text), warning, judge, remark, incumbent);
  return {
    node,
    update(verdict) {
      node.hidden = false;
      node.dataset.state = verdict.state;
      setText(text, capital(verdict.text));
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

// A verdict holds as of the round at which it was decided, and losses may have drifted since.
function noteOf({ decided_at: at, sure, drift, remark }) {
  const now = at === null ? "" : `The evidence of now shows the same at a level of ${percent(Math.min(Math.floor(1000 * sure) / 1000, 0.999), 1)}`
    + `${drift ? "; what was decided holds as of its round" : ""}. `;
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
