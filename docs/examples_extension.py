"""Shows the `Example` section of docstrings as code: the parser expects it to be called `Examples`."""

import re

import griffe

_HEADING = re.compile(r"^(\s*)Example:$", re.MULTILINE)


class ExamplesExtension(griffe.Extension):
    """Renames the section, in what the site sees."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring:
            obj.docstring.value = _HEADING.sub(r"\1Examples:", obj.docstring.value)
