"""An experiment in an event loop: each caller gets its own answer, and those who wait together share a transaction."""

import asyncio
import gc
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

import numpy as np
import pytest

from surefoot.errors import DecisionConflictError, InputError, JournalUnavailableError
from surefoot.experiment import Answer, AsyncExperiment, Experiment
from surefoot.experiment.asynchronous import LARGEST_GROUP, BatchQueue
from surefoot.journal import Journal, Transaction, open_journal
from surefoot.journal.memory import MemoryJournal
from surefoot.rounds.format import pack
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


def json_of_depth(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


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
        shop = Experiment.open(journal, "shop")
        for visitor, answers in enumerate(found):
            assert [answer.decision_id for answer in answers] == [f"{visitor}-{step}" for step in range(5)]
            assert all(shop.round(answer.decision_id).request.context == {"visitor": visitor} for answer in answers)
        assert sorted(answer.round for answers in found for answer in answers) == list(range(1, 101))
        status = shop.status()
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
            made = await shop.decide_all([{"features": ROWS, "baseline": 0}, {"features": ROWS, "baseline": 9}])
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


@pytest.mark.parametrize("is_under_way", [False, True])
def test_for_a_caller_who_is_cancelled_nothing_is_decided_but_what_is_under_way(is_under_way: bool) -> None:
    async def main() -> None:
        async with new(open_journal("memory:")) as shop:
            leaving = asyncio.create_task(shop.decide(ROWS, baseline=0, decision_id="left"))
            staying = asyncio.create_task(shop.decide(ROWS, baseline=0, decision_id="stayed"))
            for _ in range(1 + is_under_way):  # they are queued in the first turn, and taken in the second
                await asyncio.sleep(0)
            leaving.cancel()
            assert (await staying).decision_id == "stayed"
            with pytest.raises(asyncio.CancelledError):
                await leaving
            assert shop.experiment.find("stayed").round == 1 + is_under_way
            if is_under_way:
                assert shop.experiment.find("left").round == 1

    asyncio.run(main())


def test_leaving_waits_for_what_is_under_way() -> None:
    async def main() -> Experiment:
        async with new(open_journal("memory:")) as shop:
            leaving = asyncio.create_task(shop.decide(ROWS, baseline=0, decision_id="late"))
            await asyncio.sleep(0)
        leaving.cancel()
        return shop.experiment

    assert asyncio.run(main()).find("late").round == 1


def test_what_was_asked_is_decided_even_if_the_array_is_filled_anew(tmp_path: Path) -> None:
    async def main(journal: Journal) -> bytes:
        async with new(journal) as shop:
            rows = np.array(ROWS)
            waiting = []
            for n in range(10):
                rows[1, 1] = 0.05 * n
                waiting.append(asyncio.create_task(shop.decide(rows, baseline=0)))
                await asyncio.sleep(0)
            rows[:] = 7.0
            answers = await asyncio.gather(*waiting)
            rounds: list[Any] = [shop.experiment.round(answer.decision_id) for answer in answers]
            assert [one.request.features[1][1] for one in rounds] == [0.05 * n for n in range(10)]
            return pack(shop.experiment.policy_state())

    with open_journal(tmp_path / "shop.journal") as journal:
        live = asyncio.run(main(journal))
        assert live == pack(Experiment.open(journal, "shop").policy_state())


def test_a_list_that_changes_while_it_waits_changes_nobodys_answers() -> None:
    async def main() -> None:
        async with new(open_journal("memory:")) as shop:
            mine = [{"features": ROWS, "baseline": 0, "decision_id": "a"}]
            waiting = [asyncio.create_task(shop.decide_all(mine))]
            waiting += [
                asyncio.create_task(shop.decide_all([{"features": ROWS, "baseline": 0, "decision_id": name}]))
                for name in "bc"
            ]
            await asyncio.sleep(0)
            mine.append({"features": ROWS, "baseline": 0, "decision_id": "x"})
            found = await asyncio.wait_for(asyncio.gather(*waiting), 10)
            assert [[one.decision_id for one in answers if isinstance(one, Answer)] for answers in found] == [
                ["a"],
                ["b"],
                ["c"],
            ]
            made = await shop.decide_all({"features": ROWS, "baseline": 0} for _ in range(3))
            assert [answer.round for answer in made if isinstance(answer, Answer)] == [4, 5, 6]

    asyncio.run(main())


@pytest.mark.parametrize(
    "wrong",
    [
        {"actions": 5},
        {"actions": ["a", "\ud800"]},
        {"context": {"deep": json_of_depth(5000)}},
        {"baseline_reward": "much"},
        {"features": object()},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_request_that_makes_no_sense_spares_those_who_wait_with_it(wrong: dict[str, Any]) -> None:
    async def main() -> None:
        async with new(open_journal("memory:")) as shop:
            *fine, bad = await asyncio.gather(
                *(shop.decide(ROWS, baseline=0) for _ in range(3)),
                shop.decide(**{"features": ROWS, "baseline": 0, **wrong}),
                return_exceptions=True,
            )
            assert isinstance(bad, InputError)
            assert [type(answer) for answer in fine] == [Answer] * 3
            assert isinstance((await shop.decide_all(["nonsense"]))[0], InputError)  # type: ignore[list-item]

    asyncio.run(main())


def test_another_loop_is_refused_while_the_first_is_open_and_served_when_it_is_closed() -> None:
    shop = new(open_journal("memory:"))

    async def visit() -> int:
        return (await shop.decide(ROWS, baseline=0)).round

    first = asyncio.new_event_loop()
    assert first.run_until_complete(visit()) == 1
    with pytest.raises(InputError, match="one event loop"):
        asyncio.run(visit())
    hanging = first.create_task(visit())
    first.run_until_complete(asyncio.sleep(0))
    hanging._log_destroy_pending = False  # type: ignore[attr-defined]
    first.close()  # with a caller in it that nobody will ever answer

    async def later() -> int:
        await asyncio.wait_for(shop.drain(), 10)
        waiting = asyncio.create_task(visit())
        await asyncio.sleep(0)
        gc.collect()  # the old loop's task is destroyed, while somebody waits in this one
        assert shop.decisions.size == 1
        return await asyncio.wait_for(waiting, 10)

    del hanging, first
    assert asyncio.run(later()) >= 2


def test_when_the_loop_ends_nobody_is_left_waiting() -> None:
    shop = new(open_journal("memory:"))

    async def visit() -> int:
        return (await shop.decide(ROWS, baseline=0)).round

    async def leave() -> list[asyncio.Task[int]]:
        tasks = [asyncio.create_task(visit()) for _ in range(5)]
        await asyncio.sleep(0)
        return tasks  # asyncio.run cancels them, and the one that works for them

    assert all(task.cancelled() for task in asyncio.run(leave()))
    assert shop.decisions.size == 0
    assert asyncio.run(visit()) >= 1


def test_an_executor_that_is_shut_down_leaves_nobody_waiting() -> None:
    async def main() -> None:
        executor = ThreadPoolExecutor(1)
        shop = AsyncExperiment(new(open_journal("memory:")).experiment, executor=executor)
        holding = Event()
        executor.submit(holding.wait)
        waiting = [asyncio.create_task(shop.decide(ROWS, baseline=0)) for _ in range(3)]
        await asyncio.sleep(0.01)
        executor.shutdown(wait=False, cancel_futures=True)
        holding.set()
        done, late = await asyncio.wait(waiting, timeout=10)
        assert (len(done), len(late)) == (3, 0)

    asyncio.run(main())


def test_a_group_that_is_full_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = list[float]()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        later = loop.call_later

        def noted(delay: float, *args: Any) -> Any:
            moments.append(delay)
            return later(delay, *args)

        monkeypatch.setattr(loop, "call_later", noted)
        with ThreadPoolExecutor(1) as pool:
            queue = BatchQueue(lambda entries: pool.submit(list, entries))
            await asyncio.gather(*(queue.put([0] * (LARGEST_GROUP // 2)) for _ in range(20)))  # two fill a group
            await asyncio.sleep(0)

    asyncio.run(main())
    assert len(moments) <= 1  # after the last group alone
