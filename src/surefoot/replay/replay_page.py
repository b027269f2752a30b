"""The replay report's page: HTML and style, no script."""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; --page: #fcfcfb; --card: #ffffff; --ink: #1c1e21; --soft: #5b6067; --line: #dcdfe3;
  --yes: #12653a; --yes-back: #e0f3e7; --no: #9a2a1b; --no-back: #fce7e3; }
@media (prefers-color-scheme: dark) { :root { --page: #14161a; --card: #1c1f24; --ink: #e9eaec; --soft: #a5abb3;
  --line: #343940; --yes: #8fdcae; --yes-back: #16321f; --no: #ffb1a3; --no-back: #43201a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; padding: 1.5rem 1rem 4rem; background: var(--page); color: var(--ink);
  font: 1rem/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: clamp(1.5rem, 4vw, 2.1rem); line-height: 1.2; margin: 0 0 .75rem; }
h2 { margin: 2.5rem 0 .5rem; padding-top: 1rem; border-top: 1px solid var(--line); }
h3 { margin: 0 0 .4rem; font-size: 1.05rem; }
p, figcaption, li { max-width: 48rem; }
figure { margin: 1rem 0; background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
  padding: .8rem 1rem; }
figure img { width: 100%; max-width: 56rem; height: auto; background: #ffffff; border-radius: .4rem; }
figcaption, details, footer { color: var(--soft); font-size: .9rem; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: .6rem; background: var(--card); }
table { border-collapse: collapse; width: 100%; font-size: .93rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .5rem .75rem; border-bottom: 1px solid var(--line); }
tbody tr:last-child > * { border-bottom: 0; }
thead th { color: var(--soft); font-weight: 600; }
td:first-child, td.interval { white-space: nowrap; } td:first-child { font-weight: 600; }
span.yes, span.no { display: inline-block; padding: .15rem .7rem; border-radius: 1rem; font-weight: 600; }
.yes { color: var(--yes); background: var(--yes-back); } .no { color: var(--no); background: var(--no-back); }
td.no { background: none; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.2rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; } dd { margin-bottom: .5rem; } }
</style>
</head>
<body>
<header><h1>$title</h1>
<p>What each policy would have done on these logged rounds, and what it would have earned beside the baseline, the
strategy of today. α is the share of the baseline's reward that a policy may put at risk.</p>
$lead
$bad
</header>
<main>
<section><h2>Side by side</h2>
$table
<p>Numbers in brackets are $level intervals. “Free from round”: no baseline round after it, if that leaves at least a
fifth of the rounds. “Below the floor”: rounds after which less than (1 − α) of the baseline's reward had been
earned.</p>
</section>
<section><h2>Along the rounds</h2>
$figures
</section>
<section><h2>Every estimate</h2>
$estimates
</section>
<section><h2>What this assumes</h2>
<ul>$assumes</ul>
<h3>What the log itself says of the model</h3>
$doubts
</section>
<section><h2>Settings</h2>
<dl>$settings</dl>
</section>
</main>
<footer><p>Written by surefoot; needs no network.</p></footer>
</body>
</html>
"""
