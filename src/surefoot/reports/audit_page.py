"""The audit as one HTML page that needs nothing else: to be mailed, printed, kept.

It stands here and not in `surefoot.audit`, which imports nothing of ours that it does not need for checking.
"""

from surefoot.audit.report import SHOWN, Report, cannot_show, closest, findings_text, promise, rows, verdict
from surefoot.reports.html_page import Badge, Html, bullets, nested_row, page, section, table, tag


def as_html(report: Report) -> str:
    """The whole report as a page."""
    findings = [] if report.is_clean else [section("Findings", _findings(report))]
    return page(
        f"Audit of {report.name}",
        section("What was promised", tag("p", promise(report))),
        section("Was it kept?", tag("p", verdict(report)), tag("p", closest(report))),
        *findings,
        section("What was checked", _checked(report)),
        section("What an audit cannot show", bullets(cannot_show(report))),
        heading=f"Audit of experiment “{report.name}”",
        verdict=_seal(report),
    )


def _seal(report: Report) -> Badge:
    return Badge("Clean" if report.is_clean else findings_text(report.findings), is_good=report.is_clean)


def _findings(report: Report) -> Html:
    listed = [str(finding) for finding in list(report.findings)[:SHOWN]]
    more = len(report.findings) - len(listed)
    return bullets([*listed, *([f"and {more:,} more"] if more else [])])


def _checked(report: Report) -> Html:
    body = [nested_row(value, head=name) for name, value in rows(report)]
    return table("What was checked", (), body, "facts")
