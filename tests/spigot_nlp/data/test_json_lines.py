"""JSON lines: everything a sentence holds, exactly, and errors that name the field."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spigot_nlp.data.formats import FormatError, guess, read, write
from spigot_nlp.data.formats.json_lines import with_class
from spigot_nlp.data.sentence import Arc, Graph, Sentence

FULL = Sentence(
    ("Ada", "sings"),
    lemmas=("ada", "sing"),
    tags=("NNP", "VBZ"),
    heads=(2, 0),
    relations=("nsubj", "root"),
    graph=Graph((Arc(2, 1, "ARG1"),), (2,), (1, 2), ("_", "sing.01")),
    label=1,
    probabilities=(0.1, 0.9),
    id="s-1",
)
LINE = (
    '{"forms": ["Ada", "sings"], "label": 1, "probabilities": [0.1, 0.9], "tags": ["NNP", "VBZ"], '
    '"lemmas": ["ada", "sing"], "heads": [2, 0], "relations": ["nsubj", "root"], "graph": {"arcs": [[2, 1, "ARG1"]], '
    '"tops": [2], "predicates": [1, 2], "frames": ["_", "sing.01"]}, "id": "s-1"}\n'
)


NAMED = FULL.put("enhanced", Graph.of([Arc(1, 2, "R")], [1], [2])).put("mood", "sad").put("scopes", ((1, 2), ()))


def load(text: str) -> list[Sentence]:
    return list(read(io.StringIO(text), "jsonl"))


def render(*sentences: Sentence) -> str:
    out = io.StringIO()
    write(sentences, out, "jsonl")
    return out.getvalue()


def test_every_field() -> None:
    assert guess("answers.jsonl.gz") == "jsonl"
    assert render(FULL) == LINE
    assert load(LINE) == [FULL]


def test_annotations_under_names_of_their_own() -> None:
    text = render(NAMED)
    assert json.loads(text) == {
        **json.loads(LINE),
        "annotations": {
            "enhanced": {"arcs": [[1, 2, "R"]], "tops": [1], "predicates": [1, 2]},
            "mood": "sad",
            "scopes": [[1, 2], []],
        },
    }
    assert load(text) == [NAMED]
    (bare,) = load('{"forms": ["Hm"], "annotations": {"mood": null, "empty": {"arcs": []}}}')
    assert dict(bare.annotations) == {"empty": Graph()}
    assert load('{"forms": ["Hm"], "annotations": {}}')[0].annotations == {}


def test_what_is_not_known_is_left_out() -> None:
    assert render(Sentence(("Hm",))) == '{"forms": ["Hm"]}\n'
    assert render(Sentence(("Hm",), graph=Graph())) == '{"forms": ["Hm"], "graph": {"arcs": []}}\n'
    assert load('{"forms": ["Hm"], "graph": {}}')[0].graph == Graph()
    (sentence,) = load('{"forms": ["Hm"], "label": null, "graph": null, "id": null}')
    assert replace(sentence, source=None) == Sentence(("Hm",))


def test_a_graph_in_any_order() -> None:
    (sentence,) = load('{"forms": ["a", "b", "c"], "graph": {"arcs": [[3, 1, "y"], [2, 1, "x"]], "tops": [3, 2, 3]}}')
    assert sentence.graph == Graph((Arc(2, 1, "x"), Arc(3, 1, "y")), (2, 3), (2, 3))


def test_numbers_are_exact_and_may_be_numpys() -> None:
    third = np.float32(1) / np.float32(3)
    sentence = Sentence(("Hm",), label=np.int64(1), probabilities=(third, 1 - 2**-53, 5e-324))  # pyright: ignore
    (again,) = load(render(sentence))
    assert again.probabilities == (float(third), 1 - 2**-53, 5e-324)
    assert type(again.label) is int
    assert all(type(value) is float for value in again.probabilities or ())


@pytest.mark.parametrize(
    "text",
    [
        LINE,
        LINE[:-1],
        LINE.replace("}\n", ', "annotations": {"mood":"sad", "enhanced": {"tops": [2], "arcs": []}}}\n'),
        '{"annotations": {"mood": null, "n": 1.50}, "forms": ["Hm"]}\n',
        LINE.replace(": ", ":"),
        "\ufeff\n\n" + LINE + "\n  \n" + LINE,
        LINE.replace("\n", "\r\n"),
        '{"id": "x", "forms": ["Ad\\u0061", "\u2028"], "probabilities": [1, 0.00]}\n',
        '{"forms": ["b", "a"], "graph": {"tops": [2, 1], "arcs": [[2, 1, "R"]], "predicates": [2]}, "label": null}\n',
    ],
)
def test_round_trip(text: str) -> None:
    data = text.encode()
    out = io.BytesIO()
    write(read(io.BytesIO(data), "jsonl"), out, "jsonl")
    assert out.getvalue() == data


def test_a_changed_sentence_is_written_anew() -> None:
    (sentence,) = load('{"label":0,"forms":["Hm"]}\n')
    assert render(sentence) == '{"label":0,"forms":["Hm"]}\n'
    assert render(replace(sentence, label=1)) == '{"forms": ["Hm"], "label": 1}\n'
    plain = next(read(io.StringIO("Hm  hm\n"), "text"))
    assert render(plain) == '{"forms": ["Hm", "hm"]}\n'


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"forms": ["a"]', "not JSON at column 16"),
        ("a b", "not JSON at column 1"),
        ("{", "not JSON at column 2"),
        ('{"forms": ["a"]} {}', "not JSON at column 18 (Extra data); each line is one whole object"),
        ('{"forms": ["a"], "class": "good"}', 'class is "good"; it must be text, beside a label'),
        ('{"forms": ["a"], "label": 1, "class": 2}', "class is 2; it must be text, beside a label"),
        ('["a"]', 'the line is ["a"]; it must be an object with forms, label'),
        ("3", "the line is 3; it must be an object"),
        ("[" * 100_000, "JSON that cannot be read"),
        ('{"forms": ["a"], "label": ' + "1" * 5000 + "}", "JSON that cannot be read"),
        ("{}", "no forms"),
        ('{"forms": []}', "no forms"),
        ('{"forms": null}', "no forms"),
        ('{"forms": ["a"], "forms": ["b"]}', 'the key "forms" stands twice'),
        ('{"forms": ["a"], "labels": 1}', 'unknown key "labels" in the line; known are forms, label'),
        ('{"forms": ["a"], "x": 1, "y": 1}', 'unknown keys "x", "y" in the line'),
        ('{"forms": "a b"}', 'forms is "a b"; it must be a list, each of its values a word'),
        ('{"forms": ["a", 2]}', "value 2 of forms is 2; it must be a word"),
        ('{"forms": ["\\ud800"]}', 'value 1 of forms is "\\ud800"; it must be a word'),
        ('{"forms": ["a"], "label": "1"}', 'label is "1"; it must be a whole number from 0'),
        ('{"forms": ["a"], "label": true}', "label is true; it must be"),
        ('{"forms": ["a"], "label": 1.0}', "label is 1.0; it must be"),
        ('{"forms": ["a"], "label": -1}', "label is -1; it must be"),
        ('{"forms": ["a"], "probabilities": 1}', "probabilities is 1; it must be a list"),
        ('{"forms": ["a"], "probabilities": [0, 1.5]}', "value 2 of probabilities is 1.5; it must be a number from 0"),
        ('{"forms": ["a"], "probabilities": [NaN]}', "value 1 of probabilities is NaN"),
        ('{"forms": ["a"], "tags": ["x", "y"]}', "tags has 2 values for 1 word; give each word one."),
        ('{"forms": ["a"], "lemmas": []}', "lemmas has 0 values for 1 word"),
        ('{"forms": ["a"], "relations": [null]}', "value 1 of relations is null; it must be text"),
        ('{"forms": ["a"], "heads": [2]}', "value 1 of heads is 2; it must be the number of a word from 1 to 1, or 0"),
        ('{"forms": ["a"], "heads": [-1]}', "value 1 of heads is -1"),
        ('{"forms": ["a"], "heads": [false]}', "value 1 of heads is false"),
        ('{"forms": ["a"], "heads": [1]}', "heads: word 1 is its own head"),
        ('{"forms": ["a", "b"], "heads": [2, 1]}', "heads: word 1 is its own ancestor"),
        ('{"forms": ["a"], "id": 7}', "id is 7; it must be text"),
        ('{"forms": ["a"], "graph": []}', "graph is []; it must be an object with arcs, tops, predicates, frames"),
        ('{"forms": ["a"], "graph": {"nodes": 1}}', 'unknown key "nodes" in graph; known are arcs'),
        ('{"forms": ["a", "b"], "graph": {"arcs": [[1, 3, "R"]]}}', 'value 1 of graph.arcs is [1, 3, "R"]; it must be'),
        ('{"forms": ["a", "b"], "graph": {"arcs": [[0, 2, "R"]]}}', "value 1 of graph.arcs"),
        ('{"forms": ["a", "b"], "graph": {"arcs": [[1, 1, "R"]]}}', "value 1 of graph.arcs"),
        ('{"forms": ["a", "b"], "graph": {"arcs": [[1, 2]]}}', "value 1 of graph.arcs is [1, 2]"),
        ('{"forms": ["a", "b"], "graph": {"arcs": [[1, 2, 3]]}}', "value 1 of graph.arcs"),
        (
            '{"forms": ["a"], "graph": {"tops": [0]}}',
            "value 1 of graph.tops is 0; it must be the number of a word from",
        ),
        ('{"forms": ["a"], "graph": {"predicates": [2]}}', "value 1 of graph.predicates is 2"),
        (
            '{"forms": ["a"], "annotations": ["mood"]}',
            'annotations is ["mood"]; it must be an object of annotations by name',
        ),
        (
            '{"forms": ["a"], "annotations": {"heads": [0]}}',
            'annotations has "heads", which stands outside of it; move it there',
        ),
        ('{"forms": ["a"], "annotations": {"id": "x"}}', 'annotations has "id", which stands outside of it'),
        ('{"forms": ["a"], "annotations": {"mood": 1, "mood": 2}}', 'the key "mood" stands twice'),
        ('{"forms": ["a"], "annotations": {"source": 1}}', 'annotations has "source", which no annotation can be'),
        (
            '{"forms": ["a"], "annotations": {"other": {"arcs": [[1, 2, "R"]]}}}',
            'value 1 of annotations.other.arcs is [1, 2, "R"]; it must be',
        ),
        (
            '{"forms": ["a"], "annotations": {"other": {"arcs": [], "nodes": 1}}}',
            'unknown key "nodes" in annotations.other; known are arcs',
        ),
        ('{"forms": ["a"], "graph": {"frames": ["x", "y"]}}', "graph.frames has 2 values for 1 word"),
    ],
)
def test_malformed_lines(line: str, what: str) -> None:
    with pytest.raises(FormatError) as caught:
        load(f"{LINE}\n{line}\n")
    assert str(caught.value).startswith(f"<stream>:3: {what}")
    seen: list[FormatError] = []
    assert list(read(io.StringIO(f"{line}\n{LINE}"), "jsonl", skip_bad=seen.append)) == [FULL]
    assert [error.line for error in seen] == [1]


@pytest.mark.parametrize(
    ("sentence", "what"),
    [
        (Sentence((), id="s9"), "sentence 's9' cannot be written as JSON: no forms"),
        (Sentence(("a", "b"), heads=(2, 1)), "sentence 'a b' cannot be written as JSON: heads: word 1"),
        (Sentence(("a",), probabilities=(float("nan"),)), "value 1 of probabilities is NaN"),
        (Sentence(("a\ud800",)), "value 1 of forms"),
        (Sentence(("a",), label=object()), "neither text nor a number"),  # pyright: ignore[reportArgumentType]
        (Sentence(("a",), graph=Graph((Arc(1, 2, "R"),), (), (1,))), "value 1 of graph.arcs"),
        (Sentence(("a", "b"), graph=Graph((Arc(2, 2, "R"),), (), (2,))), "value 1 of graph.arcs"),
        (Sentence(("a", "b"), graph=Graph((Arc(2, 1, "R"),), (3,), (2,))), "value 1 of graph.tops"),
        (Sentence(("a", "b"), graph=Graph((Arc(2, 1, "\ud800"),), (), (2,))), "value 1 of graph.arcs"),
        (Sentence(("a",), heads=(2,)), "value 1 of heads"),
        (Sentence(("a",), heads=(True,)), "value 1 of heads"),
        (Sentence(("a",), tags=(3,)), "value 1 of tags"),  # pyright: ignore[reportArgumentType]
        (Sentence(("a",), annotations={"x": Graph((Arc(1, 2, "R"),), (), (1,))}), "value 1 of annotations.x.arcs"),
        (Sentence(("a",), annotations={"x": object()}), "neither text nor a number"),
    ],
)
def test_what_could_not_be_read_is_not_written(sentence: Sentence, what: str) -> None:
    with pytest.raises(ValueError, match=what.replace(".", r"\.")):
        render(sentence)


@st.composite
def sentences(draw: st.DrawFn) -> Sentence:
    size = draw(st.integers(1, 5))
    texts = st.lists(st.text(max_size=5), min_size=size, max_size=size).map(tuple)
    some = st.sets(st.integers(1, size))
    arcs = st.tuples(st.integers(1, size), st.integers(1, size), st.text(max_size=3)).filter(
        lambda arc: arc[0] != arc[1]
    )
    graph = st.builds(
        lambda arcs, tops, predicates, frames: replace(Graph.of(map(Arc._make, arcs), tops, predicates), frames=frames),
        st.sets(arcs, max_size=5) if size > 1 else st.just(set()),
        some,
        some,
        st.just(()) | texts,
    )
    heads = st.tuples(*(st.integers(0, word) for word in range(size)))
    scalars = st.text(max_size=3) | st.integers() | st.booleans() | st.floats(allow_nan=False)
    values = graph | st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5)
    return Sentence(
        draw(texts),
        lemmas=draw(st.none() | texts),
        tags=draw(st.none() | texts),
        heads=draw(st.none() | heads),
        relations=draw(st.none() | texts),
        graph=draw(st.none() | graph),
        label=draw(st.none() | st.integers(0, 10**9 - 1)),
        probabilities=draw(st.none() | st.lists(st.floats(0, 1), max_size=4).map(tuple)),
        id=draw(st.text()),
        annotations=draw(st.dictionaries(st.sampled_from(["mood", "enhanced", "ünder"]), values, max_size=2)),
    )


@given(st.lists(sentences(), max_size=3))
def test_json_holds_any_sentence(given_sentences: list[Sentence]) -> None:
    text = render(*given_sentences)
    assert load(text) == given_sentences
    records = [json.loads(line) for line in text.split("\n")[:-1]]
    assert [record["forms"] for record in records] == [list(sentence.forms) for sentence in given_sentences]


def test_the_name_of_a_class_stands_beside_its_number() -> None:
    named = with_class(Sentence(("Great",), label=1), {0: "negative", 1: "positive"})
    line = render(named)
    assert line == '{"forms": ["Great"], "label": 1, "class": "positive"}\n'
    (sentence,) = load(line)
    assert replace(sentence, source=None) == Sentence(("Great",), label=1)
    assert render(sentence) == line
    assert render(replace(sentence, label=0)) == '{"forms": ["Great"], "label": 0}\n'
    assert with_class(Sentence(("Great",)), {1: "positive"}) == Sentence(("Great",))
    own = Sentence(("Great",), label=1, annotations={"class": "noun"})  # an annotation that is called so
    assert replace(load(render(own))[0], source=None) == own
