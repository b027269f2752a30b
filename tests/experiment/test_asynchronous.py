"""An experiment in an event loop: each caller gets its own answer, and those who wait together share a transaction."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from surefoot.errors import DecisionConflictError, InputError, JournalUnavailableError
from surefoot.experiment import Answer, AsyncExperiment, Experiment, Question
from surefoot.journal import Journal, Transaction, open_journal
from surefoot.journal.memory import MemoryJournal
from tests.experiment.worlds import safe_policy

T = TypeVar("T")
ROWS = [[0.6, 0.1], [0.3, 0.6]]


class Counting(MemoryJournal):
    """Counts transactions, and can be made to fail."""

    def __init__(self) -> None:
        super().__init__()
        self.transactions, self.is_failing = 0, False

    def transact(self, name: str, work: Callable[[Transaction], T], *, keys: Sequence[str] = ()) -> T:
        self.transactions += 1
        if self.is_failing:
            raise JournalUnavailableError("The disk is on fire.")
        return super().transact(name, work, keys=keys)


def new(journal: Journal) -> AsyncExperiment:
    return AsyncExperiment(Experiment.create(journal, "shop", safe_policy(), mode="guarded"))


def test_many_callers_get_their_own_answers_and_share_transactions(tmp_path: Path) -> None:
    async def visit(shop: AsyncExperiment, visitor: int) -> list[Answer]:
        answers = []
        for step in range(5):
            answer = await shop.decide(ROWS, baseline=0, decision_id=f"{visitor}-{step}", context={"visitor": visitor})
            assert (await shop.reward(answer.decision_id, 0.5)).is_accepted
            answers.append(answer)
        return answers

    async def main(journal: Journal) -> list[list[Answer]]:
        async with new(journal) as shop:
            return await asyncio.gather(*(visit(shop, visitor) for visitor in range(20)))

    with open_journal(tmp_path / "shop.journal") as journal:
        found = asyncio.run(main(journal))
        for visitor, answers in enumerate(found):
            assert [answer.decision_id for answer in answers] == [f"{visitor}-{step}" for step in range(5)]
            assert all(answer.record.asked.context == {"visitor": visitor} for answer in answers)
        assert sorted(answer.round for answers in found for answer in answers) == list(range(1, 101))
        status = Experiment.open(journal, "shop").status()
        assert (status.rounds, status.learned) == (100, 100)


def test_those_who_wait_together_are_one_transaction() -> None:
    async def main() -> int:
        journal = Counting()
        async with new(journal) as shop:
            before = journal.transactions
            await asyncio.gather(*(shop.decide(ROWS, baseline=0) for _ in range(50)))
            return journal.transactions - before

    assert asyncio.run(main()) <= 2  # one task may go ahead before the others have come


def test_a_call_that_is_refused_is_its_own_callers_error() -> None:
    async def main() -> None:
        async with new(open_journal("memory:")) as shop:
            await shop.decide(ROWS, baseline=0, decision_id="a")
            good, bad, other, again = await asyncio.gather(
                shop.decide(ROWS, baseline=0),
                shop.decide(ROWS, baseline=9),
                shop.decide(ROWS, baseline=1, decision_id="a"),
                shop.decide(ROWS, baseline=0, decision_id="a"),
                return_exceptions=True,
            )
            assert isinstance(good, Answer)
            assert isinstance(bad, InputError)
            assert isinstance(other, DecisionConflictError)
            assert isinstance(again, Answer)
            assert again.is_repeat
            fine, senseless = await asyncio.gather(
                shop.reward("a", 0.5),
                shop.reward("a", "much"),  # type: ignore[arg-type]
                return_exceptions=True,
            )
            assert not isinstance(fine, BaseException)
            assert fine.is_accepted
            assert isinstance(senseless, InputError)
            made = await shop.decide_all([Question(ROWS, 0), Question(ROWS, 9)])
            assert [type(each) for each in made] == [Answer, InputError]

    asyncio.run(main())


def test_a_journal_that_fails_is_told_to_all_who_waited_and_the_next_go_on() -> None:
    async def main() -> None:
        journal = Counting()
        async with new(journal) as shop:
            journal.is_failing = True
            failed = await asyncio.gather(*(shop.decide(ROWS, baseline=0) for _ in range(5)), return_exceptions=True)
            assert all(isinstance(each, JournalUnavailableError) for each in failed)
            journal.is_failing = False
            assert (await shop.decide(ROWS, baseline=0)).round == 1
            assert (await shop.run(shop.experiment.status)).rounds == 1

    asyncio.run(main())


def test_a_caller_who_is_cancelled_is_not_answered_but_the_decision_stands() -> None:
    async def main() -> None:
        async with new(open_journal("memory:")) as shop:
            leaving = asyncio.create_task(shop.decide(ROWS, baseline=0, decision_id="left"))
            staying = asyncio.create_task(shop.decide(ROWS, baseline=0, decision_id="stayed"))
            await asyncio.sleep(0)
            leaving.cancel()
            assert (await staying).decision_id == "stayed"
            with pytest.raises(asyncio.CancelledError):
                await leaving
            assert shop.experiment.find("left").round == 1

    asyncio.run(main())


def test_leaving_waits_for_what_is_under_way() -> None:
    async def main() -> Experiment:
        async with new(open_journal("memory:")) as shop:
            shop.decisions.put([Question(ROWS, 0, decision_id="late")])
        return shop.experiment

    assert asyncio.run(main()).find("late").round == 1
