"""Which rounds are open, and in which order their rewards are learned: the order of their decisions.

A confidence set is valid when observations enter it in the order of their decisions. In any other order it is not, even
if the time at which a reward comes says nothing about its value (docs/mathematics.md, "The order of learning"). So a
reward may come at any time, and waits until every earlier round that teaches is settled: by its own reward, by
`abandon`, or by a default once its window of rounds has passed.

A guard's round with nothing at stake is income. It waits in the same way, and no other round waits for it: it can only
raise what is proved, so that leaving it out is valid, and taking it in late as well. And a guard can do without a
reward: the round counts at its worst then. So where many rewards wait for one, its round enters at its worst, and when
the reward comes after all, it counts in place of that.
"""

import heapq
import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from surefoot.arrays import Matrix, Vector, count, finite
from surefoot.errors import ConfigError, DecisionError, InputError, StateError

MOST_ROUNDS = 2.0**53  # beyond it a float no longer counts

# What a reward teaches, which is fixed when its round is decided and never when it comes: nothing (0), something in the
# order of decisions, or something that no other waits for. And what a round becomes that entered without its reward.
IN_ORDER, INCOME, LATE = 1, 2, 3
PATIENCE = 8  # rewards that wait for one, until its round enters without it
# An open round: its features, whether the learner played, and what it teaches. Features are bytes, so that a state with
# very many open rounds is written quickly.
OpenRound: TypeAlias = tuple[bytes, bool, int]
# A number; or of a guard one for each metric, NaN where it is missing.
Reward: TypeAlias = float | tuple[float, ...]


