"""The handlers: one decision, one reward or one batch, from the request to the answer."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from surefoot.errors import InputError, SurefootError
from surefoot.experiment import Answer, GuardAnswer, GuardQuestion, Question, Receipt
from surefoot.service import request_models, response_models
from surefoot.service.authorization import RequestScope
from surefoot.service.catalogues import Catalogues, question_of
from surefoot.service.guard_models import GuardDecided, GuardOutcome, GuardOutcomes, guard_decided
from surefoot.service.metrics import Metrics
from surefoot.service.problems import Problem, ProblemError, of_error
from surefoot.service.registry import OpenExperiment, Registry
from surefoot.service.request_bodies import (
    BATCH,
    DECIDE,
    FALLBACK,
    AnyDecide,
    decoder,
    guard_question,
    read_body,
    read_question_body,
)
from surefoot.service.request_models import RewardValue
from surefoot.service.usual_question import usual_question

AnyDecided: TypeAlias = response_models.Decided | GuardDecided
AnyOutcomes: TypeAlias = response_models.Outcomes | GuardOutcomes
AnyQuestion: TypeAlias = Question | GuardQuestion

READ_REWARD = decoder(request_models.Reward)
MOST_AT_ONCE = 20_000  # numbers of a decision's rows that are made in the event loop


class Handlers:
    """What routes call to serve decisions and rewards."""

    def __init__(self, registry: Registry, catalogues: Catalogues, metrics: Metrics) -> None:
        self._registry, self._catalogues, self._metrics = registry, catalogues, metrics
        self._limits = registry.settings.limits
        self._sizes = self._limits.actions, self._limits.dimensions

    async def decide(self, name: str, body: bytes, visit: RequestScope) -> tuple[int, AnyDecided]:
        """One decision, and its status: 201, or 200 where it was made before."""
        opened = self._registry.open_experiments.get(name) or await self._registry.find(name)
        ready: Any = None
        if opened.takes_rows:
            ready = usual_question(body, sizes=self._sizes, sealed=opened.is_sealed)
        if ready is None:
            asked = read_question_body(DECIDE, body, is_guard=opened.is_guard)
            ready = opened.experiment.read_question(await self._read(opened, asked))
            del asked
        # Hundreds may wait at once: what they were read from would take their place in the processor's cache.
        del body
        return self._tell(name, await opened.queue.answer(ready), visit)

    async def decide_all(self, name: str, body: bytes, visit: RequestScope) -> AnyOutcomes:
        """Many decisions, each answered on its own."""
        opened = await self._registry.find(name)
        asked = read_question_body(BATCH, body, is_guard=opened.is_guard).decisions
        self._refuse_batch(asked)
        ready = [await self._read_or_problem(opened, entry) for entry in asked]
        questions: list[Any] = [entry for entry in ready if not isinstance(entry, Problem)]
        made = iter(await opened.queue.decide_all(questions))
        found = [entry if isinstance(entry, Problem) else next(made) for entry in ready]
        visit.notes.update(experiment=name, decisions=len(found))
        if opened.is_guard:
            return GuardOutcomes([self._guard_outcome(name, entry) for entry in found])
        return response_models.Outcomes([self._outcome(name, entry) for entry in found])

    async def book(self, name: str, body: bytes, visit: RequestScope) -> tuple[int, AnyDecided]:
        """A round that the caller played on its own."""
        opened = await self._registry.find(name)
        question = await self._read(opened, read_question_body(FALLBACK, body, is_guard=opened.is_guard))
        told = {field: getattr(question, field) for field in question.__struct_fields__}
        return self._tell(name, await self._registry.run(opened.experiment.book, by=visit.by, **told), visit)

    async def reward(self, name: str, decision_id: str, body: bytes, visit: RequestScope) -> response_models.Received:
        """The reward in a body; a refusal is a problem."""
        return await self.hand_in(name, decision_id, read_body(READ_REWARD, body).value, visit)

    async def hand_in(
        self, name: str, decision_id: str, value: RewardValue, visit: RequestScope
    ) -> response_models.Received:
        """One reward; a refusal is a problem."""
        opened = await self._registry.find(name)
        receipt = await opened.queue.reward(decision_id, value)
        visit.notes.update(experiment=name, refused=receipt.refused)
        if receipt.refused != "unknown":  # an id that does not exist may be anything
            visit.notes["decision_id"] = decision_id
        told = self._told(name, receipt, value)
        if isinstance(told, Problem):
            raise ProblemError.of(told)
        return told

    async def reward_all(
        self, name: str, rewards: Sequence[request_models.NamedReward], visit: RequestScope
    ) -> response_models.RewardOutcomes:
        """Many rewards, each accepted or refused on its own."""
        self._refuse_batch(rewards)
        opened = await self._registry.find(name)
        faults = [_fault(opened, entry) for entry in rewards]
        sound = [entry for entry, fault in zip(rewards, faults, strict=True) if fault is None]
        receipts = await opened.queue.reward_all([(entry.decision_id, entry.value) for entry in sound])
        visit.notes.update(experiment=name, rewards=len(rewards))
        made = (self._told(name, receipt, entry.value) for receipt, entry in zip(receipts, sound, strict=True))
        told = [next(made) if fault is None else fault for fault in faults]
        return response_models.RewardOutcomes(
            [
                response_models.RewardOutcome(problem=one)
                if isinstance(one, Problem)
                else response_models.RewardOutcome(receipt=one)
                for one in told
            ]
        )

    async def _read(self, opened: OpenExperiment, asked: AnyDecide) -> Any:
        if isinstance(asked, request_models.GuardDecide):
            return guard_question(asked)
        if asked.catalogue is None:
            return self._of_actions(opened, asked)
        known = await self._catalogues.find(opened, asked.catalogue)
        # Rows that take long to make would keep every other caller waiting.
        if known.size > MOST_AT_ONCE:
            return await self._registry.run(question_of, asked, known, self._limits)
        return question_of(asked, known, self._limits, is_configured=opened.experiment.configuration is not None)

    def _of_actions(self, opened: OpenExperiment, asked: request_models.Decide) -> Question:
        is_configured = opened.experiment.configuration is not None
        question = question_of(asked, None, self._limits, is_configured=is_configured)
        if question.features is None and opened.needs_features:
            raise InputError("`features` must be given for every action: this experiment's policy decides by them.")
        return question

    async def _read_or_problem(self, opened: OpenExperiment, asked: AnyDecide) -> AnyQuestion | Problem:
        try:
            found: AnyQuestion = await self._read(opened, asked)
            return found
        except SurefootError as error:
            return of_error(error)
        except ProblemError as error:
            return error.problem

    def _tell(self, name: str, answer: Answer | GuardAnswer, visit: RequestScope) -> tuple[int, AnyDecided]:
        visit.notes.update(
            experiment=name,
            decision_id=answer.decision_id,
            event_number=0 if answer.head is None else answer.head.number,
            source=answer.source,
            is_repeat=answer.is_repeat,
        )
        self._metrics.decided(name, answer)
        status = 200 if answer.is_repeat else 201
        if isinstance(answer, GuardAnswer):
            return status, guard_decided(answer)
        return status, response_models.decided(answer, response_models.brief(answer))

    def _guard_outcome(self, name: str, found: Any) -> GuardOutcome:
        if isinstance(found, GuardAnswer):
            self._metrics.decided(name, found)
            return GuardOutcome(decision=guard_decided(found))
        return GuardOutcome(problem=found if isinstance(found, Problem) else of_error(found))

    def _outcome(self, name: str, found: Any) -> response_models.Outcome:
        if isinstance(found, Answer):
            self._metrics.decided(name, found)
            return response_models.Outcome(decision=response_models.decided(found, response_models.brief(found)))
        return response_models.Outcome(problem=found if isinstance(found, Problem) else of_error(found))

    def _told(self, name: str, receipt: Receipt, value: RewardValue) -> response_models.Received | Problem:
        self._metrics.rewarded(name, receipt)
        return response_models.received(receipt, value)

    def _refuse_batch(self, entries: Sequence[Any]) -> None:
        most = self._limits.batch
        if len(entries) > most:
            raise ProblemError("too-large", f"At most {most} are taken at once, but got {len(entries)}.")


def _fault(opened: OpenExperiment, entry: request_models.NamedReward) -> Problem | None:
    """What is wrong with the metrics that a reward names, so that one mistake does not refuse the whole batch."""
    try:
        opened.experiment.read_reward(entry.decision_id, entry.value)
    except SurefootError as error:
        return of_error(error)
    return None
