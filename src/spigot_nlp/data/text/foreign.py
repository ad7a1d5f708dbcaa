"""How much of a text is new to a model."""

from dataclasses import dataclass

_SHARE, _LEAST = 0.15, 5


@dataclass(frozen=True)
class Foreign:
    """How many words of a text a model has never seen. What has no letter in it is no word here.

    Attributes:
        words: How many words there are.
        new: How many of them are new.

    Example:
        >>> some = Foreign(60, 30) + Foreign(40, 31)
        >>> some.is_notable, f"{some:}"
        (True, '61 % of these words are new to this model (61 of 100): expect more errors than its scores promise.')
        >>> print(Foreign(100, 3))
        3 % of these words are new to this model (3 of 100).
    """

    words: int = 0
    new: int = 0

    @property
    def share(self) -> float:
        """Which part of the words is new; 0 if there are none."""
        return self.new / max(self.words, 1)

    @property
    def is_notable(self) -> bool:
        """Whether so many are new, and there are so many, that a reader should be told."""
        return self.words >= _LEAST and self.share >= _SHARE

    def __add__(self, other: "Foreign") -> "Foreign":
        return Foreign(self.words + other.words, self.new + other.new)

    def __str__(self) -> str:
        share = f"{self.share:.0%}".replace("%", " %")
        beware = ": expect more errors than its scores promise" if self.is_notable else ""
        return f"{share} of these words are new to this model ({self.new} of {self.words}){beware}."
