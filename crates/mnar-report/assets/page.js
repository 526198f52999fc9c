// Draws the figures of the page from their JSON with Observable Plot, and redraws them whenever the width changes.
(() => {
  "use strict";
  const figures = JSON.parse(document.getElementById("figures-data").textContent);
  const root = document.documentElement;
  const colour = (series) => `var(--s${series % 8})`;
  const shown = (value) =>
    value !== 0 && Math.abs(value) < 0.001 ? value.toExponential(1) : Number(value.toFixed(4)).toString();
  const cut = (text, length) => {
    // Characters that break lines or reorder text would upset the drawing.
    const letters = [...text.replace(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/gu, "\ufffd")];
    return letters.length > length ? letters.slice(0, length - 1).join("") + "…" : letters.join("");
  };

  // Class names on the left: as wide as necessary, up to a third of the chart.
  const nameAxis = (labels, width) => {
    const longest = Math.max(...labels.map((label) => [...label].length), 1);
    const marginLeft = Math.min(16 + 7 * longest, Math.floor(width / 3));
    return { marginLeft, tickFormat: (label) => cut(label, Math.max(3, Math.floor((marginLeft - 14) / 7))) };
  };
  const unique = (marks) => [...new Set(marks.map((mark) => mark.label))];
  const tipStyle = { fill: "var(--card)", stroke: "var(--ink)", fontSize: 13, lineWidth: 24 };

  const dots = (chart, width) => {
    const labels = unique(chart.marks);
    const { marginLeft, tickFormat } = nameAxis(labels, width);
    const lane = 13;
    const offset = (series) => (series - (chart.series.length - 1) / 2) * (lane - 3);
    const title = (mark) =>
      `${mark.label}\n${chart.series[mark.series]}: ${shown(mark.value)}` +
      (mark.interval ? `\n95% interval ${shown(mark.interval[0])} to ${shown(mark.interval[1])}` : "");
    const bySeries = chart.series.flatMap((_, series) => {
      const marks = chart.marks.filter((mark) => mark.series === series);
      const symbol = ["circle", "square", "triangle"][series % 3];
      return [
        Plot.ruleY(marks.filter((mark) => mark.interval), {
          y: "label", x1: (mark) => mark.interval[0], x2: (mark) => mark.interval[1],
          dy: offset(series), stroke: colour(series), strokeWidth: 2,
        }),
        Plot.dot(marks, { y: "label", x: "value", dy: offset(series), fill: colour(series), r: 4.5, symbol }),
      ];
    });
    return {
      marginLeft, marginBottom: 42, height: 62 + labels.length * Math.max(22, lane * chart.series.length + 6),
      x: { label: cut(chart.axis, Math.floor(width / 8)), labelOffset: 36, grid: true, zero: true, nice: true },
      y: { label: null, domain: labels, tickFormat },
      marks: [
        ...bySeries,
        Plot.tip(chart.marks, Plot.pointerY({ y: "label", x: "value", title, ...tipStyle })),
      ],
    };
  };

  const bars = (chart, width) => {
    const labels = unique(chart.marks);
    const { marginLeft, tickFormat } = nameAxis(labels, width);
    // A log scale has no 0: bars start at 0.5, so that a single row is visible.
    const start = chart.log ? 0.5 : 0;
    const marks = chart.marks.map((mark) => ({ ...mark, end: chart.log ? Math.max(mark.value, start) : mark.value }));
    const title = (mark) => `${mark.label}\n${chart.series[mark.series]}: ${shown(mark.value)}`;
    const place = { fy: "label", y: "series" };
    return {
      marginLeft, marginBottom: 42, height: 62 + labels.length * (11 * chart.series.length + 8),
      x: { label: chart.axis, labelOffset: 36, grid: true, type: chart.log ? "log" : "linear", ...(chart.log ? { tickFormat: "~s", ticks: 4 } : {}) },
      y: { axis: null, padding: 0.1 },
      fy: { label: null, domain: labels, tickFormat, padding: 0.2 },
      marks: [
        Plot.axisFy({ anchor: "left", label: null, tickFormat, textAnchor: "end", dx: -4 }),
        Plot.barX(marks, { ...place, x1: start, x2: "end", fill: (mark) => colour(mark.series) }),
        Plot.tip(marks, Plot.pointerY({ ...place, x: "end", title, ...tipStyle })),
      ],
    };
  };

  const lines = (chart, width) => {
    const title = (point) =>
      `${chart.series[point.series]}\n${chart.x.replace(/ \(.*/, "")}: ${shown(point.x)}\n${chart.y}: ${shown(point.y)}`;
    const domain = chart.unit_square ? { domain: [0, 1] } : {};
    const few = chart.points.length <= 30 * chart.series.length;
    return {
      marginLeft: 48, marginBottom: 42, height: Math.min(330, Math.max(220, width * 0.6)),
      x: { label: cut(chart.x, Math.floor(width / 8)), labelOffset: 36, grid: true, type: chart.log_x ? "log" : "linear", ...domain,
        ...(chart.log_x ? { tickFormat: (x) => shown(x) } : {}) },
      y: { label: chart.y, grid: true, nice: true, ...domain },
      marks: [
        ...(chart.unit_square ? [Plot.line([[0, 0], [1, 1]], { stroke: "currentColor", strokeDasharray: "4 4", strokeOpacity: 0.6 })] : []),
        Plot.line(chart.points, { x: "x", y: "y", z: "series", stroke: (point) => colour(point.series), strokeWidth: 2 }),
        ...(few ? [Plot.dot(chart.points, { x: "x", y: "y", fill: (point) => colour(point.series), r: 3 })] : []),
        Plot.dot(chart.marked, { x: "x", y: "y", stroke: (point) => colour(point.series), fill: "var(--card)", strokeWidth: 2.5, r: 6 }),
        Plot.tip(chart.points, Plot.pointer({ x: "x", y: "y", title, ...tipStyle })),
      ],
    };
  };

  const heat = (chart, width) => {
    const cells = chart.cells.flatMap((row, i) => row.map((value, j) => ({ row: chart.labels[i], column: chart.labels[j], value })));
    const { marginLeft, tickFormat } = nameAxis(chart.labels, width);
    const side = (width - marginLeft - 20) / chart.labels.length;
    const letters = Math.max(1, Math.floor(side / 7));
    const title = (cell) => `${chart.y} ${cell.row}\n${chart.x} ${cell.column}: ${shown(100 * cell.value)}%`;
    return {
      marginLeft, marginTop: 40, height: 60 + Math.min(40, Math.max(16, side)) * chart.labels.length,
      x: { label: chart.x, domain: chart.labels, axis: "top", tickFormat: (label) => cut(label, letters) },
      y: { label: null, domain: chart.labels, tickFormat },
      marks: [
        Plot.cell(cells, { x: "column", y: "row", fill: "var(--heat)", fillOpacity: "value", inset: 0.5 }),
        ...(side > 30 ? [Plot.text(cells.filter((cell) => cell.value >= 0.005), {
          x: "column", y: "row", text: (cell) => Math.round(100 * cell.value), fill: "currentColor",
          stroke: "var(--card)", strokeWidth: 3, fontSize: 11,
        })] : []),
        Plot.tip(cells, Plot.pointer({ x: "column", y: "row", title, ...tipStyle })),
      ],
      opacity: { domain: [0, 1], range: [0.04, 0.95] },
    };
  };

  // Panels below each other on one band scale: a line with the panel's name, then its bars.
  const rates = (chart, width) => {
    const lines = chart.panels.flatMap((panel, i) => [
      { key: `${i}`, panel: panel.name },
      ...panel.bars.map((bar, j) => ({ key: `${i}.${j}`, panel: panel.name, ...bar })),
    ]);
    const bars = lines.filter((line) => line.label !== undefined);
    const heads = lines.filter((line) => line.label === undefined);
    const { marginLeft, tickFormat } = nameAxis(bars.map((bar) => bar.label), width);
    const names = new Map(lines.map((line) => [line.key, line.label]));
    const letters = Math.floor((width - marginLeft) / 8);
    const title = (bar) => `${cut(bar.panel, 80)}: ${cut(bar.label, 80)}\n${chart.axis}: ${shown(bar.value)}\nrows: ${bar.rows}`;
    return {
      marginLeft, marginBottom: 42, height: 62 + 21 * lines.length,
      x: { label: chart.axis, labelOffset: 36, grid: true, domain: [0, 1] },
      y: { label: null, domain: lines.map((line) => line.key), tickSize: 0, padding: 0.15,
        tickFormat: (key) => (names.get(key) === undefined ? "" : tickFormat(names.get(key))) },
      marks: [
        Plot.barX(bars, { y: "key", x: "value", fill: colour(0) }),
        Plot.ruleX([chart.overall], { stroke: "currentColor", strokeDasharray: "4 4" }),
        Plot.text(heads, { y: "key", x: 0, text: (head) => cut(head.panel, letters), textAnchor: "start", dx: 4,
          fill: "currentColor", stroke: "var(--card)", strokeWidth: 4, fontWeight: 600 }),
        Plot.tip(bars, Plot.pointerY({ y: "key", x: "value", title, ...tipStyle })),
      ],
    };
  };

  const kinds = { dots, bars, lines, heat, rates };

  const legend = (series) => {
    const list = document.createElement("ul");
    list.className = "legend";
    series.forEach((name, i) => {
      const item = document.createElement("li");
      const swatch = document.createElement("span");
      swatch.style.background = colour(i);
      swatch.setAttribute("aria-hidden", "true");
      item.append(swatch, cut(name, 40));
      list.append(item);
    });
    return list;
  };

  const draw = (figure) => {
    const place = document.querySelector(`[data-figure="${figure.id}"] .chart`);
    const width = Math.max(240, Math.floor(place.clientWidth));
    const options = kinds[figure.chart.kind](figure.chart, width);
    const picture = Plot.plot({ width, style: { background: "none", fontSize: "12px" }, ...options });
    // The picture is labelled as a whole: its parts mean nothing to a screen reader, which has the table.
    picture.setAttribute("aria-hidden", "true");
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", `${figure.title} ${figure.about}`);
    const series = figure.chart.series || [];
    place.replaceChildren(picture);
    place.parentElement.querySelector(".legend")?.remove();
    if (series.length > 1) place.before(legend(series));
  };
  const drawAll = () => figures.forEach(draw);

  let width = window.innerWidth;
  let waiting = 0;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return; // A phone's address bar changes only the height.
    width = window.innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(drawAll, 150);
  });

  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  drawAll();
})();