class Settlement:
    """The open rounds of one policy.

    settle_after: a round still without a reward so many rounds later is settled by `default_reward`; None waits for
    good
    worst: what a round enters by that is late; None lets all others wait for it
    """

    def __init__(self, settle_after: int | None, default_reward: Reward, worst: Reward | None = None) -> None:
        self.settle_after, self.default_reward, self._worst = settle_after, default_reward, worst
        self._open: dict[int, OpenRound] = {}
        self.rewards: dict[int, Reward] = {}  # rewards that have come and wait for an earlier round
        self.parts: dict[int, dict[str, float]] = {}  # of open rounds that wait for further metrics, those that came
        self._queue: deque[int] = deque()  # rounds that others wait for, in their order; the first one is open
        self._income: list[int] = []  # a heap of rounds that none waits for, whose reward has come and waits
        self.defaults = 0  # rounds settled by the default
        self.late = 0  # rounds that have entered without their reward, which may still come
        self._drawn: set[int] = set()  # open rounds whose baseline drew: what is booked is no row of theirs

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
        """The round whose reward all others wait for; None if no reward waits."""
        return self._queue[0] if self.rewards and self._queue else None

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

    def drew(self, round_: int) -> None:
        """Note that the baseline of an open round was drawn."""
        self._drawn.add(round_)
        if len(self._drawn) > 2 * len(self._open):
            self._drawn &= self._open.keys()

    def check_voidable(self, round_: int) -> None:
        """Raise where the ledger holds something else of an open round than its rows."""
        if round_ in self._drawn:
            raise InputError(
                f"Round {round_} had a baseline that draws, and the ledger holds its mean row: such a round cannot be "
                "voided. Decide over one row where an answer may come too late."
            )

    def check_open(self, round_: int, rounds: int, done: str) -> None:
        """Raise unless a round awaits its reward; `rounds` were decided so far."""
        if not self.awaits(round_):
            raise self._not_open(round_, rounds, done)

    def _not_open(self, round_: int, rounds: int, done: str) -> DecisionError:
        reason = "it was settled before"
        if round_ in self.rewards:
            reason = f"its reward has come, and waits for round {self.held_up_by}"
        elif not 1 <= round_ <= rounds:
            reason = f"only rounds 1 to {rounds} were decided"
        return DecisionError(
            f"A decision must be pending without a reward to be {done}, but round {round_} is not: {reason}. "
            "Nothing was learned from this call."
        )

    def decided(self, round_: int, features: bytes, is_learner: bool, teaches: int) -> None:
        """Open a round; the one whose window of rounds ends with it is settled by the default."""
        self._open[round_] = (features, is_learner, teaches)
        if teaches == IN_ORDER:
            self._queue.append(round_)
        if self.settle_after is not None:
            expired = round_ - self.settle_after
            # A reward that came in time and waits for an earlier one is no default.
            if expired in self._open and expired not in self.rewards:
                self._expired(expired)

    def _expired(self, round_: int) -> None:
        self.defaults += 1
        self.close(round_, self.default_reward)

    def close(self, round_: int, value: Reward) -> None:
        """Settle a round whose window of rounds ends, by what came of it or else the default."""
        _, _, teaches = self._open[round_]
        self.late -= teaches == LATE
        if teaches:
            self._wait(round_, teaches, value)
        else:
            del self._open[round_]

    def _wait(self, round_: int, teaches: int, value: Reward) -> None:
        """Keep a reward until its turn comes."""
        self.rewards[round_] = value
        if teaches != IN_ORDER:
            heapq.heappush(self._income, round_)

    def rewarded(self, round_: int, value: Reward, rounds: int) -> tuple[OpenRound, bool]:
        """Settle a round by its reward; true if the reward is to be learned now, and the round is removed.

        A round that teaches nothing is removed as well, and one that has to wait for an earlier round is kept. Raises
        unless the round awaits its reward; `rounds` were decided so far.
        """
        entry = self._open.get(round_)
        if entry is None or round_ in self.rewards:
            raise self._not_open(round_, rounds, "observed")
        teaches, queue = entry[2], self._queue
        self.late -= teaches == LATE
        # The first in line has its turn; and one that none waits for, if none is in line that was decided before it.
        if teaches and queue and queue[0] != round_ and (teaches == IN_ORDER or queue[0] < round_):
            self._wait(round_, teaches, value)
            return entry, False
        del self._open[round_]
        if teaches == IN_ORDER:
            self._next()
        return entry, bool(teaches)

    def _next(self) -> None:
        """Remove the first of the queue, and those behind it that were abandoned."""
        self._queue.popleft()
        self._skip_abandoned()

    def _skip_abandoned(self) -> None:
        queue = self._queue
        while queue and queue[0] not in self._open:
            queue.popleft()

    def exclude(self, round_: int) -> None:
        """Let the round that was decided last teach nothing."""
        features, is_learner, teaches = self._open[round_]
        self._open[round_] = (features, is_learner, 0)
        if teaches == IN_ORDER:
            self._queue.pop()

    def played(self, round_: int, features: bytes, is_learner: bool) -> None:
        """Note how an open round was really played; whether it teaches stays as it was settled when it was decided."""
        self._open[round_] = (features, is_learner, self._open[round_][2])

    def abandoned(self, round_: int) -> None:
        """Settle a round without its reward."""
        _, _, teaches = self._open.pop(round_)
        self.late -= teaches == LATE
        # In the middle of the queue it is skipped when its turn comes: a deque is slow there.
        if self._queue and self._queue[0] == round_:
            self._next()

    def take(self) -> tuple[int, OpenRound, Reward] | None:
        """Remove the next waiting round and its reward, if it is its turn; one that is late stays open.

        Removed first, then learned: an interruption in between may lose a reward, but never counts it twice. So a late
        round teaches nothing until it has `entered`.
        """
        queue, income = self._queue, self._income
        if income and not (queue and queue[0] < income[0]):
            oldest = heapq.heappop(income)
            return oldest, self._open.pop(oldest), self.rewards.pop(oldest)
        if not queue:
            return None
        oldest = queue[0]
        if oldest in self.rewards:
            entry, value = self._open.pop(oldest), self.rewards.pop(oldest)
        elif self._worst is not None and len(self.rewards) >= PATIENCE:
            entry, value = self._open[oldest], self._worst
            self._open[oldest] = (*entry[:2], 0)
        else:
            return None
        self._next()
        return oldest, entry, value

    def entered(self, round_: int, value: Reward) -> None:
        """Note that what `take` gave was learned: the reward of a round that was late counts in place of its worst."""
        if value is self._worst:
            self._open[round_] = (*self._open[round_][:2], LATE)
            self.late += 1

    def put_back(self, round_: int, entry: OpenRound, value: Reward | None = None) -> None:
        """Open a round again that was removed and could not be learned, with its reward if there is one."""
        self._open[round_] = entry
        if entry[2] == IN_ORDER:
            self._queue.appendleft(round_)
        if value is not None and value is not self._worst:
            self._wait(round_, entry[2], value)

    def stop_teaching(self) -> None:
        """Let every open round teach nothing from now on; those whose reward has come are removed."""
        for round_ in self.rewards:
            del self._open[round_]
        self.rewards.clear()
        self._queue.clear()
        self._income.clear()
        # Open all the same: their rewards may still come, and must not be refused as unknown.
        self._open = {round_: (features, by, 0) for round_, (features, by, _) in self._open.items()}
        self.late = 0

    def state(self) -> dict[str, Any]:
        """Plain arrays from which `restore` makes the same settlement."""
        rounds, waiting = self.open_rounds, self.waiting
        # In one pass: a server takes snapshots while its callers wait, and many rounds may be open.
        features, by_learner, teaches = zip(*map(self._open.__getitem__, rounds), strict=True) if rounds else ((),) * 3
        drawn = [round_ for round_ in rounds if round_ in self._drawn]
        return {
            **({"pending_drawn": np.array(drawn, dtype=np.int64)} if drawn else {}),
            "pending_rounds": np.array(rounds, dtype=np.int64),
            "pending_is_learner": np.array(by_learner, dtype=np.bool_),
            "pending_teaches": np.array(teaches, dtype=np.int8),
            "pending_features": _rows(features),
            "waiting_rounds": np.array(waiting, dtype=np.int64),
            "waiting_rewards": np.array([self.rewards[round_] for round_ in waiting], dtype=np.float64),
            "settled_by_default": self.defaults,
        }

    def restore(self, state: Mapping[str, Any], dim: int) -> None:
        """Restore what `state` returned, of rounds of each of which `dim` numbers are kept; 0 leaves that unchecked."""
        rounds, learner, known = (state[f"pending_{name}"] for name in ("rounds", "is_learner", "teaches"))
        rows = np.array(state["pending_features"], dtype=np.float64)
        is_table = len(rows) == 0 or (rows.ndim == 2 and rows.shape[1] == (dim or rows.shape[1]))
        if not (len(rounds) == len(learner) == len(known) == len(rows) and is_table):
            raise StateError(f"Pending rounds, flags and features must belong together and have dim={dim}.")
        for round_, is_learner, flag, row in zip(rounds, learner, known, rows, strict=True):
            self._open[_number(round_)] = (row.tobytes(), bool(is_learner), _teaches(flag))
        self._queue = deque(sorted(round_ for round_, (_, _, teaches) in self._open.items() if teaches == IN_ORDER))
        waiting = zip(state["waiting_rounds"], state["waiting_rewards"], strict=True)
        self.rewards = {int(round_): _value(value) for round_, value in waiting}
        self.defaults = int(state["settled_by_default"])
        self._drawn = {_number(round_) for round_ in state.get("pending_drawn", ())}
        if not all(round_ in self._open and self._open[round_][2] for round_ in self.rewards):
            raise StateError("Rewards that wait must belong to pending rounds that teach.")
        self._income = sorted(round_ for round_ in self.rewards if self._open[round_][2] != IN_ORDER)
        late = {round_ for round_, (_, _, teaches) in self._open.items() if teaches == LATE}
        self.late = len(late - self.rewards.keys())


