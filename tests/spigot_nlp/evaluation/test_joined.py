"""What is known about the same words elsewhere."""

from spigot_nlp.data.sentence import Sentence
from spigot_nlp.evaluation.joined import twins


def test_words_that_come_several_times_have_their_twins_in_order():
    rain, other = Sentence(("Rain", "fell"), heads=(2, 0)), Sentence(("Rain", "fell"), heads=(0, 1))
    asked = [Sentence(("Rain", "fell")), Sentence(("Go",)), *[Sentence(("Rain", "fell"))] * 2]
    assert twins(asked, [rain, other]) == [rain, None, other, other]
