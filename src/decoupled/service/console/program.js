// How a program uses this experiment: an example to copy. Nothing here changes the experiment.

import { key } from "./api.js";
import { el, say } from "./dom.js";

export function programPanel(experiment) {
  const service = new URL(".", location.href).href.replace(/\/$/, "");
  const [low, high] = experiment.loss_range;
  const text = [
    "from decoupled.service.client import Client",
    "",
    `with Client(${JSON.stringify(service)}) as client:${key() ? "  # its key: the variable DECOUPLED_KEY" : ""}`,
    `    decision = client.decide(${JSON.stringify(experiment.name)})`,
    "    use(decision.exploit)  # your code",
    `    loss = try_out(decision.explore)  # your code: from ${low} to ${high}, lower is better`,
    "    client.feedback(decision, loss=loss, arm=decision.explore)",
  ].join("\n");
  const code = el("code", {}, text);
  const said = el("span", { class: "hint", role: "status", id: "copied" });

  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
      say(said, "Copied.");
    } catch { // without TLS, browsers keep the clipboard from pages
      getSelection().selectAllChildren(code);
      say(said, "Selected: press Ctrl+C, or ⌘C, to copy it.");
    }
  }

  const node = el("section", { class: "card" }, el("h2", {}, "From your program"),
    el("pre", { class: "example", id: "example", tabindex: 0, role: "region", "aria-label": "Example in Python" }, code),
    el("p", { class: "actions" },
      el("button", { type: "button", class: "primary", id: "copy", onclick: copy }, "Copy the example"), said),
    el("p", { class: "hint" }, "This experiment learns only what a program sends. To see one learn from made-up losses, ",
      el("a", { href: "#new/demo" }, "create a demo experiment"), "."));
  return { node, stop() {} };
}
