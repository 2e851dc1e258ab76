"""What is particular to each locomotion environment: model, initial noise, observation, reward and health.

Every formula is Gymnasium's, for all simulations at once and in the same order of operations, so that the results
are the same to the last bit. Settings are the keyword arguments of Gymnasium's constructors, with their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from himatch.tasks.locomotion import BACKFLIP, CHEETAH_VEL
from himatch.tasks.physics import import_mujoco

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Parameters = Mapping[str, NDArray[Any]]
"""Settings by name: ``(n,)`` for numbers and flags, ``(2, n)`` for ranges."""


class Motion(NamedTuple):
    """One control step of n simulations."""

    qpos: Floats  # (n, nq) after the step
    qvel: Floats  # (n, nv)
    velocity: Floats  # (n, 3) of the root over the control step: (x, z, pitch) in the plane, (x, y, z) for Ant
    effort: NDArray[np.floating]  # (n,) squared norm of the action, in the action's own precision
    contact_effort: Floats | None  # (n,) squared norm of the clipped contact forces


Reward = Callable[[Motion, Parameters, Flags | None], Floats]
Health = Callable[[Floats, Floats, Parameters], Flags]


@dataclass(frozen=True)
class Locomotion:
    """One environment.

    Parameters
    ----------
    xml
        The model, among Gymnasium's.
    frame_skip
        Physics steps in a control step.
    settings
        Defaults of everything that may be set; a type other than the default's is not supported.
    reward, health
        What a step earns, and which states are healthy (``None``: all are, and nothing terminates).
    hidden
        Leading coordinates of qpos that the observation leaves out.
    velocity_limit
        Velocities are clipped to this in the observation.
    gaussian_velocity
        Initial velocities are normal, not uniform.
    free_root
        The root is a free body, whose position Gymnasium reads from the body frame and not from qpos.
    fall_pays
        The step that ends an episode still earns the healthy reward (v4).
    contact_body
        First body of the contact forces in the observation (v4 shows those of the world, always zero).
    contact_cost, contact_observation, parameters
        Follow from the settings; ``batched_environment`` fills them in.
    """

    xml: str
    frame_skip: int
    settings: Mapping[str, Any]
    reward: Reward
    health: Health | None = None
    hidden: int = 1
    velocity_limit: float | None = None
    gaussian_velocity: bool = False
    free_root: bool = False
    fall_pays: bool = False
    contact_body: int = 1
    contact_cost: bool = False
    contact_observation: bool = False
    parameters: Parameters = field(default_factory=dict, repr=False)


def forward(motion: Motion, p: Parameters, healthy: Flags | None) -> Floats:
    """Forward velocity, plus a bonus while healthy, minus the costs of control and contact."""
    reward: Floats = p["forward_reward_weight"] * motion.velocity[:, 0]
    if healthy is not None:
        reward = reward + healthy * p["healthy_reward"]
    cost = control_cost(motion, p)
    if motion.contact_effort is not None:
        return reward - (cost + p["contact_cost_weight"] * motion.contact_effort)
    return reward - cost


def target_velocity(motion: Motion, p: Parameters, healthy: Flags | None) -> Floats:
    """The cheetah that runs at a given velocity, as in meta-learning benchmarks."""
    reward: Floats = -np.abs(motion.velocity[:, 0] - p["velocity"]) - control_cost(motion, p)
    return reward


def backflip(motion: Motion, p: Parameters, healthy: Flags | None) -> Floats:
    """The cheetah that turns over: speed of the pitch angle beside that along x, as the authors' public code has it.

    A direction that is not 0 pays for turning that way alone.
    """
    x_velocity, _, pitch_rate = motion.velocity.T
    speed = np.where(p["direction"] == 0.0, np.abs(x_velocity) + np.abs(pitch_rate), p["direction"] * pitch_rate)
    reward: Floats = speed - control_cost(motion, p)
    return reward


def control_cost(motion: Motion, p: Parameters) -> NDArray[np.floating]:
    """In the action's own precision, as a Python number times a NumPy scalar is."""
    cost: NDArray[np.floating] = p["ctrl_cost_weight"].astype(motion.effort.dtype, copy=False) * motion.effort
    return cost


def upright(qpos: Floats, qvel: Floats, p: Parameters) -> Flags:
    """Walker2d: height and pitch within their ranges."""
    (low, high), (left, right) = p["healthy_z_range"], p["healthy_angle_range"]
    height, pitch = qpos[:, 1], qpos[:, 2]
    healthy: Flags = (low < height) & (height < high) & (left < pitch) & (pitch < right)
    return healthy


def upright_and_bounded(qpos: Floats, qvel: Floats, p: Parameters) -> Flags:
    """Hopper: the same, and everything but x and height within a range."""
    low, high = p["healthy_state_range"][:, :, None]
    pose = qpos[:, 2:]
    bounded: Flags = ((low < pose) & (pose < high)).all(axis=1) & ((low < qvel) & (qvel < high)).all(axis=1)
    return upright(qpos, qvel, p) & bounded


def finite_and_level(qpos: Floats, qvel: Floats, p: Parameters) -> Flags:
    """Ant: a finite state and a height within its range, bounds included."""
    low, high = p["healthy_z_range"]
    height = qpos[:, 2]
    healthy: Flags = (low <= height) & (height <= high) & np.isfinite(qpos).all(axis=1) & np.isfinite(qvel).all(axis=1)
    return healthy


