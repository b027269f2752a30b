"""Ids that nobody has used: in any thread, and in no child of a process that was forked."""

import multiprocessing
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from surefoot.ids import POOL, new_id

MANY = 5 * POOL


def draw(count: int) -> list[str]:
    return [new_id() for _ in range(count)]


def test_no_two_threads_get_the_same() -> None:
    with ThreadPoolExecutor(8) as threads:
        drawn = [each for ids in threads.map(draw, [MANY] * 8) for each in ids]
    assert len(set(drawn)) == 8 * MANY


def test_ids_made_later_sort_later() -> None:
    drawn = draw(MANY)
    assert [each[:12] for each in drawn] == sorted(each[:12] for each in drawn)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_go_on_with_its_parents() -> None:
    new_id()  # so that there is something left to inherit
    fork = multiprocessing.get_context("fork")
    with fork.Pool(2, maxtasksperchild=1) as children:
        drawn = [each[12:] for ids in children.map(draw, [POOL // 2] * 2, chunksize=1) for each in ids]
    assert len(set(drawn) | {each[12:] for each in draw(POOL // 2)}) == 3 * (POOL // 2)
