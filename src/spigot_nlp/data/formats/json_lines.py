r"""JSON lines: on each line an object with everything that a `Sentence` holds.

`{"forms": ["It", "rained"], "label": 0, "probabilities": [0.75, 0.25], "graph": {"arcs": [[2, 1, "ARG1"]]}}`

What is not known is left out, or `null`. Beside the number of a class may stand what it is called, as in
`"label": 1, "class": "positive"`: that is for people, and the number is what is read. The predicates of a graph are
left out if they are the words with arguments. Annotations under names of their own stand in
`annotations`: graphs as above, everything else as JSON has it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeGuard

from spigot_nlp.data.formats.conll import count, cycle_reason, find_cycle
from spigot_nlp.data.formats.files import LINE, Block, Layout, Malformed, shown
from spigot_nlp.data.formats.lines import LineSource, line_source
from spigot_nlp.data.sentence import CLASS_NAME, Arc, Graph, Sentence

_KEYS = (
    "forms",
    "label",
    "class",
    "probabilities",
    "tags",
    "upos",
    "lemmas",
    "heads",
    "relations",
    "graph",
    "annotations",
    "id",
)
_OWN = frozenset(_KEYS) - {"class"}  # what cannot stand in `annotations`
_GRAPH_KEYS = ("arcs", "tops", "predicates", "frames")


ERROR = '{"error": '
"""How the line begins that says why a document of a corpus could not be parsed; no sentence is read from it."""


def parse_jsonl(block: Block) -> Sentence | tuple[()]:
    """Reads a sentence from its object.

    Example:
        >>> sentence = parse_jsonl(Block(['{"forms": ["It", "rained"], "graph": {"arcs": [[2, 1, "ARG1"]]}}']))
        >>> sentence.forms, sentence.graph.arcs
        (('It', 'rained'), (Arc(predicate=2, argument=1, role='ARG1'),))
    """
    if block.lines[0].startswith(ERROR):
        return ()
    sentence = _load(block.lines[0])
    source = line_source(block, _dump(sentence))
    return sentence if source is None else replace(sentence, source=source)


def render_jsonl(sentence: Sentence, opens: bool = True) -> tuple[str, Layout]:
    """The object of a sentence. Numbers are written in full, so that reading gives the same ones.

    Example:
        >>> render_jsonl(Sentence(("It", "rained"), label=0, probabilities=(0.75, 0.25)))[0]
        '{"forms": ["It", "rained"], "label": 0, "probabilities": [0.75, 0.25]}'
    """
    try:
        text = _dump(sentence)
        if not _is_sound(sentence, text):
            _load(text)  # what cannot be read again must not be written
    except Malformed as error:
        name = sentence.id or " ".join(sentence.forms[:4])
        raise ValueError(f"sentence {shown(name)} cannot be written as JSON: {error.reason}") from None
    source = sentence.source
    if not isinstance(source, LineSource):
        return text, LINE
    try:
        same = _load(source.text) == replace(sentence, source=None)
    except Malformed:  # read as something else
        same = False
    return source.text if same else text, source.layout


def with_class(sentence: Sentence, names: Mapping[int, str]) -> Sentence:
    """A sentence that is written with the name of its class beside the number, if that has a name.

    Args:
        sentence: The sentence.
        names: What the classes are called.

    Example:
        >>> render_jsonl(with_class(Sentence(("Great",), label=1), {0: "negative", 1: "positive"}))[0]
        '{"forms": ["Great"], "label": 1, "class": "positive"}'
    """
    name = None if sentence.label is None else names.get(sentence.label)
    return sentence if name in (None, str(sentence.label)) else sentence.put(CLASS_NAME, name)


def _dump(sentence: Sentence) -> str:
    graph = sentence.graph
    record = {
        "forms": sentence.forms,
        "label": sentence.label,
        "class": sentence.get(CLASS_NAME),
        "probabilities": sentence.probabilities,
        "tags": sentence.tags,
        "upos": sentence.upos,
        "lemmas": sentence.lemmas,
        "heads": sentence.heads,
        "relations": sentence.relations,
        "graph": None if graph is None else _graph_record(graph),
        "annotations": {
            name: _other_record(value)
            for name, value in sentence.annotations.items()
            if name not in _OWN and name != CLASS_NAME
        }
        or None,
        "id": sentence.id or None,
    }
    return _ENCODER.encode({key: value for key, value in record.items() if value is not None})


def _graph_record(graph: Graph) -> dict[str, object]:
    record: dict[str, object] = {"arcs": graph.arcs}
    if graph.tops:
        record["tops"] = graph.tops
    if set(graph.predicates) != {arc.predicate for arc in graph.arcs}:
        record["predicates"] = graph.predicates
    if graph.frames:
        record["frames"] = graph.frames
    return record


def _other_record(value: object) -> object:
    return _graph_record(value) if isinstance(value, Graph) else value


def _others(value: object, size: int) -> dict[str, Any]:
    """Annotations under names of their own; an object with arcs is a graph."""
    if not isinstance(value, dict):
        raise Malformed(0, f"annotations is {_short(value)}; it must be an object of annotations by name.")
    if taken := [name for name in value if name in _OWN]:
        raise Malformed(0, f"annotations has {_short(taken[0])}, which stands outside of it; move it there.")
    if "source" in value:
        raise Malformed(0, 'annotations has "source", which no annotation can be called; rename it.')
    return {
        name: _graph(item, size, f"annotations.{name}") if isinstance(item, dict) and "arcs" in item else _frozen(item)
        for name, item in value.items()
        if item is not None
    }


def _frozen(value: object) -> object:
    """Lists as tuples, as annotations have them."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _plain(value: object) -> object:
    """A number of numpy or torch as one of Python, exactly."""
    item = getattr(value, "item", None)
    if item is None:
        raise Malformed(0, f"{_short(value)} is neither text nor a number.")
    return item()


