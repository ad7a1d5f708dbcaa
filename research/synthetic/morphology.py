"""English inflection: enough of it for the words of the built-in corpus."""

import re

_DOUBLED = re.compile(r"[^aeiou]*[aeiou][bdgklmnprt]")
_STRESSED = frozenset({"begin", "admit", "forget", "forbid", "prefer", "acquit", "travel", "quarrel"})
_SIBILANT = ("s", "x", "z", "ch", "sh")


def plural(noun: str) -> str:
    """The plural of a regular noun.

    Example:
        >>> [plural(noun) for noun in ("dog", "church", "city", "boy")]
        ['dogs', 'churches', 'cities', 'boys']
    """
    if noun.endswith(_SIBILANT):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def third_person(verb: str) -> str:
    """The present tense with a singular subject.

    Example:
        >>> [third_person(verb) for verb in ("sing", "go", "try", "have")]
        ['sings', 'goes', 'tries', 'has']
    """
    return {"have": "has", "do": "does", "go": "goes", "undergo": "undergoes"}.get(verb) or plural(verb)


def _stem(verb: str) -> str:
    """The verb with its last consonant doubled where a suffix asks for it."""
    return verb + verb[-1] if verb in _STRESSED or _DOUBLED.fullmatch(verb) else verb


def past(verb: str) -> str:
    """The past tense, and participle, of a regular verb.

    Example:
        >>> [past(verb) for verb in ("play", "try", "like", "plan")]
        ['played', 'tried', 'liked', 'planned']
    """
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    return _stem(verb) + "ed"


def gerund(verb: str) -> str:
    """The form in -ing.

    Example:
        >>> [gerund(verb) for verb in ("play", "write", "see", "plan")]
        ['playing', 'writing', 'seeing', 'planning']
    """
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")):
        return verb[:-1] + "ing"
    return _stem(verb) + "ing"


def article(word: str) -> str:
    """The indefinite article before a word.

    Example:
        >>> article("honest"), article("useful"), article("old")
        ('an', 'a', 'an')
    """
    word = word.lower()
    if word.startswith(("honest", "honour", "hour")):
        return "an"
    if word.startswith(("uni", "use", "usu", "one", "eu")):
        return "a"
    return "an" if word[0] in "aeiou" else "a"
