"""The JSON interface: what it answers, and what it refuses."""

import asyncio
import json
from dataclasses import replace

import pytest
from prometheus_client import generate_latest

from spigot_nlp.data.formats import write
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.text.conventions import Conventions
from spigot_nlp.data.text.raw import sentences
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.models.inspection import Inspection, inspect
from spigot_nlp.serve import Api, Refused, Served, open_systems
from spigot_nlp.serve.requests import read_query, read_request
from spigot_nlp.serve.responses import parse_fields
from spigot_nlp.serve.systems import known_sentences
from spigot_nlp.stages.alternatives import Alternative
from spigot_nlp.stages.constraints import Constraints
from tests.spigot_nlp.parsing import classifier, curly_parser
from tests.spigot_nlp.serve.conftest import LIMITS

WORDS = ["The", "cat", "sees", "the", "dog", "here"]


def parse(ask, status=200, **body):
    reply = ask("POST", "/api/parse", body)
    assert reply.status == status, reply.value
    return reply.value if status == 200 else reply.value["error"]


def only(answer):
    """The first system's answer to the first sentence."""
    return answer["sentences"][0]["answers"][0]


def test_systems_say_what_they_are(ask):
    found = {system["name"]: system for system in ask("GET", "/api/systems").value["systems"]}
    assert list(found) == ["trees", "graphs", "mood"]
    assert [found[name]["gives"] for name in found] == [["heads", "graph"], ["graph"], ["graph", "label"]]
    assert [found[name]["task"] for name in found] == ["parsing", "parsing", "classification"]
    assert (found["trees"]["system"], found["graphs"]["system"]) == ("spigot", "neurboparser")
    assert "ARG1" in found["trees"]["roles"]
    assert found["mood"]["classes"] == [0, 1]
    assert found["trees"]["classes"] == []


def test_examples_are_of_words_that_the_system_knows(ask, systems):
    for system, about in zip(systems, ask("GET", "/api/systems").value["systems"], strict=True):
        assert about["examples"]
        for text in about["examples"]:
            answer = only(parse(ask, text=text, systems=[system.name]))
            assert all(form.lower() in system.parser.vocab.words for form in answer["forms"])


def test_examples_come_from_the_sentences_that_a_run_keeps(tmp_path):
    sentence = Sentence(("Der", "Hund", "schläft", "nicht", "."), heads=(2, 3, 0, 3, 3))
    strange = replace(sentence, forms=("Der", "Hund", "schläft", "nie", "."))  # one of its words was never seen
    vocab = Vocab.of([sentence])
    write([strange, sentence], tmp_path / "gold.dev.jsonl")
    assert [known.text for known in known_sentences(vocab, tmp_path)] == ["Der Hund schläft nicht."]
    (tmp_path / "gold.dev.jsonl").write_text("{")  # a damaged file is no reason to fail
    assert [known.text for known in known_sentences(vocab, tmp_path)] == ["der hund nicht schläft"]


def test_forced_and_forbidden_arcs_are_marked_in_files_too(ask):
    (word, head), (start, end, role) = (1, only(parse(ask, words=WORDS))["heads"][0]), (3, 2, "ARG1")
    demands = {"not_heads": [[word, head]], "arcs": [[start, end, role]]}
    drawn = only(parse(ask, words=WORDS, constraints=demands, draw="file"))["svg"]
    assert f'class="arc gone forbidden" data-side="below" data-start="{head}" data-end="{word}"' in drawn
    assert f'forced" data-side="above" data-start="{start}" data-end="{end}"' in drawn
    assert "forced: must be there" in drawn
    assert "forbidden: must not be there" in drawn
    pair = parse(ask, words=WORDS, constraints=demands, systems=["trees", "graphs"], draw=True)["sentences"][0]
    assert all("forced" in pair["compare"][name] for name in ("first", "second", "both"))
    assert "forbidden" not in pair["compare"]["second"]  # it has no trees to forbid anything in


