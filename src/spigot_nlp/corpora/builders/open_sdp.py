"""The graphs of the shared tasks on semantic dependency parsing, divided as the field divides them.

The training file of 2015 holds sections 00 to 20 of the Wall Street Journal, of which the last is for development.

References:
    Oepen et al. (2015), SemEval 2015 task 18: broad-coverage semantic dependency parsing, §3.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from spigot_nlp.corpora.builders.sources import Material, Watch, unwatched
from spigot_nlp.corpora.builders.target import MANIFEST, Built, Target
from spigot_nlp.data.formats import read
from spigot_nlp.data.sentence import Sentence

Graphs = Literal["dm", "psd", "pas"]
OPEN = Material(
    "Open SDP",
    "http://hdl.handle.net/11234/1-1956",
    "CC BY-NC-SA",
    "download osdp-12.tgz from http://hdl.handle.net/11234/1-1956 and unpack it",
)
LICENSED = Material(
    "SDP 2014 & 2015: Broad Coverage Semantic Dependency Parsing",
    "https://catalog.ldc.upenn.edu/LDC2016T10",
    "LDC",
    "obtain LDC2016T10 from the Linguistic Data Consortium and unpack it",
)
_WHERE = (".", "2015", "*/2015", "*/*/2015")
_DEVELOPMENT = "220"  # how the names of the sentences of section 20 begin: 2, the section, the document, the sentence


def open_sdp(
    folder: str | Path,
    out: str | Path,
    *,
    graphs: Graphs = "dm",
    replace: bool = False,
    watch: Watch = unwatched,
) -> Built:
    """Build `sdp2015`: the graphs of 2015 as `dm.train.sdp`, `dm.dev.sdp`, `dm.id.sdp` and `dm.ood.sdp`.

    Args:
        folder: What Open SDP unpacks to, or the licensed release, which has the same files and more.
        out: The folder that holds the corpora.
        graphs: DM, which is open; PSD or PAS, which only the licensed release has.
        replace: Whether other files in the place of these may go.
        watch: Shows how far it is.

    Raises:
        FileNotFoundError: If the graphs are not in the folder.
        ValueError: If none of them are of section 20, or all are.
        FileExistsError: If other files are in the place, and may not go.

    Example:
        >>> open_sdp("osdp-12", "data")
        Traceback (most recent call last):
        FileNotFoundError: there is no folder osdp-12; it should hold Open SDP: download osdp-12.tgz from \
http://hdl.handle.net/11234/1-1956 and unpack it
    """
    if graphs not in ("dm", "psd", "pas"):
        raise ValueError(f"graphs is {graphs!r}; it must be dm, psd or pas.")
    material = OPEN if graphs == "dm" else LICENSED
    folder = material.require(folder)
    train = _find(folder, f"en.{graphs}.sdp", material)
    tests = {kind: _find(folder, f"en.{kind}.{graphs}.sdp", material) for kind in ("id", "ood")}
    with Target(out, "sdp2015", replace=replace, manifest=f"{graphs}.{MANIFEST}") as target:
        for part, wanted in (("train", False), ("dev", True)):
            sentences = watch(read(train), f"reading {train.name} for {part}")
            target.write(f"{graphs}.{part}.sdp", _of_section(sentences, wanted), "sdp")
            if not target.parts[f"{graphs}.{part}.sdp"].sentences:
                what = "a sentence of section 20, whose name begins with 220" if wanted else "a sentence of others"
                raise ValueError(f"{train} should have {what}; is it the training file of SDP 2015?")
        for kind, path in tests.items():
            target.write(f"{graphs}.{kind}.sdp", watch(read(path), f"reading {path.name}"), "sdp")
        return target.finish([material.origin(folder)], material.licence, options={"graphs": graphs})


def _find(folder: Path, name: str, material: Material) -> Path:
    """A file of the year 2015, wherever the archive was unpacked."""
    for pattern in _WHERE:
        for place in sorted(folder.glob(pattern)) if pattern != "." else [folder]:
            for path in (place / name, place / "test" / name):
                if path.is_file():
                    return path
    raise FileNotFoundError(
        f"{folder} has no sdp/2015/{name}, nor one in sdp/2015/test; it should hold {material.name}: {material.how}"
    )


def _of_section(sentences: Iterable[Sentence], wanted: bool) -> Iterator[Sentence]:
    return (sentence for sentence in sentences if sentence.id.startswith(_DEVELOPMENT) == wanted)
