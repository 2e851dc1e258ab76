"""The paper's environments, by the names under which Gymnasium makes them."""

from __future__ import annotations

import gymnasium

CHEETAH_VEL = "himatch/CheetahVel-v0"
BACKFLIP_CHEETAH = "himatch/BackflipCheetah-v0"

_CLASSES = {CHEETAH_VEL: ("CheetahVelEnv", 200), BACKFLIP_CHEETAH: ("BackflipCheetahEnv", 1000)}


def register_environments() -> None:
    """Make them known to ``gymnasium.make``; their code is imported when one is made."""
    for env_id, (name, horizon) in _CLASSES.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(env_id, f"himatch.simulation.paper_environments:{name}", max_episode_steps=horizon)