_ENCODER = json.JSONEncoder(ensure_ascii=False, default=_plain)
_WORDS, _NUMBERS, _ARCS = frozenset({str}), frozenset({int}), frozenset({Arc})
_PLAIN = frozenset({"heads", "relations", "graph"})


def _is_sound(sentence: Sentence, text: str) -> bool:
    """Whether a sentence is so plain that what was made of it can be read again: words, a tree and a graph over them.

    It is what most sentences are, and is found out sooner than by reading. Of others nothing is said.
    """
    forms, heads, graph, size = sentence.forms, sentence.heads, sentence.graph, len(sentence.forms)
    texts = forms, sentence.tags, sentence.upos, sentence.lemmas, sentence.relations
    if not forms or type(sentence.id) is not str or not _PLAIN.issuperset(sentence.annotations):
        return False
    if not all(
        type(values) is tuple and _WORDS.issuperset(map(type, values)) for values in texts if values is not None
    ):
        return False
    if heads is not None and (not _are_words(heads, 0, size) or find_cycle(heads)):
        return False
    if graph is not None:
        if graph.frames or not _ARCS.issuperset(map(type, graph.arcs)):
            return False
        predicates, arguments, roles = zip(*graph.arcs, strict=True) if graph.arcs else ((), (), ())
        if not all(_are_words(words, 1, size) for words in (predicates, arguments, graph.tops, graph.predicates)):
            return False
        if any(map(int.__eq__, predicates, arguments)) or not _WORDS.issuperset(map(type, roles)):
            return False
    return text.isascii() or _is_text(text)


def _are_words(values: tuple[int, ...], low: int, high: int) -> bool:
    numbers = type(values) is tuple and _NUMBERS.issuperset(map(type, values))
    return numbers and (not values or (low <= min(values) and max(values) <= high))


def _load(text: str) -> Sentence:
    try:
        record = json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        reason = f"not JSON at column {error.colno} ({error.msg}); each line is one whole object with forms."
        raise Malformed(0, reason) from None
    except (ValueError, RecursionError) as error:
        deep = isinstance(error, RecursionError)
        reason = "it is nested too deeply" if deep else "it has a number of thousands of digits"
        raise Malformed(0, f"JSON that cannot be read: {reason}.") from None
    record = _object(record, "the line", _KEYS)
    forms = _list(record, "forms", "a word", _is_text)
    if not forms:
        raise Malformed(0, "no forms; a sentence has at least one word.")
    size = len(forms)
    label, id = record.get("label"), record.get("id", "")
    if label is not None and not _is_number(label, 0, 10**9 - 1):
        raise Malformed(0, f"label is {_short(label)}; it must be a whole number from 0, of nine digits at most.")
    if "class" in record and (label is None or not _is_text(record["class"])):
        called = _short(record["class"])
        raise Malformed(0, f"class is {called}; it must be text, beside a label, which is the number of that class.")
    if not _is_text(id):
        raise Malformed(0, f"id is {_short(id)}; it must be text.")
    probabilities = _list(record, "probabilities", "a number from 0 to 1", _is_probability)
    return Sentence(
        forms=forms,
        lemmas=_list(record, "lemmas", "text", _is_text, size),
        tags=_list(record, "tags", "text", _is_text, size),
        heads=_heads(record, size),
        relations=_list(record, "relations", "text", _is_text, size),
        graph=_graph(record["graph"], size) if "graph" in record else None,
        label=label,
        probabilities=None if probabilities is None else tuple(map(float, probabilities)),
        id=id,
        upos=_list(record, "upos", "text", _is_text, size),
        annotations=_others(record["annotations"], size) if "annotations" in record else {},
    )


