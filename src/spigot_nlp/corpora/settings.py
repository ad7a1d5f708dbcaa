"""Where the sentences of an experiment come from."""

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from spigot_nlp.values import Count, Positive, Texts, Values

DATA_VARIABLE = "SPIGOT_DATA"
"""The environment variable that names the folder of the corpora."""


def _checked_part(part: str) -> str:
    number, _, of = part.partition("/")
    if part and not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise ValueError(f"{part!r} is no part of a whole; write '1/2' for the first half")
    return part


class Files(Values):
    """The files of one data set, relative to `data.root`.

    Attributes:
        train: Training sentences; several files are read one after the other.
        dev: What early stopping and tuning look at.
        tests: Test sets by name, e.g. `id` and `ood`.
        part: Which of the training sentences to use: `1/2` and `2/2` are two halves that share no text, in whichever
            data set it stands; all if empty.
        limit: How many training sentences to use, from the start of a shuffled order; all if 0.
        format: What the files are in, where their names do not tell, e.g. `sst-binary`.
        train_format: What the training files are in, if another: `sst-binary-phrases` trains on every phrase.
        names: What to call annotations that files have under other names: `{ graph = "enhanced" }`.
        join: Files with further graphs of the same sentences, by the name that these graphs get, in place of files of
            its own; see `spigot_nlp.data.join`.
        relations: In `join`, how much of the relations in the enhanced column of CoNLL-U is kept: `universal` up to the
            first colon (`obl:of` is `obl`), or `whole`.

    Example:
        >>> Files(train="train.conllu", names={"graph": "enhanced"}).train
        ('train.conllu',)
        >>> files = Files.model_validate({"join": {"dm": {"dev": "dm.sdp"}, "psd": {"dev": "psd.sdp"}}})
        >>> files.join["psd"].dev, sorted(files.paths)
        ('psd.sdp', ['dm.sdp', 'psd.sdp'])
    """

    train: Texts = ()
    dev: str = ""
    tests: dict[str, str] = Field(default={})
    part: Annotated[str, AfterValidator(_checked_part)] = ""
    limit: Count = 0
    format: str = ""
    train_format: str = ""
    names: dict[str, str] = Field(default={})
    join: "dict[str, Files]" = Field(default={})
    relations: Literal["universal", "whole"] = "universal"

    @model_validator(mode="after")
    def _either(self) -> "Files":
        if self.join and (self.train or self.dev or self.tests):
            raise ValueError(
                "a data set has either files of its own or `join`, which names those of each of its graphs"
            )
        for name, files in self.join.items():
            if files.join or files.part or files.limit:
                raise ValueError(f"join.{name} is a part of a data set; part, limit and join are said of the whole")
        return self

    @property
    def paths(self) -> tuple[str, ...]:
        """All files, as they are named."""
        own = (*self.train, self.dev, *self.tests.values())
        return (*filter(None, own), *(path for files in self.join.values() for path in files.paths))

    def unread(self, **none: Any) -> "Files":
        """The same without some of its files: `train=()`, `tests={}`."""
        join = {name: files.unread(**none) for name, files in self.join.items()}
        return self.model_copy(update={**none, "join": join})


class Synthetic(Values):
    """Sizes of the built-in corpus, in sentences.

    Example:
        >>> Synthetic(train=60).test
        500
    """

    train: Positive = 2000
    dev: Positive = 300
    test: Positive = 500


class Data(Values):
    """Where the sentences come from.

    Beside the settings below it has any number of data sets, each a table of its own: `[data.trees]`, `[data.graphs]`
    and `[data.labels]` are what stages look for unless they are told otherwise.

    Attributes:
        root: The folder that relative paths start from; the environment variable SPIGOT_DATA if empty.
        source: `files`, or the built-in `synthetic` corpus.
        vectors: Pretrained word vectors as GloVe text, plain or gzip; none if empty.
        tags: Whether tags and lemmas are `predicted` (training text by jackknifing) or taken from the files' `columns`.
        text: The data sets whose words a system knows; those that its stages learn from if there are none.
        obtain: What to tell a user who lacks the files.

    Example:
        >>> Data.model_validate({"trees": {"dev": "dev.conllu"}}).sets["trees"].dev
        'dev.conllu'
    """

    model_config = ConfigDict(extra="allow")
    # The type of what else stands in the table, as pydantic wants it.
    __pydantic_extra__: dict[str, Files] = Field(init=False)  # pyright: ignore[reportIncompatibleVariableOverride]

    root: str = ""
    source: Literal["files", "synthetic"] = "files"
    synthetic: Synthetic = Synthetic()
    vectors: str = ""
    tags: Literal["predicted", "columns"] = "predicted"
    folds: Annotated[Count, Field(ge=2)] = 5
    text: Texts = ()
    obtain: str = ""

    @property
    def sets(self) -> dict[str, Files]:
        """The files of each data set."""
        return dict(self.__pydantic_extra__ or {})

    @property
    def has_tests(self) -> bool:
        """Whether there are test sets; the built-in corpus has some."""
        return self.source != "files" or any(files.tests for files in self.sets.values())

    def files(self, name: str) -> Files:
        """The files of one data set; none if nobody has said anything about it."""
        return self.sets.get(name, Files())

    def path(self, name: str) -> Path:
        """The place of a file, whether given in full or relative to the root."""
        path = Path(name)
        root = self.root or os.environ.get(DATA_VARIABLE, "")
        return path if path.is_absolute() or not root else Path(root) / path
