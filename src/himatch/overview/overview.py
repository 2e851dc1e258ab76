"""What ``himatch show`` says of a policy: data that shows itself."""

from __future__ import annotations

from dataclasses import dataclass

from himatch.overview.content import Content
from himatch.overview.page import as_html
from himatch.overview.text import as_text


@dataclass(frozen=True, repr=False)
class Overview(Content):
    """What a policy is, what its data covers, and which targets it can match."""

    def __repr__(self) -> str:
        """What ``himatch show`` prints."""
        return as_text(self)

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return as_html(self)
