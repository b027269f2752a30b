"""Decisions, fallbacks and rewards: what an app calls."""

from typing import Any

from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import JSONBody

from surefoot.errors import InputError, SurefootError
from surefoot.experiment import Answer, Question
from surefoot.experiment.questions import read_id
from surefoot.service import answers, wire
from surefoot.service.access import needs, visit_of
from surefoot.service.metrics import Metrics
from surefoot.service.problems import Problem, ProblemError, of_error
from surefoot.service.questions import Catalogues, question_of
from surefoot.service.rooms import Room, Rooms
from surefoot.service.routes.answering import TOKEN, also, problems
from surefoot.service.routes.parameters import DecisionId, ExperimentName

TAGS = ["decisions"]
ABOUT = ("unknown-experiment", "broken-assumption", "busy", "outcome-unknown")


def routes(rooms: Rooms, catalogues: Catalogues, metrics: Metrics) -> list[HTTPRouteHandler]:
    """The handlers."""
    limits = rooms.settings.limits

    async def read(room: Room, asked: wire.Decide) -> Question:
        known = None if asked.catalogue is None else await catalogues.find(room, asked.catalogue)
        question = question_of(asked, known, limits)
        if question.features is None and "dim" in room.experiment.settings.settings:
            raise InputError("`features` must be given for every action: this experiment's policy decides by them.")
        return question

    async def read_or_problem(room: Room, asked: wire.Decide) -> Question | Problem:
        try:
            return await read(room, asked)
        except SurefootError as error:
            return of_error(error)
        except ProblemError as error:
            return error.problem

    @post(
        "/v1/experiments/{name:str}/decisions",
        before_request=needs("decide"),
        security=TOKEN,
        tags=TAGS,
        operation_id="decide",
        responses=also(200, answers.Decided, "The decision was made before, by the same question.")
        | problems(*ABOUT, "decision-conflict", "unknown-catalogue", body=True),
    )
    async def decide(
        name: ExperimentName, data: JSONBody[wire.Decide], request: Request[Any, Any, Any]
    ) -> Response[answers.Decided]:
        """Decide one round; it is durable before it is answered."""
        room = await rooms.find(name)
        question = await read(room, data)
        answer = (await room.lane.decide([question]))[0]
        if isinstance(answer, SurefootError):
            raise answer
        return tell(name, answer, request)

    def tell(name: str, answer: Answer, request: Request[Any, Any, Any]) -> Response[answers.Decided]:
        visit_of(request.scope).notes.update(
            experiment=name, decision_id=answer.decision_id, source=answer.source, is_repeat=answer.is_repeat
        )
        metrics.decided(name, answer)
        return Response(answers.decided(answer), status_code=200 if answer.is_repeat else 201)

    @post(
        "/v1/experiments/{name:str}/decision-batches",
        before_request=needs("decide"),
        security=TOKEN,
        tags=TAGS,
        operation_id="decideBatch",
        status_code=200,
        responses=problems(*ABOUT, body=True),
    )
    async def decide_batch(
        name: ExperimentName, data: JSONBody[wire.DecideBatch], request: Request[Any, Any, Any]
    ) -> answers.Outcomes:
        """Decide many rounds, each answered on its own, with a decision or with a problem."""
        refuse_batch(data.decisions)
        room = await rooms.find(name)
        ready = [await read_or_problem(room, asked) for asked in data.decisions]
        made = iter(await room.lane.decide([entry for entry in ready if isinstance(entry, Question)]))
        found = [next(made) if isinstance(entry, Question) else entry for entry in ready]
        visit_of(request.scope).notes.update(experiment=name, decisions=len(found))
        return answers.Outcomes([outcome(name, entry) for entry in found])

    def outcome(name: str, found: Answer | SurefootError | Problem) -> answers.Outcome:
        if isinstance(found, Answer):
            metrics.decided(name, found)
            return answers.Outcome(decision=answers.decided(found))
        return answers.Outcome(problem=found if isinstance(found, Problem) else of_error(found))

    @post(
        "/v1/experiments/{name:str}/fallbacks",
        before_request=needs("decide"),
        security=TOKEN,
        tags=TAGS,
        operation_id="bookFallback",
        responses=also(200, answers.Decided, "It was booked before.")
        | problems(*ABOUT, "decision-conflict", "unknown-catalogue", body=True),
    )
    async def fallback(
        name: ExperimentName, data: JSONBody[wire.Fallback], request: Request[Any, Any, Any]
    ) -> Response[answers.Decided]:
        """Book a round in which the caller played the baseline on its own."""
        room = await rooms.find(name)
        asked = await read(room, data)
        answer = await rooms.run(
            room.experiment.book,
            asked.features,
            baseline=asked.baseline,
            baseline_reward=asked.baseline_reward,
            decision_id=data.decision_id,
            actions=asked.actions,
            context=asked.context,
        )
        return tell(name, answer, request)

    @get(
        "/v1/experiments/{name:str}/decisions/{decision_id:str}",
        before_request=needs("read"),
        security=TOKEN,
        tags=TAGS,
        operation_id="readDecision",
        responses=problems("unknown-experiment", "unknown-decision", "invalid"),
    )
    async def read_decision(name: ExperimentName, decision_id: DecisionId) -> answers.DecisionRead:
        """A decision, with the sentence that explains it, what was asked, and the whole proof."""
        room = await rooms.find(name)
        return answers.decision_read(await rooms.run(room.experiment.find, decision_id))

    @post(
        "/v1/experiments/{name:str}/decisions/{decision_id:str}/reward",
        before_request=needs("decide"),
        security=TOKEN,
        tags=TAGS,
        operation_id="reward",
        status_code=200,
        responses=problems(*ABOUT, *REWARDS, body=True),
    )
    async def reward(
        name: ExperimentName, decision_id: DecisionId, data: JSONBody[wire.Reward], request: Request[Any, Any, Any]
    ) -> answers.Received:
        """Hand in the reward of a decision; the same value twice is once."""
        room = await rooms.find(name)
        receipt = (await room.lane.reward([(read_id(decision_id), data.value)]))[0]
        visit_of(request.scope).notes.update(experiment=name, decision_id=decision_id, refused=receipt.refused)
        metrics.rewarded(name, receipt)
        told = answers.received(receipt)
        if isinstance(told, Problem):
            raise ProblemError.of(told)
        return told

    @post(
        "/v1/experiments/{name:str}/reward-batches",
        before_request=needs("decide"),
        security=TOKEN,
        tags=TAGS,
        operation_id="rewardBatch",
        status_code=200,
        responses=problems(*ABOUT, body=True),
    )
    async def reward_batch(
        name: ExperimentName, data: JSONBody[wire.RewardBatch], request: Request[Any, Any, Any]
    ) -> answers.RewardOutcomes:
        """Hand in many rewards, each accepted or refused on its own."""
        refuse_batch(data.rewards)
        room = await rooms.find(name)
        receipts = await room.lane.reward([(read_id(entry.decision_id), entry.value) for entry in data.rewards])
        visit_of(request.scope).notes.update(experiment=name, rewards=len(receipts))
        return answers.RewardOutcomes([reward_outcome(name, receipt) for receipt in receipts])

    def reward_outcome(name: str, receipt: Any) -> answers.RewardOutcome:
        metrics.rewarded(name, receipt)
        told = answers.received(receipt)
        return answers.RewardOutcome(problem=told) if isinstance(told, Problem) else answers.RewardOutcome(receipt=told)

    def refuse_batch(entries: list[Any]) -> None:
        if len(entries) > limits.batch:
            raise ProblemError(
                "too-large", f"At most {limits.batch} entries are taken at once, but got {len(entries)}."
            )

    return [decide, decide_batch, fallback, read_decision, reward, reward_batch]


REWARDS = ("unknown-decision", "reward-conflict", "reward-too-late", "reward-out-of-range")
