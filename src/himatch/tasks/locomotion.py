"""The paper's MuJoCo tasks.

Coordinates are those of Gymnasium's observations (x position left out). Reference returns are D4RL's. A step takes
several of MuJoCo's: 0.05 s in HalfCheetah and Ant, 0.008 s in Hopper and Walker2d, in every version of them.
"""

from dataclasses import replace

from himatch.tasks.task import Task

HALFCHEETAH = Task(
    name="halfcheetah",
    env_id="HalfCheetah-v5",
    horizon=1000,
    observation_width=17,
    action_width=6,
    action_low=-1.0,
    action_high=1.0,
    features={"x_velocity": 8, "z_velocity": 9, "pitch_rate": 10, "height": 0, "pitch": 1},
    reference_returns=(-280.178953, 12135.0),
    rate=20.0,
)

# The paper's own cheetahs; himatch.tasks.registration makes their environments known to Gymnasium.
CHEETAH_VEL = replace(
    HALFCHEETAH, name="cheetah-vel", env_id="himatch/CheetahVel-v0", horizon=200, reference_returns=None
)
BACKFLIP = replace(HALFCHEETAH, name="backflip", env_id="himatch/BackflipCheetah-v0", reference_returns=None)

# Hopper and Walker2d clip velocities to +-10 in the observation.
HOPPER = Task(
    name="hopper",
    env_id="Hopper-v5",
    horizon=1000,
    observation_width=11,
    action_width=3,
    action_low=-1.0,
    action_high=1.0,
    features={"x_velocity": 5, "z_velocity": 6, "height": 0, "pitch": 1},
    reference_returns=(-20.272305, 3234.3),
    rate=125.0,
)

WALKER2D = Task(
    name="walker2d",
    env_id="Walker2d-v5",
    horizon=1000,
    observation_width=17,
    action_width=6,
    action_low=-1.0,
    action_high=1.0,
    features={"x_velocity": 8, "z_velocity": 9, "height": 0, "pitch": 1},
    reference_returns=(1.629008, 4592.3),
    rate=125.0,
)

# 27 numbers are common to every version: v5 adds 78 contact forces, D4RL's files 84.
ANT = Task(
    name="ant",
    env_id="Ant-v5",
    env_kwargs={"include_cfrc_ext_in_observation": False},
    horizon=1000,
    observation_width=27,
    action_width=8,
    action_low=-1.0,
    action_high=1.0,
    features={"x_velocity": 13, "y_velocity": 14, "z_velocity": 15, "xy_velocity": (13, 14), "height": 0},
    reference_returns=(-325.6, 3879.7),
    prefix_only=True,
    rate=20.0,
)

UNITS = {
    "x_velocity": "m/s",
    "y_velocity": "m/s",
    "z_velocity": "m/s",
    "pitch_rate": "rad/s",
    "height": "m",
    "pitch": "rad",
}
"""Of the features of these tasks."""

LOCOMOTION = (HALFCHEETAH, HOPPER, WALKER2D, ANT, CHEETAH_VEL, BACKFLIP)
