(function () {
  "use strict";
  var charts = JSON.parse(document.getElementById("charts").textContent);
  var root = document.documentElement, PRINTED = { width: 640, height: 345 };
  var darkness = window.matchMedia("(prefers-color-scheme: dark)");

  function named(name) { return getComputedStyle(root).getPropertyValue("--" + name).trim(); }

  function styled(trace, dark) {
    var tone = trace.meta.tones[dark ? 1 : 0], copy = Object.assign({}, trace);
    if (trace.type === "bar") {
      copy.marker = { color: tone, line: { color: tone, width: 1 },
        pattern: Object.assign({ fgcolor: named("card"), solidity: 0.35 }, trace.marker.pattern) };
    } else {
      copy.line = Object.assign({ color: tone }, trace.line);
      if (trace.marker) { copy.marker = Object.assign({ color: tone }, trace.marker); }
      if (trace.meta.band) { copy.fillcolor = tone + "1c"; }
    }
    return copy;
  }

  function layout(chart, width, printing) {
    var narrow = width < 560, small = narrow || printing, grid = named("grid");
    var axis = { gridcolor: grid, linecolor: grid, zerolinecolor: grid, automargin: true, fixedrange: narrow };
    return { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", barmode: "group", bargap: 0.25,
      font: { color: named("ink"), family: "system-ui, sans-serif", size: small ? 11 : 13 }, hovermode: "closest",
      margin: { l: 10, r: 12, t: 16, b: 10 },
      height: printing ? PRINTED.height : narrow ? 400 + 12 * chart.data.length : 460,
      width: width,
      legend: { orientation: "h", x: 0, xanchor: "left", yref: "container", y: 0, yanchor: "bottom",
        font: { size: small ? 10 : 12 } },
      xaxis: Object.assign({}, axis, chart.layout.xaxis), yaxis: Object.assign({}, axis, chart.layout.yaxis) };
  }

  function draw() {
    var printing = root.hasAttribute("data-printing"), dark = darkness.matches && !printing;
    Object.keys(charts).forEach(function (id) {
      var place = document.getElementById(id), chart = charts[id];
      Plotly.react(place, chart.data.map(function (trace) { return styled(trace, dark); }),
        layout(chart, printing ? PRINTED.width : place.clientWidth, printing),
        { displaylogo: false, displayModeBar: false });
    });
  }

  draw();
  darkness.addEventListener("change", draw);
  // Left to Plotly, a chart would keep its height and legend, and its place would not.
  window.addEventListener("resize", draw);
  // Paper is white and narrow, whatever the screen was: charts are drawn for it, and for the screen again after.
  window.addEventListener("beforeprint", function () { root.setAttribute("data-printing", ""); draw(); });
  window.addEventListener("afterprint", function () {
    root.removeAttribute("data-printing");
    draw();
  });
}());
