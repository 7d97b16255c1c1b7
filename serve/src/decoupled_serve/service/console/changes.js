// Who changed an experiment: its entries of the audit trail, requested when they are looked at.

import { ask, may, tenant } from "./api.js";
import { el } from "./dom.js";

const SHOWN = 20;

export function changesPanel(experiment) {
  if (!may("admin")) return null;
  const body = el("div", { id: "changes" });
  const panel = el("details", {}, el("summary", {}, "Who changed what"), body);
  panel.addEventListener("toggle", async () => {
    if (!panel.open) return;
    try {
      const whose = new URLSearchParams({ subject: experiment.name, tenant: tenant(), limit: SHOWN });
      const { entries, next } = await ask(`v1/audit?${whose}`);
      body.replaceChildren(table(entries),
        next === null ? "" : el("p", { class: "hint" }, `These are the last ${SHOWN}; decoupled client audit shows all.`));
    } catch (error) {
      body.replaceChildren(el("p", { class: "problem", role: "alert" }, error.message));
    }
  });
  return panel;
}

const table = (entries) =>
  el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, ["When", "What", "Who", "Change"].map((title) => el("th", { scope: "col" }, title)))),
    el("tbody", {}, entries.map((entry) => el("tr", {},
      el("td", {}, new Date(entry.at).toLocaleString("en-GB")),
      el("td", {}, entry.action),
      el("td", { title: entry.request_id === null ? null : `request ${entry.request_id}` },
        el("bdi", {}, entry.label === "" ? entry.caller : `${entry.caller} (${entry.label})`)),
      el("td", {}, el("code", {}, difference(entry))))))));

// What differs between the old and the new value; everything, if only one of them is there.
export function difference({ old, new: now }) {
  if (!isObject(old) || !isObject(now)) return short([old, now].filter((value) => value !== null).map(plain).join(" → "));
  const names = [...new Set([...Object.keys(old), ...Object.keys(now)])];
  const parts = names.filter((name) => plain(old[name] ?? null) !== plain(now[name] ?? null));
  return short(parts.map((name) => `${name}: ${plain(old[name] ?? null)} → ${plain(now[name] ?? null)}`).join(", "));
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const plain = (value) => JSON.stringify(value);
const short = (text) => (text.length > 200 ? `${text.slice(0, 197)}…` : text);