def test_answers_are_those_of_the_library(ask, systems):
    names = [system.name for system in systems]
    answers = parse(ask, words=WORDS, systems=names, top=3)["sentences"][0]["answers"]
    for system, answer in zip(systems, answers, strict=True):
        (found,) = inspect(system.parser, [Sentence(tuple(WORDS))], top=3)
        sentence = found.sentence
        assert answer["heads"] == (None if sentence.heads is None else list(sentence.heads))
        assert sentence.graph is not None
        assert answer["graph"]["arcs"] == [list(arc) for arc in sentence.graph.arcs]
        assert answer["graph"]["tops"] == list(sentence.graph.tops)
        assert answer["label"] == sentence.label
        if sentence.probabilities is not None:
            assert list(answer["probabilities"].values()) == pytest.approx(sentence.probabilities, abs=1e-5)
        scores = [row.score for row in found.arcs or ()]
        assert [row["score"] for row in answer["scores"]] == pytest.approx(scores, abs=1e-4)
        assert "svg" not in answer
    listed = answers[0]["next_heads"]
    assert [len(choices) for choices in listed] == [3] * len(WORDS)
    for head, choices in zip(answers[0]["heads"], listed, strict=True):
        assert [choice["difference"] for choice in choices if choice["head"] == head] == [0.0]
        assert 0 < sum(choice["marginal"] for choice in choices) <= 1 + 1e-4


def test_text_is_split_into_sentences(ask):
    found = parse(ask, text="The cat moves. The dog didn't.", draw=True)["sentences"]
    assert [sentence["forms"] for sentence in found] == [
        ["The", "cat", "moves", "."],
        ["The", "dog", "did", "n't", "."],
    ]
    for sentence in found:
        drawn = sentence["answers"][0]["svg"]
        assert drawn.startswith('<svg class="arcs"')
        assert "<style" not in drawn  # the page's policy would not have it
        assert drawn.count('class="word') == len(sentence["forms"])
    assert parse(ask, text="  \n ")["sentences"] == []


def test_words_out_of_vocabulary_are_told(ask):
    (known,) = parse(ask, text="The cat moves.")["out_of_vocabulary"]
    assert (known["words"], known["new"], known["note"]) == (3, 0, "")
    (strange,) = parse(ask, text="Zorgs frobnicate quuxes slowly over there.")["out_of_vocabulary"]
    assert strange["new"] == 5
    assert strange["note"].startswith("83 % of these words are new to this model")


def test_files_bring_their_own_style(ask):
    drawn = only(parse(ask, words=WORDS, draw="file"))["svg"]
    assert 'xmlns="http://www.w3.org/2000/svg"' in drawn
    assert "prefers-color-scheme" in drawn


def test_constraints_hold_and_what_they_changed_is_marked(ask):
    free = only(parse(ask, words=WORDS))["heads"]
    word = 2
    head = next(k for k in (1, 3, 4) if k != free[word - 1])
    forced = only(parse(ask, words=WORDS, constraints={"heads": [[word, head]]}, draw=True))
    assert forced["heads"][word - 1] == head
    assert forced["free"]["heads"] == free
    assert f'class="arc new forced" data-side="below" data-start="{head}" data-end="{word}"' in forced["svg"]
    assert f'class="arc gone" data-side="below" data-start="{free[word - 1]}" data-end="{word}"' in forced["svg"]
    other = only(parse(ask, words=WORDS, constraints={"not_heads": [[word, free[word - 1]]]}))
    assert other["heads"][word - 1] != free[word - 1]
    arc = [3, 6, "ARG2"]
    assert arc in only(parse(ask, words=WORDS, constraints={"arcs": [arc]}))["graph"]["arcs"]
    gone = only(parse(ask, words=WORDS, constraints={"not_arcs": [[3, 6]]}))["graph"]["arcs"]
    assert not [arc for arc in gone if arc[:2] == [3, 6]]


