"""One decision of a guard, checked: could the banks pay for its share, did the coin choose, does the record fit?"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from surefoot.audit.bank import BookedRound, RebuiltBank, ramp_share
from surefoot.audit.checks import Checks, OpenRound, Values
from surefoot.audit.coins import LEVEL, CoinFairness, CommittedCoins, seeded_coin
from surefoot.audit.declarations import RATES, GuardDeclarations, read_guard
from surefoot.audit.findings import AuditCounts, Findings
from surefoot.audit.recorded_round import RoundProblems
from surefoot.journal.events import Event
from surefoot.rounds import Record, events

WRITTEN = 1e-9  # what is written down may differ so much from what it was computed of, relative to that


@dataclass(slots=True, kw_only=True)
class OpenPair(OpenRound):
    """A guard's round, and what its banks settle it by."""

    record: events.PairRound
    booked: list[BookedRound]


class GuardChecks(Checks[OpenPair]):
    """Everything that the events so far say of an experiment with a guard."""

    keeps_abandoned = True
    is_pair = True
    patience = 8

    def __init__(self, created: events.Created, findings: Findings, tally: AuditCounts) -> None:
        self._declared: GuardDeclarations = read_guard(created.settings)
        super().__init__(created, findings, tally, unit_window=self._declared.unit_window)
        self._banks = [RebuiltBank(metric) for metric in self._declared.metrics]
        self.coins: CoinFairness = CoinFairness(len(self._banks))
        self._committed = CommittedCoins(findings, tally)

    def take(self, event: Event, record: Record, mode: str) -> None:
        """Check one event of a guard."""
        if isinstance(record, events.CoinBlock):
            self._committed.take(event, record)
        else:
            super().take(event, record, mode)

    def restored(self, lost: int) -> None:
        """Every bank pays for rounds that are lost, at their worst, and their coins may have been seen."""
        self._committed.restored()
        for bank in self._banks:
            bank.lose(float(lost), self._declared.most)

    def _judge(self, event: Event, record: events.Round, mode: str) -> None:
        assert isinstance(record, events.PairRound)
        problems = RoundProblems()
        self._check_protocol(event, record, mode, problems)
        if event.kind == events.ROUND:
            self._check_round(event, record, problems)
        else:
            self._check_visit(record, problems)
        problems.report(event, self.findings)

    def _check_round(self, event: Event, record: events.PairRound, problems: RoundProblems) -> None:
        """Check a round against everything before it, and count it."""
        self._check_number(record, problems)
        teaches = differ(record.request.baseline, record.request.proposal)
        self._check_unit(record, problems)
        self._check_forecast(record, teaches, problems)
        self._check_share(event, record, teaches, problems)
        self._check_coin(event, record, problems)
        if record.certificate is None:
            problems.add("certificate", "a round must have a certificate")
        else:
            self._check_certificate(record.certificate, record.share, problems)
        margin = min(bank.held - bank.cost(record.share) for bank in self._banks)
        self.tally.count(event, record, margin, len(self._banks))
        self._book(event, record, teaches)

    def _book(self, event: Event, record: events.PairRound, teaches: bool) -> None:
        is_learner, request = record.source == "learner", record.request
        predictions = [predicted(record.prediction, bank, self._declared) for bank in self._banks]
        if record.draw is not None and self.coins.toss(record.share, record.draw, is_learner, predictions):
            self.findings.add(event.number, "coins", unfair(self.coins))
        booked = [bank.plan(record.share, one) for bank, one in zip(self._banks, predictions, strict=True)]
        for bank in self._banks:
            bank.charge(record.share, is_learner)
        entry = OpenPair(
            round=record.round,
            time=event.time,
            is_learner=is_learner,
            waits=record.share > 0.0,
            # An agreeing visit of a unit pays into the unit's open round alone.
            is_income=not record.share > 0.0 and (teaches or request.unit is None),
            unit=request.unit if teaches else None,
            record=record,
            booked=booked,
        )
        self._wait(record.decision_id, entry)

    def _holds(self, values: Values) -> bool:
        known = {metric.name: metric for metric in self._declared.metrics}
        return all(name in known and known[name].holds(value) for name, value in values.items())

    def _is_whole(self, received: Values) -> bool:
        return all(metric.name in received for metric in self._declared.metrics)

    def _learn(self, entry: OpenPair) -> None:
        values = self._worth(entry) if entry.is_settled else [math.nan] * len(self._banks)
        for bank, booked, value in zip(self._banks, entry.booked, values, strict=True):
            if value < bank.metric.low:
                text = f"round {entry.round} has a reward of {bank.metric.name!r} below its declared bounds"
                self.findings.add(self.tally.events, "reward", text)
            self._earn(bank, booked, entry, value)
        known = [value for value in values if not math.isnan(value)]
        if known:
            self.coins.rewarded(known[0])

    def _worth(self, entry: OpenPair) -> list[float]:
        """What a round enters the banks by; nan where it counts at its worst."""
        if entry.is_abandoned and (entry.unit is not None or not entry.received):
            return [math.nan] * len(self._banks)
        if entry.unit is None:
            # What had not come when the round was given up is no default.
            return self._scaled(entry.received, lost=math.nan if entry.is_abandoned else None)
        # What the visits of a unit have brought, cut at the highest.
        totals = [0.0] * len(self._banks)
        for received in filter(None, entry.rewards.values()):
            pairs = zip(totals, self._scaled(received), strict=True)
            totals = [math.nan if math.isnan(total + one) else min(total + one, 1.0) for total, one in pairs]
        return totals

    def _scaled(self, values: Values, *, lost: float | None = None) -> list[float]:
        return [
            metric.scaled(values[metric.name]) if metric.name in values else metric.default if lost is None else lost
            for metric in self._declared.metrics
        ]

    def _earn(self, bank: RebuiltBank, booked: BookedRound, entry: OpenPair, value: float) -> None:
        bank.enter(booked, entry.is_learner, value, is_late=entry.is_late and entry.is_settled)

    def _expected_shares(self, record: events.PairRound, teaches: bool) -> tuple[float, float]:
        """The least and the most that the share may be, as far as rounding goes."""
        if not teaches or record.is_held:
            return 0.0, 0.0
        return ramp_share(self._declared, self._banks, -1.0), ramp_share(self._declared, self._banks, 1.0)

    def _check_share(self, event: Event, record: events.PairRound, teaches: bool, problems: RoundProblems) -> None:
        """The share is what the past says, none where a block of coins had to begin, and every bank can pay for it."""
        least, most = self._expected_shares(record, teaches)
        if most > 0.0 and record.share == 0.0 and self._committed.begins_after(event, record):
            self.tally.coins_missing += least > 0.0
            least = most = 0.0
        if not least - WRITTEN * least <= record.share <= most + WRITTEN * most:
            problems.add("share", f"the banks and the ramp give a share of {most!r}, but it was {record.share!r}")
        # Asked apart from the ramp: the promise rests on this alone.
        for bank in self._banks:
            cost = bank.cost(record.share)
            if not (cost == 0.0 or cost <= bank.held_at(1.0)):
                name = bank.metric.name
                text = f"the bank of {name!r} holds {bank.held:.6g}, but this share may cost {cost:.6g}"
                problems.add("gate", text)

    def _check_coin(self, event: Event, record: events.PairRound, problems: RoundProblems) -> None:
        """The coin was drawn where a share was to be had, from its seed or its block, and it chose the side."""
        draw, seed = record.draw, self._declared.seed
        if (draw is None) != (record.share == 0.0) or not (draw is None or 0.0 <= draw < 1.0):
            problems.add("draw", f"a share of {record.share!r} does not go with a coin of {draw!r}")
        elif draw is not None and seed is not None and draw != seeded_coin(seed, record.round):
            problems.add("draw", f"the seed gives another coin in round {record.round}")
        if draw is not None and seed is None:
            self._committed.draw(event, record)
        elif record.coins:
            problems.add("block", f"no coin was drawn from a block, but event {record.coins} is named")
        is_learner = draw is not None and draw < record.share
        if is_learner != (record.source == "learner"):
            problems.add("source", f"a coin of {draw!r} at a share of {record.share!r} does not play {record.source}")

    def _check_unit(self, record: events.PairRound, problems: RoundProblems) -> None:
        unit = record.request.unit
        if unit is not None and self._declared.unit_window is None:
            problems.add("unit", "no window was declared for units")
        elif unit is not None and unit in self.units:
            problems.add("unit", f"unit {unit!r} is open, but its coin was drawn again")

    def _check_forecast(self, record: events.PairRound, teaches: bool, problems: RoundProblems) -> None:
        """The experiment predicts by itself only where the guard lets it, the caller did not, and a coin may fall."""
        request, forecast = record.request, record.forecast
        if forecast is None:
            return
        is_known = request.context is not None or self.created.is_sealed
        is_free = teaches and not record.is_held and request.prediction is None and is_known
        if not (is_free and forecast.keys() <= self._declared.forecast):
            problems.add("forecast", f"nothing may be predicted of this round, but {forecast!r:.80} is recorded")

    def _check_visit(self, visit: events.PairRound, problems: RoundProblems) -> None:
        """A unit keeps its round and its side; where the baseline was to be held, that was played."""
        self.tally.visits += 1
        entry = self.units.get(visit.request.unit or "")
        if entry is None or entry.record.round != visit.round:
            problems.add("unit", f"unit {visit.request.unit!r} is not open in round {visit.round}")
            return
        first = entry.record
        expected = ("baseline", 0.0, None) if visit.is_held else (first.source, first.share, first.draw)
        if (visit.source, visit.share, visit.draw) != expected or visit.coins:
            problems.add("unit", f"unit {visit.request.unit!r} must keep its side, but {visit.source} was played")
        self._visited(entry, visit.decision_id)

    def _check_certificate(self, certificate: events.BankCertificate, share: float, problems: RoundProblems) -> None:
        names = [bank.metric.name for bank in self._banks]
        if [bank.metric for bank in certificate.banks] != names or certificate.binds not in names:
            problems.add("certificate", f"it must have a bank for each of {', '.join(names)}")
            return
        self._check_figures(certificate, share, problems)

    def _check_figures(self, certificate: events.BankCertificate, share: float, problems: RoundProblems) -> None:
        names = [bank.metric.name for bank in self._banks]
        least, most = (min(bank.allowed_at(rounded) for bank in self._banks) for rounded in (-1.0, 1.0))
        binds = self._banks[names.index(certificate.binds)].allowed_at(-1.0)
        if not (least - WRITTEN <= certificate.allowed <= most + WRITTEN and binds <= most + WRITTEN):
            text = f"a share of {most!r} is allowed, but it says {certificate.allowed!r}, by {certificate.binds!r}"
            problems.add("certificate", text)
        for own, bank in zip(self._banks, certificate.banks, strict=True):
            wrong = [name for name, *figures in _compared(own, bank, share) if not _fits(*figures)]
            if wrong or len(bank.log_wealth) != len(RATES):
                text = f"{', '.join(dict.fromkeys(wrong))} of {bank.metric!r} must be what the events add up to"
                problems.add("certificate", text)


