"""``python -m himatch`` is the same as ``himatch``."""

from himatch.cli import main

if __name__ == "__main__":
    main()
