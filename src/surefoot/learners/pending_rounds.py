"""Rounds whose rewards a learner waits for, handed out in the order of their decisions, and never more than so many."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from surefoot.values import Value

Settled: TypeAlias = float | None  # the reward; None where there will be none


class PlayedRound(Value, frozen=True):
    """What a learner will be told of a round, but for its reward."""

    context: Any
    actions: Sequence[Any]
    action: Any
    probability: float


class PendingRounds:
    """The open rounds of a guarded learner, oldest first.

    most: rounds kept; beyond it the oldest is forgotten, so that rewards that never come cannot fill the memory
    """

    def __init__(self, most: int) -> None:
        self.most, self.forgotten = most, 0
        self._open: dict[int, PlayedRound] = {}
        self._settled: dict[int, Settled] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[int]:
        return iter(self._open)

    def opened(self, round_: int, played: PlayedRound) -> None:
        """Remember a round."""
        self._open[round_] = played
        if len(self._open) > self.most:
            oldest = next(iter(self._open))
            del self._open[oldest]
            self._settled.pop(oldest, None)
            self.forgotten += 1

    def settled(self, round_: int, reward: Settled) -> None:
        """Take the reward of a round; one that was forgotten is none of ours."""
        if round_ in self._open:
            self._settled[round_] = reward

    def settle_closed(self, is_open: Callable[[int], bool], reward: Settled) -> None:
        """Settle every round that the guard has closed by itself, oldest first up to one that is open."""
        for round_ in self._open:
            if round_ not in self._settled:
                if is_open(round_):
                    return
                self._settled[round_] = reward

    def take(self) -> tuple[PlayedRound, Settled] | None:
        """Remove the oldest round, if it is settled."""
        oldest = next(iter(self._open), None)
        if oldest is None or oldest not in self._settled:
            return None
        return self._open.pop(oldest), self._settled.pop(oldest)

    def state(self) -> list[dict[str, Any]]:
        """Plain data, as far as contexts and actions are, from which `restore` makes the same."""
        return [
            {
                "round": round_,
                **{name: getattr(played, name) for name in PlayedRound.__struct_fields__},
                **({"reward": self._settled[round_]} if round_ in self._settled else {}),
            }
            for round_, played in self._open.items()
        ]

    def restore(self, saved: Sequence[Mapping[str, Any]], *, forgotten: int) -> None:
        """Take back what `state` gave."""
        self.forgotten = forgotten
        for one in saved:
            self._open[int(one["round"])] = PlayedRound(*(one[name] for name in PlayedRound.__struct_fields__))
            if "reward" in one:
                self._settled[int(one["round"])] = one["reward"]
