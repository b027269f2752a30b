"""A linear policy that can be watched: it holds out rounds for the baseline, and tests whether the world has changed.

Without `holdout` it is a `LinearPolicy`, to the bit. With it, the record of an open round is its features, the mean
that was declared of it (-inf where its reward enters the confidence set instead) and its number.
"""

import math
import struct
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Matrix, real_array
from surefoot.errors import InputError
from surefoot.linear.actions import ActionSet
from surefoot.policies.decision import Decision, Source, check_recalled
from surefoot.policies.linear_policy import LinearPolicy
from surefoot.policies.open_baseline import DrawnBaseline
from surefoot.policies.orders import FREE, HELD_OUT, TRY
from surefoot.policies.saved_state import shaped
from surefoot.policies.watch import WATCH_SHARE, Watch, is_alarming, read_watch
from surefoot.safety.alarm import delta_of

TOLD = struct.calcsize("=dd")  # bytes of the mean that was declared, and of the round's number


class WatchedPolicy(LinearPolicy):
    """What SafeLUCB, CLUCB and CLUCB2 share: the watch, which is off unless `holdout` is given."""

    _watch: Watch | None = None

    def __init__(
        self, *, holdout: float | None = None, watch_share: float = WATCH_SHARE, seed: int | None = None, **given: Any
    ) -> None:
        super().__init__(**given)
        self._watch = read_watch(holdout, watch_share, seed, given.get("misspecification", 0.0))
        if self._watch is not None:
            self._learns_all = self._adds_to_record = True
            self._config |= {"holdout": holdout, "watch_share": watch_share, "seed": seed}
            self._settings.delta = self._set_delta
        elif seed is not None:
            self._config["seed"] = seed  # of a baseline's draws

    @property
    def holdout(self) -> float:
        """The share of rounds that go to the baseline although the learner may play; 0 if the watch is off."""
        return 0.0 if self._watch is None else self._watch.holdout

    @property
    def _set_delta(self) -> float:
        """What delta leaves for all but the watch."""
        return float(self._config["delta"]) * (1.0 - (0.0 if self._watch is None else self._watch.share))

    def decide(
        self,
        features: ArrayLike | ActionSet,
        *,
        baseline: int | ArrayLike | None = None,
        baseline_reward: Any = None,
        hold: bool = False,
    ) -> Decision:
        """Choose an action; `features` is an array with one row per action, or an action set.

        `baseline` is the row that is played today; where today's strategy draws, one chance per row; where it may play
        any of several rows, the set of them; in a set without rows, its feature vector. With `hold` the baseline is
        played whatever the gate says, and the certificate tells what it would have said. With a holdout, a coin may
        give the baseline a round in which the learner is allowed to play.
        """
        if self._watch is None and self._alarm is None and not hold:  # the usual case first
            return self._decide(features, baseline, baseline_reward, FREE)
        if self._watch is None or hold or self._alarm is not None:
            return super().decide(features, baseline=baseline, baseline_reward=baseline_reward, hold=hold)
        draw = self._watch.draw(self._rounds + 1)
        order = HELD_OUT if draw < self._watch.holdout else FREE
        decision = self._decide(features, baseline, baseline_reward, order)
        # Where the gate said no the coin decided nothing, and is not part of the decision.
        return _with_coin(decision, self._watch, draw) if decision.certificate.is_safe else decision

    def consider(
        self, features: ArrayLike, *, proposal: int, baseline: int | None = None, baseline_reward: Any = None
    ) -> Decision:
        """Decide a round by a proposal from elsewhere: it is played if the gate allows it, the baseline otherwise.

        Parameters
        ----------
        features, baseline, baseline_reward
            As in `decide`.
        proposal : int
            The row to play, if that is safe.

        Returns
        -------
        Decision
            The action to play, with its certificate.

        Raises
        ------
        InputError
            If there is no such row, or another rule is broken.
        """
        if self._watch is not None or self._alarm is not None:
            return self.decide(features, baseline=baseline, baseline_reward=baseline_reward)
        rows = real_array("features", features, ndim=2)
        if not 0 <= proposal < rows.shape[0]:
            raise InputError(f"`0 <= proposal < {rows.shape[0]}` must hold, but got {proposal!r}.")
        return self._decide(rows, baseline, baseline_reward, TRY - proposal)

    def _decide_drawn(self, rows: Matrix, today: DrawnBaseline, known: float, order: int) -> Decision:
        if self._watch is not None:
            raise InputError(
                "`baseline` must not be drawn with a holdout: the watch compares its rewards with one declared mean."
            )
        return super()._decide_drawn(rows, today, known, order)

    def recall(
        self,
        features: ArrayLike,
        *,
        baseline: int | None = None,
        baseline_reward: Any = None,
        action: int,
        source: Source,
        draw: float | None = None,
    ) -> Decision:
        """Count a round again as it was decided before, to restore a policy from a journal.

        Parameters
        ----------
        features, baseline, baseline_reward
            As in `decide`.
        action : int
            The row that was played.
        source : {"learner", "baseline"}
            Who played it.
        draw : float, optional
            The coin of the holdout, where one decided.

        Returns
        -------
        Decision
            The decision, with the number of its round.

        Raises
        ------
        InputError
            If the round cannot have been played like this.
        """
        if draw is None or math.isnan(draw):
            return super().recall(
                features, baseline=baseline, baseline_reward=baseline_reward, action=action, source=source
            )
        if self._watch is None:
            raise InputError(f"A coin of {draw!r} was drawn for a holdout, but this policy has none.")
        check_recalled(action, source, baseline)
        self._watch.check_draw(draw, source)
        order = int(action) if source == "learner" else HELD_OUT
        return _with_coin(self._recall(features, baseline, baseline_reward, order), self._watch, draw)

    def _mean_of_untaught(self) -> float:
        """The declared mean of a baseline round whose reward does not enter the confidence set."""
        return self._declared_mean

    def _record_of(self, features: bytes, is_learner: bool) -> bytes:
        known = -math.inf if self._enters_set(is_learner) else self._mean_of_untaught()
        return features + struct.pack("=dd", known, self._rounds)

    def _record_of_played(self, features: bytes, round_: int) -> bytes:
        # What was declared was the mean of another row, perhaps: so its reward enters the set.
        return features if self._watch is None else features + struct.pack("=dd", -math.inf, round_)

    def _feature_size(self) -> int:
        return self.dim if self._watch is None else self.dim + 2

    def _teaches(self, is_learner: bool) -> bool:
        return self._watch is not None or self._enters_set(is_learner)

    def _enters_set(self, is_learner: bool) -> bool:
        """Whether the reward of the round just decided will enter the confidence set."""
        return super()._teaches(is_learner)

    def _learn_record(self, record: bytes, reward: float, is_learner: bool) -> None:
        if self._watch is None:
            self._core.learn(record, reward, is_learner)
            return
        features, (known, round_) = record[:-TOLD], struct.unpack("=dd", record[-TOLD:])
        if known == -math.inf:
            # First the prediction: it must not know its own reward.
            known = self._core.ridge.predict(np.frombuffer(features))
            self._enter_set(features, reward, is_learner)
        self._watch.take(is_learner, (reward - known) / self._settings.noise, round_)
        self._look(self._watch)

    def _enter_set(self, features: bytes, reward: float, is_learner: bool) -> None:
        """Let one reward enter the confidence set."""
        self._core.learn(features, reward, is_learner)

    def _look(self, watch: Watch) -> None:
        """Raise the alarm if the evidence against one theta has reached 1 / the watch's share of delta."""
        noise, ridge, bound = self._settings.noise, self._settings.ridge, self._settings.theta_bound
        delta = delta_of(watch.share * self._config["delta"], self._restarts, self._config.get("restart_share", 0.0))
        if self._alarm is None and is_alarming(watch.evidence(self._core.ridge.surprises, noise, ridge, bound), delta):
            self.report_breach("drift", watch.describe(noise, delta))

    def _arrays(self) -> dict[str, Any]:
        return super()._arrays() | ({} if self._watch is None else {"watch": self._watch.bets.save()})

    def _restore(self, arrays: Mapping[str, Any]) -> None:
        super()._restore(arrays)
        if self._watch is not None:
            self._watch.bets.load(shaped(arrays["watch"], self._watch.bets.save().shape, "watch"))


def _with_coin(decision: Decision, watch: Watch, draw: float) -> Decision:
    return msgspec.structs.replace(decision, probability=watch.probability(decision.source), draw=draw)
