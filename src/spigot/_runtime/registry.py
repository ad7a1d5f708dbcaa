"""Kinds of things that a configuration calls by name: estimators, encoders, readers, annotations, stages.

A kind registers itself where it is defined, so that a new one, also one of a plug-in, needs no second list.
"""

import difflib
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar, cast

_Kind = TypeVar("_Kind")
_Class = TypeVar("_Class", bound=type)


class Registry(Mapping[str, type[_Kind]], Generic[_Kind]):
    """Classes by name.

    Args:
        what: What they are, as messages say it.

    Example:
        >>> fruits: Registry[object] = Registry("fruit")
        >>> @fruits.register("plum")
        ... class Plum: ...
        >>> fruits["plum"] is Plum, list(fruits)
        (True, ['plum'])
        >>> fruits.find("plumb")
        Traceback (most recent call last):
        ValueError: there is no fruit 'plumb'; did you mean plum?
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self._kinds: dict[str, type[_Kind]] = {}

    def register(self, name: str) -> Callable[[_Class], _Class]:
        """A decorator that adds a class under a name.

        Raises:
            ValueError: If another class has the name.
        """

        def add(kind: _Class) -> _Class:
            known = self._kinds.get(name)
            if known is not None and (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
                raise ValueError(f"there is a {self.what} {name!r} already, {known.__qualname__}; choose another name.")
            self._kinds[name] = cast(type[_Kind], kind)
            return kind

        return add

    def find(self, name: str) -> type[_Kind]:
        """The class of this name.

        Raises:
            ValueError: If there is none; it says which one may be meant.
        """
        if isinstance(name, str) and name in self._kinds:  # a table may hold anything
            return self._kinds[name]
        close = difflib.get_close_matches(str(name), self._kinds, n=1, cutoff=0.7)
        known = f"there are {', '.join(self._kinds) or 'none'}, and those of plug-ins (--plugin)."
        advice = f"did you mean {close[0]}?" if close else known
        raise ValueError(f"there is no {self.what} {name!r}; {advice}")

    def name_of(self, kind: type) -> str:
        """What a class is called."""
        return next(name for name, known in self._kinds.items() if known is kind)

    def __getitem__(self, name: str) -> type[_Kind]:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)