def test_forcing_an_arc_moves_the_class(ask):
    def shares(**constraints):
        return only(parse(ask, words=WORDS, systems=["mood"], **constraints))["probabilities"]

    assert shares(constraints={"arcs": [[1, 6, "ARG2"], [5, 2, "ARG1"]]}) != shares()


def test_constraints_belong_to_their_sentence(ask):
    text = "The cat moves. The cat moves."
    free, forced = parse(ask, text=text, constraints=[None, {"heads": [[2, 4]]}])["sentences"]
    assert forced["answers"][0]["heads"][1] == 4
    assert free["answers"][0]["heads"] == only(parse(ask, text="The cat moves."))["heads"]


def test_a_system_ignores_what_it_has_no_place_for(ask):
    found = parse(ask, words=WORDS, systems=["trees", "graphs"], constraints={"heads": [[2, 1]]})
    first, second = found["sentences"][0]["answers"]
    assert (first["ignored"], second["ignored"]) == ([], ["heads"])


def test_two_systems_are_compared(ask):
    sentence = parse(ask, words=WORDS, systems=["trees", "mood"], draw=True)["sentences"][0]
    first, second = ({tuple(arc) for arc in answer["graph"]["arcs"]} for answer in sentence["answers"])
    drawings = sentence["compare"]

    def arcs(name, mark):
        """The labelled arcs above with this mark, read off the drawing."""
        pieces = drawings[name].split(f'class="arc {mark}" data-side="above" data-start="')[1:]
        found = [piece.split('"') for piece in pieces]
        return {(int(one[0]), int(one[2]), one[4]) for one in found if one[0] != "0"}

    assert first != second
    assert arcs("both", "gone") == arcs("first", "gone") == first - second
    assert arcs("both", "new") == arcs("second", "new") == second - first
    assert arcs("first", "plain") == arcs("second", "plain") == first & second
    assert not arcs("first", "new")
    assert not arcs("second", "gone")
    # Only one of them gives trees: there is nothing to differ from.
    assert 'data-side="below"' in drawings["first"]
    assert 'data-side="below"' not in drawings["second"]


