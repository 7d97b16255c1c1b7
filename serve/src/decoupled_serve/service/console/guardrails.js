// Guardrails, budget and labels: the forms that set them, the rules that hold, what was spent, and the kill switch.

import { ask, experimentPath, may } from "./api.js";
import { difference } from "./changes.js";
import { confirmation, count, decimal, el, field, percent, select, setText } from "./dom.js";

const RELEASED = "Another arm was found to be better than the incumbent, so the policy chooses now.";
const LISTED = 1000; // arms to choose a pin from, and to suggest in a form

// The fields of each form: [name in the API, kind, title, hint, attributes of the input]. An empty field sets no rule.
export const GUARDRAILS = [
  ["incumbent", "arm", "Incumbent", "The arm to use until another is known to be better. Empty: the policy chooses from the start."],
  ["risk", "number", "Risk of these rules", "The largest probability that it is ever left while no arm is better, and that the cheapest arm is ever used while it is worse by more than its margin. Empty: 0.05.", { min: 0, max: 1 }],
  ["holdout", "number", "Hold-out", "The share of decisions that use the arm below. Empty: none.", { min: 0, max: 1 }],
  ["control", "arm", "Arm of the hold-out", "Empty: one of the arms, drawn evenly."],
  ["floors", "amounts", "Least share of an arm, one per line", "An arm and a share of the decisions, such as “control: 0.05”."],
  ["cheapest_within", "number", "Cheapest within", "Use the cheapest arm whose loss is known to be within this of every other arm's. Empty: no such rule.", { min: 0 }],
  ["prices", "amounts", "Price of each arm, one per line", "An arm and its price in any unit, such as “large: 3”. The rule above needs that of every arm."],
  ["switch_margin", "number", "Margin for switches", "Keys keep their arms until another arm's estimated mean loss is lower by more than this. Empty: none.", { min: 0 }],
  ["down", "arms", "Arms that are down, one per line", "They are neither used nor explored."],
  ["drift", "flag", "Losses may drift", "Off only if no arm's mean loss ever changes: then a better arm may be found sooner."],
];
export const BUDGET = [
  ["share", "number", "Share of decisions", "Each decision may explore with this probability.", { min: 0, max: 1 }],
  ["decided_share", "number", "Share once it is decided", "Explore so much once a verdict is decided, until an alarm. Empty: go on as before.", { min: 0, max: 1 }],
  ["alarm_every", "number", "Looks until a false alarm", "On average, at least. Empty: 100,000.", { min: 1 }],
  ["rate", "pair", "Explorations", "At most this many explore in any window of this many seconds."],
  ["cost", "amounts", "Most that exploring an arm costs", "With its judgement: one number, or an arm and a number per line, such as “large: 3”. The two limits below need it."],
  ["total", "number", "Spent in all", "At most this much.", { min: 0 }],
  ["allowance", "pair", "Spent in a period", "At most this much in each period of this many seconds: 86400 for a day."],
];
export const LABELS = [
  ["share", "number", "Share of decisions with a label", "If losses come from a judge, this share also asks for the true loss. Empty: losses are true.", { min: 0.001, max: 1 }],
  ["first", "number", "Labels at the start", "This many decisions ask for one. Empty: 200.", { min: 0, step: 1 }],
  ["deadline", "number", "Deadline of a label, in decisions", "After this many newer decisions it no longer counts. Empty: 10,000.", { min: 1, step: 1 }],
  ["missing", "number", "Loss of a missing label", "From 0, the lowest, to 1, the highest. Empty: 0.5.", { min: 0, max: 1 }],
];

const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
const typed = (text) => (text.trim() === "" ? null : Number(text));
const input = (id, attributes) => el("input", { id, autocomplete: "off", spellcheck: "false", ...attributes });
const area = (id) => el("textarea", { id, rows: 2, spellcheck: "false" });

// Each kind of field: its control, how a value is put into it, and what it says, with null if it is empty.
const CONTROLS = {
  number: (id, more) => {
    const node = input(id, { type: "number", step: "any", ...more });
    return { node, set: (value) => { node.value = value; }, get: () => typed(node.value) };
  },
  flag: (id) => {
    const node = el("input", { id, type: "checkbox" });
    return { node, set: (value) => { node.checked = value; }, get: () => node.checked };
  },
  pair: (id) => {
    const ends = [id, `${id}-seconds`].map((each) => input(each, { type: "number", step: "any", min: 0 }));
    ends[1].setAttribute("aria-label", "in so many seconds");
    return {
      node: ends[0], beside: ["in", ends[1], "seconds"],
      set: (value) => ends.forEach((end, i) => { end.value = value[i]; }),
      get: () => (ends.every((end) => end.value === "") ? null : ends.map((end) => typed(end.value))),
    };
  },
  arm: (id, more, arm) => {
    const node = input(id, { list: "known-arms" });
    return { node, set: (value) => { node.value = value; }, get: () => (node.value.trim() ? arm(node.value.trim()) : null) };
  },
  arms: (id, more, arm) => {
    const node = area(id);
    return { node, set: (value) => { node.value = value.join("\n"); }, get: () => (lines(node.value).length ? lines(node.value).map(arm) : null) };
  },
  amounts: (id) => {
    const node = area(id);
    return {
      node,
      set: (value) => { node.value = typeof value === "number" ? value : Object.entries(value).map((pair) => pair.join(": ")).join("\n"); },
      get: () => amounts(node.value),
    };
  },
};

