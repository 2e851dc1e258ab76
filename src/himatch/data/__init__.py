"""Data: reading, checking, splitting, writing, making and collecting logged episodes."""

from himatch.data.collecting import collect_dataset
from himatch.data.dataset import TrajectoryDataset
from himatch.data.loading import load_dataset
from himatch.data.making import make_dataset
from himatch.data.recipes import RECIPES
from himatch.data.split import Split, check_split, label_split, named_split, paper_split, random_split
from himatch.data.writing import write_minari

__all__ = [
    "RECIPES",
    "Split",
    "TrajectoryDataset",
    "check_split",
    "collect_dataset",
    "label_split",
    "load_dataset",
    "make_dataset",
    "named_split",
    "paper_split",
    "random_split",
    "write_minari",
]
