"""The command line: ``himatch data inspect``, ``himatch data convert``, ``himatch quickstart``."""

from himatch.cli.main import main

__all__ = ["main"]
