// Elements and numbers. Text always becomes a text node, so a name cannot become markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else node.setAttribute(name, String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

export const el = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

// Writes only changes, which spares screen readers and the layout.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const whole = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
export const count = (value) => whole.format(value);

export function decimal(value, digits = 2) {
  if (value === null || !Number.isFinite(value)) return "–";
  const fixed = value.toFixed(digits);
  const shown = Number(fixed) === 0 ? (0).toFixed(digits) : fixed;
  return shown.replace("-", "−").replace(/\B(?=(\d{3})+(?!\d)(?=\.|$))/g, ",");
}

export function percent(value, digits = 1) {
  if (value === null || !Number.isFinite(value)) return "–";
  if (value > 0 && value < 0.0005) return "< 0.1%";
  return `${(100 * value).toFixed(digits)}%`;
}

export const clock = (milliseconds) =>
  new Date(milliseconds).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export const day = (milliseconds) => new Date(milliseconds).toLocaleDateString("en-GB", { day: "numeric", month: "short" });

export const field = (label, control, hint) => {
  const hintNode = hint ? el("span", { class: "hint", id: `${control.id}-hint` }, hint) : null;
  if (hintNode) control.setAttribute("aria-describedby", hintNode.id);
  return el("div", { class: "field" }, el("label", { for: control.id }, label), control, hintNode);
};

export const radios = (name, choices) =>
  el("fieldset", { class: "radios" }, el("legend", { class: "hidden" }, "Which arms are counted"),
    choices.map(([value, text], i) =>
      el("label", { class: "radio" }, el("input", { type: "radio", name, value, checked: i === 0 }), text)));

export const select = (id, options, chosen) =>
  el("select", { id, name: id },
    options.map(([value, text]) => el("option", { value, selected: value === chosen }, text)));

let closeOpen = () => {}; // there is one question at a time

// Asks for confirmation before a change. The safe answer has the focus.
export function confirmation() {
  const question = el("p", { id: "question" });
  const yes = el("button", { type: "button", class: "danger", id: "yes" });
  const no = el("button", { type: "button", id: "no" });
  const group = el("div", { class: "sure", role: "group", "aria-labelledby": "question" },
    question, el("p", { class: "actions" }, no, yes));
  const node = el("div");
  let work = () => {}, before = null;
  const close = () => {
    group.remove();
    before?.focus();
  };
  no.addEventListener("click", close);
  group.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  yes.addEventListener("click", () => {
    close();
    work();
  });
  return {
    node,
    ask(text, { yes: agree, no: refuse = "Cancel" }, then) {
      closeOpen();
      closeOpen = close;
      question.replaceChildren(...text);
      setText(yes, agree);
      setText(no, refuse);
      work = then;
      before = document.activeElement;
      node.append(group);
      no.focus();
      group.scrollIntoView({ block: "nearest" });
    },
  };
}

// A slider that shows its value next to its label.
export function slider(id, label, { min, max, step, value, format = String }) {
  const output = el("output", { for: id }, format(value));
  const input = el("input", { type: "range", id, name: id, min, max, step, value, "aria-valuetext": format(value) });
  input.addEventListener("input", () => {
    const text = format(Number(input.value));
    setText(output, text);
    input.setAttribute("aria-valuetext", text);
  });
  const node = el("div", { class: "field" },
    el("span", { class: "label-row" }, el("label", { for: id }, label), output), input);
  return { node, input };
}