_COMMON = {"ctrl_cost_weight": 0.1, "reset_noise_scale": 0.1, "exclude_current_positions_from_observation": True}
_RUNNER = {**_COMMON, "forward_reward_weight": 1.0}
_WALKER = {
    **_RUNNER,
    "ctrl_cost_weight": 1e-3,
    "reset_noise_scale": 5e-3,
    "healthy_reward": 1.0,
    "terminate_when_unhealthy": True,
    "healthy_z_range": (0.8, 2.0),
    "healthy_angle_range": (-1.0, 1.0),
}
_HOPPER = {
    **_WALKER,
    "healthy_z_range": (0.7, float("inf")),
    "healthy_angle_range": (-0.2, 0.2),
    "healthy_state_range": (-100.0, 100.0),
}
_ANT = {
    **_RUNNER,
    "ctrl_cost_weight": 0.5,
    "contact_cost_weight": 5e-4,
    "contact_force_range": (-1.0, 1.0),
    "healthy_reward": 1.0,
    "terminate_when_unhealthy": True,
    "healthy_z_range": (0.2, 1.0),
}

HALF_CHEETAH_V4 = Locomotion("half_cheetah.xml", 5, _RUNNER, forward, gaussian_velocity=True)
HOPPER_V4 = Locomotion("hopper.xml", 4, _HOPPER, forward, upright_and_bounded, velocity_limit=10.0, fall_pays=True)
WALKER2D_V4 = replace(HOPPER_V4, xml="walker2d.xml", settings=_WALKER, health=upright)
ANT_V4 = Locomotion(
    "ant.xml",
    5,
    {**_ANT, "use_contact_forces": False},
    forward,
    finite_and_level,
    hidden=2,
    gaussian_velocity=True,
    free_root=True,
    fall_pays=True,
    contact_body=0,
)

ENVIRONMENTS: Mapping[str, Locomotion] = {
    "HalfCheetah-v4": HALF_CHEETAH_V4,
    "HalfCheetah-v5": replace(HALF_CHEETAH_V4, settings={**_RUNNER, "frame_skip": 5}),
    "Hopper-v4": HOPPER_V4,
    "Hopper-v5": replace(HOPPER_V4, settings={**_HOPPER, "frame_skip": 4}, fall_pays=False),
    "Walker2d-v4": WALKER2D_V4,
    "Walker2d-v5": replace(WALKER2D_V4, xml="walker2d_v5.xml", settings={**_WALKER, "frame_skip": 4}, fall_pays=False),
    "Ant-v4": ANT_V4,
    "Ant-v5": replace(
        ANT_V4,
        settings={**_ANT, "frame_skip": 5, "include_cfrc_ext_in_observation": True},
        fall_pays=False,
        contact_body=1,
    ),
    str(CHEETAH_VEL.env_id): replace(
        HALF_CHEETAH_V4,
        settings={**_COMMON, "ctrl_cost_weight": 0.05, "frame_skip": 5, "velocity": 1.0},
        reward=target_velocity,
    ),
    str(BACKFLIP.env_id): replace(
        HALF_CHEETAH_V4, settings={**_COMMON, "frame_skip": 5, "direction": 0.0}, reward=backflip
    ),
}

# These shape the observation or the physics, so that all simulations of a batch share them.
_SHARED = (
    "frame_skip",
    "exclude_current_positions_from_observation",
    "include_cfrc_ext_in_observation",
    "use_contact_forces",
)


def batched_environment(env_id: str, settings: Sequence[Mapping[str, Any]]) -> Locomotion | None:
    """The environment with every simulation's settings; ``None`` where Gymnasium has to do it."""
    known = ENVIRONMENTS.get(env_id)
    if known is None:
        return None
    import_mujoco()
    if find_spec("mujoco.batch") is None:
        return None
    for own in settings:
        if not all(name in known.settings and _supported(name, known.settings[name], own[name]) for name in own):
            return None
        if any(own.get(name) != settings[0].get(name) for name in _SHARED):
            return None
    each = [{**known.settings, **own} for own in settings]
    shared = each[0]
    uses_forces = shared.get("use_contact_forces", False)
    return replace(
        known,
        frame_skip=shared.get("frame_skip", known.frame_skip),
        hidden=known.hidden if shared["exclude_current_positions_from_observation"] else 0,
        contact_cost=uses_forces or "include_cfrc_ext_in_observation" in shared,
        contact_observation=uses_forces or shared.get("include_cfrc_ext_in_observation", False),
        parameters={name: np.array([own[name] for own in each]).T for name in known.settings if name not in _SHARED},
    )


def _supported(name: str, default: Any, value: Any) -> bool:
    """Whether a setting has the type that the formulas above were written for."""
    if isinstance(default, bool):
        return isinstance(value, bool)
    if isinstance(default, tuple):
        return isinstance(value, tuple | list) and len(value) == 2 and all(_number(bound) for bound in value)
    if isinstance(default, int):
        return type(value) is int and value > 0
    # A NumPy number would lift the control cost of single-precision actions to double precision.
    return _number(value) and not (name == "ctrl_cost_weight" and isinstance(value, np.generic))


def _number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
