// Draws every figure of the page. The data is in the page itself; nothing is fetched.
(function () {
  "use strict";
  const { pictures, colours, dashes, symbols, worst } = JSON.parse(document.getElementById("pictures").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const chosen = new Map(pictures.map((picture) => [picture.name, {
    logX: picture.panels[0].log_x, logY: picture.panels[0].log_y, bands: true,
  }]));

  const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const clear = (colour) => colour + "29";

  // 1, 2, 5, 10, ...: on a logarithmic axis, plotly's own labels drop the power of ten.
  function logTicks(values) {
    const real = values.filter((value) => value > 0), low = Math.min(...real), high = Math.max(...real);
    const steps = high / low > 2000 ? [1] : [1, 2, 5], ticks = [];
    for (let power = Math.floor(Math.log10(low)) - 1; power <= Math.log10(high) + 1; power += 1) {
      for (const step of steps) ticks.push(step * 10 ** power);
    }
    return ticks;
  }

  function scaled(log, values) {
    if (!log) return { type: "linear" };
    const ticks = logTicks(values);
    return { type: "log", tickvals: ticks, ticktext: ticks.map((tick) => tick.toLocaleString("en", { maximumSignificantDigits: 3, notation: tick < 1e6 ? "standard" : "scientific" })) };
  }

  function traces(panel, number, picked, named) {
    const axes = { xaxis: "x" + (number || ""), yaxis: "y" + (number || "") };
    if (panel.heat) {
      return [{ ...axes, type: "heatmap", x: panel.columns, y: panel.rows, customdata: panel.values,
        z: panel.values.map((row) => row.map((value) => (value === null ? null : Math.log(value)))),
        zmin: 0, zmax: Math.log(worst), colorscale: "Viridis", reversescale: true, showscale: false, xgap: 1, ygap: 1,
        hovertemplate: `${panel.title}<br>${panel.x_label} %{x}<br>${panel.y_label} %{y}<br>%{customdata:.3f}<extra></extra>` }];
    }
    const bands = [], made = [];
    for (const series of panel.series) {
      const colour = colours[series.style % colours.length];
      const band = series.band && picked.bands ? series.band : null;
      const points = series.kind === "points";
      if (band && !points) {
        const high = band[1];
        const low = band[0].map((end, i) => Math.max(end, picked.logY ? series.y[i] / 100 : panel.floor));
        bands.push({ ...axes, x: [...series.x, ...[...series.x].reverse()], y: [...high, ...low.reverse()],
          fill: "toself", fillcolor: clear(colour), line: { width: 0 }, mode: "lines", hoverinfo: "skip",
          legendgroup: series.label, showlegend: false, name: series.label });
      }
      const value = series.band ? "%{y:.4g} (%{customdata[0]:.4g} to %{customdata[1]:.4g})" : "%{y:.4g}";
      made.push({ ...axes, x: series.x, y: series.y, customdata: series.band ? series.x.map((_, i) => [series.band[0][i], series.band[1][i]]) : undefined, name: series.label,
        mode: points ? "markers" : "lines", legendgroup: series.label,
        showlegend: series.kind !== "fit" && !named.has(series.label),
        marker: { color: colour, symbol: symbols[(series.style + Math.floor(series.style / colours.length)) % symbols.length], size: 6 },
        line: { color: colour, width: series.kind === "fit" ? 1 : 2,
          dash: series.kind === "fit" ? "solid" : dashes[series.style % dashes.length] },
        error_y: band && points ? { type: "data", symmetric: false, array: band[1].map((end, i) => end - series.y[i]), arrayminus: band[0].map((end, i) => series.y[i] - end), color: colour, thickness: 1 } : undefined,
        hovertemplate: `<b>${series.label}</b><br>${panel.x_label} %{x:,}<br>${panel.y_label} ${value}<extra></extra>` });
      if (series.kind !== "fit") named.add(series.label);
    }
    return [...bands, ...made];  // a band must not cover another policy's curve
  }

  function layout(picture, picked, width) {
    const columns = Math.max(1, Math.min(picture.columns, picture.panels.length, Math.floor(width / 240)));
    const rows = Math.ceil(picture.panels.length / columns);
    const height = rows * (columns > 1 ? 260 : 360) + 90;
    const single = picture.panels.length === 1;
    const gapX = columns > 1 ? Math.min(0.3 / columns, 56 / width) : 0, gapY = rows > 1 ? Math.min(0.5 / rows, 80 / height) : 0;
    const made = { autosize: true, height, uirevision: picture.name, hovermode: "closest",
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: variable("--ink"), size: 12 },
      margin: { l: 56, r: 12, t: single ? 12 : 30, b: 46 }, annotations: [],
      legend: { orientation: "h", y: 1 + 26 / height, yanchor: "bottom", x: 0 } };
    picture.panels.forEach((panel, number) => {
      const column = number % columns, row = Math.floor(number / columns), id = number ? number + 1 : "";
      const x0 = column * (1 + gapX) / columns, y1 = 1 - row * (1 + gapY) / rows;
      const domain = { x: [x0, x0 + (1 + gapX) / columns - gapX], y: [Math.max(0, y1 - (1 + gapY) / rows + gapY), y1] };
      const all = (axis) => panel.series.flatMap((series) => series[axis]);
      const common = { gridcolor: variable("--grid"), zerolinecolor: variable("--faint"), linecolor: variable("--line"), automargin: single };
      made["xaxis" + id] = { ...common, domain: domain.x, anchor: "y" + id, ...scaled(picked.logX, all("x")),
        title: { text: panel.x_label, standoff: 4 } };
      made["yaxis" + id] = { ...common, domain: domain.y, anchor: "x" + id, ...scaled(picked.logY, all("y")),
        title: { text: column ? "" : panel.y_label, standoff: 4 }, rangemode: panel.floor < 0 ? "normal" : "tozero" };
      if (panel.heat) {
        for (const axis of ["xaxis" + id, "yaxis" + id]) made[axis].type = "category";
        Object.assign(made["xaxis" + id], { tickangle: 0, dtick: panel.columns.length > 8 ? 2 : 1 }); // labels side by side
      }
      if (panel.title) {
        made.annotations.push({ text: panel.title, showarrow: false, xref: "paper", yref: "paper", xanchor: "center",
          yanchor: "bottom", x: (domain.x[0] + domain.x[1]) / 2, y: domain.y[1], font: { size: 12 } });
      }
    });
    return made;
  }

  function show(picture) {
    const figure = document.getElementById("figure-" + picture.name);
    const target = figure.querySelector(".plot");
    const picked = chosen.get(picture.name);
    const named = new Set();
    const data = picture.panels.flatMap((panel, number) => traces(panel, number ? number + 1 : 0, picked, named));
    for (const button of figure.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(picked[button.dataset.what]));
    }
    // On a phone there is no hovering: plotly's buttons would always be there, and cover the legend.
    const config = { displaylogo: false, responsive: false, displayModeBar: window.innerWidth < 640 ? false : "hover", modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
    return Plotly.react(target, data, layout(picture, picked, target.clientWidth), config);
  }

  // A table that goes on beyond its right edge says so.
  function hint() {
    for (const box of document.querySelectorAll(".wide")) {
      const more = box.scrollWidth - box.clientWidth;
      box.classList.toggle("scrolls", more > 1);
      box.classList.toggle("at-end", box.scrollLeft >= more - 1);
    }
  }
  document.addEventListener("scroll", hint, { capture: true, passive: true });
  document.addEventListener("toggle", hint, true);  // a folded table has no width
  const showAll = () => hint() || Promise.all(pictures.map(show));
  for (const picture of pictures) {
    document.getElementById("figure-" + picture.name).addEventListener("click", (event) => {
      const what = event.target.dataset && event.target.dataset.what;
      if (!what) return;
      const picked = chosen.get(picture.name);
      picked[what] = !picked[what];
      show(picture);
    });
  }
  let waiting = 0, width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;  // only the height changed, such as when a phone hides its address bar
    width = window.innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(showAll, 120);
  });
  dark.addEventListener("change", showAll);
  window.addEventListener("beforeprint", showAll);
  window.addEventListener("afterprint", showAll);
  showAll().then(() => document.documentElement.setAttribute("data-drawn", String(pictures.length)));
})();
