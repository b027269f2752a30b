"""With bounded rewards the replayed policy is the live one: what deciding changes of the likelihood set is put back."""

from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.replay import ArrayLog, Declared
from surefoot.replay.replayed_policy import IMPORTANCE, REJECTION, log_player
from surefoot.simulation import Spec

ROUNDS, ACTIONS = 700, 3
MEANS = np.array([0.3, 0.6, 0.2])
TOLD: dict[str, Any] = {"alpha": 0.2, "delta": 0.05, "reward_bounds": (0.0, 1.0)}


def logged(contexts: int) -> tuple[ArrayLog, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(contexts)
    scale = 0.4 + 0.6 * rng.random(contexts)  # one context: rows that repeat; many: more than the set has room for
    features = scale[rng.integers(contexts, size=ROUNDS)][:, None, None] * np.eye(ACTIONS)
    actions = rng.integers(0, ACTIONS, ROUNDS)
    chances = np.einsum("tad,d->ta", features, MEANS)[np.arange(ROUNDS), actions]
    rewards = (rng.random(ROUNDS) < chances).astype(float)
    log = ArrayLog(
        features=features,
        actions=actions,
        rewards=rewards,
        baselines=0,
        propensities=np.full(ROUNDS, 1 / ACTIONS),
        feature_bound=1.0,
    )
    return log, features, actions, rewards


@pytest.mark.parametrize("mode", [REJECTION, IMPORTANCE])
@pytest.mark.parametrize("contexts", [1, 4, 600])
def test_the_replayed_policy_is_the_live_one(mode: Any, contexts: int) -> None:
    log, features, actions, rewards = logged(contexts)
    player = log_player(Spec("SafeLUCB", **TOLD), Declared(0.5, 1.5, 0.3), log, mode=mode, seed=0)
    (batch,) = log.batches()
    played = player.play(batch, batch.rewards, np.ones(ROUNDS, dtype=bool))
    live = surefoot.SafeLUCB(dim=ACTIONS, noise=0.5, theta_bound=1.5, feature_bound=1.0, **TOLD)
    for t in range(ROUNDS):
        policy = surefoot.SafeLUCB.from_state(live.state()) if mode == REJECTION else live
        decision = policy.decide(features[t], baseline=0)
        assert decision.action == played.chosen[t]
        if mode == REJECTION and decision.action != actions[t]:
            continue
        assert decision.certificate.margin == played.margins[t]
        live = policy
        if mode == REJECTION:
            live.observe(decision, float(rewards[t]))
        else:
            live.abandon(decision)
            live.learn_logged(features[t][actions[t]], float(rewards[t]))
