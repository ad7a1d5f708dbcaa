"""What a browser can fetch, held in memory from the start."""

import re
from dataclasses import dataclass
from importlib.resources import files

from spigot_nlp.report.arcs import STYLE, legend
from spigot_nlp.report.figure1 import figure1_interactive
from spigot_nlp.report.figures import theme
from spigot_nlp.report.marks import DEMANDS, sign
from spigot_nlp.report.page import fingerprint

_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_SCRIPT = re.compile(r"<script(?![^>]*\btype=[\"']?application/)[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)
_TOKEN = """<form id="token" autocomplete="off" hidden>
<label for="token-field">This server answers those who have its token</label>
<div class="row"><input type="password" id="token-field" required pattern="[!-~]+" autocomplete="off">
<button type="submit">Use it</button></div>
<p class="trouble" role="alert" hidden>That was not the token.</p>
</form>"""
_SAME = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


@dataclass(frozen=True)
class Resource:
    """Something to fetch.

    Attributes:
        kind: Its media type.
        body: Its bytes.
        policy: What a browser may do with it: its Content-Security-Policy; nothing if empty.

    Example:
        >>> Resource("text/plain", b"rain").policy
        ''
    """

    kind: str
    body: bytes
    policy: str = ""


def resources() -> dict[str, Resource]:
    """Everything there is, by path.

    Example:
        >>> found = resources()
        >>> found["/"].kind, "/main.js" in found
        ('text/html; charset=utf-8', True)
    """
    found: dict[str, Resource] = {}
    for file in files("spigot_nlp.serve").joinpath("static").iterdir():
        suffix = file.name[file.name.rfind(".") :]
        if suffix in _KINDS:
            kind = f"{_KINDS[suffix]}; charset=utf-8"
            found[f"/{file.name}"] = Resource(kind, _filled(file.read_text(encoding="utf-8"), suffix))
    # Scripts and styles come from here alone.
    policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    for path, name in (("/", "/page.html"), ("/docs", "/docs.html")):
        page = found.pop(name)
        found[path] = Resource(page.kind, page.body, f"{policy}img-src 'self'; {_SAME}")
    drawn = _figure1()
    found["/figure1"] = Resource("text/html; charset=utf-8", drawn.encode(), _inline_policy(drawn))
    return found


def _filled(text: str, suffix: str) -> bytes:
    """A style sheet with the colours that drawings refer to; a page with their legend."""
    if suffix == ".css":
        for name, dark in (("light", False), ("dark", True)):
            colours = "".join(f"  {variable}: {value};\n" for variable, value in theme(dark).items())
            text = text.replace(f"/* {name} theme */", colours.strip())
        text += STYLE
    if suffix == ".html":
        text = text.replace("<!-- legend -->", legend(["new", "gone"], demands=DEMANDS, styled=False))
        text = text.replace("<!-- token form -->", _TOKEN)
        for held in DEMANDS:
            text = text.replace(f"<!-- {held} sign -->", sign(held))
    return text.encode()


def _figure1() -> str:
    """The interactive Figure 1 as a page of its own."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<title>The step and the projection</title>\n'
        '<link rel="icon" href="/icon.svg">\n<link rel="stylesheet" href="/page.css">\n</head>\n<body>\n<main>\n'
        '<p><a href="/">Back to the sentences</a></p>\n'
        f"<h1>The step and the projection</h1>\n{figure1_interactive()}\n</main>\n</body>\n</html>\n"
    )


def _inline_policy(html: str) -> str:
    """A policy that lets exactly the scripts of this page run."""
    scripts = " ".join(map(fingerprint, _SCRIPT.findall(html))) or "'none'"
    return f"default-src 'none'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; {_SAME}"
