// The list of experiments, next to the selected one.

import { access, ask, experimentPath, experiments, may } from "./api.js";
import { el, setText } from "./dom.js";
import { experimentPanel } from "./experiment.js";
import { poll } from "./live.js";
import { hasSegments } from "./segments.js";
import { briefly } from "./verdict.js";

const HOW = [
  ["Ask for a decision", "It names an arm to use and an arm to try. Often they are the same.", "POST v1/experiments/NAME/decisions"],
  ["Use one, try the other", "Serve the exploited arm. Try the explored arm in shadow, on a sample, or offline.", '{"exploit": "a", "explore": "b", …}'],
  ["Send the loss of the arm you tried", "Late, twice or out of order: it is applied once, and it is on disk before the service responds.", "PUT v1/decisions/ID/feedback"],
];

const JUDGED = 50; // the first experiments of the list show their verdicts,
const AT_ONCE = 8; // so many of which are asked for each time, as each may have to be computed

const NOTES = { archived: " · archived", compiling: " · compiling…", failed: " · does not compile" };

export function experimentsView(host, chosen) {
  const list = el("ul", { class: "list" });
  const panel = el("section", { class: "panel", "aria-label": chosen ? "Experiment" : "Start" });
  const create = el("a", { class: "button primary small", href: "#new", id: "new", hidden: true }, "New");
  const side = el("aside", { class: "side", "aria-label": "Experiments" },
    el("div", { class: "side-head" },
      el("h2", {}, "Experiments"),
      create),
    list);
  host.append(el("div", { class: chosen ? "split chosen" : "split" }, side, panel));

  let shown = null, stopPanel = () => {}, last = "", changes = 0, waiting = false;
  const verdicts = new Map(); // by experiment: the state that it was asked for, its words, and where they stand

  async function judge(found) {
    const stale = found.slice(0, JUDGED).filter((each) => ["ready", "archived"].includes(each.status) && each.state_version > 0
      && verdicts.get(each.name).version !== each.state_version
      && performance.now() - verdicts.get(each.name).asked > (hasSegments(each) ? 60_000 : 0)); // segments are read from the log
    for (const each of stale.slice(0, AT_ONCE)) {
      const known = verdicts.get(each.name);
      Object.assign(known, { version: each.state_version, asked: performance.now() });
      try {
        setText(known.node, briefly(await ask(`${experimentPath(each.name)}/${hasSegments(each) ? "segments" : "verdict"}`)));
      } catch (error) { // what is wrong, its own page says; what is being loaded is asked for again
        if (error.status === 503) known.version = -1;
      }
    }
  }

  const version = (experiment) => JSON.stringify([experiment.status, experiment.arms, experiment.guardrails, experiment.budget]);

  function open(experiment, news) {
    stopPanel();
    panel.setAttribute("aria-label", "Experiment");
    shown = version(experiment);
    stopPanel = experimentPanel(panel, experiment, changed, news);
  }

  function changed(experiment, news) {
    changes += 1;
    open(experiment, news);
    watching.now();
  }

  const watching = poll(async () => {
    let found;
    const before = changes;
    try {
      await access();
      found = await experiments();
    } catch (error) {
      if (shown === null) panel.replaceChildren(el("p", { class: "notice" }, error.message));
      return;
    }
    create.hidden = !may("admin");
    if (changes !== before) return; // requested before the change, so it may be out of date
    const only = found.length === 1 ? found[0].name : null;
    const text = JSON.stringify(found.map((each) => [each.name, each.status, each.arms.length, each.guardrails.pinned]));
    if (text !== last) {
      last = text;
      for (const { name } of found) if (!verdicts.has(name)) verdicts.set(name, { version: -1, asked: -Infinity, node: el("span", { class: "hint", "data-verdict": name, "data-varies": true }) });
      list.replaceChildren(...found.map((each) => entry(each, each.name === (chosen ?? only), verdicts.get(each.name).node)));
      side.hidden = found.length === 0;
    }
    // Where there is nothing to choose from, home is the one experiment.
    const wanted = found.find((each) => each.name === (chosen ?? only));
    if (wanted && shown !== version(wanted)) open(wanted);
    else if (!wanted && shown === null) panel.replaceChildren(...invitation(found.length, chosen));
    waiting = found.some((each) => each.status === "compiling");
    await judge(found);
  }, () => (shown === null || waiting ? 2000 : 5000));

  return () => {
    watching.stop();
    stopPanel();
  };
}

function entry(experiment, here, verdict) {
  return el("li", {},
    el("a", { href: `#experiments/${encodeURIComponent(experiment.name)}`, "aria-current": here ? "page" : null },
      el("bdi", { class: "name" }, experiment.name),
      el("span", { class: "hint" }, `${experiment.policy_label} · ${experiment.arms.length} arms`,
        experiment.demo ? " · demo" : "", experiment.guardrails.pinned === null ? "" : " · pinned", NOTES[experiment.status] ?? ""),
      verdict));
}

function invitation(howMany, chosen) {
  if (howMany > 0) {
    return [el("div", { class: "empty" },
      el("h1", {}, chosen ? "No such experiment" : "Choose an experiment"),
      el("p", {}, chosen ? ["This service has no experiment ", el("bdi", {}, chosen), ". "] : null,
        "Select one from the list to watch it learn."))];
  }
  return [el("div", { class: "empty" },
    el("h1", {}, "Use one arm, try another"),
    el("p", {}, may("admin")
      ? "There are no experiments yet. Create one for your program, or create a demo experiment and send test traffic to it."
      : "There are no experiments yet, and this key cannot create one."),
    el("p", { class: "actions centred" },
      may("admin") ? [
        el("a", { class: "button primary", href: "#new" }, "Create an experiment"),
        el("a", { class: "button", href: "#new/demo" }, "Create a demo experiment")] : null)),
  el("ol", { class: "how" }, HOW.map(([title, text, call]) => el("li", { class: "card" }, el("h2", {}, title), el("p", {}, text), el("code", {}, call))))];
}
