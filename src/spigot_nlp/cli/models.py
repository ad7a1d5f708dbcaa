"""`spigot models`: what comes with spigot, ready to parse."""

from dataclasses import asdict
from textwrap import fill

from spigot_nlp.bundled import DEFAULT, Card, bundled_models, card
from spigot_nlp.cli.console import AsJson, print_json, print_table

_WIDTH = 100
"""Columns that lines of a list may take."""


def models(name: str = "", /, *, as_json: AsJson = False) -> None:
    """List the trained models that come with spigot, or print the card of one.

    Parameters
    ----------
    name
        Which one: its card says what it was trained on, under which licence it comes, how good it is, and what it must
        not be used for.
    as_json
        Print all that is known as JSON.
    """
    cards = [card(name)] if name else [card(one) for one in bundled_models()]
    if as_json:
        print_json([{**asdict(one), "folder": str(one.folder), "megabytes": round(one.megabytes, 2)} for one in cards])
        return
    if name:
        print(_told(cards[0]))
        return
    if not cards:
        print("No model comes with this installation; train one with spigot train.")
        return
    rows = [[one.name, f"{one.megabytes:.1f} MB", one.licence, *_best(one)] for one in cards]
    print_table("Models that come with spigot", ["", "size", "licence", "first measure", "per cent"], rows)
    for one in cards:
        print(f"{one.name}: {one.about}")
        scores = "; ".join(f"{name} {value:.1f}" for name, value in one.scores.items())
        for line in (*(f"trained on {data}" for data in one.data), f"scores: {scores}"):
            print(fill(line, _WIDTH, initial_indent="  - ", subsequent_indent="    "))
        print()
    print(f"spigot models {DEFAULT} says more; spigot parse uses {DEFAULT} unless it is given another.")


def _best(one: Card) -> tuple[str, str]:
    name, value = next(iter(one.scores.items()), ("", 0.0))
    return name, f"{value:.1f}"


def _told(one: Card) -> str:
    """A card as text."""
    lines = [f"{one.name} ({one.megabytes:.1f} MB, {one.licence})", "", one.about]
    lines += ["", "Trained on:", *(f"- {line}" for line in one.data)]
    lines += ["", "Scores, per cent:", *(f"- {name}: {value:.2f}" for name, value in one.scores.items())]
    lines += ["", "Limits:", *(f"- {line}" for line in one.limits)]
    lines += ["", "Made by:", *(f"- {key}: {value}" for key, value in one.training.items())]
    return "\n".join(lines)
