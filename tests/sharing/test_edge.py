"""An edge decides by itself, and what it did arrives later, counts once and is audited."""

import time

import httpx
import numpy as np
import pytest

from surefoot.audit.audit_text import closest, verdict
from surefoot.client import ServiceError
from surefoot.edge import Edge
from surefoot.errors import DecisionError, InputError, JournalUnavailableError
from tests.edge.edges import ACTIONS, MEANS, ROWS, Shop, findings, play, warmed


class Broken(httpx.HTTPTransport):
    """A way to the service that can be cut, before it or behind it."""

    is_cut = loses_answers = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.is_cut:
            raise httpx.ConnectError("cut")
        answer = super().handle_request(request)
        if self.loses_answers:
            answer.read()
            raise httpx.ReadError("the answer was lost")
        return answer


def test_an_edge_learns_with_the_others_and_is_audited(shop: Shop) -> None:
    with shop.edge("a") as one, shop.edge("b") as two:
        for _ in range(6):
            play(one, 15)
            play(two, 10)
            one.renew()
            two.renew()
        assert play(one, 15) == 15
        assert two.decide(ACTIONS, baseline="blue").action_id == "red"
    found = shop.ask("GET", f"/v1/experiments/{shop.name}/shards").json()
    assert {shard["name"]: shard["rounds"] for shard in found["shards"]} == {"a": 90, "b": 60, "server": 0}
    assert found["leased"] <= found["pot"]
    report = shop.audit()
    assert report.is_clean
    assert {name: one.tally.decisions for name, one in report.shards.items()} == {"a": 105, "b": 61, "server": 0}
    assert report.hub.tally.learner > 0
    assert verdict(report.hub).startswith("Yes. Each of the learner's")
    assert "their reports tell" in closest(report.hub)


def test_the_shop_goes_on_while_the_service_is_away_and_reports_afterwards(shop: Shop) -> None:
    way = Broken()
    with shop.edge(transport=way) as edge:
        warmed(edge)
        way.is_cut = True
        with pytest.raises(JournalUnavailableError, match="reached"):
            edge.renew()
        assert play(edge, 200) == 200
        assert edge.unsent > 400
        assert isinstance(edge.lease_error, JournalUnavailableError)
        way.is_cut = False
        assert edge.renew()
        assert not edge.lease_error
        assert edge.unsent <= 1
        assert play(edge, 5) == 5
    report = shop.audit()
    assert report.is_clean
    assert report.shards["till"].tally.decisions == 345


def test_without_the_service_an_edge_opens_its_log_again_and_goes_on(shop: Shop) -> None:
    way = Broken()
    with shop.edge(transport=way) as edge:
        warmed(edge)
        waits = edge.decide(ROWS, baseline=0)
        way.is_cut = True
    with shop.edge(transport=way) as again:
        assert again.rounds == 141
        assert play(again, 10) == 10
        assert again.reward(waits.decision_id, 0.8).is_accepted
        assert again.reward(waits.decision_id, 0.8).refused == "conflict"
        way.is_cut = False
        again.renew()
    assert shop.audit().is_clean


def test_an_answer_that_is_lost_counts_once(shop: Shop) -> None:
    way = Broken()
    with shop.edge(transport=way) as edge:
        warmed(edge)
        way.loses_answers = True
        for _ in range(3):
            with pytest.raises(JournalUnavailableError):
                edge.renew()
            play(edge, 3)
        way.loses_answers = False
        edge.renew()
        assert play(edge, 3) == 3
        # Now the answer with the new lease is lost: the baseline plays until it is here.
        taken = edge._service.hand_in
        calls = []

        def lossy(*args: object) -> object:
            answer = taken(*args)  # type: ignore[arg-type]
            calls.append(answer)
            if answer.bundle is not None and len(calls) == 2:
                raise JournalUnavailableError("lost")
            return answer

        edge._service.hand_in = lossy  # type: ignore[assignment, method-assign]
        with pytest.raises(JournalUnavailableError):
            edge.renew()
        assert play(edge, 4) == 0
        assert "handed in" in edge.decide(ROWS, baseline=0).explanation
        ended = edge._journal.shard.lease.number
        edge.renew()
        assert edge._journal.shard.lease.number == ended + 1
        assert play(edge, 3) == 3
        edge.renew()
    report = shop.audit()
    assert report.is_clean
    assert report.shards["till"].tally.decisions == 160


