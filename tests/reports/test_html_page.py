"""The frame escapes what is not HTML, wherever it stands."""

import re
from html.parser import HTMLParser

from surefoot.reports.html_page import (
    FOOTER,
    LONG,
    Badge,
    Html,
    bullets,
    figure,
    html,
    join,
    nested_row,
    page,
    row,
    section,
    settings_table,
    table,
    tag,
)

EVIL = "<b onload=\"x('y')\">&amp;</script>"


class Words(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[str] = []
        self.values: list[str | None] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.values += [value for _, value in attrs]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_every_string_given_to_the_frame_is_shown_as_it_is() -> None:
    text = page(
        EVIL,
        section(EVIL, EVIL, bullets([EVIL]), figure(EVIL, tag("div", EVIL, aria_label=EVIL), EVIL), anchor=EVIL),
        table(EVIL, (EVIL,), [row(EVIL, head=EVIL), nested_row(EVIL, head=f"  {EVIL}")], kind=EVIL),
        settings_table({EVIL: EVIL, "long": EVIL * LONG}),
        heading=EVIL,
        verdict=Badge(EVIL, is_good=True),
        lead=[EVIL],
        note=EVIL,
        footer=EVIL,
    )
    read = Words(text)
    assert "b" not in read.tags
    assert "script" not in read.tags
    assert read.words.count(EVIL) == 18
    assert f"{EVIL} {FOOTER}" in read.words
    assert read.values.count(EVIL) == 5


def test_html_stays_html_and_an_f_string_of_it_does_not() -> None:
    bold = tag("b", "1 < 2")
    assert html(bold) is bold
    assert tag("p", bold) == "<p><b>1 &lt; 2</b></p>"
    assert tag("p", f"{bold}") == "<p>&lt;b&gt;1 &amp;lt; 2&lt;/b&gt;</p>"
    assert bold + "<i>" == "<b>1 &lt; 2</b>&lt;i&gt;"
    assert join(["<", Html("<br>")], "&") == "&lt;&amp;<br>"


def test_marked_html_cannot_end_an_attribute() -> None:
    assert tag("p", title=Html('"><script>')) == '<p title="&quot;&gt;&lt;script&gt;"></p>'


def test_an_attribute_of_none_is_left_out_and_an_underscore_is_a_dash() -> None:
    assert tag("p", class_=None, aria_label="x", tabindex=0) == '<p aria-label="x" tabindex="0"></p>'


def test_what_is_very_long_is_folded() -> None:
    assert "<details>" not in settings_table({"seed": "7" * LONG})
    assert "7" * (LONG + 1) in settings_table({"seed": "7" * (LONG + 1)})
    assert "<details>" in settings_table({"seed": "7" * (LONG + 1)})


def test_settings_are_a_table_in_words_and_not_what_python_calls_them() -> None:
    settings = {
        "reward_range": (0.0, 1.0),
        "known": True,
        "ridge": None,
        "parts": [{"name": "clicks", "world": {"dim": 4}, "alpha": None}, {"policy": "CLUCB", "alphas": [0.1, 0.2]}],
    }
    text = settings_table(settings)
    for python in ("None", "True", "{", "[", "(", "'"):
        assert python not in text
    rows = re.findall(r'<th scope="row" class="depth-(\d)">(.*?)</th><td>(.*?)</td>', text)
    assert rows == [
        ("0", "reward range", "0, 1"), ("0", "known", "yes"), ("0", "ridge", "not set"), ("0", "parts", ""),
        ("1", "1. clicks", ""), ("2", "name", "clicks"), ("2", "world", ""), ("3", "dim", "4"),
        ("1", "2. CLUCB", ""), ("2", "policy", "CLUCB"), ("2", "alphas", "0.1, 0.2"),
    ]  # fmt: skip
