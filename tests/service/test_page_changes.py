"""The page says who did what, gives the newest receipt, and names the runbook's line of every alarm."""

import re
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

import surefoot
from surefoot.cli.commands import app
from surefoot.experiment.beliefs import NO_BELIEFS
from surefoot.service.history import MOST_REPLAYED, StatusHistory, replayed
from surefoot.service.settings import Settings
from surefoot.service.tokens import TokenFile
from tests.service.page_browser import Tab
from tests.service.servers import ACTIONS, POLICY, create, running

SHOP = "/v1/experiments/shop"
RUNBOOK = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()


def story(client: httpx.Client) -> None:
    """What an operator may come to see: a pause, an erasure, an alarm, and rewards that nobody knows of."""
    create(client, reward_bounds=[0, 1], description="Which banner a visitor sees.")
    for n in range(4):
        client.post(f"{SHOP}/decisions", json={"decision_id": f"v{n}", "actions": ACTIONS})
    client.put(f"{SHOP}/mode", json={"mode": "paused", "reason": "the till is being mended"})
    client.post(f"{SHOP}/decisions/v0/void", json={"action": "red", "reason": "sold out"})
    client.post(f"{SHOP}/erasures", json={"decision_ids": ["v3"], "reason": "asked by letter"})
    client.post(f"{SHOP}/decisions/v1/reward", json={"value": 7})
    client.post(f"{SHOP}/decisions/nobody/reward", json={"value": 1})


def test_changes_are_told_newest_first_with_their_authors(client: httpx.Client) -> None:
    create(client, "changed")
    client.put("/v1/experiments/changed/mode", json={"mode": "paused", "reason": "a look"})
    found = client.get("/v1/experiments/changed/changes").json()["changes"]
    assert [(one["kind"], one["reason"]) for one in found] == [("mode", "a look"), ("created", "")]
    assert found[0]["text"] == "Mode changed to paused."
    assert len(client.get("/v1/experiments/changed/changes?limit=1").json()["changes"]) == 1
    forked = {"name": "changed-2", "reason": "another look"}
    assert client.post("/v1/experiments/changed/forks", json=forked).status_code == 201
    (first,) = client.get("/v1/experiments/changed-2/changes").json()["changes"]
    assert (first["text"], first["reason"]) == ("Forked from changed, with 0 of its rounds.", "another look")


def test_every_alarm_has_its_line_in_the_runbook() -> None:
    from surefoot.service import notices

    named = set(re.findall(r'"(Surefoot\w+)"', Path(notices.__file__).read_text()))
    assert len(named) >= 4
    assert {name for name in named if f"### {name}\n" in RUNBOOK} == named


@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_shows_who_did_what_and_the_receipt(tab: Tab, tmp_path: Path, width: int) -> None:
    file = TokenFile(tmp_path / "tokens")
    secret = file.create(["admin"], owner="Ada Lovelace")
    settings = Settings(database=str(tmp_path / "shop.journal"), tokens=str(tmp_path / "tokens"))
    with running(settings) as address, httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
        client.headers["authorization"] = f"Bearer {secret}"
        story(client)
        tab.size(width, 800)
        tab.open(address)
        tab.wait("document.getElementById('token-dialog').open")
        tab.run("document.getElementById('token').focus()")
        tab.type(secret)
        tab.press("Enter", 13)
        tab.wait("document.querySelectorAll('#changes li').length >= 4")
        text = tab.run("document.getElementById('changes').textContent")
        for word in (
            "Mode changed to paused.",
            "the till is being mended",
            "Private texts erased: 1.",
            "Decision v0: moved to what was really played.",
            "Ada Lovelace (",
        ):
            assert word in text
        head = client.get(f"{SHOP}/head").json()
        tab.wait(f"document.getElementById('receipt-hash').textContent === '{head['hash']}'")
        assert tab.run("document.getElementById('receipt-number').textContent") == str(head["number"])
        alarms, notes = (tab.run(f"document.getElementById('{place}').textContent") for place in ("alarms", "notes"))
        assert "SurefootAlarm in the runbook" in alarms
        assert "SurefootRewardsRefused in the runbook" in notes
        # Buttons that answer the alarm stand right beneath it, and not beneath what they do not answer.
        assert tab.run("document.getElementById('alarms').nextElementSibling.id") == "answers"
        assert "An alarm is on: only the baseline plays" in tab.run(
            "document.getElementById('description').textContent"
        )
        for theme in ("light", "dark"):
            tab.theme(theme)
            assert tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
            tab.shoot(tmp_path / f"changes-{width}-{theme}.png")
        assert [said for said in tab.complaints if "401" not in said] == [], "but that a token was asked for"


def test_decisions_and_beliefs_can_be_read_as_they_were(client: httpx.Client) -> None:
    create(client, "named", feature_names=["price", "age"])
    made = []
    for _ in range(4):
        made.append(client.post("/v1/experiments/named/decisions", json={"actions": ACTIONS}).json())
        way = f"/v1/experiments/named/decisions/{made[-1]['decision_id']}/reward"
        client.post(way, json={"value": 0.4}).raise_for_status()
        client.get("/v1/experiments/named")
    second = made[1]["head"]["number"]
    found = client.get(f"/v1/experiments/named/decisions?until={second}").json()["decisions"]
    assert [one["decision_id"] for one in found] == [made[1]["decision_id"], made[0]["decision_id"]]
    then = client.get(f"/v1/experiments/named/beliefs?until={second}").json()
    now = client.get("/v1/experiments/named/beliefs").json()
    assert then["observations"] <= 1  # the second decision was made before its own reward
    assert [one["name"] for one in then["beliefs"]] == [one["name"] for one in now["beliefs"]] == ["price", "age"]
    assert client.get("/v1/experiments/named/beliefs?until=0").status_code == 400


