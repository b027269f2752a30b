"""Guard: any learner, no model, a world that may drift; the floor holds on rewards' bounds and a fair coin alone.

Each round plays the proposal with probability p, else the baseline. A share alpha is safe from the first round on,
whatever the learner is: p mu_a + (1 - p) mu_b >= (1 - alpha) mu_b. What is beyond that is paid from the bank, a lower
bound of the slack earned so far that holds at all times at once.  (docs/mathematics.md, "The guard")
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from struct import Struct
from typing import Any, Literal

import numpy as np

from surefoot.core.native import Bank, GuardBooks, GuardSettings, available
from surefoot.policies import guard_settings
from surefoot.policies.coin import draw_coin, read_seed
from surefoot.policies.decision import GuardDecision, Source, round_of
from surefoot.policies.policy import Policy, Round, arguments, shaped
from surefoot.policies.settlement import INCOME, LATE, OpenRound, Settlement
from surefoot.policies.units import OpenUnit, Units
from surefoot.safety.bank_proof import check_bank
from surefoot.safety.guard_certificate import certified
from surefoot.safety.metric import PROMISES, Metric, Promise

RAMPS = ("auto", "free", "gate")
Ramp = Literal["auto", "free", "gate"]
SHARE = Struct("d")  # with which the record of a round begins
GOALS = ("earn", "save")
Goal = Literal["earn", "save"]


class Guard(Policy):
    """Let anything act under the cumulative floor: a learner, a model, a prompt, a price.

    With probability 1 - delta, at every moment, the mean reward of what was played is at least (1 - alpha) of the
    baseline's, the guard's own coins averaged (`promise="mean"`), or with the coins as they fell (`promise="played"`).
    It assumes that rewards keep to their bounds and that nobody foresees the coin; means may drift, and may depend on
    all that happened before. While a round is open, its reward must not depend on the coins of rounds that are decided
    after it. The baseline is measured in the same state: where past plays have changed the world, for both.

    Parameters
    ----------
    alpha : float
        The share of the baseline's reward that you accept losing. Give `metrics` instead for several rewards.
    delta : float
        Probability that the promise fails.
    reward_bounds : (low, high)
        Bounds that no single reward leaves; low >= 0.
    baseline_ceiling : float, optional
        The most that the baseline earns on average in any round, whatever is known when it is decided: its context, the
        proposal, a prediction. An average over visitors is not enough. By default `high`.
    promise : {"mean", "played"}
        What the floor is kept by.
    ramp : {"auto", "free", "gate"}
        How large a share to ask for: what the bank affords, the free share alone, or all that is allowed.
    goal : {"earn", "save"}
        What the proposals are for. To "earn" more than the baseline: the budget is not spent on a learner that is below
        the floor by itself. To "save" something that is no reward, such as the price of a model: they may spend it all.
    cap : float
        The largest share.
    schedule : sequence of float, optional
        Steps such as (0.01, 0.05, 0.25, 0.98); the share is always one of them, or 0.
    min_holdout : float
        The least share that the baseline keeps.
    reserve : float
        What you accept losing in addition to alpha, in all, in units of reward.
    metrics : mapping, optional
        Names of rewards, each with a `surefoot.floor` or a `surefoot.ceiling`; delta is split evenly.
    seed : int, optional
        For simulations: coins that can be repeated. Left out, they come from the system.
    settle_after : int, optional
        Rounds after which a reward that has not come is booked as `default_reward`, or else at its worst for good.
    default_reward : float, optional
        What a reward counts that has not come; of several metrics each has its own. The promise is then about rewards
        within the window: without a default it covers what comes later, too.
    unit_window : int, optional
        Rounds for which a `unit` keeps its side, and over which its rewards are added up, cut at the highest reward. A
        unit without any reward earns 0. Repeated visits make no round: a fixed set of units needs a window below its
        size.
    predict : bool
        Whether an experiment or a `GuardedLearner`, which know the context of a round, predict the baseline's reward
        from it. That saves some of its rounds. Not done where a `baseline_ceiling` is declared, nor with a
        `unit_window`.

    Raises
    ------
    ConfigError
        If a setting is invalid.

    Examples
    --------
    >>> import surefoot
    >>> guard = surefoot.Guard(alpha=0.1, delta=0.05, seed=1)
    >>> for _ in range(3000):
    ...     decision = guard.decide(baseline="big-model", proposal="small-model")
    ...     guard.observe(decision, 0.8 if decision.action == "small-model" else 0.75)
    >>> guard.share > 0.9
    True
    """

    def __init__(
        self,
        *,
        alpha: float | None = None,
        delta: float,
        reward_bounds: Sequence[float] = (0.0, 1.0),
        baseline_ceiling: float | None = None,
        promise: Promise = "mean",
        ramp: Ramp = "auto",
        goal: Goal = "earn",
        cap: float = 1.0,
        schedule: Sequence[float] | None = None,
        min_holdout: float = 0.02,
        reserve: float = 0.0,
        metrics: Mapping[str, Metric | Mapping[str, Any]] | None = None,
        seed: int | None = None,
        settle_after: int | None = None,
        default_reward: float | None = None,
        unit_window: int | None = None,
        predict: bool = True,
    ) -> None:
        settings = arguments(locals())
        self._metrics = guard_settings.read_metrics(
            alpha, reward_bounds, baseline_ceiling, reserve, default_reward, metrics
        )
        guard_settings.read_delta(delta)
        self._holdout = guard_settings.read_holdout(min_holdout)
        most = min(guard_settings.read_share("cap", cap), 1.0 - self._holdout)
        self._steps = (
            None if schedule is None else sorted(guard_settings.read_share("schedule", step) for step in schedule)
        )
        guard_settings.check_word("promise", promise, PROMISES)
        guard_settings.check_word("ramp", ramp, RAMPS)
        guard_settings.check_word("goal", goal, GOALS)
        guard_settings.check_word("predict", predict, (True, False))
        self._seed = read_seed(seed)
        guard_settings.check_units(self._metrics, unit_window, settle_after)
        self.units = Units(guard_settings.read_window("unit_window", unit_window), len(self._metrics))
        settings |= {
            "reward_bounds": [float(one) for one in reward_bounds],
            "schedule": self._steps,
            "metrics": None if metrics is None else {name: one.plain() for name, one in self._metrics.items()},
            "seed": self._seed,
        }
        default = tuple(math.nan if one.default is None else one.default / one.high for one in self._metrics.values())
        window = guard_settings.read_window("settle_after", settle_after)
        super().__init__(settings, Settlement(window, default, worst=(math.nan,) * len(self._metrics)))
        share = delta / len(self._metrics)
        self._promises = [metric.settings(share, promise) for metric in self._metrics.values()]
        pace = goal if ramp == "auto" else ramp
        self._books = GuardBooks(GuardSettings(self._promises, ramp=pace, largest_share=most))
        self._names = tuple(self._metrics)
        self._only = next(iter(self._metrics.values())) if len(self._metrics) == 1 else None
        self.booked = BookedRewards(self._metrics)

    @property
    def metrics(self) -> dict[str, Metric]:
        """What is promised of each kind of reward."""
        return dict(self._metrics)

    @property
    def step_settings(self) -> GuardSettings:
        """The numbers that the core runs on."""
        return self._books.settings

    @property
    def keeps_floor(self) -> bool:
        """A guard does."""
        return True

    @property
    def share(self) -> float:
        """The probability with which the next proposal would be played."""
        return self._share()

    @property
    def banks(self) -> dict[str, float]:
        """What may be spent of each metric, in its own units; rounds without a reward count at their worst."""
        each = zip(self._metrics.items(), self._promises, self._books.banks, strict=True)
        return {name: metric.high * available(settings, bank) for (name, metric), settings, bank in each}

    @property
    def bank_records(self) -> list[Bank]:
        """What is proved of the slack of each metric, rewards as shares of the highest."""
        return self._books.banks

    @property
    def lift_intervals(self) -> dict[str, tuple[float, float]]:
        """How much more a proposal earned than the baseline would have, on average: 95% intervals at all times at once.

        In the metric's own units, over the rounds in which the proposal had a share; before the first, all that can be.
        """
        named = zip(self._metrics.items(), self._books.lift_intervals, strict=True)
        return {name: (metric.high * low, metric.high * high) for (name, metric), (low, high) in named}

    def decide(  # type: ignore[override]
        self,
        *,
        baseline: Any,
        proposal: Any,
        unit: str | None = None,
        prediction: float | Mapping[str, float] | None = None,
        hold: bool = False,
        coin: Callable[[int], float] | None = None,
    ) -> GuardDecision:
        """Draw the coin, and say which of the two actions to play.

        Parameters
        ----------
        baseline : object
            The action you would play today: an id, a row, any value.
        proposal : object
            The action that is to be let in. One equal to the baseline is played as the baseline, and nothing is at
            stake: alpha of its reward goes to the bank.
        unit : str, optional
            Whom the reward belongs to, if that is more than this visit; its side is drawn once.
        prediction : float or mapping, optional
            What the baseline's reward will be in this round, from a model of your own; for several metrics by name.
        hold : bool
            Play the baseline whatever is allowed.
        coin : callable, optional
            Draws the coin of a round by its number, where somebody accounts for it: uniform in [0, 1), or nan where the
            round has none and the baseline plays. By default the seed or the system does.

        Returns
        -------
        GuardDecision
            The action, its propensity and the certificate.

        Raises
        ------
        InputError
            If the unit or the prediction is invalid; nothing has changed.
        """
        known = None if unit is None else self.units.find(unit)
        if known is not None:
            return self._again(known, unit, baseline, proposal, hold)
        predicted = None if prediction is None else guard_settings.read_prediction(prediction, self._metrics)
        teaches = not guard_settings.is_same(baseline, proposal)
        share = self._share() if teaches and not hold and self._alarm is None else 0.0
        draw = math.nan
        if share > 0.0:
            round_ = self._rounds + 1
            draw = draw_coin(self._seed, round_) if coin is None else coin(round_)
            if math.isnan(draw):
                share = 0.0
        return self._play(baseline, proposal, share, draw, predicted, unit, hold, teaches)

    def recall(  # type: ignore[override]
        self,
        *,
        baseline: Any,
        proposal: Any,
        share: float,
        draw: float,
        source: Source,
        unit: str | None = None,
        prediction: float | Mapping[str, float] | None = None,
        hold: bool = False,
        plan: bytes | None = None,
    ) -> GuardDecision:
        """Repeat a round that was decided before, with its share and its coin, to restore a guard from a journal.

        Parameters
        ----------
        baseline, proposal, unit, prediction, hold
            As in `decide`.
        share, draw : float
            As they were.
        source : {"learner", "baseline"}
            Who played.
        plan : bytes, optional
            What its bets are settled by, where it was decided under a lease: the bank there fixed it before the coin.

        Returns
        -------
        GuardDecision
            The decision as it was.

        Raises
        ------
        InputError
            If the round cannot have been played like this.
        """
        known = None if unit is None else self.units.find(unit)
        if known is not None:
            return self._again(known, unit, baseline, proposal, hold)
        teaches = not guard_settings.is_same(baseline, proposal)
        guard_settings.check_coin(share, draw, source, most=1.0 - self._holdout, is_drawn=teaches)
        predicted = guard_settings.read_prediction(prediction, self._metrics)
        return self._play(baseline, proposal, share, draw, predicted, unit, hold, teaches, plan)

    def void(self, *moved: Any, **how: Any) -> None:
        """Nothing moves: banks compare what was assigned, whatever came of it (intention to treat)."""

    def abandon(self, decision: Round) -> None:
        """Settle a decision without its reward: it is booked at its worst, so losing bad news gains nothing.

        Of metrics that come one by one, those that came count, and the rest is booked at its worst.

        Parameters
        ----------
        decision : GuardDecision or int
            The decision, or the number of its round.

        Raises
        ------
        DecisionError
            If the decision is another guard's, was never made, or is settled.
        """
        round_ = round_of(decision, self.id)
        self._settlement.check_open(round_, self._rounds, "abandoned")
        if (part := self._settlement.parts.pop(round_, None)) is not None:
            # Not by their defaults: those are for what has not come when a window closes.
            self.observe(round_, {name: part.get(name) for name in self._metrics})
            return
        if self.units.holds(round_):
            self.units.close(round_)
        self._settle(round_, (math.nan,) * len(self._metrics))

    def lose(self, rounds: int) -> None:
        """Pay for rounds of which nothing is left, each at its worst, such as those of a journal that was lost.

        Parameters
        ----------
        rounds : int
            At least as many as were decided.
        """
        self._books.lose(rounds)

    def observe(self, decision: Round, reward: Any) -> None:
        """Take the reward of a decision, at any time and in any order; rewards of an open unit are added up.

        Parameters
        ----------
        decision : GuardDecision or int
            The decision or, after a restart, the number of its round.
        reward : float or mapping
            The reward; for several metrics their names and numbers. A metric that is missing counts at its worst,
            unless it has a default; one that is None does so in any case.

        Raises
        ------
        DecisionError
            If the decision is another guard's, was never made, or is settled.
        InputError
            If a reward is not a number, or not that of a metric.
        AssumptionError
            If a reward lies outside of its bounds; nothing has changed.
        """
        # The usual case first, without a call: this runs on every reward.
        is_own = type(decision) is GuardDecision and decision.policy == self._id
        round_ = decision.round if is_own else round_of(decision, self._id)  # type: ignore[union-attr]
        values = self._read_reward(reward)
        if not self.units.holds(round_):
            self._settle(round_, values)
            return
        self._settlement.check_open(round_, self._rounds, "observed")
        self.units.add(round_, values)

    def observe_part(self, round_: int, reward: Mapping[str, float]) -> None:
        """Take rewards of a round whose other metrics may come later; it is settled once all have come.

        What is still missing when its window closes counts by its default, or at its worst: otherwise the order in
        which rewards are sent would decide whether a default counts. The visits of a unit are taken as they come.

        Parameters
        ----------
        round_ : int
            The number of the round.
        reward : mapping
            The metrics that came, and their numbers.
        """
        parts = self._settlement.parts
        self._settlement.check_open(round_, self._rounds, "observed")
        came = {**parts.get(round_, {}), **reward}
        self._read_reward(came)
        if self.units.holds(round_) or len(came) == len(self._metrics):
            self.observe(round_, came)
            parts.pop(round_, None)
        else:
            parts[round_] = came

    def _share(self) -> float:
        """The share of the next proposal: the least that all metrics allow and the ramp asks for."""
        share = self._books.share()
        if self._steps is not None:
            share = max((step for step in self._steps if step <= share), default=0.0)
        return share

    def _play(
        self,
        baseline: Any,
        proposal: Any,
        share: float,
        draw: float,
        predicted: Sequence[float] | None,
        unit: str | None,
        hold: bool,
        teaches: bool,
        plan: bytes | None = None,
    ) -> GuardDecision:
        is_learner = bool(draw < share)
        record = self._plan(share, predicted) if plan is None else plan
        before = self._books.charge(share, is_learner)
        self._rounds = round_ = self._rounds + 1
        # An agreeing visit pays into the open round of its unit alone: what the unit brings may depend on later coins.
        pays = INCOME if unit is None or teaches else 0
        if self._settlement.parts:
            self._close_part(round_ - (self._settlement.settle_after or round_))
        self._settlement.decided(round_, record, is_learner, 1 if share > 0.0 else pays)
        if unit is not None and teaches:
            self.units.opened(unit, round_, is_learner, share, draw)
        if self.units.window is not None:
            for due in self.units.due(round_):
                self._settle(due, self.units.close(due))
        if self._settlement.settle_after is not None:
            self._learn_due()
        certify = partial(certified, self._names, self._promises, before, share, hold, is_same=not teaches)
        return GuardDecision(
            round_, "learner" if is_learner else "baseline", proposal if is_learner else baseline,
            share if is_learner else 1.0 - share, share, draw, self._id, unit, certify,
        )  # fmt: skip

    def _plan(self, share: float, predicted: Sequence[float] | None) -> bytes:
        """What a round's bets are settled by: its share and the stakes, fixed before the coin."""
        return self._books.plan(share, predicted)

    def _close_part(self, round_: int) -> None:
        """Settle a round whose window of rounds ends by the metrics that came."""
        part = self._settlement.parts.pop(round_, None)
        if part is not None:
            self._settlement.close(round_, self._read_reward(part))

    def _again(self, known: OpenUnit, unit: str | None, baseline: Any, proposal: Any, hold: bool) -> GuardDecision:
        """Another visit of a unit: the side that was drawn, with the actions of now; its round is paid for."""
        plays = known.is_learner and not hold
        chance = (known.share if plays else 1.0 - known.share) if not hold else 1.0
        certify = partial(certified, self._names, self._promises, self._books.snapshot, known.share, hold, False)
        return GuardDecision(
            known.round, "learner" if plays else "baseline", proposal if plays else baseline, chance, known.share,
            known.draw, self.id, unit, certify,
        )  # fmt: skip

    def _settle(self, round_: int, reward: tuple[float, ...]) -> None:
        entry, is_turn = self._settlement.rewarded(round_, reward, self._rounds)
        if is_turn:
            self._learn_round(entry, reward)
        if self._settlement.rewards:
            self._learn_due()

    def _learn_round(self, entry: OpenRound, reward: Any) -> None:
        self._count_booked(entry, reward)
        record, is_learner, teaches = entry
        self._books.enter(record, is_learner, reward, teaches == LATE)

    def _count_booked(self, entry: OpenRound, reward: Any) -> None:
        """Count a round for the means of both sides, if it had a share: where nothing is at stake they may differ."""
        record, is_learner, _ = entry
        if SHARE.unpack_from(record)[0] > 0.0:
            self.booked.add(reward, is_learner=is_learner)

    def _read_reward(self, reward: Any) -> tuple[float, ...]:
        only = self._only
        if only is not None and type(reward) is float and only.low <= reward <= only.high:
            return (reward / only.high,)
        return guard_settings.read_rewards(reward, self._metrics)

    def _record_size(self) -> int:
        # The share, and of each metric what it is settled by: its worst, and mean and spread expected of both sides.
        return 1 + 5 * len(self._metrics)

    def arrays(self) -> dict[str, Any]:
        """Banks and lifts, what was booked of both sides, open units, and rewards that came in part."""
        books = {"banks": self._books.save(), "lifts": self._books.save_lifts()}
        parts = [[round_, part] for round_, part in self._settlement.parts.items()]
        return {**books, "booked": self.booked.state(), **self.units.state(), "parts": parts}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Take back what `arrays` returned."""
        self._books.load(shaped(arrays["banks"], self._books.save().shape, "banks"))
        for bank in self._books.banks:
            check_bank(bank)
        self._books.load_lifts(shaped(arrays["lifts"], self._books.save_lifts().shape, "lifts"))
        self.booked.restore(arrays.get("booked"))
        self.units.restore(arrays)
        self._settlement.parts = {int(round_): dict(part) for round_, part in arrays["parts"]}


class BookedRewards:
    """Number and sum of both sides' rewards by metric. Defaults count, what is missing does not, and a unit is one."""

    def __init__(self, metrics: Mapping[str, Metric]) -> None:
        self._metrics = metrics
        self._totals = [[[0.0, 0.0], [0.0, 0.0]] for _ in metrics]  # of the baseline, and of the learner

    def add(self, reward: Sequence[float], *, is_learner: bool) -> None:
        """Count a round that enters, its rewards as shares of the highest; NaN is missing."""
        for sides, value in zip(self._totals, reward, strict=True):
            if not math.isnan(value):
                totals = sides[is_learner]
                totals[0] += 1.0
                totals[1] += value

    def means(self, *, is_learner: bool) -> dict[str, float]:
        """The means of one side in the metrics' own units; nan before the first."""
        named = zip(self._metrics.items(), self._totals, strict=True)
        return {name: _mean(sides[is_learner], metric.high) for (name, metric), sides in named}

    def state(self) -> Any:
        """An array from which `restore` makes the same."""
        return np.array(self._totals)

    def restore(self, saved: Any) -> None:
        """Take back what `state` gave; of older states, which do not hold it, None."""
        if saved is not None:
            self._totals = shaped(saved, (len(self._totals), 2, 2), "booked").tolist()


def _mean(totals: Sequence[float], high: float) -> float:
    count, total = totals
    return high * total / count if count else math.nan
