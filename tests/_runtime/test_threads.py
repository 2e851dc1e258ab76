from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import torch

from himatch._runtime.threads import one_thread

Worker = Callable[[Callable[[], object]], object]


@pytest.fixture(autouse=True)
def cores() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def workers() -> Iterator[list[Worker]]:
    """Threads that do what they are given, one thing after another."""
    with ExitStack() as stack:
        pools = [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(2)]
        yield [lambda task, pool=pool: pool.submit(task).result() for pool in pools]  # type: ignore[misc]


def in_a_new_thread() -> object:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(torch.get_num_threads).result()


def test_one_inside_another() -> None:
    with one_thread():
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize("first", [0, 1])
def test_threads_that_overlap(workers: list[Worker], first: int) -> None:
    """Whoever leaves first, every thread has its cores back, later ones too."""
    blocks = [one_thread(), one_thread()]
    for worker, block in zip(workers, blocks, strict=True):
        worker(block.__enter__)
        assert worker(torch.get_num_threads) == 1
    for leaving, staying in ((first, 1 - first), (1 - first, None)):
        workers[leaving](lambda leaving=leaving: blocks[leaving].__exit__(None, None, None))  # type: ignore[misc]
        assert workers[leaving](torch.get_num_threads) == 3
        if staying is not None:
            assert workers[staying](torch.get_num_threads) == 1
    assert in_a_new_thread() == 3
    assert torch.get_num_threads() == 3


def test_an_error_inside() -> None:
    with pytest.raises(KeyError), one_thread():
        raise KeyError
    assert torch.get_num_threads() == 3
