"""A learner under a guard: it proposes, the coin decides, and it learns from what was played."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeAlias

from surefoot.arrays import count, finite
from surefoot.errors import ConfigError, InputError, StateError
from surefoot.hints import nearest
from surefoot.learners.learner import Learner, Proposal, StatefulLearner, position_of
from surefoot.policies.baseline_forecast import BaselineForecast
from surefoot.policies.decision import GuardDecision, round_of
from surefoot.policies.guard import Guard
from surefoot.policies.policy import Round
from surefoot.safety.metric import Metric
from surefoot.values import Value

Settled: TypeAlias = float | None  # the reward; None where there will be none


class PlayedRound(Value, frozen=True):
    """What a learner will be told of a round, but for its reward."""

    context: Any
    actions: Sequence[Any]
    action: Any
    probability: float
    is_baseline: bool


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

    def open(self, round_: int, played: PlayedRound) -> None:
        """Remember a round."""
        self._open[round_] = played
        if len(self._open) > self.most:
            oldest = next(iter(self._open))
            del self._open[oldest]
            self._settled.pop(oldest, None)
            self.forgotten += 1

    def find(self, round_: int) -> PlayedRound | None:
        """An open round, unless it was forgotten."""
        return self._open.get(round_)

    def settle(self, round_: int, reward: Settled) -> None:
        """Take the reward of a round, unless the round was forgotten."""
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


Combine: TypeAlias = Callable[[Mapping[str, float]], float]

HINT = "It is what the learner maximises."


class LearnerReward:
    """The one number that the learner maximises, from the rewards of a round.

    objective: a metric's name, or a function of all of them; None where there is but one
    """

    def __init__(self, metrics: Mapping[str, Metric], objective: str | Combine | None) -> None:
        self._metrics = metrics
        self._combine = objective if callable(objective) else None
        self._name = next(iter(metrics))
        if self._combine is None:
            self._name = self._read_name(objective)
        # Of a round whose reward never came; None where nothing was declared for it.
        is_declared = all(metric.default is not None for metric in metrics.values())
        self.default = self.read({}) if is_declared else None

    def _read_name(self, objective: Any) -> str:
        names = ", ".join(self._metrics)
        if objective is None and len(self._metrics) > 1:
            raise ConfigError(f"`reward` must say which metric the learner maximises: one of {names}, or a function.")
        name = self._name if objective is None else objective
        if name not in self._metrics:
            raise ConfigError(f"`reward` must be one of {names}, but got {name!r:.80}. {nearest(str(name), names)}")
        if self._metrics[name].kind == "ceiling":
            raise ConfigError(
                f"A learner maximises, but {name!r} has a ceiling. "
                f"Give a function, such as reward=lambda rewards: 1 - rewards[{name!r}]."
            )
        return str(name)

    def read(self, reward: Any) -> float | None:
        """The learner's number, or None where its metric is missing and has no default."""
        values = reward if isinstance(reward, Mapping) else {next(iter(self._metrics)): reward}
        rewards = {name: one.default for name, one in self._metrics.items() if one.default is not None} | dict(values)
        if self._combine is not None:
            return finite("reward", self._combine(rewards), hint=HINT)
        return finite("reward", rewards[self._name], hint=HINT) if self._name in rewards else None


Odds: TypeAlias = Sequence[float] | None

WHAT = "The learner's proposal"


def propose(learner: Learner, context: Any, offered: list[Any]) -> tuple[int, Odds]:
    """The place of the proposal among the actions, and the probabilities it was drawn with; None if it was certain."""
    # Learners get copies of the list: one that sorts it must not move the places of the actions.
    sample = getattr(learner, "sample", None)
    if sample is None:
        return position_of(offered, learner.propose(context, list(offered)), what=WHAT), None
    proposal = sample(context, list(offered))
    if not isinstance(proposal, Proposal) or len(proposal.probabilities) != len(offered):
        raise InputError(
            f"`sample` must return a Proposal with {len(offered)} probabilities, but got {proposal!r:.80}."
        )
    place = position_of(offered, proposal.action, what=WHAT)
    # Some room for learners that compute in single precision.
    if not 0.0 < proposal.probabilities[place] <= 1.0 + 1e-6:
        raise InputError(f"{WHAT} must have a probability in (0, 1], but got {proposal!r:.80}.")
    return place, proposal.probabilities


