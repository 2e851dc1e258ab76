"""MuJoCo models, among Gymnasium's files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from himatch.tasks.notices import quiet_loading
from himatch.tasks.physics import import_gymnasium, import_mujoco


def load_model(xml: str) -> Any:
    """The ``MjModel`` of one of Gymnasium's XML files."""
    gymnasium = import_gymnasium("a MuJoCo model")
    # Found by its place: importing gymnasium.envs.mujoco would import what rendering needs.
    assets = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
    with quiet_loading():
        return import_mujoco().MjModel.from_xml_path(str(assets / xml))
