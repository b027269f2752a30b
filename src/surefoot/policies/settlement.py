"""Which rounds are open, and in which order their rewards are learned: the order of their decisions.

A confidence set is valid when observations enter it in the order of their decisions; in any other order it is not, even
where *when* a reward comes has nothing to do with *what* it is (docs/mathematics.md, "The order of learning"). So a
reward may come at any time, and waits until every earlier round that teaches is settled: by its own reward, by the word
that it will never be learned, or by a default once its window of rounds has passed.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from surefoot.arrays import Matrix, Vector, count, finite
from surefoot.errors import ConfigError, StateError

# A round that is not settled: its features, whether the learner played, and whether it teaches, which is settled when
# it is decided, never when its reward comes. Features as bytes: very many may be open, and are joined in no time when
# the state is written down.
OpenRound: TypeAlias = tuple[bytes, bool, bool]


class Settlement:
    """The open rounds of one policy.

    settle_after: a round without a reward so many rounds later is settled by `default_reward`; None waits for ever
    """

    def __init__(self, settle_after: int | None, default_reward: float) -> None:
        self.settle_after, self.default_reward = settle_after, default_reward
        self._open: dict[int, OpenRound] = {}
        self.rewards: dict[int, float] = {}  # that have come, of rounds that wait for an earlier one
        self._queue: deque[int] = deque()  # rounds that teach, in the order of their decisions; the first one is open
        self.defaults = 0  # rounds that were settled by the default

    def __len__(self) -> int:
        return len(self._open)

    @property
    def open_rounds(self) -> list[int]:
        """Every open round, oldest first."""
        return sorted(self._open)

    @property
    def waiting(self) -> list[int]:
        """Open rounds whose reward has come, oldest first."""
        return sorted(self.rewards)

    @property
    def held_up_by(self) -> int | None:
        """The round for whose reward all others wait; None where no reward waits."""
        return self._queue[0] if self.rewards else None

    @property
    def rewards_waiting(self) -> int:
        """How many rewards wait for an earlier round."""
        return len(self.rewards)

    def find(self, round_: int) -> OpenRound:
        """An open round."""
        return self._open[round_]

    def awaits(self, round_: int) -> bool:
        """Whether a round is open and its reward has not come."""
        return round_ in self._open and round_ not in self.rewards

    def decided(self, round_: int, features: bytes, is_learner: bool, teaches: bool) -> None:
        """Open a round; the one whose window of rounds ends with it is settled by the default."""
        self._open[round_] = (features, is_learner, teaches)
        if teaches:
            self._queue.append(round_)
        if self.settle_after is not None:
            expired = round_ - self.settle_after
            if expired in self._open and expired not in self.rewards:
                self._expired(expired)

    def _expired(self, round_: int) -> None:
        self.defaults += 1
        _, _, teaches = self._open[round_]
        if teaches:
            self.rewards[round_] = self.default_reward
        else:
            del self._open[round_]

    def rewarded(self, round_: int, value: float) -> tuple[OpenRound, bool]:
        """Settle a round by its reward; true where it is to be learned now, and is taken out.

        One that teaches nothing is done with, and one that has to wait for an earlier round is kept.
        """
        entry = self._open[round_]
        _, _, teaches = entry
        if teaches and self._queue[0] != round_:
            self.rewards[round_] = value
            return entry, False
        del self._open[round_]
        if teaches:
            self._next()
        return entry, teaches

    def _next(self) -> None:
        """The first in the queue is done with; those behind it may have been abandoned."""
        queue = self._queue
        queue.popleft()
        while queue and queue[0] not in self._open:
            queue.popleft()

    def abandoned(self, round_: int) -> None:
        """Settle a round by the word that its reward will never be learned."""
        del self._open[round_]
        if self._queue and self._queue[0] == round_:
            self._next()

    def take(self) -> tuple[int, OpenRound, float] | None:
        """Take out the next round that waits, if it is its turn, and its reward.

        Taken out first, then learned: interrupted in between, a reward may be lost, but it is never counted twice.
        """
        if not self.rewards or self._queue[0] not in self.rewards:
            return None
        oldest = self._queue[0]
        entry, value = self._open.pop(oldest), self.rewards.pop(oldest)
        self._next()
        return oldest, entry, value

    def put_back(self, round_: int, entry: OpenRound, value: float | None = None) -> None:
        """Open a round again that was taken out and could not be learned; its reward has come where there is one."""
        self._open[round_] = entry
        self._queue.appendleft(round_)
        if value is not None:
            self.rewards[round_] = value

    def stop_teaching(self) -> None:
        """Every open round teaches nothing from now on; those whose reward has come are done with."""
        for round_ in self.rewards:
            del self._open[round_]
        self.rewards.clear()
        self._queue.clear()
        self._open = {round_: (features, by, False) for round_, (features, by, _) in self._open.items()}

    def state(self) -> dict[str, Any]:
        """Plain arrays from which `restore` makes the same."""
        rounds, waiting = self.open_rounds, self.waiting
        entries = [self._open[round_] for round_ in rounds]
        return {
            "pending_rounds": np.array(rounds, dtype=np.int64),
            "pending_is_learner": np.array([is_learner for _, is_learner, _ in entries], dtype=np.bool_),
            "pending_teaches": np.array([teaches for _, _, teaches in entries], dtype=np.bool_),
            "pending_features": _rows([features for features, _, _ in entries]),
            "waiting_rounds": np.array(waiting, dtype=np.int64),
            "waiting_rewards": np.array([self.rewards[round_] for round_ in waiting], dtype=np.float64),
            "settled_by_default": self.defaults,
        }

    def restore(self, state: Mapping[str, Any], dim: int, teaches: Mapping[bool, bool]) -> None:
        """Take back what `state` gave; `teaches` by who played is for states that do not say it."""
        rounds, learner = state["pending_rounds"], state["pending_is_learner"]
        known = state.get("pending_teaches", [teaches[bool(is_learner)] for is_learner in learner])
        rows = np.array(state["pending_features"], dtype=np.float64)
        if not len(rounds) == len(learner) == len(known) == len(rows) or (
            len(rows) and rows.shape != (len(rounds), dim)
        ):
            raise StateError(f"Pending rounds, flags and features must belong together and have dim={dim}.")
        for round_, is_learner, flag, row in zip(rounds, learner, known, rows, strict=True):
            self._open[int(round_)] = (row.tobytes(), bool(is_learner), bool(flag))
        self._queue = deque(sorted(round_ for round_, (_, _, teaches) in self._open.items() if teaches))
        waiting = zip(state.get("waiting_rounds", ()), state.get("waiting_rewards", ()), strict=True)
        self.rewards = {int(round_): float(value) for round_, value in waiting}
        self.defaults = int(state.get("settled_by_default", 0))
        if not self.rewards.keys() <= set(self._queue):
            raise StateError("Rewards that wait must belong to pending rounds that teach.")


def _rows(pending: list[bytes]) -> Vector | Matrix:
    return np.frombuffer(b"".join(pending)).reshape(len(pending), -1).copy() if pending else np.zeros(0)


def read_settlement(settle_after: int | None, default_reward: float | None) -> Settlement:
    """The settlement of a new policy, its settings checked."""
    if settle_after is None and default_reward is not None:
        raise ConfigError(
            f"`default_reward` needs `settle_after`, but got default_reward={default_reward!r} alone. "
            "settle_after is the number of rounds after which a reward that has not come is learned as the default."
        )
    hint = "settle_after is the number of rounds after which a reward that has not come is learned as the default."
    window = None if settle_after is None else count("settle_after", settle_after, hint=hint)
    return Settlement(window, finite("default_reward", default_reward or 0.0, hint=hint))
