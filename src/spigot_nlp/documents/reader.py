"""A trained system as a function of text."""

import copy
import gc
import itertools
import multiprocessing
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import Any

import torch

from spigot_nlp.annotations import AbstractAnnotation
from spigot_nlp.bundled import default_model, run_folder
from spigot_nlp.data.text.foreign import Foreign
from spigot_nlp.documents.document import Doc
from spigot_nlp.encoders import READING, Precision
from spigot_nlp.garbage import uncollected
from spigot_nlp.models import checkpoint
from spigot_nlp.models.parser import Parser
from spigot_nlp.threads import own_threads

_FEW = 200
"""Words that one thread parses as quickly as several."""
_MANY = 200_000
"""Characters that are enough for a batch, however few texts they are: more would take memory, and gain nothing."""


@dataclass(frozen=True, eq=False, repr=False)
class TextParser:
    """A trained system that takes text: `nlp("The poet didn't sleep.")` is a `Doc`.

    The text is cut into sentences and words in the manner of its training data, as `spigot parse` and the page do it.

    Attributes:
        parser: The system.
        run: The folder it comes from; `None` if it comes from none.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.data.sentence import Sentence
        >>> from spigot_nlp.models.build import fresh
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0), relations=("nsubj", "root"))
        >>> config = make_config({"stages": {"syntax": {"annotation": "trees", "labelled": True}}})
        >>> nlp = TextParser(fresh(config, {"trees": [rain]}))
        >>> doc = nlp("Rain fell. It didn't stop.")
        >>> doc, [len(sentence) for sentence in doc], doc[1][2].text, doc[1][2].start
        (Doc("Rain fell. It didn't stop.", 2 sentences), [3, 5], "n't", 17)
        >>> [doc.text for doc in nlp.pipe(["Rain.", "", "Hail."])]
        ['Rain.', '', 'Hail.']
        >>> print(nlp.foreign(doc))
        67 % of these words are new to this model (4 of 6): expect more errors than its scores promise.
    """

    parser: Parser
    run: Path | None = None

    def __call__(self, text: str, *, lines: bool = False, tokenised: bool = False) -> Doc:
        """What the system finds in a text.

        Args:
            text: The text.
            lines: Whether each line is a sentence.
            tokenised: Whether there is a space between all tokens already.
        """
        (doc,) = self._parsed([text], lines, tokenised)
        return doc

    def pipe(
        self,
        texts: Iterable[str],
        *,
        processes: int = 1,
        batch: int = 256,
        lines: bool = False,
        tokenised: bool = False,
    ) -> Iterator[Doc]:
        """The documents of many texts, in their order, as soon as they are there.

        If a text is no string, or the texts themselves end in an error, the documents of all texts before it come
        first. Processes end with the documents, or when nobody listens any longer: at `close()` of what this gives.

        Args:
            texts: The texts; of any number, since only a few batches are held at a time.
            processes: How many processes parse. Each loads the run for itself. A script that asks for several must do
                so under `if __name__ == "__main__"`, as for all of Python's processes; a notebook need not.
            batch: How many texts are parsed together, at most: fewer if they are long.
            lines: Whether each line is a sentence.
            tokenised: Whether there is a space between all tokens already.

        Raises:
            TypeError: If a text is no string.
            ValueError: If there are to be several processes, and the system comes from no run folder.
            RuntimeError: If a process is lost, or this one may have none.
        """
        if isinstance(texts, str):
            raise TypeError("pipe takes many texts, and this is one; call the system with it, or put it in a list.")
        try:
            processes, batch = index(processes), index(batch)
        except TypeError:
            raise TypeError(f"processes is {processes!r} and batch is {batch!r}; both must be whole numbers.") from None
        if processes < 1 or batch < 1:
            raise ValueError(f"processes is {processes} and batch is {batch}; both must be at least 1.")
        if processes == 1:
            return self._stream(texts, batch, lines, tokenised)
        if multiprocessing.current_process().daemon:
            raise RuntimeError("this process, a worker of a DataLoader say, may have none of its own; use processes=1.")
        if self.run is None:
            raise ValueError("processes load the run folder, and this system comes from none; use processes=1.")
        return self._shared(texts, processes, batch, lines, tokenised)

    def foreign(self, doc: Doc) -> Foreign:
        """How much of a document is new to the system."""
        return self.parser.foreign(sentence.found for sentence in doc)

    def __repr__(self) -> str:
        where = "" if self.run is None else f", {str(self.run)!r}"
        return f"TextParser({self.parser!r}{where})"

    def __deepcopy__(self, memo: dict[int, Any]) -> "TextParser":
        return TextParser(copy.deepcopy(self.parser, memo), self.run)

    def __reduce__(self) -> tuple[object, ...]:
        """What is pickled is where it comes from: it is loaded from its folder again, without later changes to it."""
        if self.run is None:
            raise TypeError("a system that comes from no run folder cannot be pickled; save it, and load it there.")
        return _loaded, (str(self.run), str(self.parser.model.device), self.parser.model.precision)

    def _stream(self, texts: Iterable[str], batch: int, lines: bool, tokenised: bool) -> Iterator[Doc]:
        for some in _batches(texts, batch):
            yield from self._parsed(some, lines, tokenised)

    def _shared(self, texts: Iterable[str], processes: int, batch: int, lines: bool, tokenised: bool) -> Iterator[Doc]:
        threads = max(1, torch.get_num_threads() // processes)
        context = multiprocessing.get_context("spawn")  # a copy of a process with threads may hang
        start = str(self.run), str(self.parser.model.device), self.parser.model.precision, threads
        batches, waiting = _batches(texts, batch), deque[Future[list[Doc]]]()
        wrong: Exception | None = None
        pool = ProcessPoolExecutor(processes, context, _begin, start)
        try:
            while True:
                while wrong is None and len(waiting) < 2 * processes:
                    try:
                        waiting.append(pool.submit(_work, next(batches), lines, tokenised))
                    except Exception as error:  # the end of the texts is one, too
                        wrong = error
                if not waiting:
                    break
                yield from waiting.popleft().result()
        except BrokenProcessPool as cause:
            raise RuntimeError(
                "a process that parses could not start, or was ended: what it wrote says why, if anything. A script "
                'must ask for processes under if __name__ == "__main__", and each takes the memory of a loaded model.'
            ) from cause
        finally:  # whoever stops listening does not wait for what was still to come
            pool.shutdown(cancel_futures=True)
        if not isinstance(wrong, StopIteration) and wrong is not None:
            raise wrong

    def _parsed(self, texts: list[str], lines: bool, tokenised: bool) -> list[Doc]:
        """Several texts at once: what they have in sentences goes through the system together."""
        cut = self.parser.conventions.sentences
        sentences = [list(cut(_checked(text), lines=lines, tokenised=tokenised)) for text in texts]
        whole = [sentence for some in sentences for sentence in some]
        # A few words are not worth dividing, and threads that spin for each other on a busy machine take far longer.
        few = not self.parser.model.reads_by_kernels and sum(map(len, whole)) < _FEW
        with own_threads(1) if few else nullcontext():
            found = iter(list(self.parser.parse_sentences(whole)))
        annotations, names = self._annotations, self.parser.class_names
        docs = []
        for text, some in zip(texts, sentences, strict=True):
            doc = Doc.of(list(itertools.islice(found, len(some))), annotations, names)
            docs.append(doc if some else Doc(text, ()))
        return docs

    @property
    def _annotations(self) -> list[AbstractAnnotation]:
        given = self.parser.gives
        return list({a.name: a for a in self.parser.model.annotations.values() if a.name in given}.values())


def load(
    run: str | os.PathLike[str] | None = None,
    *,
    device: torch.device | str = "cpu",
    precision: Precision = READING,
) -> TextParser:
    """A trained system, ready for text.

    Args:
        run: The folder that `spigot train` made, or the name of a model that comes with spigot; English if omitted.
        device: Where it is to compute.
        precision: Of its states and scores. As for `spigot parse` these are whole numbers, `int16`, which without
            kernels or on an accelerator is `float32`. Structures are found in single precision either way.

    Example:
        >>> load("nowhere")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        FileNotFoundError: nowhere is no run folder: it has no config.toml. Train one with spigot train...
    """
    if not isinstance(run, str | os.PathLike | None):
        raise TypeError(f"run is {run!r}; it must be the folder of a run, or the name of a model.")
    folder = default_model() if run is None else run_folder(run).absolute()  # wherever the process goes afterwards
    # One thread, since there is little to divide, and several wait for each other on a busy machine.
    with uncollected(), own_threads(1):
        return TextParser(checkpoint.load(folder, device, precision=precision), folder)


def _checked(text: object, place: str = "") -> str:
    if not isinstance(text, str):
        kind = type(text).__name__
        raise TypeError(f"a text is a string, and {place or 'this'} is {kind!r}; use parser.parse for sentences.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{place or 'the text'} has half a character at {error.start}, {text[error.start]!r}; decode it with "
            "errors='replace'."
        ) from None
    return text


def _batches(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """The texts, so many at a time. What comes before one that cannot be had, or is none, is given before the error."""
    some: list[str] = []
    characters = 0
    try:
        for number, text in enumerate(texts, 1):
            some.append(_checked(text, f"number {number}"))
            characters += len(text)
            if len(some) == size or characters >= _MANY:
                yield some
                some, characters = [], 0
    except Exception:
        if some:
            yield some
        raise
    if some:
        yield some


def _loaded(run: str, device: str, precision: Precision) -> TextParser:
    return load(run, device=device, precision=precision)


_mine: list[TextParser] = []


def _begin(run: str, device: str, precision: Precision, threads: int) -> None:
    """What a process does first."""
    torch.set_num_threads(threads)
    _mine[:] = [load(run, device=device, precision=precision)]
    gc.freeze()  # the collector of garbage need not look at a loaded model again and again


def _work(texts: list[str], lines: bool, tokenised: bool) -> list[Doc]:
    return _mine[0]._parsed(texts, lines, tokenised)
