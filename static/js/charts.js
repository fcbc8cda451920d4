// Draws each chart from the JSON beside it. Traces name a tone ("chart-1"); its colour comes from the page's own tokens.
(() => {
  "use strict";
  const colour = (token) => {
    const probe = document.createElement("span");  // light-dark() resolves only on an element
    probe.style.color = `var(--${token})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const faint = (rgb, alpha) => rgb.replace(/^rgb\((.*)\)$/, `rgba($1, ${alpha})`);
  const paint = (trace) => {
    const { tone = "chart-1", alpha = 1, scale } = trace.meta ?? {};
    const solid = faint(colour(tone), alpha);
    const painted = { ...trace, hoverlabel: { font: { family: "Inter" } } };
    if (scale) painted.colorscale = scale.map((token, i) => [i / (scale.length - 1), colour(token)]);
    else if (trace.type === "bar" || trace.type === "box") painted.marker = { ...trace.marker, color: solid, line: { width: 0 } };
    else {
      painted.line = { width: 1.5, ...trace.line, color: solid };
      if (trace.fill) painted.fillcolor = faint(colour(tone), trace.meta?.fill ?? 0.25);
    }
    return painted;
  };
  const draw = (place) => {
    const data = document.getElementById(place.dataset.chart);
    if (!data || !window.Plotly) return;
    const figure = JSON.parse(data.textContent);
    const text = colour("text"), muted = colour("muted"), line = colour("line");
    const axis = { gridcolor: line, linecolor: line, zerolinecolor: line, tickfont: { color: muted, size: 11 } };
    const { xaxis, yaxis, annotations = [], shapes = [], ...rest } = figure.layout;
    window.Plotly.react(place, figure.data.map(paint), {
      ...rest,
      xaxis: { ...axis, ...xaxis }, yaxis: { ...axis, ...yaxis },
      annotations: annotations.map(({ name, ...note }) => ({ ...note, font: { size: 11, color: colour(name ?? "text") } })),
      shapes: shapes.map((shape) => ({ ...shape, line: { ...shape.line, color: colour(shape.name ?? "text") } })),
      font: { family: "Inter, system-ui, sans-serif", size: 12, color: text },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    }, { displayModeBar: false, responsive: true });
  };
  const all = () => document.querySelectorAll("[data-chart]").forEach(draw);
  document.addEventListener("berth:theme", all);
  document.addEventListener("htmx:load", all);
  all();
})();