def differ(baseline: Any, proposal: Any) -> bool:
    """Whether a choice between two actions teaches anything; True is another action than 1, though equal in Python."""
    return isinstance(baseline, bool) != isinstance(proposal, bool) or bool(baseline != proposal)


def predicted(
    prediction: float | dict[str, float] | None, bank: RebuiltBank, declared: GuardDeclarations
) -> float | None:
    """What was predicted of the baseline, in units of the highest reward."""
    by_name = prediction if isinstance(prediction, dict) else {declared.metrics[0].name: prediction}
    value = by_name.get(bank.metric.name)
    if value is None:
        return None
    low, high = bank.metric.bounds
    return bank.metric.scaled(min(max(float(value), low), high))


def unfair(coins: CoinFairness) -> str:
    """The finding about coins, in a sentence."""
    return (
        f"after {coins.coins:,} coins, which gave the learner {coins.learner:,} rounds where {coins.expected:,.1f} "
        f"were to be expected: fair coins, independent of all before them, look so with a chance of {LEVEL:g} at most"
    )


def _compared(own: RebuiltBank, bank: events.BankRecord, share: float) -> Iterator[tuple[str, float, float, float]]:
    """What is written of a bank, beside what the audit has added up, and what rounding may have lost of that."""
    yield "bound", bank.bound, own.bound, 0.0
    yield "owed", bank.owed, own.owed, own.rounding
    yield "carried", bank.carried, own.held, own.rounding
    yield "cost", bank.cost, own.cost(share), 0.0
    yield "coins", bank.coins, own.coin_luck, 0.0
    # A list of another length is found by its caller.
    pairs = zip(bank.log_wealth, own.log_wealth, strict=False)
    yield from (("log_wealth", claimed, is_, 0.0) for claimed, is_ in pairs)


def _fits(claimed: float, own: float, rounding: float) -> bool:
    return abs(claimed - own) <= WRITTEN * (1.0 + abs(own)) + rounding
