"""An experiment: a policy, a journal and a clock in the one object that an app or a service drives."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from numpy.typing import ArrayLike

from surefoot.errors import ConfigError, DecisionError, JournalConflictError
from surefoot.experiment.acknowledge import acknowledge
from surefoot.experiment.afterwards import Afterwards
from surefoot.experiment.answer import Receipt, or_raise
from surefoot.experiment.creation import read_settings
from surefoot.experiment.experiment_name import check_new_name
from surefoot.experiment.experiment_toml import Configuration
from surefoot.experiment.guard_decide import answer_of
from surefoot.experiment.modes import change_mode
from surefoot.experiment.question import read_id, read_text
from surefoot.experiment.sealing import callers_id, find_decision, reference
from surefoot.experiment.status import Status, status_of
from surefoot.experiment.transacted_state import AnyAnswer, Call, caught_up
from surefoot.experiment.unit_of_work import MOST_CLOSED
from surefoot.experiment.void import find_voided
from surefoot.journal import Journal
from surefoot.journal.events import JOURNAL
from surefoot.journal.journal_chain import tombstone
from surefoot.policies import Policy
from surefoot.policies.guard import Guard
from surefoot.records import Created, Forked, ModeName, Response, encode

SNAPSHOT_EVERY = 2000


class Experiment(Afterwards):
    """A policy whose every round is in a journal before it is answered: what an app or a service drives.

    Any number of threads may use it at once and, on PostgreSQL, of processes. Make one with `create` or `open`.

    Examples
    --------
    >>> import surefoot
    >>> policy = surefoot.SafeLUCB(dim=2, alpha=0.1, delta=0.01, noise=0.5, theta_bound=1.0, feature_bound=1.0)
    >>> journal = surefoot.open_journal("memory:")
    >>> shop = Experiment.create(journal, "shop", policy, mode="guarded")
    >>> answer = shop.decide([[0.6, 0.1], [0.9, 0.3]], baseline=0, decision_id="visit-1")
    >>> answer.action, answer.source
    (0, 'baseline')
    >>> shop.reward("visit-1", 1.0).is_accepted
    True
    >>> Experiment.open(journal, "shop").status().rounds
    1
    """

    @classmethod
    def create(
        cls,
        journal: Journal,
        name: str,
        policy: Policy | Guard | Configuration,
        *,
        mode: ModeName = "shadow",
        reward_window: float | None = None,
        default_reward: float | None = None,
        reward_bounds: Sequence[float] | None = None,
        history: tuple[ArrayLike, ArrayLike] | None = None,
        description: str = "",
        despite_doubt: bool = False,
        sealed: bool = False,
        confirm_within: float | None = None,
        by: str = "",
        origin: Forked | None = None,
        feature_names: Sequence[str] | None = None,
        clock: Callable[[], float] = time.time,
        snapshot_every: int = SNAPSHOT_EVERY,
    ) -> Self:
        """Start an experiment with a new policy.

        Rewards are learned in the order of the decisions: with a `reward_window` when their window closes, without one
        as soon as every earlier round is settled.

        Parameters
        ----------
        journal : Journal
            Where its events are kept.
        name : str
            A name that the journal does not have yet: letters, digits and . _ -, as over HTTP.
        policy : Policy, Guard or Configuration
            A policy that has not decided or learned anything; or the configuration to make it by, which also says how
            contexts become rows, and what is not said here of rewards.
        mode : {"shadow", "guarded", "paused"}
            Who may play (`surefoot.experiment.modes`).
        reward_window : float, optional
            Seconds after which a decision's reward is learned. A guard with a `unit_window` has a window of rounds
            instead.
        default_reward : float, optional
            What is learned if no reward came within the window; 0 by default. A guard's metrics have their own.
        reward_bounds : (low, high), optional
            A reward outside of these raises the alarm. A guard's metrics have their own, and refuse it.
        history : (features, rewards), optional
            Logged rows of the baseline and their rewards, learned before the first round.
        description : str
            What the experiment is about.
        despite_doubt : bool
            Begin in guarded mode although the configuration's log spoke against a linear model.
        sealed : bool
            Keep ids, names and contexts beside the chain, so that they can be erased (`erase`).
        confirm_within : float, optional
            Seconds within which callers confirm that a learner's action was played, by `confirm`, its reward or `void`;
            a round that nobody confirms counts at its worst until somebody does. Less time than any reward takes: a
            `void` that comes later may follow from rewards, so it counts the round at its worst and raises the alarm.
            For SafeLUCB, without a window.
        by : str
            Who creates it; kept in the journal.
        origin : surefoot.records.Forked, optional
            What `surefoot.experiment.fork` says of where the history came from.
        feature_names : sequence of str, optional
            What the features of a row, or the arms, are called, for those who read the page. A configuration has its
            own.
        clock : callable
            Tells the time in seconds since 1970.
        snapshot_every : int
            Events between two snapshots; 0 takes none.

        Returns
        -------
        Experiment
            The experiment, ready to decide.

        Raises
        ------
        ConfigError
            If a setting is invalid, or the policy is not new.
        AssumptionError
            If the configuration's log spoke against a linear model, and the mode is guarded.
        InputError
            If the name fits into no address.
        JournalConflictError
            If the name exists.
        """
        if name == JOURNAL:
            raise ConfigError(f"An experiment's name must not be {JOURNAL!r}: that is the journal's own chain.")
        if tombstone(journal, name) is not None:
            raise JournalConflictError(f"An experiment's name must be new, but {name!r} was used, and removed.")
        check_new_name(name)
        created = read_settings(
            policy,
            mode=mode,
            reward_window=reward_window,
            default_reward=default_reward,
            reward_bounds=reward_bounds,
            history=history,
            description=description,
            despite_doubt=despite_doubt,
            sealed=sealed,
            confirm_within=confirm_within,
            by=by,
            origin=origin,
            feature_names=feature_names,
        )
        journal.create(name, encode(created), time=clock())
        # As any later process opens it, so that there is one way into the state.
        return cls.open(journal, name, clock=clock, snapshot_every=snapshot_every)

    @classmethod
    def open(
        cls,
        journal: Journal,
        name: str,
        *,
        clock: Callable[[], float] = time.time,
        snapshot_every: int = SNAPSHOT_EVERY,
    ) -> Self:
        """Continue an experiment: from its newest snapshot and the events since, to the bit.

        Parameters
        ----------
        journal : Journal
            Where its events are kept.
        name : str
            Its name.
        clock, snapshot_every
            As in `create`.

        Returns
        -------
        Experiment
            The experiment at the head of its chain.

        Raises
        ------
        JournalNotFoundError
            If the journal has no such experiment.
        """
        return cls(journal, name, caught_up(None, journal.view(name)), clock, snapshot_every)

    @property
    def settings(self) -> Created:
        """What the experiment was created with."""
        return self._created

    def reward(self, decision_id: str, value: float | Mapping[str, float]) -> Receipt:
        """Send the reward of a decision.

        Parameters
        ----------
        decision_id : str
            The decision's id.
        value : float or mapping
            The reward; of a guard with several metrics, a number for each by name.

        Returns
        -------
        Receipt
            Whether it was accepted, and why not.
        """
        return self.reward_all([(decision_id, value)])[0]

    def reward_all(self, rewards: Sequence[tuple[str, float | Mapping[str, float]]]) -> list[Receipt]:
        """Send many rewards with one flush, each accepted or refused on its own.

        Parameters
        ----------
        rewards : sequence of (decision_id, value)
            The rewards.

        Returns
        -------
        list of Receipt
            One per reward.
        """
        return self._run(self._rewarding([self.read_reward(*reward) for reward in rewards]))

    def acknowledge(self, response: Response, *, reason: str, by: str = "", alarm_round: int | None = None) -> None:
        """Answer the alarm (`surefoot.safety.alarm`). The same answer to the same alarm twice counts once.

        Parameters
        ----------
        response : {"stay", "relearn", "renew"}
            Stay on the baseline, learn again under the same promise, or start a new promise.
        reason : str
            Why; kept in the journal.
        by : str
            Who answers.
        alarm_round : int, optional
            Which alarm is meant (`Status.alarm_round`), so that another one is not answered by mistake.

        Raises
        ------
        AlarmError
            If no such alarm is on, or the policy cannot give that response.
        InputError
            If the reason is empty.
        """
        why, who = read_text("reason", reason), read_text("by", by)
        error = self._run(Call(lambda turn: acknowledge(turn, response, why, who, alarm_round)))
        if error is not None:
            raise error

    def close_windows(self) -> int:
        """Learn what is due by the clock, and return how many windows closed; every other call closes some, too."""
        total, closed = 0, MOST_CLOSED
        # A transaction closes so many at most; fewer mean that none is left.
        while closed == MOST_CLOSED:
            # The call closes windows itself, and counts them: it must not find them closed.
            total += (closed := self._run(Call(lambda turn: turn.close_windows(), closes=False)))
        return total

    def set_mode(self, mode: ModeName, *, reason: str = "", by: str = "", despite_doubt: bool = False) -> ModeName:
        """Change the mode (`surefoot.experiment.modes`).

        Parameters
        ----------
        mode : {"shadow", "guarded", "paused"}
            The new mode.
        reason, by : str
            Why, and who changes it; kept in the journal.
        despite_doubt : bool
            Go over to guarded mode although the configuration's log spoke against a linear model.

        Returns
        -------
        str
            The mode before.

        Raises
        ------
        ModeError
            If the experiment cannot go from its mode to that one.
        AssumptionError
            If the configuration's log spoke against a linear model, and the mode is guarded.
        """
        why, who = read_text("reason", reason), read_text("by", by)
        if mode == "guarded" and self.configuration is not None and not despite_doubt:
            self.configuration.refuse_doubt()
        return or_raise(self._run(Call(lambda turn: change_mode(turn, mode, why, who))))

    def find(self, decision_id: str) -> AnyAnswer:
        """A decision that was made before.

        Parameters
        ----------
        decision_id : str
            The decision's id.

        Returns
        -------
        Answer or GuardAnswer
            The decision, with `is_repeat`.

        Raises
        ------
        DecisionError
            If there is no such decision.
        """
        view = self._journal.view(self.name)
        found = find_decision(self._created, view, read_id(decision_id))
        if found is None:
            raise DecisionError(f"Experiment {self.name!r} has no decision {decision_id!r:.80}.")
        return answer_of(found, view, find_voided(view, reference(found)))

    def status(self) -> Status:
        """Where the experiment stands, events of other processes included."""
        status = self._look(lambda state: status_of(self.name, state))
        if status.held_up_by is None or not self._is_sealed:
            return status
        # The state knows a reference.
        return replace(status, held_up_by=callers_id(self._created, self._journal.view(self.name), status.held_up_by))

    def policy_state(self) -> dict[str, Any]:
        """Everything the policy knows, as `Policy.state` returns it."""
        return self._look(lambda state: state.policy.state())

    def snapshot(self) -> None:
        """Take a snapshot now, so that the next `open` need not replay what came since the last one."""
        self._run(Call(lambda turn: turn.snapshot()))
