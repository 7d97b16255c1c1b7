// Two charts: lines, and stacked shares.

import { el, svg, percent } from "./dom.js";

export const COLOURS = 8;
const HEIGHT = 280;
const DASHES = ["none", "7 4", "2 3", "10 3 2 3"]; // of the ends of bands, which lie over each other

export function ticks(low, high, wanted = 5) {
  const span = high - low || 1;
  const raw = span / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= raw * 0.999);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-6; at += step) found.push(at);
  return found;
}

export const short = (value) => {
  const size = Math.abs(value);
  const text = size >= 10000 ? `${Number((value / 1000).toFixed(1))}k` : `${Number(value.toPrecision(4))}`;
  return text.replace("-", "−");
};

function frame(host, label, height, right) {
  const width = Math.max(260, host.clientWidth || 600);
  const box = { width, height, left: 46, right: width - right, top: 12, bottom: height - 42 };
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
  return { root, box };
}

function axes(root, box, { x, y, xTicks, yTicks, xText, yText, xTitle, yTitle }) {
  for (const at of yTicks) {
    root.append(
      svg("line", { class: "grid", x1: box.left, x2: box.right, y1: y(at), y2: y(at) }),
      svg("text", { class: "tick", x: box.left - 7, y: y(at) + 4, "text-anchor": "end" }, yText(at)));
  }
  for (const at of xTicks) {
    const place = x(at);
    const anchor = place > box.right - 14 ? "end" : place < box.left + 14 ? "start" : "middle";
    root.append(
      svg("line", { class: "axis", x1: place, x2: place, y1: box.bottom, y2: box.bottom + 4 }),
      svg("text", { class: "tick", x: place, y: box.bottom + 18, "text-anchor": anchor }, xText(at)));
  }
  root.append(svg("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  if (xTitle) {
    root.append(svg("text", { class: "title", x: (box.left + box.right) / 2, y: box.bottom + 36, "text-anchor": "middle" }, xTitle));
  }
  if (yTitle) {
    const middle = (box.top + box.bottom) / 2;
    root.append(svg("text", { class: "title", x: 11, y: middle, "text-anchor": "middle", transform: `rotate(-90 11 ${middle})` }, yTitle));
  }
}

const path = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

// Names at the ends of lines, moved apart so that none overlaps.
function endLabels(root, box, ends) {
  const gap = 16;
  ends.sort((a, b) => a.y - b.y);
  ends.forEach((end, i) => { end.at = Math.max(end.y, i ? ends[i - 1].at + gap : box.top + 4); });
  for (let i = ends.length - 1, limit = box.bottom; i >= 0; i -= 1, limit -= gap) {
    ends[i].at = Math.min(ends[i].at, limit);
  }
  for (const end of ends) {
    root.append(
      svg("line", { class: `leader ${end.colour}`, x1: end.x + 3, y1: end.y, x2: box.right + 12, y2: end.at }),
      svg("text", { class: `end ${end.colour}`, x: box.right + 16, y: end.at + 4 }, end.name));
  }
}

// series: {name, colour, dash, points: [[x, y]], band: [[x, low, high]]}
export function lineChart(host, { label, series, xMax, xTitle, yTitle, yRange }) {
  const wide = host.clientWidth > 620;
  const { root, box } = frame(host, label, HEIGHT + 40, wide ? 172 : 14);
  box.left = 58;
  let low = 0, high = 1;
  for (const each of series) {
    for (const [, from, to] of each.band ?? []) { low = Math.min(low, from); high = Math.max(high, to); }
    for (const [, at] of each.points) { low = Math.min(low, at); high = Math.max(high, at); }
  }
  if (yRange) [low, high] = yRange;
  else {
    const pad = (high - low) * 0.04;
    if (low < 0) low -= pad;
    high += pad;
  }
  const x = (at) => box.left + ((box.right - box.left) * at) / xMax;
  const y = (at) => box.bottom - ((box.bottom - box.top) * (at - low)) / (high - low);
  axes(root, box, {
    x, y, xTicks: ticks(0, xMax, wide ? 5 : 3), yTicks: ticks(low, high, 5), xText: short, yText: short, xTitle, yTitle,
  });
  if (low < 0 && high > 0) root.append(svg("line", { class: "axis", x1: box.left, x2: box.right, y1: y(0), y2: y(0) }));
  for (const [i, each] of series.entries()) {
    if (each.band?.length > 1) {
      const upper = each.band.map(([at, , to]) => [x(at), y(to)]);
      const lower = each.band.map(([at, from]) => [x(at), y(from)]).reverse();
      root.append(svg("path", { class: `band ${each.colour}`, "stroke-dasharray": DASHES[i % DASHES.length], d: `${path([...upper, ...lower])}Z` }));
    }
  }
  const ends = [];
  for (const each of series) {
    const places = each.points.map(([at, value]) => [x(at), y(value)]);
    root.append(svg("path", { class: `line ${each.colour}`, d: path(places), "stroke-dasharray": each.dash ?? null, "data-series": each.name }));
    const last = places.at(-1);
    root.append(svg("circle", { class: `area ${each.colour}`, cx: last[0], cy: last[1], r: 3.5 }));
    ends.push({ x: last[0], y: last[1], name: each.name, colour: each.colour });
  }
  if (wide) endLabels(root, box, ends);
  host.replaceChildren(root);
}

// layers: {name, colour, values: [share or null]}, one value for each x; null leaves a gap.
export function shareChart(host, { label, xs, layers, xText, xTitle, xMin, xMax, height = HEIGHT, yTitle, xWanted = 4 }) {
  const { root, box } = frame(host, label, height, 14);
  if (yTitle) box.left = 58;
  const first = xMin ?? xs[0];
  const last = xMax ?? xs.at(-1);
  const x = (at) => box.left + ((box.right - box.left) * (at - first)) / (last - first || 1);
  const y = (at) => box.bottom - (box.bottom - box.top) * at;
  const found = ticks(0, last - first, Math.min(xWanted, Math.floor((box.right - box.left) / 105))).map((at) => at + first);
  axes(root, box, {
    x, y, xTicks: found, yTicks: [0, 0.25, 0.5, 0.75, 1], xText, yText: (at) => percent(at, 0), xTitle, yTitle,
  });
  const areas = svg("g");
  const base = xs.map(() => 0);
  for (const layer of layers) {
    const top = base.map((from, i) => (layer.values[i] === null ? null : Math.min(1, from + layer.values[i])));
    for (const [from, to] of stretches(top)) {
      const upper = [], lower = [];
      for (let i = from; i <= to; i += 1) {
        upper.push([x(xs[i]), y(top[i])]);
        lower.push([x(xs[i]), y(base[i])]);
      }
      if (from === to) {
        for (const side of [upper, lower]) side.push([side[0][0] + 2, side[0][1]]);
      }
      areas.append(svg("path", { class: `area ${layer.colour}`, d: `${path([...upper, ...lower.reverse()])}Z`, "data-layer": layer.name }));
    }
    top.forEach((value, i) => { if (value !== null) base[i] = value; });
  }
  root.append(areas);
  host.replaceChildren(root);
}

function stretches(values) {
  const found = [];
  values.forEach((value, i) => {
    if (value === null) return;
    if (found.length && found.at(-1)[1] === i - 1) found.at(-1)[1] = i;
    else found.push([i, i]);
  });
  return found;
}

export const swatch = (colour, dash) =>
  svg("svg", { class: "swatch", viewBox: "0 0 18 12", width: 18, height: 12, "aria-hidden": "true" },
    dash === undefined
      ? svg("rect", { class: `area ${colour}`, x: 1, y: 0, width: 12, height: 12, rx: 3 })
      : svg("line", { class: `line ${colour}`, x1: 0, x2: 18, y1: 6, y2: 6, "stroke-dasharray": dash || null }));

export const legend = (layers) =>
  el("ul", { class: "legend" }, layers.map(({ name, colour }) => el("li", {}, swatch(colour), el("bdi", {}, name))));

export function table(caption, heads, rows) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", { class: "plain" },
      el("caption", {}, caption),
      el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, rows.map(([first, ...rest]) =>
        el("tr", {}, el("th", { scope: "row" }, first), rest.map((cell) => el("td", {}, cell)))))));
}

// Draw again when the width changes, at most once per frame.
export function onResize(host, draw) {
  let width = 0;
  const watch = new ResizeObserver(() => {
    if (host.clientWidth === width) return;
    width = host.clientWidth;
    requestAnimationFrame(draw);
  });
  watch.observe(host);
  return () => watch.disconnect();
}
