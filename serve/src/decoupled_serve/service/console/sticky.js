// Which arm a key is served: the same one in every draw. Nothing is learned from it.

import { ask, experimentPath, newKey } from "./api.js";
import { el, field, setText } from "./dom.js";

const DRAWS = 10;

export function keyForm(experiment) {
  const input = el("input", { id: "sticky-key", maxlength: 1024, spellcheck: "false", autocomplete: "off", value: "session-17" });
  const button = el("button", { type: "submit", id: "serve-key" }, `Draw ${DRAWS} times`);
  const message = el("p", { class: "hint", role: "status", id: "served-key" });

  async function draw(event) {
    event.preventDefault();
    button.disabled = true;
    try {
      const body = { mode: "exploit", count: DRAWS, ...(input.value ? { key: input.value } : {}) };
      const { decisions } = await ask(`${experimentPath(experiment.name)}/decisions`, { method: "POST", body, headers: { "Idempotency-Key": newKey() } });
      const counts = new Map();
      for (const { exploit } of decisions) counts.set(exploit, (counts.get(exploit) ?? 0) + 1);
      const served = [...counts].map(([arm, times]) => `${arm} (${times})`).join(", ");
      setText(message, `${input.value ? "This key is served" : "Without a key, served are"}: ${served}.`);
    } catch (error) {
      setText(message, error.message);
    }
    button.disabled = false;
  }

  return el("form", { class: "form", onsubmit: draw }, el("h3", {}, "Keep a user on one arm"),
    field("Key", input, "A session or a user. The same key is served the same arm, until what is learned moves it. Leave it empty for fresh draws."),
    el("p", { class: "actions" }, button), message);
}
