"""Files of every format to begin with, made up for the purpose, and a run folder."""

import io
import json
import tempfile
from functools import cache
from pathlib import Path

from spigot_nlp.config import make_config
from spigot_nlp.data.formats import write
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.data.tagging.tagger import Tagger
from spigot_nlp.models import checkpoint
from spigot_nlp.models.build import fresh

SENTENCES = [
    Sentence(
        ("The", "poet", "did", "n't", "sleep", "."),
        lemmas=("the", "poet", "do", "not", "sleep", "."),
        tags=("DT", "NN", "VBD", "RB", "VB", "."),
        heads=(2, 5, 5, 5, 0, 5),
        relations=("det", "nsubj", "aux", "advmod", "root", "punct"),
        graph=Graph.of([Arc(5, 2, "ARG1"), Arc(4, 5, "neg")], tops=[5]),
        label=1,
        id="s1",
    ),
    Sentence(("Rain", "fell"), tags=("NN", "VBD"), heads=(2, 0), graph=Graph.of([Arc(2, 1, "ARG1")], [2]), label=0),
    Sentence(("Go",), tags=("VB",), heads=(0,), graph=Graph(tops=(1,)), label=3, id="Ärger"),
]

TREES = [
    b"(3 (2 It) (4 (2 was) (4 lovely)))\n(1 (2 (2 Not) (1 (0 bad))) (2 .))\n",
    b"(2 word)\r\n\r\n(4 (3 1\xc2\xa01/2) (2 -LRB-))\r\n",
    b"\xef\xbb\xbf(0 (2 a\\/b) (1 (2 n't) (0 (2 bad) (2 \\*\\*))))",
]

ENHANCED = (
    b"# sent_id = e1\n# text = Don't\n1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n"
    b"1\tDo\tdo\tAUX\tVB\tMood=Imp\t0\troot\t0:root|1.1:x\t_\n1.1\tyou\tyou\tPRON\tPRP\t_\t_\t_\t1:nsubj\t_\n"
    b"2\tn't\tnot\tPART\tRB\t_\t1\tadvmod\t1:advmod:neg|1.1:y\t_\n\n"
)

TEXTS = [
    "The poet didn't sleep. Rain fell; it's 3.5 km (or so) -- \"who knows?\"\n\nDr. Smith's U.S. visit…".encode(),
    "«Où?» demanda-t-elle. 北京。 🙂👩‍👩‍👧 e\u0301tude\u00a0\u200b\u202eabc http://a.b/c?d=e#f x@y.z 1,00.0$".encode(),
    b"a.b.c ... ?!?! 'tis 'em cannot gonna ''quote'' ``quote`` <tag> &amp; A.B.C. e.g. this i.e. that etc. Mr. X\n",
]

QUERIES = [
    json.dumps(value).encode()
    for value in (
        {"text": "Rain fell. It didn't stop."},
        {"words": ["Rain", "fell"], "tags": ["NN", "VBD"], "systems": ["rain"], "top": 3, "draw": True},
        {
            "words": ["Rain", "fell"],
            "constraints": {"heads": [[1, 2]], "not_heads": [[2, 1]], "arcs": [[2, 1, "ARG1"]]},
        },
        {"text": "a b", "constraints": [{"not_arcs": [[1, 2]]}], "draw": "file"},
    )
]

VECTORS = [b"rain 0.5 1 -2e-3\nsnow -1 2 4\nhail 1e2 0 0\n", b"a 1\nb 2\n"]


@cache
def written(format: str) -> bytes:
    """The sentences in a format."""
    stream = io.BytesIO()
    write(SENTENCES, stream, format)
    return stream.getvalue()


def of_format(format: str) -> list[bytes]:
    """Files in a format."""
    if format.startswith("sst"):
        return TREES
    more = [ENHANCED] if format == "conllu" else []
    return [written(format), written(format).replace(b"\n", b"\r\n"), *more]


@cache
def run() -> Path:
    """A run folder with a system of trees and graphs that has learnt nothing, and a tagger."""
    folder = Path(tempfile.mkdtemp(prefix="spigot-fuzz-"))
    small = {"encoder": {"hidden": 4, "layers": 1}, "mlp": 4}
    semantics = {**small, "pruning": {"learned": False, "rare_role": 0}}
    config = make_config({"data": {"tags": "columns"}, "syntax": small, "semantics": semantics})
    parser = fresh(config, {"graphs": SENTENCES, "trees": SENTENCES})
    checkpoint.save_start(folder, parser)
    checkpoint.write_tensors(folder / checkpoint.MODEL, parser.model.state_dict())
    Tagger.train(SENTENCES[:2], epochs=1).save(folder / checkpoint.TAGGER)
    return folder
