"""The handlers: one decision, one reward or one batch, from the request to the answer."""

from collections.abc import Sequence
from typing import Any

from surefoot.errors import InputError, SurefootError
from surefoot.experiment import Answer, Question, Receipt
from surefoot.service import request_models, response_models
from surefoot.service.authorization import RequestScope
from surefoot.service.catalogues import Catalogues, question_of
from surefoot.service.metrics import Metrics
from surefoot.service.problems import Problem, ProblemError, of_error
from surefoot.service.registry import OpenExperiment, Registry


class Handlers:
    """What routes call to serve decisions and rewards."""

    def __init__(self, registry: Registry, catalogues: Catalogues, metrics: Metrics) -> None:
        self._registry, self._catalogues, self._metrics = registry, catalogues, metrics
        self._limits = registry.settings.limits

    async def decide(
        self, name: str, asked: request_models.Decide, visit: RequestScope
    ) -> tuple[int, response_models.Decided]:
        """One decision, and its status: 201, or 200 where it was made before."""
        opened = await self._registry.find(name)
        return self._tell(name, await opened.queue.ask(await self._read(opened, asked)), visit)

    async def decide_all(
        self, name: str, asked: Sequence[request_models.Decide], visit: RequestScope
    ) -> response_models.Outcomes:
        """Many decisions, each answered on its own."""
        self._refuse_batch(asked)
        opened = await self._registry.find(name)
        ready = [await self._read_or_problem(opened, entry) for entry in asked]
        made = iter(await opened.queue.decide_all([entry for entry in ready if isinstance(entry, Question)]))
        found = [next(made) if isinstance(entry, Question) else entry for entry in ready]
        visit.notes.update(experiment=name, decisions=len(found))
        return response_models.Outcomes([self._outcome(name, entry) for entry in found])

    async def book(
        self, name: str, asked: request_models.Fallback, visit: RequestScope
    ) -> tuple[int, response_models.Decided]:
        """A round that the caller played on its own."""
        opened = await self._registry.find(name)
        question = await self._read(opened, asked)
        answer = await self._registry.run(
            opened.experiment.book,
            question.features,
            baseline=question.baseline,
            baseline_reward=question.baseline_reward,
            decision_id=asked.decision_id,
            actions=question.actions,
            context=question.context,
        )
        return self._tell(name, answer, visit)

    async def reward(self, name: str, decision_id: str, value: float, visit: RequestScope) -> response_models.Received:
        """One reward; a refusal is a problem."""
        opened = await self._registry.find(name)
        receipt = await opened.queue.reward(decision_id, value)
        visit.notes.update(experiment=name, refused=receipt.refused)
        if receipt.refused != "unknown":  # an id that does not exist may be anything
            visit.notes["decision_id"] = decision_id
        told = self._told(name, receipt)
        if isinstance(told, Problem):
            raise ProblemError.of(told)
        return told

    async def reward_all(
        self, name: str, rewards: Sequence[request_models.NamedReward], visit: RequestScope
    ) -> response_models.RewardOutcomes:
        """Many rewards, each accepted or refused on its own."""
        self._refuse_batch(rewards)
        opened = await self._registry.find(name)
        receipts = await opened.queue.reward_all([(entry.decision_id, entry.value) for entry in rewards])
        visit.notes.update(experiment=name, rewards=len(receipts))
        told = [self._told(name, receipt) for receipt in receipts]
        return response_models.RewardOutcomes(
            [
                response_models.RewardOutcome(problem=one)
                if isinstance(one, Problem)
                else response_models.RewardOutcome(receipt=one)
                for one in told
            ]
        )

    async def _read(self, opened: OpenExperiment, asked: request_models.Decide) -> Question:
        known = None if asked.catalogue is None else await self._catalogues.find(opened, asked.catalogue)
        question = question_of(asked, known, self._limits)
        if question.features is None and "dim" in opened.experiment.settings.settings:
            raise InputError("`features` must be given for every action: this experiment's policy decides by them.")
        return question

    async def _read_or_problem(self, opened: OpenExperiment, asked: request_models.Decide) -> Question | Problem:
        try:
            return await self._read(opened, asked)
        except SurefootError as error:
            return of_error(error)
        except ProblemError as error:
            return error.problem

    def _tell(self, name: str, answer: Answer, visit: RequestScope) -> tuple[int, response_models.Decided]:
        visit.notes.update(
            experiment=name, decision_id=answer.decision_id, source=answer.source, is_repeat=answer.is_repeat
        )
        self._metrics.decided(name, answer)
        return 200 if answer.is_repeat else 201, response_models.decided(answer, response_models.brief(answer))

    def _outcome(self, name: str, found: Answer | SurefootError | Problem) -> response_models.Outcome:
        if isinstance(found, Answer):
            self._metrics.decided(name, found)
            return response_models.Outcome(decision=response_models.decided(found, response_models.brief(found)))
        return response_models.Outcome(problem=found if isinstance(found, Problem) else of_error(found))

    def _told(self, name: str, receipt: Receipt) -> response_models.Received | Problem:
        self._metrics.rewarded(name, receipt)
        return response_models.received(receipt)

    def _refuse_batch(self, entries: Sequence[Any]) -> None:
        most = self._limits.batch
        if len(entries) > most:
            raise ProblemError("too-large", f"At most {most} are taken at once, but got {len(entries)}.")
