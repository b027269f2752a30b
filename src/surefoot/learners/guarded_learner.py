"""A learner under a guard: it proposes, the coin decides, and it learns from what was played."""

from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeAlias

from surefoot.arrays import count
from surefoot.errors import ConfigError, StateError
from surefoot.learners.asked_proposal import asked, propensity
from surefoot.learners.learner import Learner, StatefulLearner
from surefoot.learners.learner_reward import Combine, LearnerReward
from surefoot.learners.offered_actions import position_of
from surefoot.learners.pending_rounds import PendingRounds, PlayedRound
from surefoot.policies.base_policy import Round
from surefoot.policies.decision import round_of
from surefoot.policies.guard import Guard
from surefoot.policies.guard_decision import GuardDecision

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
            What the baseline's reward will be, from a model of your own.
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
        proposal, odds = asked(self.learner, context, offered)
        # A proposal that equals the baseline is played at share 0, so the share it was up against is asked for before.
        share = self.guard.share if odds is not None and proposal == today and not hold else None
        decision = self.guard.decide(
            baseline=offered[today], proposal=offered[proposal], prediction=prediction, hold=hold
        )
        played = proposal if decision.source == "learner" else today
        probability = decision.probability
        if odds is not None:
            probability = propensity(odds, played, today, decision.share if share is None else share)
        self._pending.opened(decision.round, PlayedRound(context, offered, offered[played], probability))
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
        self._pending.settled(round_, learned)
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
        self._pending.settled(round_, None)
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
        }

    @classmethod
    def from_state(
        cls, state: Mapping[str, Any], learner: Learner, *, reward: Reward = None, max_pending: int = MAX_PENDING
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
            restored = cls(learner, Guard.from_state(state["guard"]), reward=reward, max_pending=max_pending)
            restored._pending.restore(state["pending"], forgotten=int(state["forgotten"]))
            # Last, since it changes an object of the caller's.
            learner.restore(state["learner"])
        except (KeyError, TypeError) as error:
            raise StateError(f"This state is incomplete or damaged: {error!r}.") from error
        return restored
