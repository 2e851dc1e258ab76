"""Flags that several commands have, and how their help is written."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import tyro

CONFIG = (tyro.conf.OmitSubcommandPrefixes, tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone)

optional = partial(tyro.conf.arg, help_behavior_hint="")
"""``tyro.conf.arg`` of a flag that is None by default: its help text says what that means, not "(default: None)"."""

SOURCES = (
    "D4RL file, Minari folder or id, minari:ID to download one, .npz, .pkl, .csv(.gz) or .parquet, or the name of a "
    "dataset that himatch makes (himatch data list); join several with + or a quoted pattern ('logs/*.csv')."
)

Import = Annotated[tuple[str, ...], tyro.conf.arg(name="import", metavar="FILE.py"), tyro.conf.UseAppendAction]
Name = Annotated[str | None, optional(metavar="NAME")]
PathName = Annotated[str | None, optional(metavar="PATH")]
Device = Annotated[str | None, optional(metavar="cuda|cpu")]
Threads = Annotated[int, tyro.conf.arg(metavar="K")]
RunFolder = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
