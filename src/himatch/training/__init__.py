"""Training: hindsight behavioural cloning on relabelled windows, several seeds at once."""

from himatch.training.config import PRESETS, TrainConfig, configure
from himatch.training.job import check_same
from himatch.training.loop import Interrupted, TrainingError
from himatch.training.metrics import best_weights
from himatch.training.plan import make_plan
from himatch.training.run import train

__all__ = [
    "PRESETS",
    "Interrupted",
    "TrainConfig",
    "TrainingError",
    "best_weights",
    "check_same",
    "configure",
    "make_plan",
    "train",
]
