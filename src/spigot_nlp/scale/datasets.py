"""Parsing as a step of a Ray Data pipeline."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spigot_nlp.bundled import run_folder
from spigot_nlp.scale.columns import schema_of
from spigot_nlp.scale.documents import Document, Manner, Placed, text_document
from spigot_nlp.scale.machines import packed_model
from spigot_nlp.scale.shards import Look
from spigot_nlp.scale.worker import Culprits, Order, Worker, chunks, numbered, own_plugins

if TYPE_CHECKING:
    import pyarrow  # pyright: ignore[reportMissingImports]
    import ray.data  # pyright: ignore[reportMissingImports]


def parse(
    dataset: "ray.data.Dataset",
    model: str | os.PathLike[str],
    *,
    text: str = "text",
    id: str | None = "id",
    lines: bool = False,
    tokenised: bool = False,
    workers: int | tuple[int, int] | None = None,
    threads: int = 1,
    batch: int = 256,
    device: str = "cpu",
    precision: str = "int16",
) -> "ray.data.Dataset":
    """A data set of documents as one of parsed sentences.

    Each document becomes a row for each of its sentences, in their order, with the columns that shards of parquet have:
    words, heads, relations, arcs and the others as lists, and the document and the place in its text that they are
    from. A document that cannot be parsed becomes one row without words whose column `error` says why.

    Args:
        dataset: The documents, a row each.
        model: The folder that `spigot train` made, or the name of a model that comes with spigot. Its files
            are handed to the workers.
        text: The column with the text.
        id: The column that names documents; `None` if there is none.
        lines: Whether each line is a sentence.
        tokenised: Whether there is a space between all tokens already.
        workers: How many actors there are to be, or at least and at most; by default what the cluster has room for.
        threads: How many threads, and cores, each has.
        batch: How many documents are parsed together.
        device: Where to compute.
        precision: What words are encoded in.

    Returns:
        The sentences; lazy, like every data set of Ray's.

    Example:
        >>> import ray  # doctest: +SKIP
        >>> news = ray.data.read_json("s3://news/2026/", lines=True)  # doctest: +SKIP
        >>> parse(news, "runs/spigot").write_parquet("s3://news/parsed/")  # doctest: +SKIP
    """
    import ray  # pyright: ignore[reportMissingImports]

    from spigot_nlp.ray_cluster import cores

    folder = run_folder(model)
    if not ray.is_initialized():
        ray.init()
    if workers is None:
        workers = (1, max(1, sum(number // threads for number in cores(ray).values())))
    least, most = (workers, workers) if isinstance(workers, int) else workers
    manner = Manner(text, id, lines, tokenised)
    order = Order(
        str(folder.resolve()),
        "",
        Look("parquet"),
        manner,
        device=device,
        precision=precision,
        threads=threads,
        plugins=own_plugins(),
    )
    return dataset.map_batches(
        Batches,
        fn_constructor_args=(order, ray.put(packed_model(folder))),
        batch_size=batch,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(min_size=least, max_size=most),
        num_cpus=threads,
        num_gpus=1 if device.startswith("cuda") else None,
    )


class Batches:
    """Parses batches of documents; an actor of Ray Data has one.

    Args:
        order: What it is told.
        packed: The files of the model, or where Ray has them.

    Example:
        >>> Batches(Order("runs/spigot", "", Look("parquet")), {}).order.model
        'runs/spigot'
    """

    def __init__(self, order: Order, packed: Any) -> None:
        if not isinstance(packed, Mapping):
            import ray  # pyright: ignore[reportMissingImports]

            packed = ray.get(packed)
        self.order = replace(order, packed=packed)
        self._worker = Worker(self.order)

    def __call__(self, batch: "pyarrow.Table") -> "pyarrow.Table":
        """The sentences of some documents."""
        import pyarrow as pa  # pyright: ignore[reportMissingImports]

        manner, parser = self.order.manner, self._worker.parser
        for name in (manner.text, manner.id):
            if name is not None and name not in batch.column_names:
                raise ValueError(f"the data set has no column {name!r}; it has {', '.join(batch.column_names)}.")
        texts = batch.column(manner.text).to_pylist()
        names = batch.column(manner.id).to_pylist() if manner.id else [None] * len(texts)
        documents = [
            text_document("" if name is None else str(name), text, 0, f"the column {manner.text!r}")
            for name, text in zip(names, texts, strict=True)
        ]
        schema = schema_of(parser).append(pa.field("error", pa.string()))
        return pa.Table.from_pylist(self._rows(documents), schema=schema)

    def _rows(self, documents: Sequence[Document]) -> list[dict[str, Any]]:
        bad: dict[int, str] = {}
        while True:
            rows: list[list[dict[str, Any]]] = [[] for _ in documents]
            try:
                for chunk in chunks(self._sentences(documents, bad, rows)):
                    for (k, _), row in zip(chunk, self._worker.rendered(chunk), strict=True):
                        rows[k].append(row)
            except Culprits as found:
                bad |= found.reasons
            else:
                return [row for some in rows for row in some]

    def _sentences(
        self, documents: Sequence[Document], bad: dict[int, str], rows: list[list[dict[str, Any]]]
    ) -> Iterator[tuple[int, Placed]]:
        for k, document in enumerate(documents):
            if reason := document.reason or bad.get(k, ""):
                rows[k].append({"document": document.id, "error": reason})
                continue
            yield from numbered(document, k, self._worker.parser.conventions, self.order.manner)
