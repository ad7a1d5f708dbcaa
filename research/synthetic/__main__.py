"""Write the built-in corpus, or another one of the same grammar, as files that `spigot train` reads.

    python -m research.synthetic --seed 1 --train 8000 --out data/synthetic-1
    python -m research.synthetic --package

The second writes the files in the package. Trees and graphs of different sentences, as the package has them, are
`part = "1/2"` and `part = "2/2"` of the training file in a configuration.
"""

import argparse
from pathlib import Path

import spigot_nlp.corpora
from research.synthetic import formalisms, splits
from spigot_nlp.data import write

KNOWN, OTHER = 7000, 1010
"""Sentences of the files in the package; the largest shipped study asks for 6,800 and 500."""


def write_package(folder: Path) -> None:
    """The two files of the package."""
    made = splits(train=KNOWN, dev=0, test=0, ood=OTHER)
    for domain, sentences in (("in", made.train), ("out", made.ood)):
        write(map(formalisms, sentences), folder / f"synthetic-{domain}.jsonl.gz")


def main() -> None:
    """Run the script."""
    arguments = argparse.ArgumentParser(
        prog="python -m research.synthetic", description=(__doc__ or "").partition("\n")[0]
    )
    arguments.add_argument("--package", action="store_true", help="write the files of the package again")
    arguments.add_argument("--out", type=Path, help="the folder of train.jsonl.gz and the others")
    arguments.add_argument("--seed", type=int, default=0)
    for part, size in (("train", 4000), ("dev", 300), ("test", 500), ("ood", 500)):
        arguments.add_argument(f"--{part}", type=int, default=size, help=f"sentences; {size} unless given")
    options = vars(arguments.parse_args())
    package, out = options.pop("package"), options.pop("out")
    if package == (out is not None):
        arguments.error("give either --out FOLDER or --package")
    if package:
        write_package(Path(spigot_nlp.corpora.__file__).parent)
        return
    out.mkdir(parents=True, exist_ok=True)
    for part, sentences in vars(splits(**options)).items():
        write(map(formalisms, sentences), out / f"{part}.jsonl.gz")


if __name__ == "__main__":
    main()