function amounts(text) {
  const found = lines(text);
  if (!found.length) return null;
  if (found.length === 1 && Number.isFinite(Number(found[0]))) return Number(found[0]);
  return Object.fromEntries(found.map((line) => {
    const [, name, value] = line.match(/^(.*\S)\s*:\s*(\S+)$/) ?? [];
    if (!Number.isFinite(Number(value))) throw new Error(`“${line}” must be an arm and a number, such as “control: 0.05”.`);
    return [name, Number(value)];
  }));
}

// The controls for one description of fields, with the values that hold now; `read` gives all that are not empty.
export function settingFields(group, described, values, arm = (text) => text) {
  const controls = described.map(([name, kind, title, hint, more]) => {
    const control = CONTROLS[kind](`${group}-${name}`, more, arm);
    if (values[name] !== null && values[name] !== undefined) control.set(values[name]);
    const node = kind === "flag"
      ? el("div", { class: "field" }, el("label", { class: "check" }, control.node, title), el("span", { class: "hint" }, hint))
      : field(title, control.node, hint);
    if (control.beside) {
      const pair = el("div", { class: "pair" });
      control.node.replaceWith(pair);
      pair.append(control.node, ...control.beside);
    }
    return [name, control, node];
  });
  return {
    node: el("div", { class: "two" }, controls.map(([, , node]) => node)),
    read: () => Object.fromEntries(controls.map(([name, { get }]) => [name, get()]).filter(([, value]) => value !== null)),
  };
}

// `changed` is called with the changed experiment and a message.
export function guardPanel(experiment, changed) {
  const path = experimentPath(experiment.name);
  const rules = experiment.guardrails, budget = experiment.budget;
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const sure = confirmation();
  const strong = (text) => el("strong", {}, el("bdi", {}, String(text)));

  async function attempt(shown, work) {
    shown.hidden = true;
    try {
      await work();
    } catch (error) {
      setText(shown, error.message);
      shown.hidden = false;
    }
  }
  const set = (what, method, body, news) => async () => changed(await ask(`${path}/${what}`, { method, body }), news);
  const pin = (arm, news) => attempt(problem, set("guardrails", "PATCH", { pinned: arm }, news));

  const choice = select("pin-arm", experiment.arms.slice(0, LISTED).map((arm, i) => [String(i), String(arm)]), "0");
  const on = el("button", { type: "button", class: "danger", id: "pin", onclick: () => {
    const arm = experiment.arms[Number(choice.value)];
    sure.ask(["Pin ", strong(arm), " in ", strong(experiment.name), "? Every decision uses it from then on, whatever the policy draws. Exploring and learning go on, and you can undo this."],
      { yes: "Pin now" }, () => pin(arm, `Pinned: ${arm}.`));
  } }, "Pin …");
  const off = el("button", { type: "button", id: "unpin", onclick: () => sure.ask(
    ["Unpin ", strong(rules.pinned), " in ", strong(experiment.name), "? The policy chooses the arm to use again, from what it has learned in the meantime."],
    { yes: "Unpin now" }, () => pin(null, "Unpinned.")) }, "Unpin …");
  const changeable = may("admin") && !experiment.archived_at;
  const pinned = rules.pinned === null
    ? (changeable ? el("div", {}, el("p", { class: "actions" }, el("label", { for: "pin-arm" }, "Kill switch: use only"), choice, on)) : null)
    : el("div", {}, el("p", { class: "problem", id: "pinned" }, "Pinned: every decision uses ", strong(rules.pinned), ". Exploring and learning go on."),
      changeable ? el("p", { class: "actions" }, off) : null);

  // A form for settings that can change. It asks once more, and names each change.
  function changing(what, described, now, method) {
    const known = new Map(experiment.arms.map((arm) => [String(arm), arm]));
    const fields = settingFields(what, described, now, (text) => known.get(text) ?? text);
    const question = confirmation(), refused = el("p", { class: "problem", role: "alert", hidden: true });
    const form = el("form", { class: "form", id: `change-${what}` }, fields.node,
      el("p", { class: "actions" }, el("button", { type: "submit" }, `Change ${what} …`)), question.node, refused);
    const all = () => ({ ...Object.fromEntries(described.map(([name]) => [name, null])), ...fields.read() });
    const old = all();
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      attempt(refused, () => {
        const asked = all(), changes = difference({ old, new: asked });
        if (!changes) throw new Error("Change a field first.");
        const body = Object.fromEntries(Object.entries(asked).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(old[name])));
        question.ask([`Change the ${what} of `, strong(experiment.name), "? ", el("bdi", {}, changes)], { yes: "Change now" },
          () => attempt(refused, set(what, method, method === "PUT" ? { ...now, ...body } : body, `Changed the ${what}.`)));
      });
    });
    return el("details", {}, el("summary", {}, `Change the ${what}`), form);
  }

  const cell = (kind, name) => el("td", { class: "number", [`data-${kind}`]: name }, "–");
  const rows = limits(budget).map(([name, limit, most]) => [name, limit, cell("used", name), cell("left", name), most]);
  const table = rows.length ? el("table", { class: "budget" },
    el("caption", { class: "hidden" }, "The budget for exploring"),
    el("thead", {}, el("tr", {}, ...["Budget for exploring", "Limit", "Used", "Left"].map((title, i) => el("th", { scope: "col", class: i ? "number" : null }, title)))),
    el("tbody", {}, rows.map(([name, limit, used, left]) => el("tr", {}, el("th", { scope: "row" }, TITLES[name]), el("td", { class: "number" }, limit), used, left)))) : null;
  const released = el("p", { class: "hint", id: "released" });
  const above = el("p", { class: "problem", id: "above-cost", hidden: true }), falls = el("p", { class: "hint", id: "decided-share" });
  const others = sentences(rules);
  const nothing = !others.length && !table && rules.pinned === null;
  const node = el("section", { class: "card", id: "guardrails" }, el("h2", {}, "Guardrails and budget"),
    pinned, sure.node, problem,
    others.length ? el("ul", { class: "rules" }, others.map((text) => el("li", {}, text))) : null,
    released, table, above, falls, nothing ? el("p", { class: "hint" }, "No other guardrail is set, and exploring has no budget.") : null,
    changeable ? [
      changing("guardrails", GUARDRAILS, rules, "PATCH"), changing("budget", BUDGET, budget, "PUT"),
      el("datalist", { id: "known-arms" }, experiment.arms.slice(0, LISTED).map((arm) => el("option", { value: arm })))] : null);

  return {
    node,
    update(state) {
      if (state.incumbent_released !== null) setText(released, state.incumbent_released ? RELEASED : "");
      const spent = state.budget_used;
      for (const [name, , cell, left, most] of rows) {
        setText(cell, used(name, spent[name]));
        if (most !== undefined && spent[name] !== undefined) setText(left, used(name, most - spent[name]));
      }
      above.hidden = !spent.above;
      setText(above, `Looks that cost more than declared: ${count(spent.above ?? 0)}. The budget may be exceeded by the difference.`);
      setText(falls, spent.decided === undefined ? "" : (spent.decided
        ? `It is decided, so ${percent(budget.decided_share)} of the decisions explore, until an alarm.`
        : "It is not decided, so exploring has its full share.") + ` Alarms: ${count(spent.alarms)}.`);
    },
  };
}

