"""Names with hyphens stay whole in the narrow columns of tables: a browser would break them at each hyphen."""

import re

_CELL = re.compile(r"<td.*?</td>", re.DOTALL)
_CODE = re.compile(r"(<code>)(.*?)(</code>)", re.DOTALL)
_HYPHENED = re.compile(r"[^\s<>]*-[^\s<>]*")


def on_page_content(content: str, **_: object) -> str:
    """Called by mkdocs with the HTML of each page."""
    return _CELL.sub(lambda cell: _CODE.sub(_whole, cell[0]), content)


def _whole(code: re.Match[str]) -> str:
    return code[1] + _HYPHENED.sub(r'<span class="whole">\g<0></span>', code[2]) + code[3]
