"""What a policy can match: the content of ``himatch show``. Nothing here simulates."""

from himatch.overview.facts import overview_of
from himatch.overview.overview import Overview

__all__ = ["Overview", "overview_of"]
