"""Trained systems in few bits: small, loaded like any other, and saying the same."""

from pathlib import Path

import pytest
import torch

from spigot_nlp.config import make_config
from spigot_nlp.corpora.corpus import load_corpus
from spigot_nlp.models import checkpoint
from spigot_nlp.models.parser import Parser
from spigot_nlp.training.packing import pack, packed
from spigot_nlp.training.start import build
from tests.spigot_nlp.parsing import corpus, load, parser

DATA = corpus(train=8, dev=3)


def saved(system: Parser, folder: Path) -> Path:
    checkpoint.save_start(folder, system)
    checkpoint.write_tensors(folder / checkpoint.MODEL, system.model.state_dict())
    return folder


def test_no_entry_is_off_by_more_than_half_a_step() -> None:
    table = torch.randn(300, 40, generator=torch.Generator().manual_seed(0)) * torch.logspace(-6, 6, 300).unsqueeze(-1)
    table[7] = 0
    back = checkpoint.unpacked(packed({"table": table}))["table"]
    step = table.abs().amax(-1, keepdim=True) / 127
    assert ((back - table).abs() <= 0.5001 * step).all()
    assert torch.equal(back[7], table[7])


def test_tensors_of_any_shape_and_kind_come_back() -> None:
    given = {
        "cube": torch.randn(20, 30, 40),
        "bias": torch.randn(9),
        "large": torch.tensor([1e30]),
        "n": torch.tensor(3),
    }
    back = checkpoint.unpacked(packed(given))
    assert {name: (value.shape, value.dtype) for name, value in back.items()} == {
        name: (value.shape, value.dtype) for name, value in given.items()
    }
    assert torch.equal(back["large"], given["large"])  # which half precision does not have


def test_a_packed_system_finds_what_the_whole_one_finds(tmp_path: Path) -> None:
    whole = parser("spigot", DATA, syntax__encoder__hidden=40)
    small = pack(saved(whole, tmp_path / "run"), tmp_path / "small")
    found = load(small)
    assert list(found.pipe(DATA["graphs"].dev)) == list(whole.pipe(DATA["graphs"].dev))
    sizes = [(folder / checkpoint.MODEL).stat().st_size for folder in (tmp_path / "run", small)]
    assert sizes[1] < 0.45 * sizes[0]
    with pytest.raises(FileExistsError, match="is there already"):
        pack(tmp_path / "run", small)


def test_what_a_base_has_is_kept_once(tmp_path: Path) -> None:
    first = parser("spigot", DATA)
    base = pack(saved(first, tmp_path / "one"), tmp_path / "base")
    with torch.no_grad():
        first.model.stages["semantics"].predicates.first.weight.add_(1)  # pyright: ignore
    more = pack(saved(first, tmp_path / "two"), tmp_path / "more", base=str(base))
    kept = checkpoint.read_tensors(more / checkpoint.MODEL)[0]
    assert {name.removesuffix(checkpoint.SCALE) for name in kept} == {"_stages.semantics.predicates.first.weight"}
    assert list(load(more).pipe(DATA["graphs"].dev)) == list(first.pipe(DATA["graphs"].dev))
    other = saved(parser("spigot", corpus(train=3, dev=1)), tmp_path / "other")
    with pytest.raises(ValueError, match="knows other words than"):
        pack(other, tmp_path / "never", base=str(base))


def test_a_base_that_is_gone_is_named(tmp_path: Path) -> None:
    run = saved(parser("spigot", DATA), tmp_path / "run")
    base = pack(run, tmp_path / "base")
    more = pack(run, tmp_path / "more", base=str(base))
    base.rename(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError, match=r"base is no run folder"):
        load(more)


def test_a_copy_of_a_model_that_builds_on_another_stands_alone(tmp_path: Path) -> None:
    whole = parser("spigot", DATA)
    base = pack(saved(whole, tmp_path / "one"), tmp_path / "base")
    with torch.no_grad():
        whole.model.stages["semantics"].predicates.first.weight.add_(1)  # pyright: ignore
    more = pack(saved(whole, tmp_path / "two"), tmp_path / "more", base=str(base))
    alone = pack(more, tmp_path / "alone")
    again = pack(more, tmp_path / "again", base=str(base))
    expected = list(load(more).pipe(DATA["graphs"].dev))
    assert list(load(again).pipe(DATA["graphs"].dev)) == expected
    base.rename(tmp_path / "elsewhere")
    assert list(load(alone).pipe(DATA["graphs"].dev)) == expected
    assert "base" not in checkpoint.read_names(alone)


def test_packing_twice_changes_nothing(tmp_path: Path) -> None:
    once = pack(saved(parser("spigot", DATA, syntax__encoder__hidden=40), tmp_path / "run"), tmp_path / "once")
    twice = pack(once, tmp_path / "twice")
    assert {path.name: path.read_bytes() for path in once.iterdir()} == {
        path.name: path.read_bytes() for path in twice.iterdir()
    }


def test_lemmas_come_along(tmp_path: Path) -> None:
    config = make_config(
        {
            "data": {"source": "synthetic", "synthetic": {"train": 12, "dev": 2, "test": 2}, "folds": 2},
            "stages": {"syntax": {"annotation": "trees", "encoder": {"hidden": 4}, "mlp": 4}},
        }
    )
    run = saved(build(config, load_corpus(config.data)), tmp_path / "run")
    written = (run / checkpoint.LEMMAS).read_bytes()
    assert (pack(run, tmp_path / "copied") / checkpoint.LEMMAS).read_bytes() == written
    assert load(tmp_path / "copied").lemmas is not None
