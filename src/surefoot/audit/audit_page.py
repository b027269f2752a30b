"""The report as one HTML page that needs nothing else: to be mailed, printed, kept."""

from html import escape

from surefoot.audit.audit_report import Report
from surefoot.audit.audit_text import CANNOT_SHOW, SHOWN, closest, promise, rows, verdict

STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --paper: #fff; --line: #d5dbe1; --good: #17663a; --bad: #a3201d; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ec; --paper: #14181d; --line: #39424c; --good: #6fce9a; --bad: #ff8f88; }
}
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 46rem; margin: 2.5rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.seal { font-weight: 600; font-size: 1.15rem; margin: 0 0 1rem; }
.good { color: var(--good); } .bad { color: var(--bad); }
table { border-collapse: collapse; width: 100%; } td { padding: .3rem .6rem .3rem 0; vertical-align: top;
border-bottom: 1px solid var(--line); overflow-wrap: anywhere; } td:first-child { width: 40%; }
td.sub { padding-left: 1.2rem; } li { margin: .3rem 0; overflow-wrap: anywhere; }
"""


def as_html(report: Report) -> str:
    """The whole report as a page."""
    seal = ("good", "Clean") if report.is_clean else ("bad", f"{len(report.findings):,} finding(s)")
    parts = [
        f"<h1>Audit of experiment “{escape(report.name)}”</h1>",
        f'<p class="seal {seal[0]}">{seal[1]}</p>',
        _section("What was promised", f"<p>{escape(promise(report))}</p>"),
        _section("Was it kept?", f"<p>{escape(verdict(report))}</p><p>{escape(closest(report))}</p>"),
    ]
    if not report.is_clean:
        parts.append(_section("Findings", _findings(report)))
    table = "".join(_row(name, value) for name, value in rows(report))
    parts.append(_section("What was checked", f"<table>{table}</table>"))
    parts.append(_section("What an audit cannot show", _list(CANNOT_SHOW)))
    title = escape(f"Audit of {report.name}")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f"<body>{''.join(parts)}</body></html>\n"
    )


def _section(title: str, body: str) -> str:
    return f"<h2>{title}</h2>{body}"


def _findings(report: Report) -> str:
    listed = [str(finding) for finding in list(report.findings)[:SHOWN]]
    more = len(report.findings) - len(listed)
    return _list((*listed, *([f"and {more:,} more"] if more else [])))


def _list(items: tuple[str, ...]) -> str:
    return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>"


def _row(name: str, value: str) -> str:
    kind = ' class="sub"' if name.startswith(" ") else ""
    return f"<tr><td{kind}>{escape(name.strip())}</td><td>{escape(value)}</td></tr>"
