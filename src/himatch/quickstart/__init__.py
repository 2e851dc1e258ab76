"""From nothing to a matched distribution: data, two policies trained on it, a pretrained one, and a page about them."""

from himatch.quickstart.stages import TARGETS, run_quickstart

__all__ = ["TARGETS", "run_quickstart"]
