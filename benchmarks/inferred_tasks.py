"""Tasks that are inferred from what episodes did, beside those that the agents were given.

    python benchmarks/inferred_tasks.py [DATA] [--feature NAME] [--split SPLIT]

Relabels the training episodes of a dataset whose labels are the parameters of tasks, such as cheetah-vel, as ``hipi``
and ``gh`` do, and by the return alone. Prints the mean of |psi - label| over all steps, over the first half of every
episode and over the last tenth, how often the candidate nearest to the label was found, and the seconds it took.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np

import himatch as hm
from himatch.data import named_split
from himatch.statistics.aggregators import LikeliestTask
from himatch.statistics.features import resolve_feature
from himatch.statistics.information import InformationStatistic


@dataclass(frozen=True)
class ByReturn(LikeliestTask):
    """Every task alike: what others earn under it does not count."""

    def goodness(self, earned: np.ndarray, known: np.ndarray) -> np.ndarray:
        """The return."""
        return earned


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default="cheetah-vel")
    parser.add_argument("--feature", default="x_velocity")
    parser.add_argument("--split", default="label:0.5,1.5,2.5")
    chosen = parser.parse_args()
    train = named_split(hm.load_dataset(chosen.data), chosen.split).train
    asked = np.array([float(episode.label or "nan") for episode in train])
    print(f"{train.name}: {len(train)} training episodes, sha256 {train.content_hash[:16]}")
    print("relabelled by        all steps  first half  last tenth  nearest  seconds")
    feature = resolve_feature(chosen.feature, train.task)
    rules = {
        "hipi": hm.HIPI(chosen.feature).statistic(train.task),
        "gh": hm.GH(chosen.feature).statistic(train.task),
        "return alone": InformationStatistic(feature, ByReturn()),
    }
    for name, rule in rules.items():
        started = time.perf_counter()
        statistic = rule.fit(train)
        rows = np.split(statistic.relabel(train)[:, 0], np.cumsum(train.lengths)[:-1])
        seconds = time.perf_counter() - started
        tasks = np.array(statistic.aggregator.tasks)[:, 0]  # type: ignore[attr-defined]
        nearest = tasks[np.abs(tasks[:, None] - asked).argmin(axis=0)].astype(np.float32)
        off = [np.abs(z - c) for z, c in zip(rows, asked, strict=True)]
        parts = (off, [x[: len(x) // 2] for x in off], [x[-max(1, len(x) // 10) :] for x in off])
        means = "".join(f"{np.mean([x.mean() for x in part]):12.3f}" for part in parts)
        hits = np.mean([(z == c).mean() for z, c in zip(rows, nearest, strict=True)])
        print(f"{name:18}{means}{hits:9.0%}{seconds:9.2f}")


if __name__ == "__main__":
    main()
