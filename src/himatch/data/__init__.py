"""Data: reading, checking, packing, splitting, writing and inspecting logged episodes."""

from himatch.data.dataset import TrajectoryDataset
from himatch.data.loader import load_dataset
from himatch.data.split import Split, check_split, label_split, named_split, paper_split, random_split
from himatch.data.writer import write_minari

__all__ = [
    "Split",
    "TrajectoryDataset",
    "check_split",
    "label_split",
    "load_dataset",
    "named_split",
    "paper_split",
    "random_split",
    "write_minari",
]
