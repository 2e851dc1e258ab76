"""Training: hindsight behavioural cloning on relabelled windows, several seeds at once."""

from himatch.training.config import PRESETS, TrainConfig, configure
from himatch.training.loop import Interrupted
from himatch.training.run import train

__all__ = ["PRESETS", "Interrupted", "TrainConfig", "configure", "train"]
