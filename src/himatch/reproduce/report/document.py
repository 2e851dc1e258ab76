"""The frame of a page that is one file: styles and pictures are inside, there is no script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files

from himatch.reproduce.report.figures import Picture


def document(title: str, lede: str, links: Sequence[tuple[str, str]], body: str) -> str:
    """The whole document; ``lede`` and ``body`` are HTML, ``links`` are (id, text) of the contents."""
    entries = "".join(f'<li><a href="#{key}">{escape(text)}</a></li>' for key, text in links)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{(files("himatch.reproduce.report") / "page.css").read_text()}</style>
</head>
<body>
<div class="frame">
<header>
<h1>{escape(title)}</h1>
<p class="lede">{lede}</p>
</header>
<nav aria-label="Contents"><details open><summary>Contents</summary><ol>{entries}</ol></details></nav>
<main>
{body}
</main>
</div>
</body>
</html>
"""


def block(key: str, title: str, body: str) -> str:
    """A section."""
    return f'<section id="{key}">\n<h2>{escape(title)}</h2>\n{body}</section>\n'


def figure(picture: Picture) -> str:
    """A picture with its caption."""
    return f'<figure id="{picture.name}">{picture.svg}<figcaption>{escape(picture.caption)}</figcaption></figure>\n'
