"""Words that are written as one: contractions and possessives."""

from collections.abc import Sequence

from spigot_nlp.data.text.tokens import is_contraction

_MARKS = ("'", "\u2019")
_QUOTES = (*_MARKS, "\u2018", "`")


def contractions(forms: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """The words that are one token in the English treebanks of Universal Dependencies.

    Args:
        forms: Words.
        after: The white space after each of them.

    Returns:
        Where each of these tokens begins, and where it ends, in the manner of slices.

    Example:
        >>> contractions(["I", "should", "n't", "'ve", "."], [" ", "", "", "", ""])
        [(1, 4)]
        >>> contractions(["the", "boys", "'", "room"], [" ", "", " ", ""])
        [(1, 3)]
    """
    found: list[tuple[int, int]] = []
    opened = False
    for k in range(len(forms)):
        form = forms[k]
        apart = k == 0 or bool(after[k - 1])
        if form in _MARKS and not apart and not opened and after[k] and forms[k - 1][-1:].lower() == "s":
            joined = True  # a possessive, since there is no quotation for it to close
        else:
            joined = not apart and is_contraction(forms[k - 1], form)
        if joined:
            first = found.pop()[0] if found and found[-1][1] == k else k - 1
            found.append((first, k + 1))
        elif form in _QUOTES:
            opened = apart
    return found
