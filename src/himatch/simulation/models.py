"""Loading MuJoCo models, without the notice MuJoCo 4 prints about the old XML of Gymnasium's HalfCheetah."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from himatch.errors import HimatchWarning

KNOWN_NOTICE = "settotalmass"  # an XML attribute of half_cheetah.xml that MuJoCo means to drop one day


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Leave out MuJoCo's deprecation notice while models load; every other warning is passed on.

    MuJoCo would print the notice and append it to MUJOCO_LOG.TXT in the current folder, once a model. Other warnings
    go to the handler that was there before, else to Python's warnings.
    """
    import mujoco

    previous = mujoco.get_mju_user_warning()
    others: list[str] = []

    def keep(message: str | bytes) -> None:
        text = message.decode(errors="replace") if isinstance(message, bytes) else message
        if KNOWN_NOTICE not in text:
            others.append(text)

    mujoco.set_mju_user_warning(keep)
    try:
        yield
    finally:
        if mujoco.get_mju_user_warning() is keep:  # an environment may have installed its own
            mujoco.set_mju_user_warning(previous)
    for text in others:
        if previous is not None:
            previous(text)
        else:
            warnings.warn(f"MuJoCo: {text}", HimatchWarning, stacklevel=3)


def load_model(xml: str) -> Any:
    """The ``MjModel`` of one of Gymnasium's XML files."""
    import gymnasium
    import mujoco

    # Found by its place: importing gymnasium.envs.mujoco would ask for what rendering needs.
    assets = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
    with quiet_loading():
        return mujoco.MjModel.from_xml_path(str(assets / xml))
