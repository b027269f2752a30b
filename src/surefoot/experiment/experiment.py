"""An experiment: a policy, a journal and a clock in the one object that an app or a service drives."""

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec
from numpy.typing import ArrayLike

from surefoot.errors import DecisionError, InputError, JournalConflictError, JournalReadOnlyError, SurefootError
from surefoot.experiment import decisions, operator_words, rewards
from surefoot.experiment.coins import Coins
from surefoot.experiment.configuration import Configuration
from surefoot.experiment.creation import check_created, create_chain
from surefoot.experiment.kinds import Ask, kind_of
from surefoot.experiment.lease_renewal import AnyHub, Leases, begin_chain
from surefoot.experiment.operator_words import MOST_ERASED
from surefoot.experiment.reading import read_id, read_ids, read_reason, read_text
from surefoot.experiment.sealing import (
    callers_id,
    find_decision,
    find_voided,
    read_person,
    reference,
    unit_reference,
)
from surefoot.experiment.snapshots import caught_up
from surefoot.experiment.state import State
from surefoot.experiment.status import HubStatus, Status, hub_status, status_of
from surefoot.experiment.turn import MOST_SETTLED, Turn
from surefoot.journal import Journal, Transaction, View
from surefoot.journal.clock import SteadyClock
from surefoot.journal.private_text import by_alias
from surefoot.linear.actions import Catalogue
from surefoot.policies import Policy
from surefoot.rounds import Answer, Receipt, decode
from surefoot.rounds.events import Created, Mode, ModeName, PairRound, Reason, Response, RowsRound
from surefoot.sharing.coordinator import read_shard
from surefoot.sharing.hub import Hub

T = TypeVar("T")
SNAPSHOT_EVERY = 2000


