"""The public names, and how they are called."""

import inspect
import re
from typing import Any

from tests.golden.api import public_modules


def public_names() -> dict[str, dict[str, Any]]:
    """For each module its public names, sorted, with the parameters of what can be called, and their defaults.

    Classes have their public attributes beside that, with parameters where no public class above them has the same.
    """
    found: dict[str, dict[str, Any]] = {}
    for module, content in public_modules().items():
        names = sorted(content.__all__)
        classes = [thing for name in names if inspect.isclass(thing := getattr(content, name))]
        found[module] = {name: _described(getattr(content, name), classes) for name in names}
    return found


def _described(thing: Any, classes: list[type]) -> Any:
    if not inspect.isclass(thing):
        return _parameters(thing)
    above = [base for base in thing.__mro__[1:] if base in classes]
    attributes = [name for name in sorted(dir(thing)) if not name.startswith("_")]
    own = {}
    for name in attributes:
        said = _parameters(inspect.getattr_static(thing, name))
        before = [_parameters(inspect.getattr_static(base, name, None)) for base in above]
        if said not in before:
            own[name] = said
    return {"called with": _parameters(thing), "attributes": " ".join(attributes), "own": own}


def _parameters(thing: Any) -> str:
    """The parameters of what can be called, without types; for anything else, what it is."""
    if isinstance(thing, property):
        return "property"
    inner = thing.__func__ if isinstance(thing, classmethod | staticmethod) else thing
    if not callable(inner):
        return "value"
    try:
        called = inspect.signature(inner)
    except ValueError:
        return "builtin"
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in called.parameters.values()]
    text = str(called.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    return re.sub(r"(?<=<)function (\w+) at 0x[0-9a-f]+", r"\1", text)
