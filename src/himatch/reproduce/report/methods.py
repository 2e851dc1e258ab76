"""Names of methods: the paper leaves out what is usual, results name it, and both mean the same row."""

from __future__ import annotations

import re

_MODES = frozenset({"unsupervised", "joint", "frozen"})
_LEARNED = frozenset({"BDT", "DT-AE", "DT-CPC", "DT-E2E"})
_NAME = re.compile(r"(?P<base>[^()]*)(?:\((?P<inner>[^()]*)\))?(?P<rest>.*)")


def canonical(name: str) -> str:
    """One spelling for every way to write a method: ``DT-AE (joint)`` is ``DT-AE (joint, m=16)``."""
    match = _NAME.fullmatch(name.strip())
    assert match is not None  # every part of the pattern may be empty
    base = match["base"].strip()
    options = {part.strip() for part in f"{match['inner'] or ''},{match['rest']}".split(",")} - {""}
    if base in _LEARNED and not any(option.startswith("m=") for option in options):
        options.add("m=16")
    if base == "BDT" and not any(option.startswith("N=") for option in options):
        options.add("N=20")
    if base in ("DT-AE", "DT-CPC") and not options & _MODES:
        options.add("unsupervised")
    if base == "BC":
        options.add("no-context")
    return f"{base} ({', '.join(sorted(options))})" if options else base


def has_option(name: str, option: str) -> bool:
    """Whether a method has an option such as ``m=16``, said or implied."""
    return option in re.split(r"[(), ]+", canonical(name))
