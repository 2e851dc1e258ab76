"""HTML pages from templates. A page needs nothing else: styles and pictures are inside, there is no script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Pages:
    """The templates of a room, beside the frame and the style that all pages share."""

    def __init__(self, package: str) -> None:
        from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

        self._environment = Environment(
            loader=ChoiceLoader([PackageLoader(package), PackageLoader("himatch.viz")]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )

    def page(self, template: str, facts: Mapping[str, Any]) -> str:
        """A template filled; whatever it is given is escaped."""
        return self._environment.get_template(template).render(facts)
