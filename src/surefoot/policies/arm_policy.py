"""What policies over plain arms share: counts and sums per arm, and the path from a round to a decision."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Matrix, Vector, count
from surefoot.core import native
from surefoot.errors import InputError, StateError
from surefoot.linear.actions import ActionSet
from surefoot.policies.decision import HOLD, Decision, Source, check_recalled
from surefoot.policies.linear_settings import read_number
from surefoot.policies.policy import Policy

PLAYS, SEEN, TOTAL, CARRY = range(4)  # rows of an arm state: decided, observed, sum of rewards and what it lost


def mean_of(arms: Matrix, arm: int) -> float:
    """The average reward of an arm that was observed."""
    return float((arms[TOTAL, arm] + arms[CARRY, arm]) / arms[SEEN, arm])


class ArmPolicy(Policy):
    """A policy over plain arms. `features` may be left out; where given, it must have one row per arm."""

    _rule: ClassVar[str]  # its name in the core

    def __init__(self, *, arms: int, noise: float, **settings: Any) -> None:
        super().__init__({"arms": arms, "noise": noise, **settings})
        self.arms = self.dim = count(
            "arms", arms, least=2, hint="arms is the number of actions, the baseline among them."
        )
        self.noise = read_number("noise", noise)
        self._core: Any = getattr(native, self._rule)(
            arms=self.arms,
            noise=self.noise,
            # UCB has neither of them.
            alpha=settings.get("alpha", 0.5),
            delta=settings.get("delta", 0.5),
            known=settings.get("baseline_reward"),
            bounds=settings.get("reward_bounds", ()),
        )

    def decide(
        self,
        features: ArrayLike | None = None,
        *,
        baseline: int | None = None,
        baseline_reward: float | None = None,
        hold: bool = False,
    ) -> Decision:
        """Choose an arm; `baseline` is the default arm. With `hold` it is played whatever the policy would do."""
        return self._decide(features, baseline, baseline_reward, self._order(hold))

    def recall(
        self,
        features: ArrayLike | None = None,
        *,
        baseline: int | None = None,
        baseline_reward: float | None = None,
        action: int,
        source: Source,
    ) -> Decision:
        """Count a round again as it was decided before, as `Policy.recall`."""
        check_recalled(action, source, baseline)
        if source == "learner" and action >= self.arms:
            raise InputError(f"`0 <= action < {self.arms}` must hold for {self.arms} arms, but got {action}.")
        return self._decide(features, baseline, baseline_reward, int(action) if source == "learner" else HOLD)

    @property
    def core(self) -> Any:
        """Its state and steps in the core, which simulations and replays drive directly."""
        return self._core

    @abstractmethod
    def _decide(self, features: Any, baseline: Any, baseline_reward: Any, order: int) -> Decision:
        """Choose an arm, unless the order names one."""

    def _read_arm(self, baseline: Any) -> int:
        if isinstance(baseline, bool) or not isinstance(baseline, (int, np.integer)) or not 0 <= baseline < self.arms:
            raise InputError(
                f"`baseline` must be an arm from 0 to {self.arms - 1}, but got {baseline!r}. It is today's default arm."
            )
        return int(baseline)

    def _check_rows(self, features: ArrayLike | ActionSet | None) -> None:
        rows: Any = getattr(features, "rows", features)
        if rows is not None and np.shape(rows)[:1] != (self.arms,):
            raise InputError(
                f"`features` must have one row per arm, {self.arms}, but got shape {np.shape(rows)}. "
                "A multi-armed policy looks at nothing but the number of rows; leave them out."
            )

    def rebook(
        self,
        round_: int,
        features: Any,
        baseline: int | None,
        baseline_reward: Any,
        decided: tuple[int, bool],
        played: int,
    ) -> bytes:
        """Move an open round to the arm that was really played."""
        for arm in (decided[0], played):
            self._read_arm(arm)
        self._check_decided(round_, self._one_hot(decided[0]))
        arms: Matrix = self._core.save()
        arms[PLAYS, decided[0]] -= 1.0
        arms[PLAYS, played] += 1.0
        self._core.load(np.concatenate([arms.ravel(), self._core.save_likelihood()]))
        return self._one_hot(played).tobytes()

    def _one_hot(self, arm: int) -> Vector:
        vector = np.zeros(self.arms)
        vector[arm] = 1.0
        return vector

    def _learn_row(self, features: Vector, reward: float) -> None:
        if np.count_nonzero(features) != 1 or features.max() != 1.0:
            raise InputError(f"`features` must be 1 at the arm that was played and 0 elsewhere, but got {features}.")
        super()._learn_row(features, reward)

    def learn(self, features: Vector, reward: float, is_learner: bool) -> None:
        """Add a reward to its arm."""
        self._core.learn(int(np.argmax(features)), reward)

    def arrays(self) -> dict[str, Any]:
        """Counts and sums of all arms, and the likelihood set where there is one."""
        likelihood = self._core.save_likelihood()
        return {"arms": self._core.save()} | ({"likelihood": likelihood} if likelihood.size else {})

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Take back what `arrays` returned."""
        saved = np.ascontiguousarray(arrays["arms"], dtype=np.float64)
        if saved.shape != (4, self.arms):
            raise StateError(f"`arms` must have shape {(4, self.arms)}, but got {saved.shape}.")
        likelihood = np.asarray(arrays.get("likelihood", ()), dtype=np.float64)
        self._core.load(np.concatenate([saved.ravel(), likelihood.ravel()]))
