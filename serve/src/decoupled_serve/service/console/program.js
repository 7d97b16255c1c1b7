// How this experiment is used: an example of a program, or the mirror that it belongs to. Nothing here changes the experiment.

import { key } from "./api.js";
import { el, setText } from "./dom.js";

export function programPanel(experiment) {
  const service = new URL(".", location.href).href.replace(/\/$/, "");
  const [low, high] = experiment.loss_range;
  const text = [
    "from decoupled.client import Client",
    "",
    `with Client(${JSON.stringify(service)}) as client:${key() ? "  # reads the key from DECOUPLED_KEY" : ""}`,
    `    decision = client.decide(${JSON.stringify(experiment.name)})`,
    "    use(decision.exploit)  # your code",
    ...(experiment.feedback === "preference" ? [
      "    winner = compare(decision.explore, decision.exploit)  # your code: explore, exploit or tie",
      "    client.feedback(decision, preference=winner)",
    ] : [
      `    loss = try_out(decision.explore)  # your code: from ${low} to ${high}, lower is better`,
      "    client.feedback(decision, loss=loss, arm=decision.explore)",
    ]),
  ].join("\n");
  const code = el("code", {}, text);
  const message = el("span", { class: "hint", role: "status", id: "copied" });

  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
      setText(message, "Copied.");
    } catch { // without TLS, browsers do not let pages use the clipboard
      getSelection().selectAllChildren(code);
      setText(message, "Selected: press Ctrl+C, or ⌘C, to copy it.");
    }
  }

  const node = el("section", { class: "card" }, el("h2", {}, "From your program"),
    el("pre", { class: "example", id: "example", tabindex: 0, role: "region", "aria-label": "Example in Python" }, code),
    el("p", { class: "actions" },
      el("button", { type: "button", class: "primary", id: "copy", onclick: copy }, "Copy the example"), message),
    el("p", { class: "hint" }, "This experiment learns only from what a program sends. To watch one learn from made-up losses, ",
      el("a", { href: "#new/demo" }, "create a demo experiment"), "."));
  return { node, stop() {} };
}

// A mirror decides and sends the losses itself; a program that did so, too, would teach it something else.
export function mirrorPanel() {
  const node = el("section", { class: "card", id: "mirrored" }, el("h2", {}, "Through its mirror"),
    el("p", {}, "This experiment belongs to a mirror: the arms are its upstreams. For each request it asks which one answers and which one gets a copy, and it sends the losses itself. "
      + "Your program sends its requests to the address of the mirror, and needs no other code."),
    el("p", { class: "actions" },
      el("a", { class: "button", href: "mirror" }, "Counts of the mirror"),
      el("a", { class: "button", href: "mirror/metrics" }, "Its metrics")));
  return { node, stop() {} };
}
