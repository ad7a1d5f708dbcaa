"""Sentiment trees read a second time, by recursive descent from the format's definition, to compare with ours."""

_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
_DEEPEST = 300


class NoTree(Exception):
    """A line that is no tree."""


def read_trees(data: bytes) -> list[tuple[int, tuple[str, ...]]]:
    """The class and the words of each line that is not blank.

    Example:
        >>> read_trees(b"(3 (2 It) (4 lovely))\\n")
        [(3, ('It', 'lovely'))]
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise NoTree from None
    lines = text.removeprefix("\ufeff").split("\n")
    found = []
    for number, line in enumerate(lines, 1):
        bare = line.removesuffix("\r") if number < len(lines) else line
        if not bare.strip(" \t\x0b\x0c\r"):
            continue
        if any(character in bare for character in "\r\0\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029"):
            raise NoTree
        tokens = _tokens(bare)
        label, words, end_of_tree = _tree(tokens, 0, 0)
        if end_of_tree != len(tokens):
            raise NoTree
        found.append((label, words))
    return found


def _tokens(line: str) -> list[str]:
    spaced = line.replace("\t", " ").replace("(", " ( ").replace(")", " ) ")
    return [token for token in spaced.split(" ") if token]


def _tree(tokens: list[str], at: int, depth: int) -> tuple[int, tuple[str, ...], int]:
    if depth > _DEEPEST:
        raise RecursionError
    if tokens[at : at + 1] != ["("] or tokens[at + 1 : at + 2] not in (["0"], ["1"], ["2"], ["3"], ["4"]):
        raise NoTree
    label, at = int(tokens[at + 1]), at + 2
    if at < len(tokens) and tokens[at] not in ("(", ")"):
        if tokens[at + 1 : at + 2] != [")"]:
            raise NoTree
        word = _BRACKETS.get(tokens[at]) or tokens[at].replace("\\/", "/").replace("\\*", "*")
        return label, (word,), at + 2
    words: tuple[str, ...] = ()
    while at < len(tokens) and tokens[at] == "(":
        _, part, at = _tree(tokens, at, depth + 1)
        words += part
    if not words or tokens[at : at + 1] != [")"]:
        raise NoTree
    return label, words, at + 1