def propensity(odds: Sequence[float], played: int, today: int, share: float) -> float:
    """Probability of the action played, over the learner's draw and the coin that lets its proposal in.

    p(action) = share q(action) + (1 - share) [action is the baseline's]

    The share depends on the past alone, so it is the same whatever the learner draws.

    >>> round(propensity([0.5, 0.3, 0.2], 1, 0, share=0.1), 6), round(propensity([0.5, 0.3, 0.2], 0, 0, share=0.1), 6)
    (0.03, 0.95)
    """
    return min(1.0, share * float(odds[played]) + (1.0 - share if played == today else 0.0))


STATE_FORMAT = 1
MAX_PENDING = 100_000

Reward: TypeAlias = str | Combine | None


class GuardedLearner:
    """Let a learner act under a guard, and teach it from its own rounds and the baseline's.

    Parameters
    ----------
    learner : Learner
        Anything with `propose` and `learn`; `surefoot.learners` has adapters.
    guard : Guard
        What keeps the floor. It must have no `unit_window`: there one reward belongs to several contexts.
    reward : str or callable, optional
        What the learner maximises, where the guard watches several metrics: the name of one, or a function of all.
    max_pending : int
        Rounds that are remembered until their reward comes. Beyond it the learner forgets the oldest, of which it will
        not learn; the guard forgets nothing.

    Raises
    ------
    ConfigError
        If learner, guard and reward do not fit together.

    Examples
    --------
    >>> import surefoot
    >>> from surefoot.learners import CallableLearner, GuardedLearner
    >>> newest = CallableLearner(lambda context, actions: actions[-1])
    >>> guarded = GuardedLearner(newest, surefoot.Guard(alpha=0.1, delta=0.05, seed=3))
    >>> decision = guarded.decide({"hour": 9}, ["old", "new"], baseline="old")
    >>> decision.action, round(decision.probability, 6)
    ('old', 0.9)
    >>> guarded.observe(decision, 1.0)
    """

    def __init__(
        self,
        learner: Learner,
        guard: Guard,
        *,
        reward: Reward = None,
        max_pending: int = MAX_PENDING,
    ) -> None:
        if not isinstance(learner, Learner):
            raise ConfigError(f"`learner` must have `propose` and `learn`, but got {learner!r:.80}.")
        if not isinstance(guard, Guard) or guard.settings["unit_window"] is not None:
            raise ConfigError(f"`guard` must be a Guard without `unit_window`, but got {guard!r:.80}.")
        self.learner, self.guard = learner, guard
        self._reward = LearnerReward(guard.metrics, reward)
        hint = "max_pending is the number of rounds that are remembered until their reward comes."
        self._pending = PendingRounds(count("max_pending", max_pending, hint=hint))
        self._forecast = BaselineForecast(guard)

    @property
    def pending(self) -> tuple[int, ...]:
        """Rounds that the learner has not learned yet, oldest first."""
        return tuple(self._pending)

    @property
    def forgotten(self) -> int:
        """Rounds that the learner gave up waiting for, because more than `max_pending` were open."""
        return self._pending.forgotten

    def decide(
        self,
        context: Any,
        actions: Sequence[Any],
        baseline: Any,
        *,
        prediction: float | Mapping[str, float] | None = None,
        hold: bool = False,
    ) -> GuardDecision:
        """Ask the learner for a proposal, and the guard which action to play.

        Parameters
        ----------
        context : object
            What is known of this round; the learner gets it as it is.
        actions : sequence
            What may be played.
        baseline : object
            The one of them that you would play today.
        prediction : float or mapping, optional
            What the baseline's reward will be, from a model of your own in place of the one that is learned here.
        hold : bool
            Play the baseline whatever is allowed.

        Returns
        -------
        GuardDecision
            The action and the certificate. Its `probability` is that of the guard's coin alone.

        Raises
        ------
        InputError
            If baseline or proposal is not one of the actions; nothing is played and nothing has changed.
        """
        offered = list(actions)
        today = position_of(offered, baseline, what="`baseline`")
        self._learn_due()  # before the round: a learner that fails here has cost nothing
        proposal, odds = propose(self.learner, context, offered)
        # A proposal that equals the baseline is played at share 0, so the share of the coin is read before that.
        share = self.guard.share if odds is not None and proposal == today and not hold else None
        if prediction is None:
            prediction = self._forecast.predict(context)
        decision = self.guard.decide(
            baseline=offered[today], proposal=offered[proposal], prediction=prediction, hold=hold
        )
        played = proposal if decision.source == "learner" else today
        probability = decision.probability
        if odds is not None:
            probability = propensity(odds, played, today, decision.share if share is None else share)
        self._pending.open(decision.round, PlayedRound(context, offered, offered[played], probability, played == today))
        return decision

    def observe(self, decision: Round, reward: Any) -> None:
        """Take the reward of a decision, at any time and in any order.

        The guard counts it first. If the learner then fails to learn, its error is passed on, and that round is not
        offered to it again.

        Parameters
        ----------
        decision : GuardDecision or int
            The decision or, after a restart, the number of its round.
        reward : float or mapping
            The reward; for several metrics their names and numbers.

        Raises
        ------
        DecisionError
            If the decision is another guard's, was never made, or is settled.
        InputError
            If a reward is invalid; nothing has changed.
        """
        round_ = round_of(decision, self.guard.id)
        # Whatever may be refused comes before the guard counts the reward.
        self.guard.settlement.check_open(round_, self.guard.rounds, "observed")
        learned = self._reward.read(reward)
        self.guard.observe(round_, reward)
        played = self._pending.find(round_)
        if played is not None and played.is_baseline:
            values = reward if isinstance(reward, Mapping) else {next(iter(self.guard.metrics)): reward}
            self._forecast.learn(played.context, values)
        self._pending.settle(round_, learned)
        self._learn_due()

    def abandon(self, decision: Round) -> None:
        """Settle a decision without its reward: the guard books it at its worst, and the learner never hears of it.

        Parameters
        ----------
        decision : GuardDecision or int
            The decision, or the number of its round.

        Raises
        ------
        DecisionError
            If the decision is another guard's, was never made, or is settled.
        """
        round_ = round_of(decision, self.guard.id)
        self.guard.abandon(round_)
        self._pending.settle(round_, None)
        self._learn_due()

    def _learn_due(self) -> None:
        """Teach all that is settled, in the order of the decisions."""
        self._pending.settle_closed(self.guard.settlement.awaits, self._reward.default)
        while (due := self._pending.take()) is not None:
            played, reward = due
            if reward is not None:
                self.learner.learn(
                    played.context, played.action, reward, played.probability, actions=list(played.actions)
                )

    def state(self) -> dict[str, Any]:
        """Everything that guard and learner know, to continue from with `from_state`.

        Contexts and actions of pending rounds are in it as they were given.

        Returns
        -------
        dict
            Plain data, but for contexts, actions and what the learner itself returns.

        Raises
        ------
        StateError
            If the learner has no `state` and `restore`.
        """
        if not isinstance(self.learner, StatefulLearner):
            raise StateError(f"A learner needs `state` and `restore` to be saved; {self.learner!r:.80} has not both.")
        return {
            "format": STATE_FORMAT,
            "guard": self.guard.state(),
            "learner": self.learner.state(),
            "pending": self._pending.state(),
            "forgotten": self.forgotten,
            "forecast": self._forecast.state(),
        }

    @classmethod
    def from_state(
        cls,
        state: Mapping[str, Any],
        learner: Learner,
        *,
        reward: Reward = None,
        max_pending: int = MAX_PENDING,
    ) -> Self:
        """The guarded learner that was saved.

        Parameters
        ----------
        state : mapping
            What `state` returned.
        learner : Learner
            One made like the learner that was saved; its own state is restored here.
        reward, max_pending
            As in the constructor.

        Returns
        -------
        GuardedLearner
            It continues where the other stopped.

        Raises
        ------
        StateError
            If the state is damaged, or the learner cannot be restored.
        """
        if not isinstance(state, Mapping) or state.get("format") != STATE_FORMAT:
            raise StateError(f"`state` must be that of a GuardedLearner, but got {state!r:.80}.")
        if not isinstance(learner, StatefulLearner):
            raise StateError(f"`learner` must have `state` and `restore`, but got {learner!r:.80}.")
        try:
            guard = Guard.from_state(state["guard"])
            restored = cls(learner, guard, reward=reward, max_pending=max_pending)
            restored._forecast.restore(state["forecast"])
            restored._pending.restore(state["pending"], forgotten=int(state["forgotten"]))
            # Last, since it changes an object of the caller's.
            learner.restore(state["learner"])
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"This state is incomplete or damaged: {error!r}.") from error
        return restored
