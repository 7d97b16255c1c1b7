// The table of arms. Rows are created once; then only their numbers change.

import { swatch } from "./charts.js";
import { count, decimal, el, percent, setText, svg } from "./dom.js";
import { lossDigits, overlapText } from "./verdict.js";

const PAGE = 50;
const HEADS = [
  ["Arm", "arm"], ["Exploited next", "bar"], ["Explored next", "bar"],
  ["Mean loss", "number"], ["Exploited", "number"], ["Explored", "number"],
];

function bar(kind) {
  const part = svg("rect", { class: `bar ${kind}`, x: 0, y: 0, width: 0, height: 8, rx: 2 });
  const text = el("span", { class: "figure" });
  const node = el("td", { role: "cell", class: "bar-cell" }, text,
    svg("svg", { class: "bar-box", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { class: "bar-back", x: 0, y: 0, width: 100, height: 8, rx: 2 }), part));
  return {
    node,
    set(value) {
      setText(text, percent(value));
      part.setAttribute("width", (100 * value).toFixed(2));
    },
  };
}

function row(arm, digits) {
  const mark = el("span", { class: "mark" });
  const exploit = bar("use"), explore = bar("try");
  const cells = HEADS.slice(3).map(() => el("td", { role: "cell", class: "number" }));
  const loss = el("span", {}), interval = el("span", { class: "hint" });
  cells[0].append(loss, " ", interval);
  const node = el("tr", { role: "row" },
    el("th", { role: "rowheader", scope: "row" }, mark, el("bdi", {}, String(arm))), exploit.node, explore.node, cells);
  [exploit.node, explore.node, ...cells].forEach((cell, i) => cell.setAttribute("data-label", HEADS[i + 1][0]));
  let colour = null;
  return {
    node,
    set(state, i, wanted, known) {
      if (colour !== wanted) {
        colour = wanted;
        mark.replaceChildren(swatch(wanted));
      }
      exploit.set(state.exploitation[i]);
      explore.set(state.exploration[i]);
      setText(loss, known?.observed ? decimal(known.loss.estimate, digits) : "–");
      setText(interval, known?.observed ? `${decimal(known.loss.low, digits)} to ${decimal(known.loss.high, digits)}` : "");
      setText(cells[1], count(state.plays_exploit[i]));
      setText(cells[2], count(state.plays_explore[i]));
    },
  };
}

export function armsTable(experiment) {
  const digits = lossDigits(experiment.loss_range);
  const body = el("tbody", { role: "rowgroup" });
  const more = el("button", { type: "button", class: "quiet", hidden: true });
  const overlap = el("span", { id: "overlap", "data-varies": true });
  const hint = el("p", { class: "hint" },
    `Exploited next, explored next: the exact probabilities for the next decision${experiment.policy.segments ? ", if nothing is known of its request" : ""}. Mean loss: over all observed decisions that could explore the arm, with an interval that holds at every moment at once.`, overlap);
  const node = el("div", {},
    el("table", { class: "arms", role: "table", "aria-label": "Arms" },
      el("thead", { role: "rowgroup" }, el("tr", { role: "row" },
        HEADS.map(([text, kind]) => el("th", { role: "columnheader", scope: "col", class: kind }, text)))),
      body),
    el("p", { class: "actions" }, more), hint);
  let rows = new Map(), known = "", limit = PAGE, latest = null, losses = new Map();

  function update(state, colours) {
    latest = [state, colours];
    const text = JSON.stringify(state.arms);
    if (text !== known) {
      known = text;
      rows = new Map();
    }
    // If there are many arms, show those that are exploited most. A short list keeps its order.
    let order = state.arms.map((_, i) => i);
    if (order.length > limit) {
      order = order.sort((a, b) => state.exploitation[b] - state.exploitation[a]).slice(0, limit);
    }
    const nodes = order.map((i) => {
      if (!rows.has(i)) rows.set(i, row(state.arms[i], digits));
      rows.get(i).set(state, i, colours.get(i) ?? "s-other", losses.get(state.arms[i]));
      return rows.get(i).node;
    });
    if (nodes.length !== body.children.length || nodes.some((each, i) => each !== body.children[i])) body.replaceChildren(...nodes);
    more.hidden = state.arms.length <= limit;
    setText(more, `Show more of the ${count(state.arms.length)} arms`);
  }

  more.addEventListener("click", () => {
    limit += 4 * PAGE;
    update(...latest);
  });
  return {
    node,
    update,
    judge(verdict) {
      losses = new Map(verdict.arms.map((each) => [each.arm, each]));
      setText(overlap, overlapText(verdict));
      if (latest) update(...latest);
    },
  };
}