def test_words_are_escaped(ask):
    reply = ask("POST", "/api/parse", {"words": ['<script>alert("1")</script>', "&amp;", "雨", "👩‍👩‍👧"], "draw": True})
    drawn = only(reply.value)["svg"]
    assert "<script" not in drawn
    assert "&lt;script&gt;" in drawn
    assert "&amp;amp;" in drawn


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ([], 400, r"must be an object"),
        ({}, 400, "either text or words"),
        ({"text": "a", "words": ["a"]}, 400, "either text or words"),
        ({"text": 3}, 400, "text is 3; it should be a valid string"),
        ({"text": "a", "texts": "b"}, 400, "'texts' is nothing that can be asked for; there are text, words"),
        ({"text": "a", "tags": ["NN"]}, 400, "tags belong to words"),
        ({"words": ["a", ""]}, 400, "words.1 is ''; it must not be blank"),
        ({"words": ["a"], "tags": []}, 400, "1 words but 0 tags"),
        ({"words": ["\ud800"]}, 400, "no JSON in UTF-8"),
        ({"words": ["a"], "systems": []}, 400, "systems is []"),
        ({"words": ["a"], "systems": ["trees", "trees"]}, 400, "each once"),
        ({"words": ["a"], "systems": ["oak"]}, 404, "no system is called 'oak'; there are trees, graphs, mood"),
        ({"words": ["a"], "top": 0}, 400, "top is 0; it should be greater than or equal to 1"),
        ({"words": ["a"], "top": 21}, 400, "from 1 to 20"),
        ({"words": ["a"], "top": True}, 400, "top is true; it should be a valid integer"),
        ({"words": ["a"], "draw": "yes"}, 400, "draw is 'yes'; it should be False, True or 'file'"),
        ({"words": ["a"], "constraints": 3}, 400, "constraints is 3"),
        ({"words": ["a"], "constraints": {"head": []}}, 400, "'head' is nothing that can be asked for"),
        ({"words": ["a"], "constraints": {"heads": [[1]]}}, 400, "constraints.0.heads.0.1 is missing"),
        ({"words": ["a"], "constraints": {"heads": [[1, True]]}}, 400, "constraints.0.heads.0.1 is true"),
        ({"words": ["a"], "constraints": {"arcs": [[1, 2, 3]]}}, 400, "constraints.0.arcs.0.2 is 3"),
        ({"words": ["a"], "constraints": {"heads": [[1, 0]] * 101}}, 413, "more than 100 constraints"),
        ({"words": ["a"], "constraints": [None, None]}, 400, "constraints on 2 sentences, but the text has 1"),
        ({"words": ["a"] * 41}, 413, "has 41 words; a sentence may have 40"),
        ({"words": ["a" * 201]}, 413, "has 201 characters"),
        ({"text": "A cat moves. " * 60}, 413, "words times systems may be 200"),
        ({"words": WORDS, "constraints": {"heads": [[1, 7]]}}, 422, "no word 7"),
        ({"words": WORDS, "constraints": {"heads": [[1, 1]]}}, 422, "own head"),
        ({"words": WORDS, "constraints": {"heads": [[1, 2], [2, 1]]}}, 422, "word 1 has head 2"),
        ({"words": WORDS, "constraints": {"heads": [[1, 2], [1, 3]]}}, 422, "one head"),
        ({"words": WORDS, "constraints": {"arcs": [[1, 2, "XYZ"]]}}, 422, "trees has no role 'XYZ'; there are ARG1"),
        ({"words": WORDS, "systems": ["graphs"], "constraints": {"heads": [[1, 2]]}}, 422, "no trees of which parts"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_sentence(ask, body, status, reason):
    reply = ask("POST", "/api/parse", body)
    assert reply.status == status
    assert list(reply.value) == ["error"]
    assert reason in reply.value["error"]
    assert "\n" not in reply.value["error"]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff", b'{"text": NaN}', b"[" * 5000, b"1" * 5000, b'{"top": ' + b"1" * 5000]
)
def test_bodies_that_are_no_json(body):
    with pytest.raises(Refused) as refusal:
        read_request(body)
    assert refusal.value.status == 400
    assert "\n" not in refusal.value.reason


def test_many_clients_are_served_together(systems):
    """Fifty at once, a few of them with wishes that cannot be met: everybody gets what they get alone."""
    bodies = [{"words": [*WORDS[: 2 + k % 5]], "systems": [systems[k % 3].name], "draw": True} for k in range(50)]
    for k in (7, 22, 41):
        bodies[k] = {"words": WORDS, "constraints": {"heads": [[1, 2], [2, 1]]}}

    async def answered(body):
        try:
            return json.loads(await api.answer(json.dumps(body).encode()))
        except Refused as refusal:
            return refusal.status

    async def all_of_them():
        return await asyncio.gather(*map(answered, bodies))

    def alone(body):
        try:
            return json.loads(api.parse(body).model_dump_json(exclude_unset=True))
        except Refused as refusal:
            return refusal.status

    with Api(systems, LIMITS.model_copy(update={"seconds": 60.0})) as api:
        together = asyncio.run(all_of_them())
        counts = generate_latest(api.metrics.registry).decode()
        assert [k for k, found in enumerate(together) if found == 422] == [7, 22, 41]
        assert rounded(together) == rounded([alone(body) for body in bodies])
    assert "spigot_sentences_total 47.0" in counts or "spigot_sentences_total 50.0" in counts
    assert float(counts.split("\nspigot_batches_total ")[1].split()[0]) < 50


def rounded(value):
    """The same with numbers as they matter; notes of drawings have numbers too, and arcs are compared elsewhere."""
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items() if name != "svg"}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return pytest.approx(value, abs=1e-3) if isinstance(value, float) else value


