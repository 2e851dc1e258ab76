"""Training: hindsight behavioural cloning on relabelled windows, several seeds at once."""

from himatch.training.checkpoint import TrainingError
from himatch.training.config import PRESETS, TrainConfig, configure
from himatch.training.metrics import best_weights
from himatch.training.plan import BinRange, Plan, check_same, default_preset, make_plan
from himatch.training.train import Interrupted, train

__all__ = [
    "PRESETS",
    "BinRange",
    "Interrupted",
    "Plan",
    "TrainConfig",
    "TrainingError",
    "best_weights",
    "check_same",
    "configure",
    "default_preset",
    "make_plan",
    "train",
]
