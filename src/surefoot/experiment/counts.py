"""Counts that are kept from event to event, so that a status costs nothing however long the experiment is."""

import math
from typing import Any

import msgspec

from surefoot.policies.guard_settings import is_same
from surefoot.rounds.events import PairRound, Reason, Response, Reward

HOUR = 3600.0


class Refusals(msgspec.Struct):
    """Refusals for one reason: all of them, and those recorded in the newest hour that had any."""

    total: int = 0
    hour: int = 0
    recorded: int = 0

    def recorded_in(self, time: float) -> int:
        """How many were recorded in the hour of this time."""
        return self.recorded if self.hour == time // HOUR else 0


class Counts(msgspec.Struct, forbid_unknown_fields=True):
    """What happened so far, in numbers.

    allowed:   rounds in which the learner might have played, whether it did or not
    floor:     margin and round of the newest learner round; `worst` of the one with the least margin
    proposed:  margin of the newest proposal
    differing: rounds of a guard in which the proposal was another action than the baseline's
    visits:    of open units, beside rounds
    voided:    rounds that were not played as decided
    restarts:  after which round an alarm was answered, and how
    carried:   estimates of what was earned before a restart under the same promise
    """

    learner_rounds: int = 0
    baseline_rounds: int = 0
    held_rounds: int = 0
    fallback_rounds: int = 0
    allowed_rounds: int = 0
    differing_rounds: int = 0
    visits: int = 0
    proposed_margin: float = math.nan
    newest_margin: float = math.nan
    newest_round: int = 0
    worst_margin: float = math.inf
    worst_round: int = 0
    rewards: int = 0
    defaults: int = 0
    abandoned: int = 0
    voided: int = 0
    total_reward: float = 0.0
    refusals: dict[Reason, Refusals] = {}
    restarts: list[tuple[int, Response]] = []
    carried_reward: float = 0.0
    carried_baseline: float = 0.0

    @property
    def promise_round(self) -> int:
        """The round from which the promise counts."""
        return 1 + max((round_ for round_, response in self.restarts if response == "renew"), default=0)

    @property
    def restart_round(self) -> int:
        """The last round before the newest restart; 0 where there was none."""
        return self.restarts[-1][0] if self.restarts else 0

    def decided(self, record: Any) -> None:
        """Count a round."""
        certificate = record.certificate
        margin = certificate.margin
        self.proposed_margin = margin
        self.allowed_rounds += certificate.is_allowed
        self.held_rounds += record.is_held
        self.fallback_rounds += record.is_fallback
        if isinstance(record, PairRound):
            self.differing_rounds += not is_same(record.request.baseline, record.request.proposal)
        if record.source == "baseline":
            self.baseline_rounds += 1
            return
        self.learner_rounds += 1
        self.newest_margin, self.newest_round = margin, record.round
        if margin < self.worst_margin:
            self.worst_margin, self.worst_round = margin, record.round

    def moved(self, *, was_learner: bool, is_learner: bool) -> None:
        """Count a round that was not played as decided on the side that was played."""
        self.voided += 1
        self.learner_rounds += is_learner - was_learner
        self.baseline_rounds += was_learner - is_learner

    def rewarded(self, record: Reward, time: float) -> None:
        """Count a reward, accepted or refused."""
        if record.refused is None:
            self.rewards += 1
            return
        entry = self.refusals.setdefault(record.refused, Refusals())
        entry.total += 1 + record.unrecorded
        entry.recorded = entry.recorded_in(time) + 1
        entry.hour = int(time // HOUR)

    def restarted(self, round_: int, response: Response, earned: float, baseline: float) -> None:
        """Start again: earlier margins rested on what was contradicted."""
        self.restarts = [*self.restarts, (round_, response)]
        keeps = response == "relearn"
        self.carried_reward = self.carried_reward + earned if keeps else 0.0
        self.carried_baseline = self.carried_baseline + baseline if keeps else 0.0
        self.proposed_margin = self.newest_margin = math.nan
        self.worst_margin, self.worst_round, self.newest_round = math.inf, 0, 0
