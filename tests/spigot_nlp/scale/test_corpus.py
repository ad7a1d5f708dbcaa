"""A corpus becomes shards: every document once, whatever is interrupted, lost or bad."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from spigot_nlp.bundled import run_folder
from spigot_nlp.config import make_config
from spigot_nlp.data.formats import read
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.locks import lock
from spigot_nlp.models import checkpoint
from spigot_nlp.models.build import fresh
from spigot_nlp.models.parser import Parser
from spigot_nlp.scale import Options, parse_corpus, read_manifest
from spigot_nlp.scale.ledger import DONE, MANIFEST
from spigot_nlp.scale.machines import packed_model
from spigot_nlp.scale.shards import Look
from spigot_nlp.scale.worker import Order, Worker
from tests.spigot_nlp.scale.conftest import RAIN, TEXTS, Here, save_model
from tests.spigot_nlp.transformers import bert

SMALL = 20  # bytes, so that every document is a piece


def shards(out: Path, ending: str = ".jsonl") -> list[Path]:
    return sorted(out.glob(f"part-*{ending}"))


def sentences(out: Path) -> list[Sentence]:
    return [sentence for shard in shards(out) for sentence in read(shard)]


def expected(model: Path) -> list[tuple[str, Sentence]]:
    parser = checkpoint.load(model)
    return [(name, sentence) for name, text in TEXTS.items() for sentence in parser.parse_text(text)]


def errors(out: Path) -> list[dict[str, Any]]:
    lines = [line for file in sorted(out.glob("errors-*.jsonl")) for line in file.read_text("utf-8").splitlines()]
    return [json.loads(line) for line in lines]


def test_shards_have_what_the_model_finds_and_where(model: Path, docs: Path, tmp_path: Path, here: Here) -> None:
    told: list[tuple[str, int, int]] = []
    out = tmp_path / "out"
    manifest = parse_corpus(
        model, [docs], out, Options(piece=SMALL), watch=lambda p: told.append((p.doing, p.done, p.total))
    )
    assert len(shards(out)) == 4
    assert [(s.get("document"), s.forms, s.heads, s.relations, s.graph) for s in sentences(out)] == [
        (name, s.forms, s.heads, s.relations, s.graph) for name, s in expected(model)
    ]
    for sentence in sentences(out):
        text, starts = TEXTS[sentence.get("document")], sentence.get("starts")
        assert sentence.id == f"{sentence.get('document')}:{sentence.get('start')}"
        assert [text[k : k + len(form)] for k, form in zip(starts, sentence.forms, strict=True)] == [*sentence.forms]
    words = sum(len(sentence) for _, sentence in expected(model))
    counts = manifest.counts
    assert (counts.documents, counts.sentences, counts.words, counts.errors) == (4, len(expected(model)), words, 0)
    assert [shard["documents"] for shard in manifest.shards] == [1, 1, 1, 1]
    assert manifest.complete
    assert read_manifest(out) == manifest
    assert told == [("surveying", 1, 1), *(("parsing", k, 4) for k in range(5))]
    assert not [path for path in out.iterdir() if path.name.endswith(".tmp") or path.name.startswith("errors")]


@pytest.mark.parametrize("moment", range(1, 6))
def test_what_is_interrupted_goes_on(model: Path, docs: Path, tmp_path: Path, here: Here, moment: int) -> None:
    out = tmp_path / "out"
    here.interrupt(moment)
    with pytest.raises(KeyboardInterrupt):
        parse_corpus(model, [docs], out, Options(piece=SMALL))
    assert not read_manifest(out).complete
    done = len(read_manifest(out).shards)
    assert done == max(0, moment - 2)  # the first task was the survey
    here.accident = None
    assert parse_corpus(model, [docs], out, Options(piece=SMALL)).complete
    assert here.given == (5 if moment == 1 else 4 - done)
    assert [(s.get("document"), s.heads) for s in sentences(out)] == [(name, s.heads) for name, s in expected(model)]
    before = {path: path.stat().st_mtime_ns for path in shards(out)}
    assert parse_corpus(model, [docs], out, Options(piece=SMALL)).counts.documents == 4
    assert {path: path.stat().st_mtime_ns for path in shards(out)} == before


def test_lost_workers_are_replaced(model: Path, docs: Path, tmp_path: Path, here: Here) -> None:
    here.lose(2, 3)
    assert parse_corpus(model, [docs], tmp_path / "out", Options(piece=SMALL)).counts.documents == 4
    assert here.given == 7
    assert [s.heads for s in sentences(tmp_path / "out")] == [s.heads for _, s in expected(model)]
    team = here.teams[-1]
    assert team.hired - 2 == team.dismissed  # those that were lost need not be sent away


def test_a_piece_that_cannot_be_parsed_stops_no_other(model: Path, docs: Path, tmp_path: Path, here: Here) -> None:
    def accident(number: int, task: Any) -> None:
        if getattr(task, "number", None) == 1:
            raise OSError("the disk is gone")

    out, here.accident = tmp_path / "out", accident
    with pytest.raises(RuntimeError, match=r"1 of 4 pieces could not be parsed.*: the disk is gone"):
        parse_corpus(model, [docs], out, Options(piece=SMALL))
    assert [shard["file"] for shard in read_manifest(out).shards] == [f"part-000000{k}.jsonl" for k in (0, 2, 3)]
    here.accident = None
    assert parse_corpus(model, [docs], out, Options(piece=SMALL)).counts.documents == 4
    assert here.given == 1


def test_bad_documents_go_to_a_shard_of_their_own(
    model: Path, tmp_path: Path, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [b'{"id": "a", "text": "Rain fell."}', b"{", b'{"id": "c"}', b'{"id": 4, "text": 5}', b'{"text": "\xff"}']
    lines += [b'{"id": "f", "text": "The house is cursed."}', b"", b'{"id": "h", "text": "It stopped."}']
    (tmp_path / "docs.jsonl").write_bytes(b"\n".join(lines))
    (tmp_path / "latin.txt").write_bytes(b"It rained.\n\ncaf\xe9")
    (tmp_path / "long.jsonl").write_text(json.dumps({"id": "long", "text": "Rain " * 1500}), encoding="utf-8")
    whole = Parser.parse

    def parse(self: Parser, given: Any, **options: Any) -> Any:
        given = list(given)
        if any("cursed" in sentence.forms for sentence in given):
            raise RuntimeError("it is cursed")
        return whole(self, given, **options)

    monkeypatch.setattr(Parser, "parse", parse)
    files = [tmp_path / name for name in ("docs.jsonl", "latin.txt", "long.jsonl")]
    manifest = parse_corpus(model, files, tmp_path / "out", Options(lines=True))
    assert [s.get("document") for s in sentences(tmp_path / "out")] == ["a", "h"]
    assert (manifest.counts.documents, manifest.counts.errors) == (2, 7)
    assert manifest.shards[0]["errors_file"] == "errors-0000000.jsonl"
    found = errors(tmp_path / "out")
    assert [(Path(bad["document"]).name, bad["line"]) for bad in found] == [
        ("docs.jsonl:2", 2),
        ("c", 3),
        ("4", 4),
        ("docs.jsonl:5", 5),
        ("f", 6),
        ("latin.txt", 0),
        ("long", 1),
    ]
    for bad, said in zip(
        found, ["not JSON", "no field", "not text", "0xff", "cursed", "0xe9", "1,500 words"], strict=True
    ):
        assert said in bad["reason"]


def test_another_command_is_refused(model: Path, docs: Path, tmp_path: Path, here: Here) -> None:
    out, other = tmp_path / "out", tmp_path / "other.txt"
    other.write_text("It rained.", encoding="utf-8")
    parse_corpus(model, [docs], out)
    different = save_model(tmp_path / "model", 1)
    plain = Options()
    for run, inputs, options, said in (
        (different, [docs], plain, "the model is another"),
        (model, [docs, other], plain, "other.txt was not among the inputs"),
        (model, [other], plain, "other.txt was not among the inputs"),
        (model, [docs], Options(tokenised=True), "tokenised was off and is on"),
        (model, [docs], Options(to="sdp"), "to was jsonl and is sdp"),
    ):
        with pytest.raises(ValueError, match=rf"has the answers to another command: .*{said}; give that command"):
            parse_corpus(run, inputs, out, options)
    docs.write_text('{"text": "It rained."}', encoding="utf-8")
    with pytest.raises(ValueError, match=r"docs\.jsonl has changed since"):
        parse_corpus(model, [docs], out)
    with pytest.raises(ValueError, match=r"has other files in it, .* choose an --out of its own"):
        parse_corpus(model, [docs], different)
    with (out / ".lock").open("ab") as file:
        assert lock(file)
        with pytest.raises(ValueError, match="another process is writing to"):
            parse_corpus(model, [docs], out)
    with pytest.raises(ValueError, match="where the answers go"):
        parse_corpus(model, [out / "part-0000000.jsonl"], out)


def test_a_journal_that_was_cut_short_and_a_shard_that_is_gone(
    model: Path, docs: Path, tmp_path: Path, here: Here
) -> None:
    out = tmp_path / "out"
    parse_corpus(model, [docs], out, Options(piece=SMALL))
    before = {path.name: path.read_bytes() for path in shards(out)}
    (out / DONE).write_bytes((out / DONE).read_bytes()[:-10])
    (out / ".part-0000001.jsonl.abc.tmp").write_text("half", encoding="utf-8")
    shards(out)[1].unlink()
    assert parse_corpus(model, [docs], out, Options(piece=SMALL)).complete
    assert here.given == 2
    assert {path.name: path.read_bytes() for path in shards(out)} == before
    assert not list(out.glob(".*.tmp"))
    (out / MANIFEST).write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match="is damaged"):
        parse_corpus(model, [docs], out, Options(piece=SMALL))


def test_every_format(model: Path, docs: Path, tmp_path: Path, here: Here) -> None:
    wanted = expected(model)
    parse_corpus(model, [docs], tmp_path / "u", Options(to="conllu", graph=True, piece=SMALL))
    found = [sentence for shard in shards(tmp_path / "u", ".conllu") for sentence in read(shard)]
    assert [(s.forms, s.heads, s.relations) for s in found] == [(s.forms, s.heads, s.relations) for _, s in wanted]
    text = "".join(shard.read_text(encoding="utf-8") for shard in shards(tmp_path / "u", ".conllu"))
    assert text.count("# newdoc id = ") == 3
    assert "# newdoc id = one\n# sent_id = one:0\n# start = 0\n# text = Rain fell on the old house.\n1\tRain" in text
    parse_corpus(model, [docs], tmp_path / "s", Options(to="sdp", piece=SMALL))
    found = [sentence for shard in shards(tmp_path / "s", ".sdp") for sentence in read(shard)]
    assert [s.graph and s.graph.arcs for s in found] == [s.graph and s.graph.arcs for _, s in wanted]


def test_parquet(model: Path, docs: Path, tmp_path: Path, here: Here) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    parse_corpus(model, [docs], tmp_path / "out", Options(to="parquet", piece=SMALL))
    rows = [row for shard in shards(tmp_path / "out", ".parquet") for row in pq.read_table(shard).to_pylist()]
    wanted = expected(model)
    assert [(row["document"], tuple(row["words"])) for row in rows] == [(name, s.forms) for name, s in wanted]
    for row, (name, sentence) in zip(rows, wanted, strict=True):
        assert (tuple(row["heads"]), tuple(row["relations"])) == (sentence.heads, sentence.relations)
        assert sentence.graph is not None
        assert [tuple(arc.values()) for arc in row["arcs"]] == list(sentence.graph.arcs)
        assert tuple(row["tops"]) == sentence.graph.tops
        assert TEXTS[name][row["start"] : row["end"]].endswith(row["words"][-1])
        assert [TEXTS[name][k:][:1] for k in row["starts"]] == [word[0] for word in row["words"]]


def test_many_small_files_share_a_shard_and_conllu_is_kept_as_it_is(model: Path, tmp_path: Path, here: Here) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for k in range(5):
        (folder / f"{k}.txt").write_text(f"Rain {k} fell.", encoding="utf-8")
    (folder / "x.conllu").write_text(
        "# newdoc id = x\n# sent_id = x1\n1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n\n1\tbad\n\n", encoding="utf-8"
    )
    manifest = parse_corpus(model, [folder], tmp_path / "out")
    found = sentences(tmp_path / "out")
    assert len(manifest.shards) == 1
    assert [s.id for s in found] == [*(f"{folder / str(k)}.txt:0" for k in range(5)), "x1"]
    assert (found[-1].lemmas, found[-1].get("document")) == (("go",), "x")
    assert found[-1].tags is None  # the model has seen none, and so looks at none
    assert [bad["line"] for bad in errors(tmp_path / "out")] == [5]


def test_what_nobody_can_do_ends(model: Path, docs: Path, tmp_path: Path, here: Here) -> None:
    def accident(number: int, task: Any) -> None:
        raise OSError("no space left")

    here.accident = accident
    with pytest.raises(ValueError, match="no space left"):
        parse_corpus(model, [docs], tmp_path / "out", Options(piece=SMALL))
    docs.write_text("".join(f'{{"text": "Rain {k} fell on the house, and it was old."}}\n' for k in range(20)), "utf-8")

    def later(number: int, task: Any) -> None:
        if number > 1:
            raise OSError("no space left")

    here.accident = later
    with pytest.raises(RuntimeError, match=r"nothing can be done any more: no space left"):
        parse_corpus(model, [docs], tmp_path / "more", Options(piece=SMALL))


def test_a_machine_that_does_not_see_the_folder(model: Path, tmp_path: Path) -> None:
    said = Worker(Order(str(model), str(tmp_path / "nowhere"), Look("jsonl"), mark="ours")).unfit()
    assert f"does not see {tmp_path / 'nowhere'}; the folder of shards must be the same one" in said


def test_a_model_that_comes_with_spigot_is_called_by_its_name(docs: Path, tmp_path: Path, here: Here) -> None:
    manifest = parse_corpus("en", [docs], tmp_path / "out")
    assert manifest.counts.documents == len(TEXTS)
    assert [(s.get("document"), s.heads) for s in sentences(tmp_path / "out")] == [
        (name, s.heads) for name, s in expected(run_folder("en"))
    ]


def test_a_transformer_is_handed_to_other_machines_with_its_files(tmp_path: Path) -> None:
    encoder = {"kind": "transformer", "model": str(bert(tmp_path / "bert"))}
    stage = {"annotation": "trees", "mlp": 8, "encoder": encoder}
    config = make_config({"data": {"tags": "columns"}, "stages": {"syntax": stage}})
    parser = fresh(config, {"trees": [RAIN]})
    folder = tmp_path / "run"
    checkpoint.save_start(folder, parser)
    checkpoint.write_tensors(folder / checkpoint.MODEL, parser.model.state_dict())
    packed = packed_model(folder)
    shutil.rmtree(folder)
    shutil.rmtree(tmp_path / "bert")
    there = Worker(Order("elsewhere", str(tmp_path), Look("jsonl"), packed=packed)).parser
    assert [s.heads for s in there.parse([RAIN])] == [s.heads for s in parser.parse([RAIN])]


def test_words_that_are_new_to_the_model_are_counted(model: Path, tmp_path: Path, here: Here) -> None:
    (tmp_path / "a.txt").write_text("Rain fell. Zork glorped 7 grues.", encoding="utf-8")
    manifest = parse_corpus(model, [tmp_path / "a.txt"], tmp_path / "out")
    parser = checkpoint.load(model)
    wanted = parser.foreign(parser.conventions.sentences("Rain fell. Zork glorped 7 grues."))
    assert manifest.counts.foreign == wanted
    assert wanted.new >= 3
    assert read_manifest(tmp_path / "out").counts == manifest.counts
