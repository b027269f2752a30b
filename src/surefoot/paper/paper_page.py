"""The report's page: HTML, style and the few lines of script that draw its charts."""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Section 5, reproduced: conservative bandits against their claims</title>
<link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; --page: #fcfcfb; --card: #ffffff; --ink: #1c1e21; --soft: #5b6067; --line: #dcdfe3;
  --yes: #12653a; --yes-back: #e0f3e7; --no: #9a2a1b; --no-back: #fce7e3; --note: #6b4b00; --note-back: #fff3d6; }
@media (prefers-color-scheme: dark) { :root { --page: #14161a; --card: #1c1f24; --ink: #e9eaec; --soft: #a5abb3;
  --line: #343940; --yes: #8fdcae; --yes-back: #16321f; --no: #ffb1a3; --no-back: #43201a; --note: #ffdc8f;
  --note-back: #3a2f12; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; padding: 1.5rem 1rem 4rem; background: var(--page); color: var(--ink);
  font: 1rem/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: clamp(1.5rem, 4vw, 2.1rem); line-height: 1.2; margin: 0 0 .75rem; }
h2 { margin: 3rem 0 .5rem; padding-top: 1rem; border-top: 1px solid var(--line); }
h3 { margin: 1.75rem 0 .5rem; font-size: 1.05rem; }
p, figcaption, li { max-width: 46rem; }
.lead { font-size: 1.08rem; }
.note { padding: .6rem .9rem; border-radius: .5rem; background: var(--note-back);
  color: var(--note); font-weight: 600; }
.cards { list-style: none; padding: 0; display: grid; gap: .8rem;
  grid-template-columns: repeat(auto-fit, minmax(16rem, 1fr)); }
.cards li, figure { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .8rem 1rem; }
.cards strong { font-size: 1.35rem; }
figure { margin: 1rem 0; } figure h3 { margin: 0 0 .3rem; }
figcaption, details, footer { color: var(--soft); font-size: .9rem; }
.chart { min-height: 24rem; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: .6rem; background: var(--card); }
table { border-collapse: collapse; width: 100%; font-size: .93rem; }
th, td { text-align: left; vertical-align: top; padding: .5rem .75rem; border-bottom: 1px solid var(--line); }
tbody tr:last-child > * { border-bottom: 0; }
thead th { color: var(--soft); font-weight: 600; }
.numbers td, .numbers th { white-space: nowrap; font-variant-numeric: tabular-nums; }
.numbers thead th { white-space: normal; } .numbers tbody th { white-space: normal; min-width: 9rem; }
.claims { min-width: 38rem; } .claims td:first-child { white-space: nowrap; } .claims td:nth-child(2) { width: 38%; }
.yes, .no { display: inline-block; padding: .1rem .55rem; border-radius: 1rem; font-weight: 600; font-size: .85rem; }
.yes { color: var(--yes); background: var(--yes-back); } .no { color: var(--no); background: var(--no-back); }
summary { cursor: pointer; } dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.2rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; } dd { margin-bottom: .5rem; }
  figure { padding: .6rem .4rem; } figure h3, figcaption { padding: 0 .4rem; } }
</style>
</head>
<body>
<header>
<h1>Can a program learn a better strategy without ever losing ground?</h1>
<p class="lead">A company has a strategy that works, the baseline, and wants software to find a better one while it
is in use. An ordinary learner (LUCB) tries poor choices at first and can earn less than the baseline would have; a
conservative learner (CLUCB) tries only what it can show to be affordable, so that with high probability it never falls
below a floor: the share 1 − α of what the baseline would have earned. This page repeats the experiment of the paper
that proposed it (“Conservative Contextual Linear Bandits”, Section 5) and says, claim by claim, whether our numbers
agree.</p>
$note
</header>
<main>
<section aria-labelledby="glance"><h2 id="glance">At a glance</h2>
$glance
<p>Regret is what was missed against always playing the best action. LUCB is the learner without a floor; CLUCB knows
what the baseline earns; CLUCB2, where shown, has to learn that too; SafeLUCB, where shown, keeps the same promise by
sharper proofs, and is ours.</p>
</section>
$worlds
$others
<section aria-labelledby="run"><h2 id="run">What was run</h2>
$scale
<h3>Settings</h3>
$settings
</section>
</main>
<footer>
<p>A number after ± in a table is one standard error over runs. Written by surefoot; needs no network.</p>
</footer>
<noscript>
<p class="note">The charts need JavaScript; every number they show at the horizon is in the tables.</p>
</noscript>
<script type="application/json" id="charts">$charts</script>
<script>$plotly</script>
<script>
(function () {
  "use strict";
  var charts = JSON.parse(document.getElementById("charts").textContent);
  var darkness = window.matchMedia("(prefers-color-scheme: dark)");
  function styled(trace, dark) {
    var tone = trace.meta.tones[dark ? 1 : 0], back = dark ? "#1c1f24" : "#ffffff";
    var copy = Object.assign({}, trace);
    if (trace.type === "bar") {
      copy.marker = { color: tone, line: { color: tone, width: 1 },
        pattern: Object.assign({ fgcolor: back, solidity: 0.35 }, trace.marker.pattern) };
    } else {
      copy.line = Object.assign({ color: tone }, trace.line);
      if (trace.marker) { copy.marker = Object.assign({ color: tone }, trace.marker); }
      if (trace.meta.band) { copy.fillcolor = tone + "1c"; }
    }
    return copy;
  }
  function draw() {
    var dark = darkness.matches, ink = dark ? "#e9eaec" : "#1c1e21", grid = dark ? "#343940" : "#e4e6e9";
    Object.keys(charts).forEach(function (id) {
      var place = document.getElementById(id), narrow = place.clientWidth < 560, chart = charts[id];
      var axis = { gridcolor: grid, linecolor: grid, zerolinecolor: grid, automargin: true, fixedrange: narrow };
      var layout = { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", barmode: "group", bargap: 0.25,
        font: { color: ink, family: "system-ui, sans-serif", size: narrow ? 11 : 13 }, hovermode: "closest",
        margin: { l: 10, r: 12, t: 16, b: 10 }, height: 460,
        legend: { orientation: "h", x: 0, xanchor: "left", y: -0.22, yanchor: "top", font: { size: narrow ? 10 : 12 } },
        xaxis: Object.assign({}, axis, chart.layout.xaxis), yaxis: Object.assign({}, axis, chart.layout.yaxis) };
      if (narrow) { layout.height = 400 + 12 * chart.data.length; }
      Plotly.react(place, chart.data.map(function (t) { return styled(t, dark); }), layout,
        { responsive: true, displaylogo: false, displayModeBar: false });
    });
  }
  draw();
  darkness.addEventListener("change", draw);
}());
</script>
</body>
</html>
"""
