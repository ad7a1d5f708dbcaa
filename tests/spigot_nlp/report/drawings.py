"""Drawings of all kinds, for the tests of what is made of them."""

from hypothesis import strategies as st

from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.report.arcs import Drawing, DrawnArc, drawing
from spigot_nlp.report.marks import SIGNS

WORDS = ("Rain", "fell", "softly", "on", "roofs")
NASTY = (
    "", " ", "<b>&\"'", "]]>", "\\end{document}%", "{$_^~#}", "e\u0301", "\u0301", "東京", "👩\u200d🚀", "🇫🇮",
    "\x00\x1b[31m", "\ud800", "\ufffe", "\u202eevil", "a\nb\tc", "שלום", "مرحبا", "''--,,<<", "x" * 300,
)  # fmt: skip

any_text = st.one_of(st.sampled_from(NASTY), st.text(st.characters(codec=None), max_size=8), st.just("ARG1"))


@st.composite
def drawings(draw: st.DrawFn) -> Drawing:
    words = draw(st.lists(any_text, max_size=9).map(tuple))
    count = len(words)

    def arcs() -> tuple[DrawnArc, ...]:
        if not count:
            return ()
        ends = st.tuples(st.integers(0, count), st.integers(1, count)).filter(lambda pair: pair[0] != pair[1])
        one = st.builds(
            lambda pair, label, mark, note: DrawnArc(pair[0], pair[1], label, mark, note),
            ends, any_text, st.sampled_from(list(SIGNS)), any_text,
        )  # fmt: skip
        return draw(st.lists(one, max_size=12).map(tuple))

    tags = draw(st.sampled_from([(), words]))
    predicates = draw(st.sampled_from([(), (1,)])) if count else ()
    return Drawing(words, arcs(), arcs(), tags, predicates)


def long_sentence(count: int = 500) -> Drawing:
    """Words in phrases of three, in clauses of twelve, in a chain; and predicates that reach three words far."""

    def head(i: int) -> int:
        if i % 12 == 0:
            return max(i - 12, 0)
        return i - i % 12 if i % 3 == 0 and i > 12 else i - i % 3 if i % 3 else i - i % 12

    heads = tuple(head(i) if head(i) != i else 0 for i in range(count))
    arcs = [Arc(i, i + step, "ARG1") for i in range(1, count - 3) for step in (1, 3) if i % 2]
    words = tuple(f"word{i}" for i in range(count))
    return drawing(Sentence(words, tags=("NN",) * count, heads=heads, graph=Graph.of(arcs, tops=[1])))


def sentence(heads: tuple[int, ...] | None, *arcs: Arc, top: int = 2) -> Sentence:
    return Sentence(WORDS, heads=heads, graph=Graph.of(arcs, tops=[top]))


FOUND = sentence((2, 0, 2, 2, 4), Arc(2, 1, "ARG1"), Arc(2, 3, "ARG2"))
RIGHT = sentence((2, 0, 2, 5, 2), Arc(2, 1, "ARG1"), Arc(2, 3, "MANNER"), top=3)
