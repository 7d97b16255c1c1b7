// Which arm is best for whom: the segments of the context. Pick one to see its arms.

import { ask, experimentPath } from "./api.js";
import { count, decimal, el, field, percent, setText } from "./dom.js";
import { lossDigits, overlapText } from "./verdict.js";

const HEADS = ["Arm", "Mean loss", "From", "To", "Observed"];
const spoken = (value) => (value === null ? "(none)" : String(value));
const nameOf = ({ segment }) => (segment === null ? "all others" : Object.values(segment).map(spoken).join(" / "));

export const hasSegments = (experiment) => Object.values(experiment.context).some((kind) => kind !== "number");

// Null for an experiment whose context tells no segments apart.
export function segmentsPanel(experiment) {
  if (!hasSegments(experiment)) return null;
  const digits = lossDigits(experiment.loss_range);
  const picked = el("select", { id: "segment" });
  const answer = el("p", { id: "segment-text", role: "status", "data-varies": true });
  const body = el("tbody", { role: "rowgroup" });
  const hint = el("p", { class: "hint" });
  const node = el("section", { class: "card", id: "segments", hidden: true }, el("h2", {}, "Which arm is best for whom?"),
    field("Segment", picked), answer,
    el("table", { class: "arms", role: "table", "aria-label": "Arms of the segment" },
      el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, HEADS.map((head, i) => el("th", { role: "columnheader", scope: "col", class: i ? "number" : "arm" }, head)))), body),
    hint);
  let segments = [], known = "";

  function show() {
    const one = segments[picked.selectedIndex];
    if (!one) return;
    setText(answer, `${one.text}, from ${count(one.observed)} losses of ${count(one.decisions)} decisions.${overlapText(one)}`);
    body.replaceChildren(...one.arms.map(({ arm, observed, loss }) => el("tr", { role: "row" },
      el("th", { role: "rowheader", scope: "row" }, el("bdi", {}, String(arm))),
      [loss.estimate, loss.low, loss.high].map((value, i) => el("td", { role: "cell", class: "number", "data-label": HEADS[i + 1] }, observed ? decimal(value, digits) : "–")),
      el("td", { role: "cell", class: "number", "data-label": HEADS[4] }, count(observed)))));
  }

  picked.addEventListener("change", show);
  return {
    node,
    async look() {
      const found = await ask(`${experimentPath(experiment.name)}/segments`);
      node.hidden = found.segments.length === 0;
      setText(hint, `Segments by ${found.by.join(", ")}. All of them hold together, at every moment at once, with a probability of ${percent(1 - found.risk, 0)}.${found.others ? ` ${count(found.others)} more are not listed.` : ""}`);
      // The chosen one stays chosen, also if others come before it.
      const chosen = picked.value;
      segments = found.segments;
      const names = segments.map(nameOf);
      if (JSON.stringify(names) !== known) {
        known = JSON.stringify(names);
        picked.replaceChildren(...names.map((name) => el("option", { value: name, selected: name === chosen }, name)));
      }
      show();
      return found;
    },
  };
}
