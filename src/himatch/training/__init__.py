"""Training: hindsight behavioural cloning on relabelled windows, several seeds at once."""

from himatch.training.config import PRESETS, TrainConfig, configure
from himatch.training.job import check_same
from himatch.training.loop import Interrupted
from himatch.training.reporting import best_weights
from himatch.training.run import train

__all__ = ["PRESETS", "Interrupted", "TrainConfig", "best_weights", "check_same", "configure", "train"]
