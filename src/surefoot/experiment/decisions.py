"""The verbs that decide: one round, many at once, or one that the caller played alone; over features, or by a guard."""

from collections.abc import Mapping, Sequence
from typing import Any, overload

import msgspec
from numpy.typing import ArrayLike

from surefoot.errors import InputError, SurefootError
from surefoot.experiment.answer import Answer
from surefoot.experiment.guard_answer import GuardAnswer
from surefoot.experiment.guard_question import GuardQuestion
from surefoot.experiment.question import Question, read_text
from surefoot.experiment.transacted_state import AnyAnswer, AnyQuestion, TransactedState
from surefoot.linear.actions import Catalogue


class Decisions(TransactedState):
    """An experiment as far as it decides."""

    @overload
    def decide(
        self,
        features: ArrayLike | Catalogue | None = None,
        *,
        baseline: int | str | None = None,
        baseline_reward: float | Sequence[float] | None = None,
        decision_id: str | None = None,
        actions: Sequence[str] | None = None,
        context: Mapping[str, Any] | None = None,
        confirms: Sequence[str] = (),
    ) -> Answer: ...

    @overload
    def decide(
        self,
        *,
        baseline: Any,
        proposal: Any,
        decision_id: str | None = None,
        unit: str | None = None,
        prediction: float | Mapping[str, float] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> GuardAnswer: ...

    def decide(self, features: Any = None, **kwargs: Any) -> AnyAnswer:
        """Decide one round; it is durable before it is returned.

        Asking again with the same `decision_id` gives the same answer, and of a guard the same coin.

        Parameters
        ----------
        features : array_like of shape (actions, dim) or Catalogue, optional
            One row per action. Policies over plain arms need none, and a guard takes none. An experiment that was made
            by a configuration makes them of the context.
        baseline : int, str or any JSON value
            Row, or name, of the action you would play today; for a guard the action itself. A configuration may have
            it, too.
        baseline_reward : float or (low, high), optional
            Mean reward of the baseline in this round, where the policy takes it.
        decision_id : str, optional
            Your id of the decision; a new one by default.
        actions : sequence of str, optional
            Names of the rows; with a configuration those that are offered in this round, all by default.
        context : mapping, optional
            JSON data to keep beside the decision, from which a configuration makes the rows.
        confirms : sequence of str
            Earlier decisions that were played as decided (`Experiment.confirm`).
        proposal : any JSON value
            For a guard: the action that is to be let in.
        unit : str, optional
            For a guard: whom the reward belongs to, if that is more than this visit.
        prediction : float or mapping, optional
            For a guard: what the baseline's reward will be in this round, by a model of your own.

        Returns
        -------
        Answer or GuardAnswer
            The decision as the journal holds it.

        Raises
        ------
        InputError
            If the question breaks a rule; nothing was decided.
        DecisionConflictError
            If the same id was asked before with another question.
        """
        return self._answered(self.question_of(features, kwargs), is_fallback=False)

    @overload
    def decide_all(self, questions: Sequence[Question]) -> list[Answer | SurefootError]: ...

    @overload
    def decide_all(self, questions: Sequence[GuardQuestion]) -> list[GuardAnswer | SurefootError]: ...

    def decide_all(self, questions: Sequence[AnyQuestion]) -> Any:
        """Decide many rounds, in order, with one flush.

        Parameters
        ----------
        questions : sequence of Question, or of GuardQuestion
            The rounds.

        Returns
        -------
        list of Answer, GuardAnswer or SurefootError
            One per question; a question that is refused gets its error.
        """
        return self._run(self._deciding([self.read_question_or_error(question) for question in questions]))

    @overload
    def book(
        self,
        features: ArrayLike | Catalogue | None = None,
        *,
        baseline: int | str | None = None,
        baseline_reward: float | Sequence[float] | None = None,
        decision_id: str,
        actions: Sequence[str] | None = None,
        context: Mapping[str, Any] | None = None,
        by: str = "",
    ) -> Answer: ...

    @overload
    def book(
        self,
        *,
        baseline: Any,
        proposal: Any,
        decision_id: str,
        unit: str | None = None,
        prediction: float | Mapping[str, float] | None = None,
        context: Mapping[str, Any] | None = None,
        by: str = "",
    ) -> GuardAnswer: ...

    def book(self, features: Any = None, *, by: str = "", **kwargs: Any) -> AnyAnswer:
        """Record a round in which the caller played the baseline on its own, while the experiment could not be reached.

        It counts, its window opens now, and its reward is taken. It does not teach a linear policy: callers book in an
        order of their own, which may follow the rewards (a guard takes it in, for it can only add). Booking twice is
        booking once. If the experiment decided it after all, and the caller did not hear of it, that is a `void`.

        Parameters
        ----------
        features, baseline, baseline_reward, actions, context, proposal, unit, prediction
            As in `decide`.
        decision_id : str
            Your id of the round.
        by : str
            Who says so; kept in the journal where a decision is moved.

        Returns
        -------
        Answer or GuardAnswer
            The round as the journal holds it.

        Raises
        ------
        DecisionConflictError
            If the id stands for another question.
        DecisionSettledError
            If the learner decided it, and its reward has come.
        """
        return self._answered(self.question_of(features, kwargs), is_fallback=True, by=read_text("by", by))

    def question_of(self, features: Any, asked: Mapping[str, Any]) -> AnyQuestion:
        """The arguments of `decide` as a question of the kind that this experiment takes.

        Parameters
        ----------
        features : array_like, Catalogue or None
            As in `decide`.
        asked : mapping
            The other arguments of `decide`, by name.

        Returns
        -------
        Question or GuardQuestion
            The question.

        Raises
        ------
        InputError
            If the arguments are those of the other kind.
        """
        told = dict(asked) if features is None else {"features": features, **asked}
        kind = GuardQuestion if self._is_guard else Question
        other = set(told) - set(kind.__struct_fields__)
        if other:
            takes = "`baseline` and `proposal`" if self._is_guard else "`features`, and no `proposal`"
            raise InputError(f"{self._created.policy} takes {takes}, but got {', '.join(sorted(other))}.")
        if self._is_guard:
            # What is missing is then refused by name when the question is read, not as a TypeError.
            told = {"baseline": None, "proposal": None, **told}
        return kind(**told)

    def _answered(self, question: AnyQuestion, *, is_fallback: bool, by: str = "") -> AnyAnswer:
        ready = msgspec.structs.replace(self.read_question(question, is_fallback=is_fallback), by=by)
        (answer,) = self._run(self._deciding([ready]))
        if isinstance(answer, SurefootError):
            raise answer
        return answer