class Experiment:
    """A policy whose every round is in a journal before it is answered: what an app or a service drives.

    Any number of threads may use it at once and, on PostgreSQL, of processes. Make one with `create` or `open`; with
    `join` it is one server's part of an experiment whose promise is shared.

    Attributes
    ----------
    journal, name : Journal and str
        Where its events are kept, and its name there.
    kind : Kind
        What its policy takes and gives.
    leases : Leases or None
        Of a shard, how it hands in and renews its lease.

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

    def __init__(
        self, journal: Journal, name: str, state: State, clock: Callable[[], float], every: int, coins: Coins
    ) -> None:
        self.journal, self.name, self.clock, self._every = journal, name, clock, every
        self.leases: Leases | None = None
        # Used inside transactions only, which run alone; None once it cannot be trusted.
        self._state: State | None = state
        self._created, self.kind = state.created, state.kind
        self._unrecorded: dict[Reason, int] = {}
        self._coins = coins
        # A journal that is read only has no transactions in which a call would be alone.
        self._reading = threading.Lock()

    @classmethod
    def create(
        cls,
        journal: Journal,
        name: str,
        policy: Policy | Configuration,
        *,
        mode: ModeName = "shadow",
        clock: Callable[[], float] = time.time,
        snapshot_every: int = SNAPSHOT_EVERY,
        secrets: Path | str | None = None,
        or_open: bool = False,
        **settings: Any,
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
        policy : Policy or Configuration
            A policy that has not decided or learned anything; or the configuration to make it by, which also says how
            contexts become rows, and what is not said here of rewards.
        mode : {"shadow", "guarded", "paused"}
            Who may play: the baseline alone before the learner's first action, the learner where it is allowed, or the
            baseline alone again. In every mode rewards are learned, and every round counts.
        clock : callable
            Tells the time in seconds since 1970.
        snapshot_every : int
            Events between two snapshots; 0 takes none.
        secrets : Path or str, optional
            A folder for the secrets that a guard's coins follow from, until they are revealed: by default beside the
            journal's file. Without either they are lost with the process: the next one has no coin in its first round,
            and the last block is never revealed.
        or_open : bool
            Continue the experiment of that name where there is one, as an app does that starts again. It must have been
            created with the same policy and settings; its mode is the one it is in.
        settings
            reward_window: seconds after which a decision's reward is learned. default_reward: what is learned if no
            reward came within the window; 0 by default (a guard's metrics have their own). reward_bounds: a reward
            outside of these raises the alarm (a guard's metrics have their own, and refuse it). history: logged rows of
            the baseline and their rewards, learned before the first round. description: what the experiment is about.
            despite_doubt: begin in guarded mode although the configuration's log spoke against a linear model. sealed:
            keep ids, names and contexts beside the chain, so that they can be erased (`erase`). confirm_within: seconds
            within which callers confirm that a learner's action was played, by `confirm`, its reward or `void`; a round
            that nobody confirms counts at its worst until somebody does. Less time than any reward takes: a `void` that
            comes later may follow from rewards, so it counts the round at its worst and raises the alarm (SafeLUCB
            without a window). by: who creates it. origin: what `surefoot.experiment.fork` says of where the history
            came from. feature_names: what the features of a row, or the arms, are called. reward_unit: what rewards
            are counted in: a plural such as "clicks", or a currency by its code, such as "EUR"; where metrics have
            names, a mapping such as {"cost": "EUR"}. actions: of a guard, the baseline and the proposal of requests
            that name neither, as a flag's do.

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
            If the name exists; with `or_open`, if the experiment of that name was created otherwise.
        """
        try:
            create_chain(journal, name, policy, mode=mode, time=clock(), **settings)
        except JournalConflictError:
            if not or_open or name not in journal.names():
                raise
            check_created(journal, name, policy, mode=mode, **settings)
        # As any later process opens it, so that there is one way into the state.
        opened = cls.open(journal, name, clock=clock, snapshot_every=snapshot_every, secrets=secrets)
        opened._transact(opened._coins.begin)
        return opened

    @classmethod
    def open(
        cls,
        journal: Journal,
        name: str,
        *,
        clock: Callable[[], float] = time.time,
        snapshot_every: int = SNAPSHOT_EVERY,
        secrets: Path | str | None = None,
    ) -> Self:
        """Continue an experiment: from its newest snapshot and the events since, to the bit.

        Parameters
        ----------
        journal : Journal
            Where its events are kept.
        name : str
            Its name.
        clock, snapshot_every, secrets
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
        state = caught_up(None, journal.view(name))
        return cls(journal, name, state, clock, snapshot_every, Coins(journal, secrets))

    @classmethod
    def join(
        cls,
        hub: Journal | Any,
        name: str,
        journal: Journal,
        *,
        shard: str,
        every: int = 1000,
        seconds: float = 1.0,
        in_background: bool = True,
        clock: Callable[[], float] | None = None,
        snapshot_every: int = SNAPSHOT_EVERY,
        secrets: Path | str | None = None,
    ) -> Self:
        """Join an experiment whose promise is shared (`create_shared`), or continue as one of its shards.

        The shard decides by itself, into its own journal, under a lease. The hub is asked once in `every` decisions or
        `seconds`; while it is away a shard goes on within its lease, and then plays the baseline. Rewards go to the
        shard that decided.

        Parameters
        ----------
        hub : Journal or RemoteHub
            Where the shards meet: a journal that all of them reach or, for an app that decides in its own process
            (`surefoot.client.RemoteHub`), a service that speaks for one.
        name : str
            The experiment.
        journal : Journal
            The shard's own, which nobody else writes to.
        shard : str
            A name that no other shard has had.
        every : int
            Most decisions under one lease.
        seconds : float
            The longest time under one lease.
        in_background : bool
            Whether leases are renewed in a thread of their own, so that no decision waits for the hub.
        clock : callable, optional
            Tells the time in seconds since 1970, as the other shards' do within the declared skew. By default the
            system's; of an app's own process one that nobody can set while it runs.
        snapshot_every : int
            Events of the shard's own chain between two snapshots; 0 takes none.
        secrets : Path or str, optional
            As in `create`.

        Returns
        -------
        Experiment
            Ready to decide.

        Raises
        ------
        ConfigError
            If the experiment is not shared, or the journal is another shard's.

        Examples
        --------
        >>> import surefoot
        >>> from surefoot.experiment import create_shared
        >>> policy = surefoot.SafeLUCB(dim=2, alpha=0.1, delta=0.01, noise=0.5, theta_bound=1.0, feature_bound=1.0)
        >>> hub, own = surefoot.open_journal("memory:"), surefoot.open_journal("memory:")
        >>> create_shared(hub, "shop", policy, mode="guarded", skew=1.0)
        >>> shop = Experiment.join(hub, "shop", own, shard="berlin", in_background=False)
        >>> shop.decide([[0.6, 0.1], [0.9, 0.3]], baseline=0, decision_id="visit-1").source
        'baseline'
        >>> shop.reward("visit-1", 1.0).is_accepted, shop.leases.renew()
        (True, True)
        >>> shop.leases.status().rounds
        1
        """
        read_shard(shard)
        if clock is None:
            clock = time.time if isinstance(hub, Journal) else SteadyClock(journal.clock_jump())
        where: AnyHub = Hub(hub, name, clock) if isinstance(hub, Journal) else hub.of(name, shard)
        begin_chain(journal, where, shard, time=clock())
        joined = cls.open(journal, where.chain, clock=clock, snapshot_every=snapshot_every, secrets=secrets)
        if isinstance(hub, Journal):  # a service leases the coins of an edge
            joined._transact(joined._coins.begin)
        joined.leases = Leases(joined, where, every=every, seconds=seconds, in_background=in_background)
        joined.leases.start()
        return joined

    @property
    def settings(self) -> Created:
        """What the experiment was created with."""
        return self._created

    @property
    def configuration(self) -> Configuration | None:
        """How contexts become rows, where the experiment was made by a configuration."""
        return self.kind.configuration

    def decide(self, features: ArrayLike | Catalogue | None = None, **request: Any) -> Answer:
        """Decide one round; it is durable before it is returned.

        Asking again with the same `decision_id` gives the same answer, and of a guard the same coin.

        Parameters
        ----------
        features : array_like of shape (actions, dim) or Catalogue, optional
            One row per action. Policies over plain arms need none, and a guard takes none. An experiment that was made
            by a configuration makes them of the context.
        request
            Of every policy: decision_id, your id of the decision (a new one by default), and context, JSON data to keep
            beside it. Of a policy over rows or arms: baseline, the row or name of the action you would play today;
            baseline_reward, its mean reward in this round, where the policy takes it; actions, names of the rows;
            confirms, earlier decisions that were played as decided (`confirm`). Of a guard: baseline and proposal, the
            action of today and the one that is to be let in, any JSON values; unit, whom the reward belongs to, if that
            is more than this visit; prediction, what the baseline's reward will be by a model of your own.

        Returns
        -------
        Answer
            The decision as the journal holds it.

        Raises
        ------
        InputError
            If the request breaks a rule; nothing was decided.
        DecisionConflictError
            If the same id was asked before with another request.
        """
        if features is not None:
            request["features"] = features
        return _or_raise(self.decide_asks([self.read(request)])[0])

    def decide_all(self, requests: Sequence[Mapping[str, Any]]) -> list[Answer | SurefootError]:
        """Decide many rounds, in order, with one flush.

        Parameters
        ----------
        requests : sequence of mapping
            The arguments of `decide`, each by name.

        Returns
        -------
        list of Answer or SurefootError
            One per request; a request that is refused gets its error.
        """
        return self.decide_asks([self.read_or_error(request) for request in requests])

    def book(self, features: ArrayLike | Catalogue | None = None, *, by: str = "", **request: Any) -> Answer:
        """Record a round in which the caller played the baseline on its own, while the experiment could not be reached.

        It counts, its window opens now, and its reward is taken. It does not teach a linear policy: callers book in an
        order of their own, which may follow the rewards (a guard takes it in, for it can only add). Booking twice is
        booking once. If the experiment decided it after all, and the caller did not hear of it, that is a `void`.

        Parameters
        ----------
        features, request
            As in `decide`, with your id of the round.
        by : str
            Who says so; kept in the journal where a decision is moved.

        Returns
        -------
        Answer
            The round as the journal holds it.

        Raises
        ------
        DecisionConflictError
            If the id stands for another request.
        DecisionSettledError
            If the learner decided it, and its reward has come.
        """
        if features is not None:
            request["features"] = features
        ask = self.read(request, is_fallback=True, by=read_text("by", by))
        return _or_raise(self.decide_asks([ask])[0])

    def read(self, request: Mapping[str, Any], *, is_fallback: bool = False, by: str = "") -> Ask:
        """Check the form of a request, before anything is locked; the policy checks its content.

        Parameters
        ----------
        request : mapping
            The arguments of `decide` by name.
        is_fallback, by : bool and str
            Of `book`.

        Returns
        -------
        Ask
            For `decide_asks`.
        """
        ask = self.kind.read(request, is_fallback=is_fallback, by=by)
        if self.leases is not None:
            self.leases.check_size(ask.size)
        return ask

    def read_or_error(self, request: Mapping[str, Any]) -> Ask | SurefootError:
        """The same, or the error instead of raising it.

        Parameters
        ----------
        request : mapping
            The arguments of `decide` by name.

        Returns
        -------
        Ask or SurefootError
            For `decide_asks`.
        """
        try:
            return self.read(request)
        except SurefootError as error:
            return error

    def read_rewards(self, decision_id: str, value: Any) -> tuple[str, dict[str, float], Any]:
        """Check the form of a reward.

        Parameters
        ----------
        decision_id, value
            As in `reward`.

        Returns
        -------
        tuple
            The id, the rewards by metric, and how they were sent: for `submit_rewards`.
        """
        return read_id(decision_id), self.kind.read_rewards(value), value

    def decide_asks(self, asks: Sequence[Ask | SurefootError]) -> list[Answer | SurefootError]:
        """`decide_all` of requests that have been read.

        Parameters
        ----------
        asks : sequence of Ask or SurefootError
            What `read_or_error` returned.

        Returns
        -------
        list of Answer or SurefootError
            One per request.
        """
        return self._transact(partial(_decide_all, asks), self._ask_keys(asks))

    def submit_asks(
        self, asks: Sequence[Ask | SurefootError], executor: Executor
    ) -> Future[list[Answer | SurefootError]]:
        """The same as a future (`Journal.submit`): for `AsyncExperiment`.

        Parameters
        ----------
        asks : sequence of Ask or SurefootError
            What `read_or_error` returned.
        executor : Executor
            Threads, for a journal without any of its own.

        Returns
        -------
        Future
            Of one answer per request.
        """
        return self._submit(partial(_decide_all, asks), self._ask_keys(asks), executor)

    def reward(self, decision_id: str, value: float | Mapping[str, float]) -> Receipt:
        """Send the reward of a decision.

        Parameters
        ----------
        decision_id : str
            The decision's id.
        value : float or mapping
            The reward; of a guard with several metrics a number for each by name, all at once or as they come.

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
        read = [self.read_rewards(*one) for one in rewards]
        return self._transact(partial(_reward_all, read), self._reward_keys([one[0] for one in read]))

    def submit_rewards(
        self, read: Sequence[tuple[str, dict[str, float], Any]], executor: Executor
    ) -> Future[list[Receipt]]:
        """`reward_all` of rewards that have been read, as a future.

        Parameters
        ----------
        read : sequence of tuple
            What `read_rewards` returned.
        executor : Executor
            Threads, for a journal without any of its own.

        Returns
        -------
        Future
            Of one receipt per reward.
        """
        return self._submit(partial(_reward_all, read), self._reward_keys([one[0] for one in read]), executor)

    def abandon(self, decision_id: str, *, reason: str = "", by: str = "") -> bool:
        """Settle a decision without its reward, so that no other reward waits for it.

        Of several metrics that come one by one, those that came count, and the rest of a guard's at its worst.

        Valid only if nothing has influenced this call that the round's reward, or the reward of a round decided after
        it, can have influenced.

        Parameters
        ----------
        decision_id : str
            The decision's id.
        reason, by : str
            Why, and who says so; kept in the journal.

        Returns
        -------
        bool
            False if it was abandoned before.

        Raises
        ------
        DecisionError
            If there is no such decision.
        DecisionSettledError
            If its reward has come, or its window has closed.
        """
        known, why, who = read_id(decision_id), read_text("reason", reason), read_text("by", by)
        return _or_raise(
            self._transact(lambda turn: rewards.abandon(turn, known, why, who), self._reward_keys([known]))
        )

    def void(self, decision_id: str, action: Any = None, *, reason: str = "", by: str = "") -> bool:
        """Say that a round was not played as decided, so that ledger and later proofs are about what was played.

        Allowed until a reward of the round has come. Valid only if nothing has influenced this call that the round's
        reward, or the reward of a round decided after it, can have influenced; `confirm_within` sees to that by the
        clock. A reward that comes later counts for what was played. A guard's round keeps its coin and its probability.

        Parameters
        ----------
        decision_id : str
            The decision's id.
        action : int, str or any JSON value, optional
            What was played: a row, or its name; of a guard the action itself. The baseline by default.
        reason, by : str
            Why, and who says so; kept in the journal.

        Returns
        -------
        bool
            False if nothing was moved: it was played as decided, or the same was said before.

        Raises
        ------
        DecisionError
            If there is no such decision.
        DecisionSettledError
            If its reward has come, or its window has closed.
        DecisionConflictError
            If something else was said before.
        """
        known, why, who = read_id(decision_id), read_text("reason", reason), read_text("by", by)
        keys = [*self._reward_keys([known]), f"v:{known}"]
        return _or_raise(self._transact(lambda turn: decisions.void(turn, known, action, why, who), keys))

    def correct(self, decision_id: str, value: float | Mapping[str, float], *, reason: str, by: str = "") -> bool:
        """Replace a reward that was measured wrongly, as long as nothing was learned from it; once for each decision.

        Parameters
        ----------
        decision_id : str
            The decision's id.
        value : float or mapping
            The reward as it should have been sent.
        reason, by : str
            Why, and who says so; kept in the journal.

        Returns
        -------
        bool
            False if the reward has that value already.

        Raises
        ------
        DecisionError
            If there is no such decision, or no reward of it.
        DecisionSettledError
            If the reward was learned; a fork can learn the right one (`surefoot.experiment.fork`, `corrections`).
        DecisionConflictError
            If it was corrected before, to another value.
        InputError
            If the value is no finite number, or the reason is empty.
        """
        known, values, _ = self.read_rewards(decision_id, value)
        why, who = read_reason(reason, "the reward is corrected"), read_text("by", by)
        keys = [*self._reward_keys([known]), f"x:{known}"]
        return _or_raise(self._transact(lambda turn: rewards.correct(turn, known, values, why, who), keys))

    def confirm(self, decision_ids: Sequence[str]) -> int:
        """Say that decisions were played as they were decided, where the experiment asks for it (`confirm_within`).

        Parameters
        ----------
        decision_ids : sequence of str
            The decisions; those that do not wait for it are passed over.

        Returns
        -------
        int
            How many waited for it.
        """
        known = read_ids("decision_ids", decision_ids)
        keys = [by_alias(one) for one in known] if self._created.is_sealed else ()
        return self._transact(lambda turn: decisions.confirm(turn, known), keys)

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
        why, who = read_reason(reason, "the alarm is answered like this"), read_text("by", by)
        error = self._transact(lambda turn: operator_words.acknowledge(turn, response, why, who, alarm_round))
        if error is not None:
            raise error

    def set_mode(self, mode: ModeName, *, reason: str = "", by: str = "", despite_doubt: bool = False) -> ModeName:
        """Change the mode (`create` says what each means). An experiment that has left shadow does not go back there.

        Where shards share a promise it is that of all of them: here at once, elsewhere with each shard's next lease at
        the latest. A pause holds here even while the hub is away, and is passed on with the next lease.

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
            The mode before, here.

        Raises
        ------
        ModeError
            If the experiment cannot go from its mode to that one.
        AssumptionError
            If the configuration's log spoke against a linear model, and the mode is guarded.
        JournalError
            Of a shard, if the hub is away, and the mode is not "paused", or this server has left and cannot pass it on.
        """
        why, who = read_text("reason", reason), read_text("by", by)
        if mode == "guarded" and self.configuration is not None and not despite_doubt:
            self.configuration.refuse_doubt()
        if self.leases is not None:
            return self.leases.set_mode(Mode(mode=mode, reason=why, by=who))
        return _or_raise(self._transact(lambda turn: operator_words.change_mode(turn, mode, why, who)))

    def erase(
        self,
        decision_ids: Sequence[str] = (),
        *,
        person: str | int | None = None,
        before: float | None = None,
        by: str = "",
        reason: str = "",
    ) -> int:
        """Erase what is about people: ids, names, units and contexts. Features, proofs and rewards stay.

        Parameters
        ----------
        decision_ids : sequence of str
            Decisions by their ids.
        person : str or int, optional
            Every decision about a person: of that `unit`, or with it as `person` of the context.
        before : float, optional
            Every decision made before that time, in seconds since 1970.
        by, reason : str
            Who erases, and why; kept in the journal.

        Returns
        -------
        int
            How many texts were erased.

        Raises
        ------
        DecisionError
            If there is no such decision; nothing was erased.
        InputError
            If the experiment is not sealed, nothing or too much is named, or a name is none.
        """
        ids = read_ids("decision_ids", decision_ids)
        who = None if person is None else read_person(person, "`person`")
        if before is not None and not (isinstance(before, int | float) and math.isfinite(before)):
            raise InputError(f"`before` must be a time in seconds since 1970, but got {before!r:.80}.")
        if not ids and who is None and before is None:
            raise InputError(
                "Something must be named to be erased, but got nothing: give `decision_ids`, a `person`, or `before`."
            )
        why, by = read_text("reason", reason), read_text("by", by)
        # All ids in the first transaction, so that an unknown one changes nothing; of the rest so many at a time.
        total = last = _or_raise(self._transact(lambda turn: operator_words.erase(turn, ids, who, before, by, why)))
        while last >= MOST_ERASED:
            last = _or_raise(self._transact(lambda turn: operator_words.erase(turn, (), who, before, by, why)))
            total += last
        self.journal.forget()
        return total

    def close_windows(self) -> int:
        """Learn what is due by the clock, and return how many windows closed; every other call closes some, too."""
        total, closed = 0, MOST_SETTLED
        # A transaction closes so many at most; fewer mean that none is left.
        while closed == MOST_SETTLED:
            # The call closes windows itself, and counts them: it must not find them closed.
            closed = self._transact(lambda turn: turn.close_windows(), closes=False)
            total += closed
        return total

    def find(self, decision_id: str) -> Answer:
        """A decision that was made before, as its caller was told, with `is_repeat`.

        Parameters
        ----------
        decision_id : str
            The decision's id.

        Returns
        -------
        Answer
            The decision.

        Raises
        ------
        DecisionError
            If there is no such decision.
        """
        view, event = self._find(decision_id)
        voided = find_voided(view, reference(event))
        record = self.kind.opened(event, view)
        return self.kind.answer(record, None, voided=voided, time=event.time, head=event.head, is_repeat=True)

    def find_unit(self, unit: str) -> Answer | None:
        """The decision that opened a unit's round, with `is_repeat`, as long as that is open.

        Parameters
        ----------
        unit : str
            Whom the reward belongs to.

        Returns
        -------
        Answer or None
            None where no coin has fallen for the unit, or its window is over.

        Raises
        ------
        InputError
            If the guard has no units, or the unit is no text that names one.
        """
        if not isinstance(unit, str) or not self.kind.draws:
            raise InputError(f"`unit` must be a text that names a unit of a guard, but got {unit!r:.80}.")
        name = unit_reference(unit, self.journal.view(self.name)) if self._created.is_sealed else unit
        ref = self.look(lambda state: state.open_unit(name))
        return None if ref is None else self.find(ref)

    def round(self, decision_id: str) -> RowsRound | PairRound:
        """A round as the journal holds it: the request, and the certificate with its whole proof.

        Parameters
        ----------
        decision_id : str
            The decision's id.

        Returns
        -------
        RowsRound or PairRound
            The round, in the caller's own words as far as they are not erased.

        Raises
        ------
        DecisionError
            If there is no such decision.
        """
        view, event = self._find(decision_id)
        record: RowsRound | PairRound = self.kind.opened(event, view)
        return record

    def _find(self, decision_id: str) -> tuple[View, Any]:
        view = self.journal.view(self.name)
        event = find_decision(self._created, view, read_id(decision_id))
        if event is None:
            raise DecisionError(f"Experiment {self.name!r} has no decision {decision_id!r:.80}.")
        return view, event

    def status(self) -> Status:
        """Where the experiment stands, events of other processes included."""
        status = self.look(lambda state: status_of(self.name, state))
        if status.held_up_by is None or not self._created.is_sealed:
            return status
        # The state knows a reference.
        known = callers_id(self._created, self.journal.view(self.name), status.held_up_by)
        return msgspec.structs.replace(status, held_up_by=known)

    def policy_state(self) -> dict[str, Any]:
        """Everything the policy knows, as `Policy.state` returns it."""
        return self.look(lambda state: state.policy.state())

    def snapshot(self) -> None:
        """Take a snapshot now, so that the next `open` need not replay what came since the last one."""
        self._transact(lambda turn: turn.snapshot())

    @property
    def known_state(self) -> State | None:
        """The state as this process last knew it; None where it must be read again."""
        return self._state

    def look(self, at: Callable[[State], T]) -> T:
        """Read something off the state at the journal's head.

        Parameters
        ----------
        at : callable
            Is given the state, and must not change it.

        Returns
        -------
        object
            What `at` returned.
        """
        try:
            return self.journal.transact(self.name, lambda transaction: at(self._synced(transaction)))
        except JournalReadOnlyError:
            with self._reading:
                return at(self._synced(self.journal.view(self.name)))

    def transact(self, act: Callable[[Turn], T]) -> T:
        """Work alone on the true head; what is written is durable when this returns.

        Parameters
        ----------
        act : callable
            Is given a `Turn`.

        Returns
        -------
        object
            What `act` returned.
        """
        return self.journal.transact(self.name, partial(self._work, act, True))

    def _transact(self, act: Callable[[Turn], T], keys: Sequence[str] = (), *, closes: bool = True) -> T:
        result = self.journal.transact(self.name, partial(self._work, act, closes), keys=keys)
        if self.leases is not None:
            self.leases.look_after()
        return result

    def _submit(self, act: Callable[[Turn], T], keys: Sequence[str], executor: Executor) -> Future[T]:
        result = self.journal.submit(self.name, partial(self._work, act, True), keys=keys, executor=executor)
        if self.leases is not None:
            self.leases.look_after()
        return result

    def _work(self, act: Callable[[Turn], T], closes: bool, transaction: Transaction) -> T:
        try:
            turn = Turn(transaction, self._synced(transaction), self.clock(), self._unrecorded, self._coins)
            # First, so that a late reward finds its window closed.
            if closes:
                turn.close_windows()
            turn.charge_overdue()
            result = act(turn)
            if self._every and turn.is_snapshot_due(self._every):
                turn.snapshot()
            return result
        except BaseException:
            # How far the state got is unknown: the next transaction rebuilds it from what is durable.
            self._state = None
            raise

    def _synced(self, view: View) -> State:
        before = self._state
        if before is not None and before.head == view.head:
            return before
        self._state = None  # meanwhile: a state that fails on the way must not be used again
        state = self._state = caught_up(before, view)
        if state is not before:
            self._coins.look_again()
        return state

    def _ask_keys(self, asks: Sequence[Ask | SurefootError]) -> list[str]:
        read = [ask for ask in asks if isinstance(ask, Ask)]
        keys = [ask.key for ask in read]
        if self._created.is_sealed and self._created.confirm_within is not None:
            keys += [by_alias(one) for ask in read for one in ask.confirms]
        return keys

    def _reward_keys(self, decision_ids: list[str]) -> list[str]:
        """What rewards of these decisions are going to look up."""
        if self._created.is_sealed:
            return list(map(by_alias, decision_ids))
        # With a window, open decisions are in memory; only rewards that come too late need a lookup.
        needed = () if self._created.reward_window is not None else decision_ids
        return [f"{kind}:{decision_id}" for decision_id in needed for kind in "dr"]

    def __repr__(self) -> str:
        state, policy = self._state, self._created.policy
        # As this process knows it: others may have gone on.
        stands = "" if state is None else f", mode={state.mode!r}, rounds={state.policy.rounds}"
        return f"Experiment({self.name!r}, policy={policy!r}{stands})"