def test_an_edge_refuses_what_the_service_would_refuse(shop: Shop) -> None:
    with shop.edge() as edge:
        for asked in (
            {"actions": {"a": [0.1, np.nan]}}, {"actions": [[2.0, 2.0]]}, {"actions": {"a" * 201: [0.1, 0.1]}},
            {"actions": ROWS, "baseline": 3}, {"actions": ROWS, "baseline": True}, {"actions": ROWS, "baseline": "red"},
            {"actions": [0.1, 0.2]}, {"actions": {"\ud800": [0.1, 0.2]}}, {"actions": None}, {"actions": [["a"]]},
            {"actions": ROWS, "baseline_reward": np.inf}, {"actions": ROWS, "context_features": [1.0]},
        ):  # fmt: skip
            with pytest.raises(InputError):
                edge.decide(**asked)
        assert (edge.rounds, edge.unsent) == (0, 1)
        edge.decide(ACTIONS, baseline="green", baseline_reward=(0.2, 0.5))
        refused = [edge.reward(one, value).refused for one, value in (("till:2", 1.0), ("x", 1.0), ("till:1", np.nan))]
        assert refused == ["unknown", "unknown", "out_of_range"]
        edge.abandon("till:1")
        with pytest.raises(DecisionError, match="open"):
            edge.abandon("till:1")
        edge.renew()
    assert shop.audit().is_clean


def test_a_lease_that_expired_plays_the_baseline_and_says_so(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop.edge() as edge:
        warmed(edge)
        late = edge.expires + 1.0
        monkeypatch.setattr(edge, "_clock", lambda: late)
        made = edge.decide(ROWS, baseline=0)
        assert (made.source, made.is_fallback) == ("baseline", True)
        assert "expired" in made.explanation


def test_a_clock_that_is_set_back_does_not_keep_a_lease_alive(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop.edge() as edge:
        warmed(edge)
        monkeypatch.setattr(edge, "_until", time.monotonic())
        assert "expired" in edge.decide(ROWS, baseline=0).explanation
        edge.renew()
        assert play(edge, 2) == 2
    assert shop.audit().is_clean


def test_who_pauses_the_experiment_stops_its_edges_with_their_next_lease(shop: Shop) -> None:
    with shop.edge() as edge:
        warmed(edge)
        assert shop.ask("PUT", f"/v1/experiments/{shop.name}/mode", {"mode": "paused"}).status_code == 200
        assert play(edge, 5) == 5
        edge.renew()
        assert play(edge, 5) == 0
        shop.ask("PUT", f"/v1/experiments/{shop.name}/mode", {"mode": "guarded"})
        edge.renew()
        assert play(edge, 5) == 5
        edge.renew()
    assert shop.audit().is_clean


def test_an_edge_leaves_for_good_once_nothing_is_open(shop: Shop) -> None:
    with shop.edge() as edge:
        warmed(edge)
        made = edge.decide(ROWS, baseline=0)
        with pytest.raises(DecisionError, match="open"):
            edge.leave()
        edge.reward(made.decision_id, float(MEANS[made.action]))
        edge.leave()
        assert play(edge, 3) == 0
    found = shop.ask("GET", f"/v1/experiments/{shop.name}/shards").json()["shards"]
    assert [(one["amount"], one["is_away"]) for one in found if one["name"] == "till"] == [(0.0, True)]
    assert shop.audit().is_clean


def test_registered_actions_and_their_map_travel_with_the_lease(server: tuple[str, object], shop: Shop) -> None:
    shop = Shop(shop.address, shop.keys, shop.folder, shop.name + "map")
    shop.create(settings={"dim": 6, "feature_bound": 2.0})
    actions = [{"id": name, "features": row} for name, row in ACTIONS.items()]
    body = {"actions": actions, "feature_map": {"kind": "shared", "context_dim": 3, "context_bound": 1.0}}
    path = f"/v1/experiments/{shop.name}/catalogues"
    catalogue = shop.ask("POST", path, body).json()["catalogue"]
    with shop.edge(catalogue=catalogue) as edge:
        made = edge.decide(context_features=[0.1, 0.2, 0.3], baseline="red")
        assert made.action_id == "red"
        with pytest.raises(InputError, match="context_features"):
            edge.decide()
        edge.renew()
    with shop.edge() as again:  # they are in its log
        assert again.decide(context_features=[0.3, 0.0, 0.1]).action_id == "blue"
    assert shop.audit().is_clean
    with pytest.raises(ServiceError, match="Register"):
        shop.edge("other", catalogue="0" * 64)


def test_an_edge_in_the_background_renews_by_itself(shop: Shop) -> None:
    with shop.edge(in_background=True, every=20, seconds=0.05) as edge:
        deadline = time.monotonic() + 30.0
        while play(edge, 10) < 10 or edge.rounds < 200:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    report = shop.audit()
    assert findings(report) == []
    assert report.shards["till"].tally.decisions >= 100


def test_an_experiment_with_one_ledger_has_no_edges(shop: Shop) -> None:
    body = {"name": shop.name + "one", "settings": {"arms": 2}, "policy": "UCB"}
    shop.ask("POST", "/v1/experiments", body)
    with pytest.raises(ServiceError, match="one ledger"):
        Edge(shop.address, experiment=shop.name + "one", shard="a", log=shop.folder / "a", key=shop.keys / "head.pub")