def test_runs_get_names_that_differ(tmp_path, systems, monkeypatch):
    monkeypatch.setattr("spigot_nlp.serve.systems.Parser.load", lambda run, **how: systems[0].parser)
    runs = [tmp_path / "a" / "x", tmp_path / "b" / "x"]
    assert [system.name for system in open_systems(runs)] == ["a/x", "b/x"]
    assert [system.name for system in open_systems(runs[:1])] == ["x"]
    with pytest.raises(ValueError, match="given twice"):
        list(open_systems([runs[0], tmp_path / "a" / "." / "x"]))


def test_a_reader_of_right_trees_cannot_be_served(tmp_path, systems, monkeypatch):
    gold = classifier("pipeline", classifier__structure="gold")
    monkeypatch.setattr("spigot_nlp.serve.systems.Parser.load", lambda run, **how: gold)
    with pytest.raises(ValueError, match="reads the right trees, and text has none"):
        list(open_systems([tmp_path]))


def test_nothing_that_is_no_number_gets_into_an_answer():
    heads = ((Alternative(0, float("inf"), float("nan"), None),),)
    found = parse_fields(Inspection(Sentence(("Rain",), heads=(0,)), {"heads": heads}), [], top=5)
    ((head,),) = found["next_heads"]
    assert (head.score, head.difference, head.marginal) == (None, None, None)


def test_constraints_of_the_library_are_what_is_asked(systems):
    given = {"words": WORDS, "constraints": {"not_heads": [[1, 2]], "arcs": [[0, 3]]}}
    query = read_query(read_request(given), {"trees": Conventions()})
    assert query.constraints == (Constraints(not_heads=((1, 2),), arcs=((0, 3, ""),)),)  # pyright: ignore[reportArgumentType]


def test_text_is_cut_as_the_first_system_knows_it_and_told_to_each_in_its_own_spelling(systems):
    curly = Served("curly", curly_parser())
    text = "The dog's \"far-off\" cat doesn't see."
    whole, cut = (next(s.forms for s in sentences(text, hyphens=hyphens)) for hyphens in (False, True))
    assert "far-off" in whole
    assert "far-off" not in cut
    spelt = curly.conventions.respell(next(sentences(text, hyphens=False))).forms
    assert {"“", "”", "n’t"} < set(spelt)
    with Api([curly, systems[0]], LIMITS) as api:
        for names, forms in ((["curly", "trees"], whole), (["trees", "curly"], cut)):
            answer = api.parse({"text": text, "systems": names, "draw": True}).sentences[0]
            assert answer.forms == list(forms)
            assert [one.forms for one in answer.answers] == [list(forms)] * 2
            assert all("n\u2019t" not in one.model_dump_json() for one in answer.answers)
        told = api.parse({"text": text, "systems": ["curly"]}).sentences[0].answers[0].next_heads
        # The same as if somebody had written it in the manner of its data.
        written = api.parse({"words": list(spelt), "systems": ["curly"]}).sentences[0].answers[0].next_heads
    assert told is not None
    assert written == told

    def first_score(forms):
        (found,) = inspect(curly.parser, [Sentence(forms)])
        assert found.heads is not None
        return found.heads[0][0].score

    score = told[0][0].score
    assert score == pytest.approx(first_score(spelt), abs=1e-4)
    assert score != pytest.approx(first_score(whole), abs=1e-4)


def test_a_demand_that_cannot_be_met_is_named_in_any_spelling(systems):
    with Api(systems, LIMITS) as api, pytest.raises(Refused, match="word 1 has head 2"):
        api.parse({"words": ['"', "Rain"], "constraints": {"heads": [[1, 2], [2, 1]]}})