def test_what_was_believed_is_kept_beside_every_point_and_dropped_with_it() -> None:
    journal = surefoot.open_journal("memory:")
    settings: dict[str, Any] = {**POLICY}
    shop = surefoot.Experiment.create(journal, "shop", surefoot.SafeLUCB(**settings), mode="guarded")
    rows = np.array([action["features"] for action in ACTIONS])
    for _ in range(20):
        shop.reward(shop.decide(rows, baseline=0).decision_id, 0.4)
    past = replayed(journal.view("shop"), 512)
    assert [believed.observations for _, believed in past] == list(range(20))
    history = StatusHistory(16)
    for point, believed in past:
        history.add(point, believed)
    assert len(history.points) <= 16
    for point in history.points:
        # At the decision, and until the next point.
        assert history.beliefs_at(point.events).observations == point.rounds - 1
        assert history.beliefs_at(point.events + 1).observations == point.rounds - 1
    assert history.beliefs_at(1) == NO_BELIEFS


def test_what_was_proved_is_kept_over_a_restart_that_replays_no_events(tmp_path: Path) -> None:
    """The lift is proved, and then lost again; page, list and command line go on saying when that was."""
    path = tmp_path / "shop.db"
    with surefoot.open_journal(path) as journal:
        shop = surefoot.Experiment.create(journal, "shop", surefoot.Guard(alpha=0.5, delta=0.1, seed=1), mode="guarded")
        first = None
        while journal.head("shop").number <= MOST_REPLAYED:
            request = {"baseline": "old", "proposal": "new"}
            answers: list[Any] = shop.decide_all([request] * (50 if first is None else 1000))
            better = 0.9 if first is None else 0.5
            shop.reward_all([(one.decision_id, better if one.source == "learner" else 0.5) for one in answers])
            first = first or shop.status().proof
        status = shop.status()
    assert status.lift is not None
    assert not status.lift.is_paying
    assert first is not None
    assert first.lift.is_paying
    assert first.round < 4000
    for _ in range(2):  # the second server starts from what the first has left
        with (
            running(Settings(database=str(path))) as address,
            httpx.Client(base_url=address, trust_env=False, timeout=60) as client,
        ):
            found = client.get("/v1/experiments/shop").json()
            (listed,) = client.get("/v1/experiments").json()["experiments"]
            point = client.get("/v1/experiments/shop/history").json()["points"][-1]
            for standing in (found, listed, point):
                assert (standing["proof"]["round"], standing["proof"]["time"]) == (first.round, first.time)
    shown = CliRunner().invoke(app, ["experiment", "status", str(path), "shop"], env={"COLUMNS": "200"}).output
    assert f"it pays: proved at decision {first.round:,}" in " ".join(shown.split())


def test_rewards_have_a_unit_that_forks_keep_and_metrics_have_names(client: httpx.Client) -> None:
    create(client, "clicks", reward_unit="clicks")
    assert client.get("/v1/experiments/clicks").json()["reward_unit"] == "clicks"
    client.post("/v1/experiments/clicks/forks", json={"name": "clicks-2", "reason": "a try"}).raise_for_status()
    assert client.get("/v1/experiments/clicks-2").json()["reward_unit"] == "clicks"
    metrics = {"quality": {"kind": "floor", "low": 0, "high": 1, "alpha": 0.1}}
    guard = {"policy": "Guard", "settings": {"delta": 0.1, "metrics": metrics}}
    create(client, "points", **guard, reward_unit={"quality": "points"})
    assert client.get("/v1/experiments/points").json()["reward_unit"] == {"quality": "points"}
    for body, rule in (
        (guard | {"reward_unit": "EUR"}, "must map metrics to units, such as {'cost': 'USD'}, where metrics have"),
        (guard | {"reward_unit": {"cost": "EUR"}}, "The metrics are quality."),
        (guard | {"reward_unit": {"quality": "x" * 41}}, "at most 40"),
        ({"settings": POLICY, "reward_unit": {"cost": "EUR"}}, "must be a text, but got {'cost': 'EUR'}"),
        ({"settings": POLICY, "reward_unit": "x" * 41}, "at most 40"),
    ):
        refused = client.post("/v1/experiments", json={"name": "wrong", **body})
        assert refused.status_code == 422
        assert rule in refused.json()["detail"]


def test_arms_go_by_the_names_of_the_newest_decision(client: httpx.Client) -> None:
    create(client, "arms", policy="UCB", settings={"arms": 2})
    actions = [{"id": "red"}, {"id": "blue"}]
    assert client.post("/v1/experiments/arms/decisions", json={"actions": actions}).status_code == 201
    found = client.get("/v1/experiments/arms/beliefs").json()
    assert [one["name"] for one in found["beliefs"]] == ["red", "blue"]


def test_wrong_names_are_refused(client: httpx.Client) -> None:
    body = {"name": "wrong", "settings": POLICY, "feature_names": ["price"]}
    answer = client.post("/v1/experiments", json=body)
    assert answer.status_code == 422
    assert "must be 2 different names" in answer.json()["detail"]


def test_all_that_was_declared_is_among_what_the_guarantee_rests_on(client: httpx.Client) -> None:
    told = {**POLICY, "constraint": {"name": "reserve", "granted": 3.0}}
    create(client, "declared", settings=told, reward_window=60, default_reward=0.25)
    found = client.get("/v1/experiments/declared/assumptions").json()["assumptions"]
    values = {one["setting"]: one["value"] for one in found}
    assert (values["constraint.reserve"], values["reward_window"], values["default_reward"]) == (3.0, 60.0, 0.25)
    assert not {"skew", "confirm_within"} & set(values)