const TITLES = { share: "Share of decisions", rate: "Explorations", total: "Spent in all", allowance: "Spent in this period" };

const used = (name, value) =>
  value === undefined ? "–" : name === "share" ? percent(value) : name === "rate" ? count(value) : decimal(value);

function limits(budget) {
  const found = [];
  if (budget.share !== null) found.push(["share", percent(budget.share)]);
  else if (budget.decided_share !== null) found.push(["share", percent(1)]);
  if (budget.rate !== null) found.push(["rate", `${count(budget.rate[0])} in ${seconds(budget.rate[1])}`, budget.rate[0]]);
  if (budget.total !== null) found.push(["total", decimal(budget.total), budget.total]);
  if (budget.allowance !== null) found.push(["allowance", `${decimal(budget.allowance[0])} in ${seconds(budget.allowance[1])}`, budget.allowance[0]]);
  return found;
}

const UNITS = [[86400, "day", "days"], [3600, "hour", "hours"], [60, "minute", "minutes"]];

function seconds(value) {
  for (const [length, one, many] of UNITS) {
    if (value % length === 0) return value === length ? `a ${one}`.replace("a hour", "an hour") : `${count(value / length)} ${many}`;
  }
  return value === 1 ? "a second" : `${value} s`;
}

function sentences(rules) {
  const name = (arm) => el("bdi", {}, String(arm));
  const found = Object.entries(rules.floors).map(([arm, least]) => [`At least ${percent(least)} of the decisions use `, name(arm), "."]);
  if (rules.holdout > 0) {
    found.push([`Hold-out: ${percent(rules.holdout)} of the decisions use `, rules.control === null ? "an arm drawn evenly" : name(rules.control), "."]);
  }
  if (rules.incumbent !== null) {
    found.push(["Incumbent: ", name(rules.incumbent), `, used until another arm is known to be better, with a risk of ${percent(rules.risk)}.`]);
  }
  if (rules.cheapest_within !== null) {
    const prices = Object.entries(rules.prices).map(([arm, price]) => `${arm} ${decimal(price)}`).join(", ");
    found.push([`Cheapest: the cheapest arm whose loss is known to be within ${decimal(rules.cheapest_within)} of every other arm’s, with a risk of ${percent(rules.risk)}. Prices: `, name(prices), "."]);
  }
  if (rules.switch_margin !== null) {
    found.push([`Keys keep their arms until another arm’s estimated mean loss is lower by more than ${decimal(rules.switch_margin)}.`]);
  }
  if (rules.down.length) found.push(["Down: ", name(rules.down.join(", ")), "."]);
  return found;
}
