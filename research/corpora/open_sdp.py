"""sdp2015: the graphs of the shared tasks on semantic dependency parsing, and ptb-sd: trees of the Penn Treebank.

    tar xzf osdp-12.tgz    # http://hdl.handle.net/11234/1-1956, or LDC2016T10, which has PSD and PAS, too
    python -m research.corpora.open_sdp osdp-12 --trees wsj --out DATA

The training file of 2015 holds sections 00 to 20 of the Wall Street Journal, of which the last is for development.
`--trees` is a folder with the Penn Treebank (LDC99T42) as basic Stanford Dependencies in CoNLL-X, a file for each of
its own and named like that, `wsj_2001.conllx`: section 20 is for development, 21 for testing, all others for training.

References:
    Oepen et al. (2015), SemEval 2015 task 18: broad-coverage semantic dependency parsing, §3.
"""

import re
from pathlib import Path

from research.corpora.build import Target, arguments, require, run
from spigot_nlp.data import read

GRAPHS = ("dm", "psd", "pas")
_OPEN = "download osdp-12.tgz from http://hdl.handle.net/11234/1-1956 and unpack it"
_LICENSED = "obtain LDC2016T10 from the Linguistic Data Consortium and unpack it"
_DEVELOPMENT = "220"  # how the names of the sentences of section 20 begin: 2, the section, the document, the sentence
_TREES = re.compile(r"wsj_(\d\d)\d\d\.(?:\w+\.)?conllx?(?:\.gz)?")
_PARTS = {"20": "dev", "21": "test"}


def build(folder: Path, out: Path, *, graphs: str = "dm", replace: bool = False) -> None:
    """Divide the graphs: `dm.train.sdp`, `dm.dev.sdp`, `dm.id.sdp` and `dm.ood.sdp`."""
    how = _OPEN if graphs == "dm" else _LICENSED
    require(folder, how)
    train, inside, outside = (_find(folder, f"en.{kind}{graphs}.sdp", how) for kind in ("", "id.", "ood."))
    with Target(out, "sdp2015", replace=replace) as target:
        for part, wanted in (("train", False), ("dev", True)):
            chosen = (sentence for sentence in read(train) if sentence.id.startswith(_DEVELOPMENT) == wanted)
            if not target.write(f"{graphs}.{part}.sdp", chosen, "sdp"):
                what = "none of section 20, whose names begin with 220" if wanted else "none but of section 20"
                raise ValueError(f"of the sentences of {train} there is {what}; give the training file of SDP 2015.")
        target.write(f"{graphs}.id.sdp", read(inside), "sdp")
        target.write(f"{graphs}.ood.sdp", read(outside), "sdp")


def _find(folder: Path, name: str, how: str) -> Path:
    """A file of the year 2015, wherever the archive was unpacked."""
    for place in (
        folder,
        *(path for pattern in ("2015", "*/2015", "*/*/2015") for path in sorted(folder.glob(pattern))),
    ):
        for path in (place / name, place / "test" / name):
            if path.is_file():
                return path
    raise FileNotFoundError(f"{folder} has no sdp/2015/{name}, nor one in sdp/2015/test; {how}")


def divide_trees(folder: Path, out: Path, *, replace: bool = False) -> None:
    """Divide trees of the Penn Treebank by section: `train.conllx`, `dev.conllx` and `test.conllx`."""
    parts: dict[str, list[Path]] = {"train": [], "dev": [], "test": []}
    for path in sorted(folder.rglob("wsj_*"), key=lambda path: path.name):
        if match := _TREES.fullmatch(path.name):
            parts[_PARTS.get(match[1], "train")].append(path)
    if empty := [part for part, paths in parts.items() if not paths]:
        raise FileNotFoundError(
            f"{folder} has no files such as wsj_2001.conllx for {' and '.join(empty)}; convert LDC99T42 to basic "
            f"Stanford Dependencies in CoNLL-X, each of its files to one of that name."
        )
    with Target(out, "ptb-sd", replace=replace) as target:
        for part, paths in parts.items():
            target.write(f"{part}.conllx", (sentence for path in paths for sentence in read(path, "conllx")))


def main() -> None:
    """Run the script."""
    options = arguments("open_sdp", __doc__ or "")
    options.add_argument("folder", type=Path, help="the unpacked release")
    options.add_argument("--graphs", choices=GRAPHS, default="dm", help="which to take; dm unless given")
    options.add_argument("--trees", type=Path, help="a folder with trees of the Penn Treebank in CoNLL-X")
    given = vars(options.parse_args())
    trees = given.pop("trees")
    build(**given)
    if trees is not None:
        divide_trees(trees, given["out"], replace=given["replace"])


if __name__ == "__main__":
    run(main)
