"""Which rounds are open, and in which order their rewards are learned: the order of their decisions.

A confidence set is valid when observations enter it in the order of their decisions; in any other order it is not, even
where *when* a reward comes has nothing to do with *what* it is (docs/mathematics.md, "The order of learning"). So a
reward may come at any time, and waits until every earlier round that teaches is settled: by its own reward, by the word
that it will never be learned, or by a default once its window of rounds has passed.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.errors import StateError


class OpenRound(NamedTuple):
    """A round that is not settled; whether it teaches is settled when it is decided, never when its reward comes."""

    features: bytes  # very many may be open, and are joined in no time when the state is written down
    is_learner: bool
    teaches: bool


class Settlement:
    """The open rounds of one policy.

    settle_after: a round without a reward so many rounds later is settled by `default_reward`; None waits for ever
    """

    def __init__(self, settle_after: int | None, default_reward: float) -> None:
        self.settle_after, self.default_reward = settle_after, default_reward
        self._open: dict[int, OpenRound] = {}
        self._rewards: dict[int, float] = {}  # that have come, of rounds that wait for an earlier one
        self._queue: deque[int] = deque()  # open rounds that teach, in the order of their decisions
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
        return sorted(self._rewards)

    @property
    def held_up_by(self) -> int | None:
        """The round for whose reward all others wait; None where no reward waits."""
        return self._queue[0] if self._rewards else None

    @property
    def rewards_waiting(self) -> int:
        """How many rewards wait for an earlier round."""
        return len(self._rewards)

    def find(self, round_: int) -> OpenRound:
        """An open round."""
        return self._open[round_]

    def has_reward(self, round_: int) -> bool:
        """Whether the reward of an open round has come."""
        return round_ in self._rewards

    def awaits(self, round_: int) -> bool:
        """Whether a round is open and its reward has not come."""
        return round_ in self._open and round_ not in self._rewards

    def decided(self, round_: int, entry: OpenRound) -> None:
        """Open a round; the one whose window of rounds ends with it is settled by the default."""
        self._open[round_] = entry
        if entry.teaches:
            self._queue.append(round_)
        if self.settle_after is not None:
            expired = round_ - self.settle_after
            if expired in self._open and expired not in self._rewards:
                self.rewarded(expired, self.default_reward)
                self.defaults += 1

    def rewarded(self, round_: int, value: float) -> None:
        """Settle a round by its reward; one that teaches nothing is done with."""
        if self._open[round_].teaches:
            self._rewards[round_] = value
        else:
            del self._open[round_]

    def withdrawn(self, round_: int) -> None:
        """Take back a reward that waits: its round is open as before."""
        del self._rewards[round_]

    def abandoned(self, round_: int) -> None:
        """Settle a round by the word that its reward will never be learned."""
        del self._open[round_]

    def take(self) -> tuple[int, OpenRound, float] | None:
        """Take out the next round to be learned, and its reward; None while an earlier one is not settled.

        Taken out first, then learned: interrupted in between, a reward may be lost, but it is never counted twice.
        """
        while self._queue:
            oldest = self._queue[0]
            if oldest in self._open:
                if oldest not in self._rewards:
                    return None
                return self._queue.popleft(), self._open.pop(oldest), self._rewards.pop(oldest)
            self._queue.popleft()
        return None

    def put_back(self, round_: int, entry: OpenRound, value: float) -> None:
        """Undo `take`."""
        self._open[round_], self._rewards[round_] = entry, value
        self._queue.appendleft(round_)

    def stop_teaching(self) -> None:
        """Every open round teaches nothing from now on; those whose reward has come are done with."""
        for round_ in self._rewards:
            del self._open[round_]
        self._rewards.clear()
        self._queue.clear()
        self._open = {round_: entry._replace(teaches=False) for round_, entry in self._open.items()}

    def state(self) -> dict[str, Any]:
        """Plain arrays from which `restore` makes the same."""
        rounds, waiting = self.open_rounds, self.waiting
        entries = [self._open[round_] for round_ in rounds]
        return {
            "pending_rounds": np.array(rounds, dtype=np.int64),
            "pending_is_learner": np.array([entry.is_learner for entry in entries], dtype=np.bool_),
            "pending_teaches": np.array([entry.teaches for entry in entries], dtype=np.bool_),
            "pending_features": _rows([entry.features for entry in entries]),
            "waiting_rounds": np.array(waiting, dtype=np.int64),
            "waiting_rewards": np.array([self._rewards[round_] for round_ in waiting], dtype=np.float64),
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
            self._open[int(round_)] = OpenRound(row.tobytes(), bool(is_learner), bool(flag))
        self._queue = deque(sorted(round_ for round_, entry in self._open.items() if entry.teaches))
        waiting = zip(state.get("waiting_rounds", ()), state.get("waiting_rewards", ()), strict=True)
        self._rewards = {int(round_): float(value) for round_, value in waiting}
        self.defaults = int(state.get("settled_by_default", 0))
        if not self._rewards.keys() <= set(self._queue):
            raise StateError("Rewards that wait must belong to pending rounds that teach.")


def _rows(pending: list[bytes]) -> Vector | Matrix:
    return np.frombuffer(b"".join(pending)).reshape(len(pending), -1).copy() if pending else np.zeros(0)
