"""`spigot pushes`: the table, what it is made of, and where it takes sentences from."""

import json
from pathlib import Path

import pytest

import spigot
from spigot_nlp import cli
from spigot_nlp.corpora.synthetic import splits
from spigot_nlp.data.formats import write
from spigot_nlp.models import checkpoint
from spigot_nlp.models.accounts import pushes

DEV = splits(train=60, dev=8).dev  # that of the tiny experiment
WIRE = "syntax -> semantics"


def run(*words: str | Path) -> int:
    return cli.main(["pushes", *(str(word) for word in words), "--threads", "1"])


def record(capsys: pytest.CaptureFixture[str], *words: str | Path) -> dict:
    assert run(*words, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_every_estimator_sees_the_same_losses(trained, capsys):
    lpgd = '{ name = "lpgd", rho = 0.5 }'
    found = record(capsys, trained, "-e", "ste", "-e", "spigot", "-e", lpgd)
    parser = checkpoint.load(trained)
    assert found["sentences"] == len(DEV)
    for name, estimator in (
        ("ste", spigot.StraightThrough()),
        ("spigot", spigot.Spigot()),
        (lpgd, spigot.LPGD(rho=0.5)),
    ):
        wanted = vars(pushes(parser, DEV, estimator)[WIRE])
        assert found["pushes"][name][WIRE] == pytest.approx(wanted, rel=1e-4)
    assert found["pushes"]["spigot"][WIRE]["absent_down"] == 0
    assert found["pushes"]["ste"][WIRE]["absent_down"] > 0


def test_its_own_estimator_and_a_file(trained, tmp_path, capsys):
    path = tmp_path / "some.sdp"
    write(splits(train=5).train, path)
    found = record(capsys, trained, path, "--sentences", "3")
    assert found["sentences"] == 3
    assert list(found["pushes"]) == ["its own"]
    assert run(trained, path) == 0
    out = capsys.readouterr().out
    assert f"{WIRE}: 5 sentences, " in out
    assert "absent, up" in out


def test_the_hull_is_that_of_the_structure(trained, capsys):
    """Trees: the projection onto the hull differs from that onto the relaxation."""
    hull = '{ name = "spigot", polytope = "hull" }'
    found = record(capsys, trained, "-e", "spigot", "-e", hull)["pushes"]
    trees = checkpoint.load(trained).model.stages["syntax"].structure
    wanted = pushes(checkpoint.load(trained), DEV, spigot.Spigot(polytope=spigot.ConvexHull(trees)))[WIRE]
    assert found[hull][WIRE]["absent_up"] == pytest.approx(wanted.absent_up, rel=1e-3)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("-e", "sponge"), "there is no estimator 'sponge'"),
        (("-e", "{ name = "), "is no table of TOML"),
        (("-e", '{ name = "ste", rho = 3.0 }'), "rho"),
        (("--sentences", "-1"), "--sentences is -1"),
    ],
)
def test_what_cannot_be_asked(words, says, trained, capsys):
    assert run(trained, *words) == 1
    assert says in capsys.readouterr().err


def test_systems_without_a_wire(trained_without_syntax, capsys):
    assert run(trained_without_syntax) == 1
    assert "there is no gradient to show" in capsys.readouterr().err


def test_sentences_without_what_is_learned(classifier, tmp_path, capsys):
    path = tmp_path / "unlabelled.txt"
    path.write_text("It rained .\n", encoding="utf-8")
    assert run(classifier, path) == 1
    assert "has no sentence with a class that classifier could learn from" in capsys.readouterr().err


def test_sentences_of_unknown_classes_are_left_out(classifier, tmp_path, capsys):
    path = tmp_path / "mixed.tsv"
    path.write_text("0\tIt rained .\n7\tIt rained .\n", encoding="utf-8")
    assert record(capsys, classifier, path)["sentences"] == 1
