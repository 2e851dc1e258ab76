"""Data: reading, checking, splitting and writing logged episodes."""

from himatch.data.dataset import TrajectoryDataset
from himatch.data.loading import load_dataset
from himatch.data.split import Split, label_split, paper_split, random_split
from himatch.data.writing import write_minari

__all__ = [
    "Split",
    "TrajectoryDataset",
    "label_split",
    "load_dataset",
    "paper_split",
    "random_split",
    "write_minari",
]
