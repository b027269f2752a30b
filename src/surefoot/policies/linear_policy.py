"""What all linear policies share: a state in the core, and the one way from features to a decision.

A subclass names its rule in the core (`core/registry.hpp`) and the proof that goes with its gate. It may hold a watch,
which holds out rounds for the baseline and tests whether the world has changed; without one nothing of it runs.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, TypeAlias

import msgspec
import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike

from surefoot.arrays import LARGEST, Matrix, Vector, count, finite_array, real_array
from surefoot.core import native
from surefoot.errors import AssumptionError, InputError, StateError
from surefoot.linear.actions import LENGTH_TOLERANCE, ActionSet, Catalogue, rows_in
from surefoot.linear.ellipsoid import Ball, Ellipsoid, newest_set, snapshot
from surefoot.linear.ridge import Ridge, sized
from surefoot.policies.coin import draw_coin
from surefoot.policies.decision import FREE, HELD_OUT, HOLD, TRY, Decision, Source, check_recalled
from surefoot.policies.delta_split import WATCH_SHARE, delta_of
from surefoot.policies.drift_alarm import Watch, read_watch
from surefoot.policies.linear_certificate import Promise, certify
from surefoot.policies.linear_settings import linear_settings, read_known_reward
from surefoot.policies.open_baseline import DrawnBaseline, most_telling, read_drawn
from surefoot.policies.policy import Policy, shaped
from surefoot.policies.settlement import OpenRound
from surefoot.safety.alarm import AlarmKind
from surefoot.safety.ledger import Ledger
from surefoot.safety.proof import Proof

# What is known of a baseline's mean reward: itself, where the policy needs it, and the least and the most it can be.
Known: TypeAlias = tuple[float, float, float]
UNKNOWN: Known = (0.0, 0.0, math.inf)
LIST_SHARE = 8  # a short list holds at most this part of the actions (`core/short_list.hpp`)
# Rows of saved scores: means, squares, one without meaning, and the short list behind its length and three bounds. One
# more than the observations that other rows have missed follows it; 0 says that they are lost.
MEANS, SQUARES, _, LIST, ROWS = range(5)  # ROWS: how many
BOUNDS = 4
MOST_MISSED = 2**31 - 1
CONTRADICTION = "No theta is left that satisfies both the data and everything declared: one declaration is not true."


class LinearPolicy(Policy):
    """A policy over linear rewards <theta, phi>: parts in common, algorithms in the subclasses."""

    needs_baseline: ClassVar[bool] = True
    needs_baseline_reward: ClassVar[bool] = False
    _rule: ClassVar[str]  # its name in the core

    def __init__(self, **settings: Any) -> None:
        holdout, share, seed = settings.get("holdout"), settings.get("watch_share", WATCH_SHARE), settings.get("seed")
        self._watch = read_watch(holdout, share, seed, settings.get("misspecification", 0.0))
        if self._watch is None:  # a seed may still be that of a baseline that draws
            unused = ("holdout", "watch_share", "seed") if seed is None else ("holdout", "watch_share")
            settings = {name: one for name, one in settings.items() if name not in unused}
        super().__init__(settings)
        self.dim = count("dim", settings["dim"], hint="dim is the number of features of one action.")
        core_settings = linear_settings(settings)
        core_settings.watchful = True
        self._core = sized(self._rule, self.dim)(self.dim, core_settings)
        self._settings = self._core.settings
        self._promise = Promise(self._settings.alpha, self._settings.theta_bound)
        self._ledger = Ledger(dim=self.dim, core=self._core.ledger)
        self._memory = self._core.memory
        self._catalogue: Catalogue | None = None
        # Whether the core takes rows and baseline as they are given; one that is not needed counts only where it plays.
        self._is_direct = self.needs_baseline
        # Of the class, where each decision would look for it along all of its bases.
        self._prover = self._prove
        # Of a baseline whose reward is not given; None where it must be.
        self._undeclared: Known | None = None if self.needs_baseline_reward else UNKNOWN
        self._adds_to_record = self._watch is not None  # whether more is kept of an open round than its features
        self._settings.delta = self._set_delta

    @staticmethod
    @abstractmethod
    def _prove(promise: Any, evidence: Any, known: Ball | Ellipsoid, /) -> Proof:
        """The gate's condition as a split over facts."""

    @property
    def core(self) -> Any:
        """Its state and steps in the core, which simulations and replays drive directly."""
        return self._core

    @property
    def ledger(self) -> Ledger:
        """What has been played."""
        return self._ledger

    @property
    def ridge(self) -> Ridge:
        """What has been learned so far; a copy, since decisions rest on the policy's own."""
        return Ridge(dim=self.dim, ridge=self._settings.ridge, core=self._core.ridge.copy())

    @property
    def confidence_set(self) -> Ball | Ellipsoid:
        """Where theta lies, for all rounds at once with probability 1 - delta."""
        return newest_set(self._core)

    @property
    def holdout(self) -> float:
        """The share of rounds that go to the baseline although the learner may play; 0 if the watch is off."""
        return 0.0 if self._watch is None else self._watch.holdout

    @property
    def _set_delta(self) -> float:
        """What delta leaves for all but the watch."""
        return float(self._config["delta"]) * (1.0 - (0.0 if self._watch is None else self._watch.share))

    def decide(
        self,
        features: ArrayLike | ActionSet,
        *,
        baseline: int | ArrayLike | None = None,
        baseline_reward: Any = None,
        hold: bool = False,
    ) -> Decision:
        """Choose an action; `features` is an array with one row per action, or an action set.

        `baseline` is the row that is played today; where today's strategy draws, one chance per row; where it may play
        any of several rows, the set of them; in a set without rows, its feature vector. With `hold` the baseline is
        played whatever the gate says, and the certificate tells what it would have said. With a holdout, a coin may
        give the baseline a round in which the learner is allowed to play.
        """
        if self._watch is None and self._alarm is None and not hold:  # the usual case first
            return self._decide(features, baseline, baseline_reward, FREE)
        if self._watch is None or hold or self._alarm is not None:
            return self._decide(features, baseline, baseline_reward, self._order(hold))
        draw = self._watch.draw(self._rounds + 1)
        order = HELD_OUT if draw < self._watch.holdout else FREE
        decision = self._decide(features, baseline, baseline_reward, order)
        # Where the gate said no the coin decided nothing, and is not part of the decision.
        return _with_coin(decision, self._watch, draw) if decision.certificate.is_safe else decision

    def consider(
        self, features: ArrayLike, *, proposal: int, baseline: int | None = None, baseline_reward: Any = None
    ) -> Decision:
        """Decide a round by a proposal from elsewhere: it is played if the gate allows it, the baseline otherwise.

        Parameters
        ----------
        features, baseline, baseline_reward
            As in `decide`.
        proposal : int
            The row to play, if that is safe.

        Returns
        -------
        Decision
            The action to play, with its certificate.

        Raises
        ------
        InputError
            If there is no such row, or another rule is broken.
        """
        if self._watch is not None or self._alarm is not None:
            return self.decide(features, baseline=baseline, baseline_reward=baseline_reward)
        rows = real_array("features", features, ndim=2)
        if not 0 <= proposal < rows.shape[0]:
            raise InputError(f"`0 <= proposal < {rows.shape[0]}` must hold, but got {proposal!r}.")
        return self._decide(rows, baseline, baseline_reward, TRY - proposal)

    def recall(
        self,
        features: ArrayLike,
        *,
        baseline: int | None = None,
        baseline_reward: Any = None,
        action: int,
        source: Source,
        draw: float | None = None,
    ) -> Decision:
        """Count a round again as it was decided before, to restore a policy from a journal.

        Parameters
        ----------
        features, baseline, baseline_reward
            As in `decide`.
        action : int
            The row that was played.
        source : {"learner", "baseline"}
            Who played it.
        draw : float, optional
            The coin of the holdout, where one decided.

        Returns
        -------
        Decision
            The decision, with the number of its round.

        Raises
        ------
        InputError
            If the round cannot have been played like this.
        """
        check_recalled(action, source, baseline)
        if draw is None or math.isnan(draw):
            order = int(action) if source == "learner" else HOLD
            return self._recall(features, baseline, baseline_reward, order)
        if self._watch is None:
            raise InputError(f"A coin of {draw!r} was drawn for a holdout, but this policy has none.")
        self._watch.check_draw(draw, source)
        order = int(action) if source == "learner" else HELD_OUT
        return _with_coin(self._recall(features, baseline, baseline_reward, order), self._watch, draw)

    def _recall(self, features: Any, baseline: Any, baseline_reward: Any, order: int) -> Decision:
        has_rows = not isinstance(features, ActionSet) or isinstance(features, Catalogue)
        if not has_rows and order >= 0:
            raise InputError("A learner's decision can only be recalled over rows, but this set has none.")
        declared, length = self._settings.feature_bound, _longest(features)
        # A length that is not finite is refused by `_decide`, as always.
        if not declared * (1.0 + LENGTH_TOLERANCE) < length < np.inf:
            return self._decide(features, baseline, baseline_reward, order)
        # It was played, so it counts; what was declared of it is not true.
        self._settings.feature_bound = length
        try:
            decision = self._decide(features, baseline, baseline_reward, order)
        finally:
            self._settings.feature_bound = declared
        text = f"Round {decision.round} had a row of length {length:.6g}, beyond feature_bound={declared:.6g}."
        self.report_breach("features", text)
        return decision

    def _decide(self, features: Any, baseline: Any, baseline_reward: Any, order: int) -> Decision:
        known, is_array = self._undeclared, type(features) is ndarray
        if baseline_reward is not None or known is None:
            known = self._read_known(baseline_reward)
        if self._is_direct and type(baseline) is int and (is_array or features is self._catalogue):
            rows, (mean, low, high) = features if is_array else features.rows, known
            step = self._core.decide_given(rows, not is_array, baseline, mean, low, high, order)
            if step is not None:
                return self._concluded(step, baseline, order, known)
        # What the core does not take as it stands is converted here, or refused. The cheap test first: ActionSet is
        # abstract, and isinstance is slow there.
        catalogue = features if not is_array and isinstance(features, Catalogue) else None
        if catalogue is None and not is_array and isinstance(features, ActionSet):
            return self._decide_over(features, baseline, known, order)
        rows = real_array("features", features, ndim=2) if catalogue is None else catalogue.rows
        self._check_shape(rows)
        self._check_order(rows, order)
        if self.needs_baseline or order == HOLD:
            if isinstance(baseline, (set, frozenset)):
                share, core = 1.0 - self._settings.alpha, self._core
                baseline = most_telling(baseline, rows, share, core.ridge, core.radius)
            if (drawn := read_drawn(baseline, rows.shape[0])) is not None:
                return self._decide_drawn(rows, drawn, known, order)
        row = self._read_baseline(baseline, rows.shape[0], order)
        if catalogue is not None:
            self._adopt(catalogue)
        return self._decide_rows(rows, catalogue is not None, row, known, order)

    def warm_start(self, features: ArrayLike, rewards: ArrayLike) -> None:
        """Learn from the baseline's own history before the first round: one logged row and reward each.

        They enter the confidence set by the same argument as later rounds (the paper's Remark 1), provided that what
        was logged was chosen without looking at the reward. The ledger, which counts from the first decision, does not
        change.
        """
        if self._rounds > 0 or self._core.ridge.count > 0:
            raise InputError(
                f"`warm_start` must come before the first decision, but {self._rounds} were made and "
                f"{self._core.ridge.count} observations learned. Start a new policy."
            )
        rows = finite_array("features", features, ndim=2)
        self._check_shape(rows)
        values = finite_array("rewards", rewards, ndim=1)
        if values.size != rows.shape[0] or np.abs(values).max() > LARGEST:
            raise InputError(
                f"`rewards` must hold one number within +-{LARGEST:g} for each of {rows.shape[0]} rows, "
                f"but got shape {values.shape}."
            )
        self._check_lengths(rows)
        self._enter(rows, values)

    def _learn_row(self, features: Vector, reward: float) -> None:
        self._check_lengths(features[None])
        self._enter(features[None], np.array([reward]))
        self._catalogue = None  # its scores are those of before

    def _enter(self, rows: Matrix, rewards: Vector) -> None:
        self._core.enter(rows, rewards)

    def _decide_rows(self, rows: Matrix, is_catalogue: bool, baseline: int, known: Known, order: int) -> Decision:
        step = self._core.decide(rows, is_catalogue, baseline, *known, order)
        if step is None:
            self._check_lengths(rows)
        return self._concluded(step, baseline, order, known)

    def _decide_drawn(self, rows: Matrix, today: DrawnBaseline, known: Known, order: int) -> Decision:
        if self._watch is not None:
            raise InputError(
                "`baseline` must not be drawn with a holdout: the watch compares its rewards with one declared mean."
            )
        coin, offered, row = draw_coin(self._config.get("seed"), self._rounds + 1), today.offer(rows), rows.shape[0]
        step = self._core.decide(offered, False, row, *known, order)
        if step is None:
            self._check_lengths(offered)
        proposal, is_learner, *_ = step
        if not (is_learner and proposal < row):  # the baseline plays
            row = today.draw(coin)
            step = today.played(step, row, rows)
        decision = self._concluded(step, row, order, known)
        self._settlement.drew(decision.round)
        return decision

    def _decide_over(self, actions: ActionSet, baseline: int | ArrayLike | None, known: Known, order: int) -> Decision:
        if actions.dim != self.dim:
            raise InputError(
                f"The action set must have dim={self.dim}, but this {type(actions).__name__} has dim={actions.dim}."
            )
        displaced = self._read_baseline_vector(actions, baseline, order)
        actions.check_length(self._settings.feature_bound)
        best = actions.optimistic(snapshot(self._settings, self._core.ridge))
        chosen = np.ascontiguousarray(best.features, dtype=np.float64)
        step = self._core.conclude(chosen, displaced, best.upper, *known, order)
        return self._concluded(step, -1, order, known, best.method, best.gap)

    def _concluded(
        self, step: Any, baseline: int, order: int, known: Known, method: str = "rows", gap: float = 0.0
    ) -> Decision:
        """The decision of a round that the core has booked."""
        proposal, is_learner, features, teaches, is_refuted, evidence = step
        if is_refuted and self._alarm is None:
            self._raise_alarm()
        if self._alarm is not None and self.keeps_floor:  # anything follows from a contradiction: nothing is promised
            evidence.guaranteed = -np.inf
        # Evidence is kept as it stood; the certificate is written out when somebody asks for it.
        kept = (self._prover, self._promise, evidence, proposal, order, method, gap)
        row = proposal if is_learner else baseline
        if not self._adds_to_record:
            return self._counted(row, is_learner, features, certify, teaches, kept)
        record = self._record(features, -math.inf if teaches else self._mean_of(known), self._rounds + 1)
        return self._counted(row, is_learner, features, certify, teaches or self._watch is not None, kept, record)

    def _mean_of(self, known: Known) -> float:
        """The mean of a baseline round whose reward does not enter the confidence set."""
        return known[0]

    def _raise_alarm(self) -> None:
        """Say what the step has found."""
        if self._memory.refuted != native.TOO_HIGH:
            self.report_breach("contradiction", CONTRADICTION)
            return
        text = (
            f"The baseline of round {self._rounds + 1} is declared to earn more on average than any theta of length "
            f"theta_bound={self._settings.theta_bound:.6g} allows for its features."
        )
        self.report_breach("baseline_reward", text)

    def report_breach(self, kind: AlarmKind, text: str) -> None:
        """Raise the alarm: something that was declared has been contradicted. The first one stands."""
        super().report_breach(kind, text)
        self._memory.refuted = max(1.0, self._memory.refuted)  # does not overwrite TOO_HIGH

    def _learn_round(self, entry: OpenRound, reward: float) -> None:
        record, is_learner, _ = entry
        if self._watch is None:
            self._core.learn(record, reward, is_learner)
            return
        features, known, round_ = self._watch.read(record)
        if known == -math.inf:
            # First the prediction: it must not know its own reward.
            known = self._core.ridge.predict(np.frombuffer(features))
            self._enter_set(features, reward, is_learner)
        self._watch.take(is_learner, (reward - known) / self._settings.noise, round_)
        share, restart_share = self._watch.share * self._config["delta"], self._config.get("restart_share", 0.0)
        alarm = self._watch.alarm(self._core.ridge, self._settings, delta_of(share, self._restarts, restart_share))
        if alarm is not None and self._alarm is None:
            self.report_breach("drift", alarm)

    def _enter_set(self, features: bytes, reward: float, is_learner: bool) -> None:
        """Let one reward enter the confidence set."""
        self._core.learn(features, reward, is_learner)

    def rebook(
        self,
        round_: int,
        features: Any,
        baseline: int | None,
        baseline_reward: Any,
        decided: tuple[int, bool],
        played: int,
    ) -> bytes:
        """Move an open round in the ledger to the row that was really played."""
        rows = rows_in(features)
        self._check_shape(rows)
        row, was_learner = decided
        self._check_order(rows, max(row, played))
        self._settlement.check_voidable(round_)
        self._check_decided(round_, rows[row])

        # A policy without a baseline books what it plays in its place.
        def displaced(action: int, is_learner: bool) -> Any:
            return rows[baseline if self.needs_baseline or not is_learner else action]

        is_learner, known = played != baseline, self._read_known(baseline_reward)
        # Before a restart there was another ledger, whose rounds are charged at their worst.
        if round_ > self._rounds - self._ledger.learner_rounds - self._ledger.baseline_rounds:
            was, now = displaced(row, was_learner), displaced(played, is_learner)
            try:
                self._core.rebook(rows[row], was, was_learner, rows[played], now, is_learner, *known)
            except ValueError as error:
                raise InputError(f"`features` and `baseline` must be those of round {round_}, but {error}.") from None
        # What was declared was the mean of another row, perhaps: so its reward enters the set.
        return self._record(rows[played].tobytes(), -math.inf, round_)

    def _record(self, features: bytes, known: float, round_: int) -> bytes:
        """What is kept of an open round: its features and, for the watch, what was known of its mean."""
        return features if self._watch is None else self._watch.record(features, known, round_)

    def _adopt(self, catalogue: Catalogue) -> None:
        if self._catalogue is not None and self._catalogue.digest == catalogue.digest:
            return
        catalogue.check_length(self._settings.feature_bound)
        self._core.adopt(catalogue.rows)
        # Last: what raises above leaves the old catalogue and its scores together.
        self._catalogue = catalogue

    def _check_shape(self, rows: Matrix) -> None:
        if rows.shape[1] != self.dim or rows.shape[0] == 0:
            raise InputError(
                f"`features` must have at least one row and dim={self.dim} columns, but got shape {rows.shape}. "
                "Give one row per action."
            )

    def _check_order(self, rows: Matrix, order: int) -> None:
        if order >= rows.shape[0]:
            raise InputError(f"`0 <= action < {rows.shape[0]}` must hold for {rows.shape[0]} actions, but got {order}.")

    def _check_lengths(self, rows: Matrix) -> None:
        bound = self._settings.feature_bound
        row = native.first_bad_row(rows, bound)
        if row is None:
            return
        if not np.isfinite(rows[row]).all():
            raise InputError(
                f"`features` must be finite, but row {row} is {rows[row]}. Drop that action or impute its features."
            )
        length = math.hypot(*rows[row].tolist())  # squares of large entries would overflow
        raise AssumptionError(
            f"Every feature row must satisfy `||row|| <= feature_bound`, but row {row} has length {length:.6g}, "
            f"which is {length - bound:.3g} more than feature_bound={bound:.6g}. "
            "Rescale the features or declare a larger bound."
        )

    def _read_baseline(self, baseline: int | ArrayLike | None, rows: int, order: int) -> int:
        if not self.needs_baseline and order != HOLD:
            return -1
        if type(baseline) is not int:
            if isinstance(baseline, bool) or not isinstance(baseline, (int, np.integer)):
                raise InputError(
                    f"`baseline` must be a row index, but got {baseline!r}. It is the action you would play today."
                )
            baseline = int(baseline)
        if not 0 <= baseline < rows:
            raise InputError(
                f"`0 <= baseline < {rows}` must hold for {rows} actions, but got baseline={baseline}. "
                "It is the row of the action you would play today."
            )
        return baseline

    def _read_baseline_vector(self, actions: ActionSet, baseline: int | ArrayLike | None, order: int) -> Vector:
        if not self.needs_baseline and order != HOLD:
            return np.zeros(self.dim)
        if baseline is None:
            raise InputError("`baseline` must be given: the feature vector of the action you would play today.")
        vector = finite_array("baseline", baseline, ndim=1)
        if vector.size != self.dim or not actions.contains(vector):
            raise InputError(
                f"`baseline` must be a point of the action set with dim={self.dim}, but got {vector}. "
                "It is the feature vector of the action you would play today."
            )
        return vector

    def _read_known(self, reward: Any) -> Known:
        """What is known of the mean reward of this round's baseline."""
        if not self.needs_baseline_reward:
            return UNKNOWN
        if reward is None:
            raise InputError(
                f"`baseline_reward` must be given to {type(self).__name__}: the mean reward of the baseline's action. "
                "Where it is unknown use CLUCB2."
            )
        return read_known_reward(reward), 0.0, math.inf

    def _record_size(self) -> int:
        return self.dim if self._watch is None else self.dim + Watch.EXTRA

    def arrays(self) -> dict[str, Any]:
        """Sums, ledger and memory of the core, and what the watch has seen."""
        core = self._core
        arrays = {"ridge": core.ridge.save(), "ledger": core.ledger.save(), "memory": core.memory.save()}
        likelihood = core.save_likelihood()
        if likelihood.size:
            arrays["likelihood"] = likelihood
        if self._catalogue is not None:
            arrays["catalogue"] = self._catalogue.rows.copy()
            arrays["catalogue_scores"] = _scores_of(core, self._catalogue.rows.shape[0])
        if self._watch is not None:
            arrays["watch"] = self._watch.bets.save()
        return arrays

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Take back what `arrays` returned."""
        core = self._core
        _load("ridge", core.ridge, arrays)
        _load("ledger", core.ledger, arrays)
        _load("memory", core.memory, arrays)
        if core.save_likelihood().size:
            with _damaged_as_state_error("likelihood"):
                core.load_likelihood(_numbers(arrays["likelihood"]))
        if not core.ridge.is_sound(core.settings.ridge):
            raise StateError("`ridge` must be the state of a ridge regression with these settings, but it is not.")
        self._catalogue = None
        if "catalogue" in arrays:
            catalogue = Catalogue(arrays["catalogue"])
            if catalogue.dim != self.dim:
                raise StateError(f"`catalogue` must have dim={self.dim} columns, but has {catalogue.dim}.")
            core.adopt(catalogue.rows)
            _restore_scores(core, np.asarray(arrays["catalogue_scores"], dtype=np.float64), catalogue.rows.shape[0])
            self._catalogue = catalogue
        if self._watch is not None:
            self._watch.bets.load(shaped(arrays["watch"], self._watch.bets.save().shape, "watch"))


def _with_coin(decision: Decision, watch: Watch, draw: float) -> Decision:
    return msgspec.structs.replace(decision, probability=watch.probability(decision.source), draw=draw)


def _longest(features: Any) -> float:
    rows = features.rows if isinstance(features, Catalogue) else features
    if not isinstance(rows, ndarray) or rows.ndim != 2 or rows.size == 0:
        return 0.0
    return float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max()))


def _load(name: str, part: Any, arrays: Mapping[str, Any]) -> None:
    """Load a part of the core from what it saved."""
    saved = _numbers(arrays[name])
    if saved.size != part.save().size:
        raise StateError(f"`{name}` must have shape {part.save().shape}, but got {np.shape(arrays[name])}.")
    with _damaged_as_state_error(name):
        part.load(saved)


@contextmanager
def _damaged_as_state_error(name: str) -> Iterator[None]:
    try:
        yield
    except native.DamagedState as error:
        raise StateError(f"`{name}` must be the state of a policy with these settings, but {error}.") from None


def _numbers(saved: Any) -> Vector:
    array = np.ascontiguousarray(saved, dtype=np.float64)
    if array.ndim != 1:
        raise StateError(f"A part of this state must be a line of numbers, but has shape {array.shape}.")
    return array


def _scores_of(core: Any, actions: int) -> Matrix:
    means, squares, listed, travel, reach, bar = core.catalogue_scores()
    scores = np.zeros((ROWS, actions))
    scores[MEANS], scores[SQUARES] = means, squares
    if listed:
        row = [len(listed), travel, reach, bar, *listed, core.catalogue_missed + 1]
        scores[LIST, : len(row)] = row
    return scores


def _restore_scores(core: Any, saved: Matrix, actions: int) -> None:
    if saved.shape != (ROWS, actions):
        raise StateError(f"`catalogue_scores` must have shape {(ROWS, actions)}, but got {saved.shape}.")
    row = saved[LIST]
    length = row[0]
    is_length = 0 <= length <= actions // LIST_SHARE and length == np.floor(length)
    listed = row[BOUNDS : BOUNDS + int(length)] if is_length else row[:0]
    if not (is_length and (listed >= 0).all() and (listed < actions).all() and (listed == np.floor(listed)).all()):
        raise StateError("`catalogue_scores` must end with a short list of rows, but it does not.")
    travel, reach, bar = row[1:BOUNDS].tolist() if length else (0.0, 0.0, 0.0)
    missed = row[BOUNDS + int(length)] - 1.0 if length else -1.0
    if not (-1 <= missed <= MOST_MISSED and missed == np.floor(missed)):
        raise StateError(f"`catalogue_scores` must tell how many observations were missed, but got {missed + 1}.")
    means, squares = np.ascontiguousarray(saved[MEANS]), np.ascontiguousarray(saved[SQUARES])
    core.restore_scores(means, squares, [int(i) for i in listed], travel, reach, bar, int(missed))
