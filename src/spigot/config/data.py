"""Where the sentences of an experiment come from."""

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from spigot.config.values import Count, Positive, Values

DATA_VARIABLE = "SPIGOT_DATA"


class Files(Values):
    """The files of one task, relative to `data.root`.

    Attributes:
        train: Training sentences; several files are read one after the other.
        dev: What early stopping and tuning look at.
        tests: Test sets by name, e.g. `id` and `ood`.
        limit: How many training sentences to use, from the start of a shuffled order; all if 0.
        format: What the files are in, where their names do not tell, e.g. `sst-binary`.
        train_format: What the training files are in, if another: `sst-binary-phrases` trains on every phrase.
    """

    train: tuple[str, ...] = ()
    dev: str = ""
    tests: dict[str, str] = Field(default={})
    limit: Count = 0
    format: str = ""
    train_format: str = ""


class Synthetic(Values):
    """Sizes of the built-in corpus, in sentences."""

    train: Positive = 2000
    dev: Positive = 300
    test: Positive = 500
    seed: Count = 0


class ListOps(Values):
    """Sizes of the generated ListOps corpus, in expressions, and of these, in words and nested operators.

    The test set out of domain has `test` expressions that are longer and deeper than all others.
    """

    train: Positive = 10_000
    dev: Positive = 1000
    test: Positive = 1000
    seed: Count = 0
    operators: tuple[str, ...] = ("MIN", "MAX", "MED", "SM")
    min_length: Positive = 5
    max_length: Positive = 25
    min_depth: Positive = 1
    max_depth: Positive = 3
    max_arguments: Annotated[int, Field(ge=2)] = 5


class Data(Values):
    """Where the sentences come from.

    Attributes:
        root: The folder that relative paths start from; the environment variable SPIGOT_DATA if empty.
        source: `files`, the built-in `synthetic` corpus, or generated `listops`.
        trees: Syntactic trees.
        graphs: Semantic graphs.
        labels: Labelled sentences, for `task = "classification"`.
        vectors: Pretrained word vectors as GloVe text, plain or gzip; none if empty.
        tags: Whether tags and lemmas are `predicted` (training text by jackknifing) or taken from the files' `columns`.
        obtain: What to tell a user who lacks the files.
    """

    root: str = ""
    source: Literal["files", "synthetic", "listops"] = "files"
    trees: Files = Files()
    graphs: Files = Files()
    labels: Files = Files()
    synthetic: Synthetic = Synthetic()
    listops: ListOps = ListOps()
    vectors: str = ""
    tags: Literal["predicted", "columns"] = "predicted"
    folds: Annotated[int, Field(ge=2)] = 5
    obtain: str = ""

    @property
    def tasks(self) -> tuple[Files, Files, Files]:
        """The files of each task: trees, graphs, labels."""
        return self.trees, self.graphs, self.labels

    def path(self, name: str) -> Path:
        """The place of a file, whether given in full or relative to the root."""
        path = Path(name)
        root = self.root or os.environ.get(DATA_VARIABLE, "")
        return path if path.is_absolute() or not root else Path(root) / path