def _number(saved: Any) -> int:
    """The number of a round."""
    number = float(saved)
    if not (1.0 <= number <= MOST_ROUNDS and number == math.floor(number)):
        raise StateError(f"Rounds must be counted from 1 on, but a pending one has the number {saved!r:.80}.")
    return int(number)


def _teaches(saved: Any) -> int:
    """What a round teaches."""
    if saved not in (0, IN_ORDER, INCOME, LATE):
        raise StateError(f"What a pending round teaches must be 0, 1, 2 or 3, but got {saved!r:.80}.")
    return int(saved)


def _value(saved: Any) -> Reward:
    return tuple(float(one) for one in saved) if np.ndim(saved) else float(saved)


def _rows(pending: Sequence[bytes]) -> Vector | Matrix:
    return np.frombuffer(b"".join(pending)).reshape(len(pending), -1).copy() if pending else np.zeros(0)


def read_settlement(settle_after: int | None, default_reward: float | None) -> Settlement:
    """The settlement of a new policy, its settings checked."""
    if settle_after is None and default_reward is not None:
        raise ConfigError(
            f"`default_reward` needs `settle_after`, but got default_reward={default_reward!r} alone. "
            "settle_after is the number of rounds after which a missing reward is learned as the default."
        )
    hint = "settle_after is the number of rounds after which a missing reward is learned as the default."
    window = None if settle_after is None else count("settle_after", settle_after, hint=hint)
    return Settlement(window, finite("default_reward", default_reward or 0.0, hint=hint))
