"""Thousands of inputs made wrong at random, and every input that once broke something. `make fuzz` searches longer."""

import json
from pathlib import Path
from random import Random

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from spigot_nlp.data.formats import read
from tests.spigot_nlp.fuzz import seeds, sst_reader
from tests.spigot_nlp.fuzz.contract import Broken, held
from tests.spigot_nlp.fuzz.mutation import mutated
from tests.spigot_nlp.fuzz.targets import TARGETS, Target

FAILURES = sorted(path for path in (Path(__file__).parent / "failures").iterdir() if path.name != "README.md")
BY_NAME = {target.name: target for target in TARGETS}
CASES = 200


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_what_is_wrong_is_said_in_a_sentence(target: Target) -> None:
    dice, inputs = Random(f"{target.name} tests"), target.seeds()
    for data in inputs:
        assert held(target.run, data), "a seed is refused"
    for _ in range(max(20, round(CASES * target.share))):
        held(target.run, mutated(inputs, dice))


@pytest.mark.parametrize("path", FAILURES, ids=lambda path: path.name)
def test_failures_of_the_past(path: Path) -> None:
    held(BY_NAME[path.name.rpartition(".")[0]].run, path.read_bytes())


def test_every_failure_is_kept() -> None:
    assert len(FAILURES) >= 6


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
REQUESTS = st.dictionaries(
    st.sampled_from(["text", "words", "tags", "systems", "constraints", "top", "draw", "other"]),
    JSON | st.text() | st.lists(st.text(max_size=6)) | st.dictionaries(st.sampled_from(["heads", "arcs"]), JSON),
    max_size=5,
)
RECORDS = st.dictionaries(
    st.sampled_from(["forms", "heads", "tags", "graph", "label", "annotations", "id", "probabilities", "x"]),
    JSON | st.lists(st.integers(-1, 5), max_size=4) | st.lists(st.text(min_size=1, max_size=4), max_size=4),
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(REQUESTS)
def test_requests_of_any_kind(request: object) -> None:
    held(BY_NAME["query"].run, json.dumps(request).encode(errors="replace"))


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(RECORDS)
def test_records_of_any_kind(record: object) -> None:
    held(BY_NAME["read-jsonl"].run, json.dumps(record).encode(errors="replace"))


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.text())
def test_text_of_any_kind(text: str) -> None:
    held(BY_NAME["text"].run, text.encode(errors="replace"))


def test_the_second_reader_reads_the_seeds() -> None:
    assert sst_reader.read_trees(seeds.TREES[0])[1] == (1, ("Not", "bad", "."))
    for broken in (b"(2 a", b"(5 a)", b"(2)", b"(2 a b)", b"(2 a) (2 b)", b"a"):
        with pytest.raises(sst_reader.NoTree):
            sst_reader.read_trees(broken)


def test_the_contract_can_be_broken() -> None:
    for wrong in (lambda data: [][0], lambda data: {}["x"], lambda data: b"\xff".decode()):
        with pytest.raises(Broken):
            held(wrong, b"")

    def forever(data: bytes) -> None:
        while True:
            pass

    def long(data: bytes) -> None:
        raise ValueError("x" * 5000)

    for wrong in (long, lambda data: held(forever, data, 0.05)):
        with pytest.raises(Broken):
            held(wrong, b"")


def test_numbers_of_thousands_of_digits_are_named_with_file_and_line(tmp_path: Path) -> None:
    digits = "7" * 5000
    row = "1\tRain\t_\t_\tNN\t_\t0\troot\t{}\t_\n\n"
    for number, text in enumerate(
        (
            row.format(f"{digits}:x"),
            row.format("_").replace("1\t", f"{digits}\t"),
            f"{digits}-9\t" + row.format("_")[2:],
        )
    ):
        path = tmp_path / f"{number}.conllu"
        path.write_text(row.format("_") + text)
        with pytest.raises(ValueError, match=rf"{number}\.conllu:3: .{{1,250}}$"):
            list(read(path))
