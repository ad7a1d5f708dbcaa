"""What is known about the same words elsewhere."""

from spigot_nlp.data.sentence import Sentence
from spigot_nlp.evaluation.joined import add_trees


def test_trees_are_found_by_their_words():
    trees = [
        Sentence(("Rain", "fell"), heads=(2, 0)),
        Sentence(("Go",)),
        Sentence(("Rain", "fell"), heads=(0, 1), relations=("root", "x")),
    ]
    rain = Sentence(("Rain", "fell"), label=1, heads=(0, 0))
    found, count = add_trees([rain, Sentence(("Go",)), rain, rain], trees)
    assert [sentence.heads for sentence in found] == [(2, 0), None, (0, 1), (0, 1)]
    assert found[2].relations == ("root", "x")
    assert found[0].label == 1
    assert count == 3
