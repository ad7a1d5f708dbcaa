"""What the models that come with the systems find in some texts: as the command writes it, and in Python."""

import re
import tempfile
from pathlib import Path

from tests.golden.api import compiled, load, read_sentences, run_command

TEXTS = Path(__file__).parent / "texts"
"""Some hundred sentences, written for this: plain ones and awkward ones."""

MODELS = ("en", "en-sentiment")
FORMATS = {"conllu": ("--graph",), "sdp": (), "jsonl": ()}
PRECISIONS = (None, "float32")
"""The usual one of parsing, and another."""

_NUMBER = re.compile(r"\b\d\.\d{4,}(?:e-?\d+)?")


def texts() -> dict[str, str]:
    """The texts by name; some that are hardly any among them."""
    found = {path.stem: path.read_text(encoding="utf-8") for path in sorted(TEXTS.glob("*.txt"))}
    return {
        **found,
        "empty": "",
        "blank": " \n\n\t \n",
        "one": "Rain",
        "spaces": "  Too   many\tspaces ,  they said .\u00a0And\u2003more!  ",
        "windows": "The lines\r\nend otherwise.\r\n\r\nHere too.\r\n",
    }


def written() -> dict[str, str]:
    """What the command writes: by model, precision and format; for a few texts by themselves, too."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {key: folder / f"{key}.txt" for key in texts()}
        for key, file in files.items():
            file.write_text(texts()[key], encoding="utf-8", newline="")
        for model in MODELS:
            for precision in PRECISIONS:
                chosen = () if precision is None else ("--precision", precision)
                for suffix, options in FORMATS.items():
                    out = folder / f"out.{suffix}"
                    run_command("parse", model, *files.values(), "-o", out, *options, *chosen, "--threads", 1)
                    found[f"{model} {precision or 'usual'} {suffix}"] = out.read_text(encoding="utf-8")
        for key in ("empty", "blank", "one"):
            for suffix, options in FORMATS.items():
                out = folder / f"out.{suffix}"
                run_command("parse", files[key], "-o", out, *options, "--threads", 1)
                found[f"{key} {suffix}"] = out.read_text(encoding="utf-8")
        given, out = folder / "given.conllu", folder / "again.conllu"
        given.write_text(found["en usual conllu"], encoding="utf-8")
        read_sentences("en", given, out, "float32")
        found["sentences of a file"] = out.read_text(encoding="utf-8")
    return found


def documents() -> dict[str, str]:
    """What Python gives for each text, with the places of words in it."""
    found = {}
    for model in MODELS:
        for precision in PRECISIONS:
            parser = load(model, precision)
            for key, doc in zip(texts(), parser.pipe(texts().values()), strict=True):
                found[f"{model} {precision or 'usual'} {key}"] = doc.to_json(indent=0)
    return found


def golden_name(name: str) -> str:
    """Under which name a result was kept: without kernels the usual precision is float32."""
    return name if compiled() else name.replace(" usual ", " float32 ")


def divided(text: str) -> tuple[list[str], list[float]]:
    """The lines with their probabilities left out, and the probabilities."""
    return _NUMBER.sub("#", text).splitlines(), [float(number) for number in _NUMBER.findall(text)]
