"""The command line: ``himatch data inspect``, ``himatch data convert``, ``himatch quickstart``."""

import sys

try:
    from himatch.cli.main import main
except KeyboardInterrupt:  # Ctrl-C while libraries load: no traceback, as in main itself
    print("himatch: interrupted", file=sys.stderr)
    sys.exit(130)

__all__ = ["main"]
