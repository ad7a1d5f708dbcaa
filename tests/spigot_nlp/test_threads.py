"""How many threads torch and the kernels have, also where several threads of Python ask at once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import torch

from spigot.kernels import kernel_threads
from spigot_nlp.parallel import can_fork, ordered_map
from spigot_nlp.threads import kernels_alone, own_threads, use_threads


def numbers() -> tuple[int, int]:
    return torch.get_num_threads(), kernel_threads()


def test_a_block_ends_as_it_began_whatever_happens_in_it() -> None:
    with use_threads(3):
        try:
            with kernels_alone():
                with kernels_alone():
                    assert numbers() == (1, 3)
                assert numbers() == (1, 3)
                raise KeyError
        except KeyError:
            assert numbers() == (3, 3)


def test_a_block_is_of_one_thread_alone() -> None:
    """Torch tells a new thread how many it may use when it first asks, and that must not be what a block says."""
    began, end = Event(), Event()

    def first() -> tuple[int, int]:
        with kernels_alone():
            began.set()
            end.wait(20)
        return numbers()

    def second() -> tuple[tuple[int, int], tuple[int, int]]:
        with kernels_alone():
            inside = numbers()
        return inside, numbers()

    def single() -> tuple[tuple[int, int], tuple[int, int]]:
        with own_threads(1):
            return second()

    with use_threads(3), ThreadPoolExecutor(1) as one:
        earlier = one.submit(first)
        assert began.wait(20)
        for ask, wanted in ((numbers, (3, 3)), (second, ((1, 3), (3, 3))), (single, ((1, 1), (1, 1)))):
            with ThreadPoolExecutor(1) as other:
                assert other.submit(ask).result(20) == wanted
                assert other.submit(numbers).result(20) == (3, 3)
        assert numbers() == (3, 3)
        end.set()
        assert earlier.result(20) == (3, 3)
        assert numbers() == (3, 3)


def test_many_at_once_leave_what_they_found() -> None:
    together = Barrier(4)

    def again(_: int) -> set[tuple[int, int]]:
        together.wait(20)
        seen = set()
        for _ in range(200):
            with kernels_alone():
                seen.add(numbers())
        return seen | {numbers()}

    with use_threads(3), ThreadPoolExecutor(4) as pool:
        assert set().union(*pool.map(again, range(4))) == {(1, 3), (3, 3)}
        assert numbers() == (3, 3)


def test_copies_of_a_process_have_one_of_torch() -> None:
    """Even if it is copied while another of its threads is in a block, which nobody ends in the copy. Their kernels,
    which begin anew in a copy, have as many as here."""
    if not can_fork():
        return
    began, end = Event(), Event()

    def other() -> None:
        with kernels_alone():
            began.set()
            end.wait(20)

    def inside(_: int) -> tuple[tuple[int, int], tuple[int, int]]:
        with kernels_alone():
            found = numbers()
        return found, numbers()

    with use_threads(2), ThreadPoolExecutor(1) as pool:
        done = pool.submit(other)
        assert began.wait(20)
        try:
            assert list(ordered_map(inside, [0, 1], processes=2)) == [((1, 2), (1, 2))] * 2
        finally:
            end.set()
        done.result(20)