def _decide_all(asks: Sequence[Ask | SurefootError], turn: Turn) -> list[Answer | SurefootError]:
    return [ask if isinstance(ask, SurefootError) else decisions.decide(turn, ask) for ask in asks]


def _reward_all(read: Sequence[tuple[str, dict[str, float], Any]], turn: Turn) -> list[Receipt]:
    return [rewards.reward(turn, *one) for one in read]


def _or_raise(result: T | SurefootError) -> T:
    """The result, or raise the error that stands in its place."""
    if isinstance(result, SurefootError):
        raise result
    return result


def read_status(journal: Journal, name: str) -> Status | HubStatus:
    """Where a chain stands: an experiment, or the ledger that shards share.

    Parameters
    ----------
    journal : Journal
        The journal, which may be read only.
    name : str
        The experiment.

    Returns
    -------
    Status or HubStatus
        Its status.

    Examples
    --------
    >>> import surefoot
    >>> journal = surefoot.open_journal("memory:")
    >>> shop = Experiment.create(journal, "shop", surefoot.UCB(arms=2))
    >>> read_status(journal, "shop").policy
    'UCB'
    """
    created = decode(next(journal.view(name).read(limit=1)), Created)
    if created.is_hub:
        kind = kind_of(created)
        return Hub(journal, name, time.time).look(lambda state, view: hub_status(name, kind, state, view))
    return Experiment.open(journal, name).status()
