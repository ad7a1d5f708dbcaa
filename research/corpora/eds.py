"""Elementary dependency structures as graphs over words, in the manner of DM.

The nodes of an elementary dependency structure (EDS) are predicates, most of which stand for a word or several. A node
becomes its word, and its arguments become arcs. Nodes without a word of their own are an arc between their arguments
(a compound, an apposition, a conjunction), or are passed through.

References:
    Ivanova, Oepen, Øvrelid and Flickinger (2012), Who did what to whom? A contrastive study of syntacto-semantic
    dependencies, §4.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from delphin.eds import EDS

from spigot_nlp.data import Arc, Graph

_SEVERAL = frozenset(
    {
        *("basic_numbered_hour", "card", "dofm", "dofw", "fraction", "holiday", "mofy", "named", "named_n"),
        *("numbered_hour", "ord", "part_of", "quoted", "season", "year_range", "yofc"),
    }
)
"""Predicates of the grammar, not of its lexicon, that stand for a word all the same, or for several."""
_WORDS = _SEVERAL | {
    *("abstr_deg", "era", "excl", "generic_entity", "greet", "little-few_a", "minute", "much-many_a", "neg"),
    *("one+more_a", "person", "person_n", "place_n", "polite", "pron", "thing", "time", "time_n", "timezone_p"),
}
"""These, and those that stand for one."""
_LONGEST = 4  # words of one expression; a longer span is a phrase, of which the last word stands for it
_CLEAR = {"comp_equal": "ARG1", "nominalization": "ARG1", "unknown": "ARG"}
"""Predicates that are passed through, to this argument."""
_CONJUNCTS = (("L-HNDL", "R-HNDL"), ("L-INDEX", "R-INDEX"), ("ARG1", "ARG2"))
_BACKWARDS = (("ARG2", "ARG1"),)
_RELATIONS = {
    **dict.fromkeys(
        (
            *("appos", "compound", "compound_name", "loc_nonsp", "loc_sp", "measure", "meas_np", "nonsp", "of_p"),
            *("parenthetical", "poss", "relative_mod", "subord", "temp_loc_x", "with_p"),
        ),
        _BACKWARDS,
    ),
    "fw_seq": (("ARG1", "ARG2"),),
    "implicit_conj": _CONJUNCTS,
    "plus": (("ARG2", "ARG3"),),
    "times": (("ARG2", "ARG3"),),
}
"""Predicates that are an arc, with the roles of its two ends; the first pair that is there counts."""
_LABELS = {
    "compound_name": "compound",
    "fw_seq": "compound",
    "implicit_conj": "conj",
    "loc_nonsp": "loc",
    "loc_sp": "loc",
    "meas_np": "measure",
    "of_p": "of",
    "part_of": "part",
    "relative_mod": "subord",
    "temp_loc_x": "loc",
    "with_p": "with",
}
"""What the arcs of these are called, if not as the predicate."""
_ROLES = {"L-HNDL": "ARG1", "L-INDEX": "ARG1", "R-HNDL": "ARG2", "R-INDEX": "ARG2"}
_COMPARISON = re.compile(
    r"comp|comp_so|comp_less|comp_enough|comp_too|superl|more_comp|less_comp|_(?:more|less|so|too|enough)_x_comp"
)
_COMPARISONS = {
    "_more_x_comp": "comp",
    "more_comp": "comp",
    "_less_x_comp": "comp_less",
    "less_comp": "comp_less",
    "_so_x_comp": "comp_so",
    "_too_x_comp": "comp_too",
    "_enough_x_comp": "comp_enough",
}


def bilexical(eds: EDS, spans: Sequence[tuple[int, int]]) -> Graph:
    """The graph over words that an elementary dependency structure comes to.

    A pair of words has one arc; of several the first label in the alphabet. There is exactly one top: the word of the
    structure's own, or of the argument that it leads to, or else the first word that no arc points to. A structure that
    comes to no arcs at all gives an empty graph.

    Args:
        eds: The structure.
        spans: The characters of each word. One that covers none, as punctuation may be told to, gets no node.
    """
    return _Conversion(eds, spans).graph()


class _Conversion:
    """One structure on its way. Words count from 0 here."""

    def __init__(self, eds: EDS, spans: Sequence[tuple[int, int]]) -> None:
        self.nodes = {node.id: node for node in eds.nodes}
        self.top = eds.top
        self.arguments = {name: _without_doubles(node.edges) for name, node in self.nodes.items()}
        self.cover = {
            name: [k for k, (start, end) in enumerate(spans) if start < node.cto and end > node.cfrom and end > start]
            for name, node in self.nodes.items()
        }
        self.ends = {name: ends for name in self.nodes if (ends := self._ends(name))}
        self.words = self._anchored()

    def graph(self) -> Graph:
        """The result."""
        chosen: dict[tuple[int, int], str] = {}
        for head, word, role in sorted(set(self._arcs())):
            chosen.setdefault((head, word), role)
        top = self._top_word(chosen)
        if top is None:
            return Graph()
        arcs = (Arc(head + 1, word + 1, role) for (head, word), role in chosen.items())
        return Graph.of(arcs, tops=[top + 1])

    def _roles(self, name: str) -> Mapping[str, str]:
        return self.arguments.get(name, {})

    def _ends(self, name: str) -> tuple[str, str] | None:
        """The two nodes that a node relates, if it is an arc between them."""
        predicate, roles = self.nodes[name].predicate, self._roles(name)
        pairs = _CONJUNCTS if predicate.endswith("_c") else _RELATIONS.get(predicate, ())
        return next(((roles[one], roles[two]) for one, two in pairs if one in roles and two in roles), None)

    def _anchored(self) -> dict[str, list[int]]:
        """The words that a node stands for, of those that have some."""
        words = {name: some for name in self.nodes if (some := self._own_words(name))}
        taken = {tuple(some) for some in words.values()}
        for name, node in self.nodes.items():
            cover = self.cover[name]
            if cover and _COMPARISON.fullmatch(node.predicate):
                # On a word of its own (more, less), or on the adjective's that covers it (higher).
                words[name] = cover[-1:] if tuple(cover) in taken or len(cover) > 1 else cover
        negated = set()
        for name, node in self.nodes.items():
            if node.predicate == "neg":
                negated |= {tuple(self.cover[name])} if len(self.cover[name]) > 1 else set()
                if name in words:
                    words[name] = words[name][-1:]  # of a contraction, the second part
        for name, some in words.items():
            if tuple(some) in negated and self.nodes[name].predicate != "neg":
                words[name] = some[:-1]
        return words

    def _own_words(self, name: str) -> list[int]:
        predicate, cover, roles = self.nodes[name].predicate, self.cover[name], self._roles(name)
        if _is_conjunction(predicate):
            # One that joins nothing, such as a sentence's first word, is a word like others.
            joins = "L-HNDL" in roles or "L-INDEX" in roles or ("ARG1" in roles and "ARG2" in roles)
            if joins or predicate == "implicit_conj":
                return []
        elif not _is_lexical(predicate):
            return []
        if predicate.startswith("_") or predicate in _SEVERAL:
            return cover if len(cover) <= _LONGEST else cover[-1:]
        return cover if len(cover) <= (2 if predicate == "neg" else 1) else []

    def _word(self, name: str | None, seen: frozenset[str] = frozenset()) -> int | None:
        """The word that stands for a node, its own or that of one it leads to."""
        if name is None or name in seen or name not in self.nodes:
            return None
        if name in self.words and name not in self.ends:
            return self.words[name][-1]
        predicate, roles = self.nodes[name].predicate, self._roles(name)
        if predicate in _CLEAR and _CLEAR[predicate] in roles:
            return self._word(roles[_CLEAR[predicate]], seen | {name})
        if _is_conjunction(predicate):
            for role in ("L-HNDL", "L-INDEX", "ARG1", "R-HNDL", "R-INDEX", "ARG2"):
                if role in roles:
                    return self._word(roles[role], seen | {name})
        return self.words[name][-1] if name in self.words else None

    def _arcs(self) -> Iterable[tuple[int, int, str]]:
        for name, node in self.nodes.items():
            predicate = node.predicate
            if name in self.ends:
                one, two = map(self._word, self.ends[name])
                if one is not None and two is not None and one != two:
                    yield one, two, _LABELS.get(predicate, predicate)
                if not _is_lexical(predicate) or _is_conjunction(predicate):
                    continue
            if name not in self.words:
                continue
            *others, head = self.words[name]
            for role, target in self._roles(name).items():
                word = self._word(target)
                if word is not None and word != head:
                    yield head, word, _label(predicate, role)
            for one, two in zip(self.words[name][1:], others, strict=True):
                yield one, two, "mwe"

    def _top_word(self, arcs: Mapping[tuple[int, int], str]) -> int | None:
        word, name = self._word(self.top), self.top
        seen: set[str] = set()
        while word is None and name is not None and name not in seen:
            seen.add(name)
            roles = self._roles(name)
            order = ("ARG1", "ARG", "ARG2")
            if name in self.nodes and self.nodes[name].predicate == "discourse":
                order = ("ARG2", "ARG1", "ARG")
            name = next((roles[role] for role in order if role in roles), None)
            word = self._word(name)
        if word is None and arcs:
            heads, found = {head for head, _ in arcs}, {argument for _, argument in arcs}
            word = min(heads - found, default=min(heads))
        return word if arcs else None


def _without_doubles(roles: Mapping[str, str]) -> dict[str, str]:
    """The roles of a node; a conjunct that is named by its handle is not named by its index too."""
    doubled = {f"{side}-INDEX" for side in "LR" if f"{side}-HNDL" in roles}
    return {role: target for role, target in roles.items() if role not in doubled}


def _is_lexical(predicate: str) -> bool:
    return predicate.startswith("_") or predicate in _WORDS


def _is_conjunction(predicate: str) -> bool:
    return predicate.endswith("_c") or predicate == "implicit_conj"


def _label(predicate: str, role: str) -> str:
    """What the arc of a word to its argument is called."""
    if _COMPARISON.fullmatch(predicate):
        kind = _COMPARISONS.get(predicate, predicate)
        return {"ARG1": kind, "ARG2": "than" if kind in ("comp", "comp_less") else "ARG2"}.get(role, role)
    if predicate == "neg":
        return "neg"
    if predicate == "part_of" and role == "ARG1":
        return "part"
    return _ROLES.get(role, role)
