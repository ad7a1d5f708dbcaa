"""What many trainings on the same text would all work out again: its tagger, and the tags of its folds."""

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from spigot_nlp.data.formats.files import written
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.tagging.lemmas import Lemmatiser
from spigot_nlp.data.tagging.tagger import Tagger, jackknife

CACHE_VARIABLE = "SPIGOT_CACHE"
"""Names a folder in which prepared text is kept from one training to the next; without it none is."""

_KIND = "spigot tags 1"


def prepared(known: Sequence[Sentence], folds: int) -> tuple[Tagger, list[Sentence]]:
    """A tagger trained on some text, and the same text as taggers would tag it that have not seen it.

    Args:
        known: Tagged sentences.
        folds: How many taggers the text is tagged by.

    Returns:
        The tagger; the sentences with predicted tags and lemmas, in order.

    Example:
        >>> text = [Sentence(("dogs", "bark"), tags=("NNS", "VBP")), Sentence(("a", "dog"), tags=("DT", "NN"))]
        >>> tagger, tagged = prepared(text, 2)
        >>> sorted(tagger.tags), [len(sentence.tags) for sentence in tagged]
        (['DT', 'NN', 'NNS', 'VBP'], [2, 2])
    """
    folder = os.environ.get(CACHE_VARIABLE)
    if not folder:
        return _work_out(known, folds)
    key = _key(known, folds)
    tags, weights = Path(folder, f"tags-{key}.json"), Path(folder, f"tagger-{key}.safetensors")
    # Whatever is wrong with what was kept, it can be worked out again.
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(tags.read_bytes())
        if kept["kind"] == _KIND and len(kept["tags"]) == len(kept["lemmas"]) == len(known):
            pairs = zip(known, kept["tags"], kept["lemmas"], strict=True)
            return Tagger.load(weights), [replace(s, tags=tuple(t), lemmas=tuple(m)) for s, t, m in pairs]
    tagger, noisy = _work_out(known, folds)
    with suppress(OSError):  # a full disk is no reason not to train
        Path(folder).mkdir(parents=True, exist_ok=True)
        tagger.save(weights)
        plain = {"kind": _KIND, "tags": [s.tags for s in noisy], "lemmas": [s.lemmas for s in noisy]}
        with written(tags) as file:  # last: it says that the other is there
            file.write(json.dumps(plain).encode())
    return tagger, noisy


def _work_out(known: Sequence[Sentence], folds: int) -> tuple[Tagger, list[Sentence]]:
    return Tagger.train(known), list(Lemmatiser().lemmatise(jackknife(known, folds=folds)))


def _key(known: Sequence[Sentence], folds: int) -> str:
    """What the result depends on, as a short text."""
    digest = hashlib.sha256(f"{_KIND} {folds}".encode())
    for sentence in known:
        digest.update(json.dumps([sentence.forms, sentence.tags], ensure_ascii=False).encode())
    return digest.hexdigest()[:16]
