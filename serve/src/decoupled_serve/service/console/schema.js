// JSON schemas as people read them: types in words, lists of fields, and examples.

import { el } from "./dom.js";

const DEEPEST = 6; // of nested objects; schemas may refer to themselves

export function reader(document_) {
  // A schema whose reference is followed; what stands next to the reference counts too.
  function resolved(schema) {
    if (!schema?.$ref) return schema ?? {};
    const { $ref, ...beside } = schema;
    const found = $ref.split("/").slice(1).reduce((part, name) => part?.[name], document_) ?? {};
    return { ...resolved(found), ...beside };
  }

  const alternatives = (schema) => (schema.properties ? undefined : schema.anyOf ?? schema.oneOf);
  const name = (schema) => schema?.$ref?.split("/").pop();

  function typeOf(given) {
    const schema = resolved(given);
    if (schema.const !== undefined) return JSON.stringify(schema.const);
    if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(" | ");
    const parts = alternatives(schema);
    if (parts) return [...new Set(parts.map(typeOf))].join(" | ");
    if (schema.prefixItems) return `[${schema.prefixItems.map(typeOf).join(", ")}]`;
    if (schema.type === "array") return `list of ${typeOf(schema.items ?? {})}`;
    if (schema.type === "object" || schema.properties) return name(given) ?? "object";
    return schema.format === "binary" ? "binary" : schema.type ?? "anything";
  }

  // The object with fields that a schema is, or that it lists or allows.
  function inner(given) {
    const schema = resolved(given);
    if (schema.properties) return schema;
    const parts = alternatives(schema) ?? (schema.items ? [schema.items] : []);
    return parts.map(inner).find((each) => each) ?? null;
  }

  function limits(schema) {
    const parts = [schema, ...(alternatives(schema) ?? [])];
    const first = (...names) => parts.flatMap((part) => names.map((each) => part[each])).find((value) => value !== undefined);
    const low = first("minimum"), above = first("exclusiveMinimum"), high = first("maximum"), below = first("exclusiveMaximum");
    return [
      low !== undefined && Math.abs(low) < 2 ** 53 ? `at least ${low}` : null,
      above !== undefined ? `above ${above}` : null,
      high !== undefined && Math.abs(high) < 2 ** 53 ? `at most ${high.toLocaleString("en-GB")}` : null,
      below !== undefined && below < 2 ** 53 ? `below ${below}` : null,
      first("maxItems") !== undefined ? `at most ${first("maxItems").toLocaleString("en-GB")} entries` : null,
      first("maxLength") !== undefined && schema.type === "string" ? `at most ${first("maxLength")} characters` : null,
    ].filter(Boolean);
  }

  function notes(schema) {
    const found = limits(schema);
    if (schema.default !== undefined && schema.default !== null) found.push(`default: ${JSON.stringify(schema.default)}`);
    return found.length ? el("span", { class: "hint" }, ` ${found.join("; ")}`) : null;
  }

  function line(label, given, required, asked = true, depth = 0) {
    const schema = resolved(given);
    const nested = depth < DEEPEST ? inner(given) : null;
    return el("li", {},
      el("code", {}, label), " ", el("span", { class: "kind" }, typeOf(given)), " ",
      required ? el("span", { class: "must" }, "required") : null,
      schema.description ? el("div", {}, ...inline(schema.description)) : null,
      notes(schema),
      nested ? el("details", {}, el("summary", {}, "Fields"), fields(nested, { asked, depth: depth + 1 })) : null);
  }

  // Which fields are required concerns only those who send them.
  function fields(given, { asked = false, depth = 0 } = {}) {
    const schema = inner(given);
    if (!schema) return el("p", { class: "kind" }, typeOf(given));
    return el("ul", { class: "fields" }, Object.entries(schema.properties).map(([label, each]) =>
      line(label, each, asked && (schema.required ?? []).includes(label), asked, depth)));
  }

  function example(given, required = false, depth = 0) {
    const schema = resolved(given);
    if (schema.examples?.length) return schema.examples[0];
    if (schema.example !== undefined) return schema.example;
    if (schema.const !== undefined) return schema.const;
    if (schema.default !== undefined && schema.default !== null) return schema.default;
    if (schema.enum) return schema.enum[0];
    const parts = alternatives(schema);
    if (parts) return example(parts[0], required, depth);
    if (schema.properties && depth < DEEPEST) {
      const chosen = Object.entries(schema.properties).filter(([label]) =>
        !required || (schema.required ?? []).includes(label) || ((schema.oneOf ?? schema.anyOf)?.[0]?.required ?? []).includes(label));
      return Object.fromEntries(chosen.map(([label, each]) => [label, example(each, required, depth + 1)]));
    }
    if (schema.type === "array") return [example(schema.items ?? {}, required, depth + 1)];
    return { integer: 0, number: 0, boolean: false, string: "string", null: null, object: {} }[schema.type] ?? null;
  }

  return { resolved, typeOf, fields, line, example };
}

// Descriptions have `code`, **bold** and *emphasis*.
export function inline(text) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*|\*[^*\s][^*]*\*)/).map((part) => {
    if (part.startsWith("`")) return el("code", {}, part.slice(1, -1));
    if (part.startsWith("**")) return el("strong", {}, part.slice(2, -2));
    if (part.length > 2 && part.startsWith("*") && part.endsWith("*")) return el("em", {}, part.slice(1, -1));
    return part;
  });
}

export const paragraphs = (text) =>
  (text ?? "").split(/\n\s*\n/).filter(Boolean).map((each) => el("p", {}, ...inline(each)));