def _heads(record: dict[str, Any], size: int) -> tuple[int, ...] | None:
    expected = f"the number of a word from 1 to {size}, or 0"
    heads = _list(record, "heads", expected, lambda head: _is_number(head, 0, size), size)
    if heads and (cycle := find_cycle(heads)):
        raise Malformed(0, f"heads: {cycle_reason(cycle)}")
    return heads


def _graph(value: object, size: int, called: str = "graph") -> Graph:
    record = _object(value, called, _GRAPH_KEYS)

    def is_word(item: object) -> TypeGuard[int]:
        return _is_number(item, 1, size)

    def is_arc(item: object) -> bool:
        if not isinstance(item, list) or len(item) != 3 or not _is_text(item[2]):
            return False
        return is_word(item[0]) and is_word(item[1]) and item[0] != item[1]

    word = f"the number of a word from 1 to {size}"
    arc = f"[predicate, argument, role], two different words from 1 to {size} and a text"
    graph = Graph.of(
        [Arc(*item) for item in _list(record, "arcs", arc, is_arc, name=f"{called}.arcs") or ()],
        _list(record, "tops", word, is_word, name=f"{called}.tops") or (),
        _list(record, "predicates", word, is_word, name=f"{called}.predicates") or (),
    )
    frames = _list(record, "frames", "text", _is_text, size, name=f"{called}.frames") if record.get("frames") else None
    return replace(graph, frames=frames or ())


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Malformed(0, f"the key {_short(twice)} stands twice; keep one of them.")
    return record


def _object(value: object, name: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """The keys of an object that have a value."""
    if not isinstance(value, dict):
        raise Malformed(0, f"{name} is {_short(value)}; it must be an object with {', '.join(keys)}.")
    if unknown := [key for key in value if key not in keys]:
        noun = "key" if len(unknown) == 1 else "keys"
        raise Malformed(0, f"unknown {noun} {', '.join(map(_short, unknown))} in {name}; known are {', '.join(keys)}.")
    return {key: item for key, item in value.items() if item is not None}


def _list(
    record: dict[str, Any],
    key: str,
    expected: str,
    valid: Callable[[object], bool],
    size: int | None = None,
    *,
    name: str = "",
) -> tuple[Any, ...] | None:
    """The values of a key, each checked; None if there is no such key."""
    if key not in record:
        return None
    values, name = record[key], name or key
    if not isinstance(values, list):
        raise Malformed(0, f"{name} is {_short(values)}; it must be a list, each of its values {expected}.")
    if not all(map(valid, values)):
        place, item = next((place, item) for place, item in enumerate(values, 1) if not valid(item))
        raise Malformed(0, f"value {place} of {name} is {_short(item)}; it must be {expected}.")
    if size is not None and len(values) != size:
        raise Malformed(0, f"{name} has {count(len(values), 'value')} for {count(size, 'word')}; give each word one.")
    return tuple(values)


def _is_text(item: object) -> TypeGuard[str]:
    if not isinstance(item, str):
        return False
    if item.isascii():
        return True
    try:  # half of a surrogate pair, which JSON can escape, is in no file of text
        item.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_number(item: object, low: int, high: int | None) -> TypeGuard[int]:
    return type(item) is int and low <= item and (high is None or item <= high)


def _is_probability(item: object) -> bool:
    return type(item) in (int, float) and 0 <= item <= 1  # pyright: ignore[reportOperatorIssue]


def _short(value: object) -> str:
    """A value as a message shows it."""
    shown = json.dumps(value, default=str)
    return shown if len(shown) <= 60 else f"{shown[:56]} ..."
