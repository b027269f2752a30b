"""Every page has the one frame and the one look, follows light, dark and paper, and asks no network for anything."""

import re
from pathlib import Path

import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure

import surefoot
from surefoot.paper.section5 import FULL, paper_sweep
from surefoot.reports.figures import NEUTRAL, POLICY_STYLES, SERIES, SVG_STYLE, inline_svg
from surefoot.reports.html_page import FOOTER, stylesheet
from tests.reports import PAGES, page_of, small_plan

SOURCE = Path(surefoot.__file__).parent
FIGURE = re.compile(r'<div class="picture".*?</svg>', flags=re.DOTALL)
COLOUR = re.compile(r"(?:fill|stroke): *([^;\"]+)")


@pytest.mark.parametrize("name", PAGES)
def test_every_page_carries_the_very_same_stylesheet_and_no_other(name: str) -> None:
    text = page_of(name)
    assert text.startswith('<!doctype html>\n<html lang="en">')
    assert text.count("<style") == 1
    assert f"<style>{stylesheet()}</style>" in text
    assert text.count("<h1>") == 1
    assert FOOTER in text


@pytest.mark.parametrize("name", PAGES)
def test_no_page_names_an_address_in_a_network(name: str) -> None:
    text = page_of(name)
    assert re.search(r"https?:|//www|@import|url\((?!#)", text) is None
    assert {link[:5] for link in re.findall(r'\b(?:src|href)="([^"#][^"]*)"', text)} == {"data:"}


@pytest.mark.parametrize("name", PAGES)
def test_every_id_is_there_once_and_every_reference_leads_to_one(name: str) -> None:
    text = page_of(name)
    ids = re.findall(r'\bid="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text)) <= {(i, "") for i in ids} | {("", i) for i in ids}


def test_there_is_a_dark_look_for_screens_and_a_light_one_for_paper() -> None:
    css = stylesheet()
    light = set(re.findall(r"(--[a-z-]+):", css[: css.index("@media")]))
    dark = css[css.index("@media screen and (prefers-color-scheme: dark)") : css.index("* {")]
    paper = css[css.index("@media print") :]
    assert set(re.findall(r"(--[a-z-]+):", dark)) == light
    assert set(re.findall(r"(--[a-z-]+):", paper)) == light
    assert set(re.findall(r"var\((--[a-z-]+)\)", css)) <= light
    for rule in ("color-scheme: only light", "overflow: visible", "break-inside: avoid", "details-content"):
        assert rule in paper


def test_only_reports_and_the_services_page_write_style_or_doctype() -> None:
    files = [path for path in SOURCE.rglob("*") if path.suffix in (".py", ".html", ".js", ".css")]
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in files
        if re.search(r"<style|<!doctype|prefers-color-scheme", path.read_text("utf-8"), flags=re.IGNORECASE)
    }
    others = {name for name in found if not name.startswith(("reports/", "service/page/"))}
    assert others == set()
    assert [path.name for path in SOURCE.joinpath("reports").glob("*.css")] == ["style.css"]


@pytest.mark.parametrize(("name", "figures"), [("paper", 4), ("replay", 4), ("plan", 1)])
def test_every_colour_of_a_figure_has_a_light_and_a_dark_form(name: str, figures: int) -> None:
    drawn = FIGURE.findall(page_of(name))
    assert len(drawn) == figures
    colours = {colour.strip() for figure in drawn for colour in COLOUR.findall(figure)} - {"none"}
    colours = {colour for colour in colours if not colour.startswith("url(#")}  # a hatch, whose colours are its own
    pairs = {colour for colour in colours if colour.startswith("light-dark(")}
    assert len(pairs) >= 2
    before = {pair[len("light-dark(") :].split(",")[0] for pair in pairs}  # for browsers without light-dark
    assert colours - pairs - before == colours & set(NEUTRAL.values())
    assert "var(--ink)" in colours


@pytest.mark.parametrize("name", ["paper", "replay", "plan"])
def test_a_figure_brings_no_document_of_its_own(name: str) -> None:
    for figure in FIGURE.findall(page_of(name)):
        assert re.search(r"<\?xml|<!DOCTYPE|<metadata|xmlns", figure) is None
        assert re.search(r'<svg role="img" aria-label="[^"]+" viewBox="[^"]+">', figure)


def test_light_and_dark_differ_in_every_pair_of_colours() -> None:
    assert all(light != dark for light, dark in SERIES.items())
    assert all(look.light != look.dark for look in POLICY_STYLES.values())


def test_every_policy_of_section_5_has_a_look_of_its_own() -> None:
    assert {spec.name or spec.policy for part in paper_sweep(FULL).parts for spec in part.specs} <= set(POLICY_STYLES)


def test_the_plan_says_on_its_page_what_it_says_in_the_terminal() -> None:
    text, found = page_of("plan"), small_plan()
    assert "It would pay: SafeLUCB with α = " in text
    assert "No policy fell below its floor." in text
    assert text.index("SafeLUCB, recommended") < text.index("CLUCB, the paper&#x27;s")
    assert text.count("the theorem&#x27;s bound on them") == 1
    for answer in found.answers:
        assert f"<td>{answer.gained:+,.0f} ± {1.96 * answer.gained_stderr:,.0f}</td>" in text
        assert f"α = {answer.alpha:g}" in text


def test_words_of_a_figure_keep_their_digits_and_places_lose_those_that_nobody_sees() -> None:
    figure = Figure(figsize=(4, 3))
    axes = figure.add_subplot()
    axes.plot([0.0, 0.003], [1.0, 2.0], label="α = 0.125")
    axes.set_xticks([0.0025], labels=["0.0025"])
    axes.legend()
    with rc_context(SVG_STYLE):
        text = inline_svg(figure, "figure", "a line")
    assert {"α = 0.125", "0.0025"} <= set(re.findall(r">([^<>]+)</text>", text))
    assert re.search(r"\d\.\d{3}", re.sub(r">[^<]*<", "><", text)) is None
