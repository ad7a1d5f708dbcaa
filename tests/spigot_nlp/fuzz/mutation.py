"""Bytes made wrong at random: what happens to files on bad disks, in bad editors, and at the hands of attackers."""

from collections.abc import Callable, Sequence
from random import Random

_SPECIAL = [
    *(bytes([value]) for value in (0, 9, 10, 11, 12, 13, 27, 31, 32, 127, 128, 133, 192, 254, 255)),
    b"\r\n", b"\n\n", b"\t\t", b"\xef\xbb\xbf", b"\xc2\xa0", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
    b"-1", b"0", b"1-1", b"1.1", b"1e400", b"-0", b"NaN", b"Infinity", b"9" * 20, b"7" * 400, b"8" * 5000,
    b"2147483648",
    b"()", b"(", b")", b"((", b"(2 ", b"[", b"]", b"{", b"}", b"[" * 2000, b"(1 " * 2000, b'"', b"'", b"\\", b"\\u0000",
    b"\\ud800", b"|", b":", b"_", b"#", b"=", b",", b"null", b"true", b"{}", b"[]", b"a" * 3000, b"../..", b"%s",
]  # fmt: skip
"""What breaks readers: control characters, half characters, giant numbers, deep nesting, words of other formats."""


def _flip(data: bytearray, dice: Random) -> None:
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)


def _set(data: bytearray, dice: Random) -> None:
    data[dice.randrange(len(data))] = dice.randrange(256)


def _insert(data: bytearray, dice: Random) -> None:
    place = dice.randrange(len(data) + 1)
    data[place:place] = dice.choice(_SPECIAL)


def _replace(data: bytearray, dice: Random) -> None:
    place = dice.randrange(len(data))
    data[place : place + dice.randrange(1, 6)] = dice.choice(_SPECIAL)


def _delete(data: bytearray, dice: Random) -> None:
    place = dice.randrange(len(data))
    del data[place : place + 1 + int(dice.expovariate(0.2))]


def _repeat(data: bytearray, dice: Random) -> None:
    place = dice.randrange(len(data))
    piece = data[place : place + 1 + int(dice.expovariate(0.1))]
    data[place:place] = piece * dice.choice((1, 1, 2, 50))


def _swap(data: bytearray, dice: Random) -> None:
    one, other = dice.randrange(len(data)), dice.randrange(len(data))
    data[one], data[other] = data[other], data[one]


def _cut(data: bytearray, dice: Random) -> None:
    del data[dice.randrange(len(data)) :]


def _drop_line(data: bytearray, dice: Random) -> None:
    lines = data.split(b"\n")
    del lines[dice.randrange(len(lines))]
    data[:] = b"\n".join(lines)


_WAYS: Sequence[Callable[[bytearray, Random], None]] = (
    _flip, _set, _insert, _insert, _replace, _replace, _delete, _repeat, _swap, _cut, _drop_line,
)  # fmt: skip


def mutated(seeds: Sequence[bytes], dice: Random) -> bytes:
    """One of the seeds with a few changes; now and then two of them joined.

    Example:
        >>> mutated([b"rain fell"], Random(1)) == mutated([b"rain fell"], Random(1))
        True
    """
    data = bytearray(dice.choice(seeds))
    if dice.random() < 0.05:
        other = dice.choice(seeds)
        data[dice.randrange(len(data) + 1) :] = other[dice.randrange(len(other) + 1) :]
    for _ in range(1 + int(dice.expovariate(0.7))):
        if not data:
            break
        dice.choice(_WAYS)(data, dice)
    return bytes(data)
