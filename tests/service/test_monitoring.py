"""Alert rules and the dashboard: whatever they ask for is on the metrics page, and every alert has its runbook."""

import json
import re
from pathlib import Path

import httpx
import pytest
import yaml
from typer.testing import CliRunner

from surefoot.cli.commands import app

ROOT = Path(__file__).parents[2]
SUFFIX = re.compile(r"_(bucket|total|sum|count)$")


def printed(what: str) -> str:
    done = CliRunner().invoke(app, ["config", what], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def expressions() -> list[str]:
    rules = yaml.safe_load(printed("alerts"))["groups"][0]["rules"]
    panels = json.loads(printed("dashboard"))["panels"]
    return [rule["expr"] for rule in rules] + [target["expr"] for panel in panels for target in panel["targets"]]


def families(page: str) -> dict[str, set[str]]:
    """The metrics of a page, and the labels of each."""
    found = {line.split()[2]: set[str]() for line in page.splitlines() if line.startswith("# TYPE")}
    for line in page.splitlines():
        if not line.startswith("#"):
            name, _, labels = line.partition("{")
            name = name.split()[0]
            found[name if name in found else SUFFIX.sub("", name)] |= set(re.findall(r'(\w+)="', labels))
    return found


@pytest.mark.parametrize("expression", expressions())
def test_what_is_asked_for_is_on_the_page(client: httpx.Client, expression: str) -> None:
    assert expression.count("(") == expression.count(")")
    page = client.get("/metrics").text
    known = families(page)
    names = set(re.findall(r"surefoot_\w+", expression))
    assert names or expression.startswith("up{")
    for name in names:
        assert name in known or SUFFIX.sub("", name) in known or name.removesuffix("_total") in known, name
    for group in re.findall(r"by \(([^)]*)\)", expression):
        labels = {label.strip() for label in group.split(",")} - {"le", "instance"}
        (name,) = names
        seen = known.get(name) or known.get(SUFFIX.sub("", name)) or set()
        assert not seen or labels <= seen, (labels, seen)


def test_every_alert_has_a_runbook() -> None:
    text = (ROOT / "docs/operations.md").read_text("utf-8")
    headings = {line.removeprefix("### ").strip().lower() for line in text.splitlines() if line.startswith("### ")}
    rules = yaml.safe_load(printed("alerts"))["groups"][0]["rules"]
    assert len({rule["alert"] for rule in rules}) == len(rules) == 15
    for rule in rules:
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert (page, anchor in headings) == ("operations.md", True), rule["alert"]


def test_nothing_of_the_server_is_left_out_of_the_dashboard(client: httpx.Client) -> None:
    asked = " ".join(expressions())
    server = [name for name in families(client.get("/metrics").text) if not name.startswith("surefoot_experiment_")]
    missing = {name for name in server if name not in asked} - {"surefoot_repeated_decisions_total"}
    assert missing == set()
