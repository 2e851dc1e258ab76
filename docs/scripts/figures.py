"""Draw the figures of docs/concepts.md: data of himatch's own agents, a CDT trained for a minute, seed 0.

python docs/scripts/figures.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from numpy.typing import NDArray

import himatch as hm
from himatch.divergences import wasserstein_bins
from himatch.evaluation.result import MatchResult
from himatch.policy import Policy
from himatch.rollout import make_conditioner
from himatch.viz.style import DARK, FILE, RED, ROLLOUT, BinShares, blank, rollout_line, save, style, target_area

PICTURES = Path(__file__).parent.parent / "pictures"
TWO_MODES = "0.5*normal(0.6,0.1) + 0.5*normal(2.2,0.1)"


def heat(axis: Axes, z: NDArray[np.float32], bins: hm.Bins) -> None:
    """Histograms over time as a map, the darker the more of the rest lies there."""
    extent = (0.0, float(len(z)), bins.low[0], bins.high[0])
    axis.imshow(np.sqrt(z.T), origin="lower", aspect="auto", extent=extent, cmap="Blues", interpolation="nearest")


def statistics(episode: hm.Trajectory, data: hm.TrajectoryDataset) -> None:
    """What DT, CDT, moments and goal are conditioned on at every step of one episode."""
    task, phi = data.task, episode.observations[:, 8]
    z = {
        "sum": hm.return_based(task, "x_velocity")(episode)[:, 0],
        "mean": hm.moment_based(task, "x_velocity").fit(data)(episode),
        "goal": hm.goal_based(task, "x_velocity")(episode)[:, 0],
    }
    histogram = hm.distribution_based(task, "x_velocity").fit([episode])
    figure = blank(8, 8.6)
    axes = figure.subplots(4, 1, sharex=True)
    axes[0].plot(phi, color="black", lw=1)
    axes[0].set(ylabel="x velocity", title="one episode: slow, then fast (two agents' episodes, joined)")
    axes[1].plot(z["sum"], color=ROLLOUT)
    axes[1].set(ylabel="sum / horizon", title="z of DT: the sum of what is still to come")
    heat(axes[2], histogram(episode), histogram.aggregator.bins)  # type: ignore[attr-defined]
    axes[2].set(ylabel="x velocity", title="z of CDT: the distribution of what is still to come, a column a step")
    mean, spread = z["mean"].T
    axes[3].fill_between(np.arange(len(mean)), mean - spread, mean + spread, color=ROLLOUT, alpha=0.25, lw=0)
    axes[3].plot(mean, color=ROLLOUT, label="moments: mean, with one deviation")
    axes[3].plot(z["goal"], color=RED, label="goal: the last value")
    axes[3].set(xlabel="step t", ylabel="x velocity", title="z of moments and of goal")
    axes[3].legend(loc="lower right")
    for axis in axes:
        axis.title.set_fontsize(10)
        axis.title.set_horizontalalignment("left")
        axis.title.set_x(0.0)
    print("written to", save(figure, PICTURES / "statistics.png"))


def distance(policy: Policy, result: MatchResult) -> None:
    """W1 as the area between two cumulative distributions, and the episode mixture."""
    reference = policy.reference()
    bins, target = reference.frame.bins, hm.parse_target(TWO_MODES)
    edges, width = bins.edges[0], bins.widths[0]
    wanted = bins.histogram(target.values(reference.frame))[0]
    rolled = bins.histogram(result.pooled(0))[0]
    mixture = reference.mixture(target)
    chosen = [reference.histograms[e, 0] * share for e, share in mixture.weights.items()]
    figure = blank(10, 3.2)
    left, middle, right = figure.subplots(1, 3)
    target_area(left, BinShares(edges, wanted))
    rollout_line(left, BinShares(edges, rolled), width=1.6, label="rollouts, nominal")
    left.set(xlabel="x velocity", ylabel="density", title="histograms")
    left.legend(loc="upper left")
    centres = bins.centers[0]
    middle.fill_between(centres, np.cumsum(wanted), np.cumsum(rolled), color=RED, alpha=0.3, lw=0)
    middle.plot(centres, np.cumsum(wanted), color=DARK)
    middle.plot(centres, np.cumsum(rolled), color=ROLLOUT)
    w1 = float(wasserstein_bins(wanted, rolled, width))
    middle.set(xlabel="x velocity", title=f"cumulative: the area between is W1 = {w1:.2f}")
    base = np.zeros_like(wanted)
    for number, part in enumerate(chosen):
        top = base + part
        right.stairs(top / width, edges, baseline=base / width, fill=True, color=f"C{number % 10}", alpha=0.5)
        base = top
    right.stairs(wanted / width, edges, color=DARK, lw=1.4, label="target")
    right.legend(loc="upper left")
    right.set(xlabel="x velocity", title=f"{len(chosen)} episodes, mixed: W1 = {mixture.w1:.2f}")
    for axis in (left, middle, right):
        axis.title.set_fontsize(10)
        axis.set(xlim=(-0.5, 3.0))
    print("written to", save(figure, PICTURES / "distance.png"))


def conditioning(policy: Policy, results: dict[str, MatchResult]) -> None:
    """The z of each conditioning, and what the first rollout does."""
    bins, target = policy.reference().frame.bins, hm.parse_target(TWO_MODES)
    figure = blank(10, 3.4)
    for axis, (name, result) in zip(figure.subplots(1, 3, sharey=True), results.items(), strict=True):
        conditioner = make_conditioner(
            name,  # type: ignore[arg-type]
            policy.run,
            policy.agent,
            [target],
            np.zeros((1, 1), dtype=np.int64),
        )
        done, table = result.features[0][0], []
        for step, phi in enumerate(done):
            z = conditioner.z(torch.tensor([[step]]))
            assert z is not None
            table.append(z[0, 0].numpy().copy())
            conditioner.achieved(phi[None, None])
        heat(axis, np.array(table), bins)
        axis.plot(done[:, 0], color=RED, lw=1.2)
        axis.set(xlabel="step t", title=f"{name}: W1 = {result.w1:.2f}")
        axis.set(ylim=(-0.5, 3.0))
    figure.axes[0].set(ylabel="x velocity")
    print("written to", save(figure, PICTURES / "conditioning.png"))


def main() -> None:
    """Make the data, train, roll out, draw."""
    with tempfile.TemporaryDirectory() as place:
        data = hm.make_dataset("cheetah-vel", Path(place) / "cheetah-v0", episodes=155)
        split = hm.paper_split(data)
        policy = hm.train(hm.CDT("x_velocity"), split, preset="cpu", head="tanh", steps=1500, out=Path(place) / "run")
        names = ("nominal", "remaining", "planned")
        results = {name: policy.match(TWO_MODES, episodes=5, conditioning=name) for name in names}
        print({name: round(result.w1, 3) for name, result in results.items()}, "sha256", data.content_hash[:16])
        slow, fast = (next(t for t in data if t.label == label) for label in ("0.6", "2.2"))
        from himatch.types import concatenate

        with style(FILE):
            statistics(concatenate(slow[:100], fast[100:]), data)
            distance(policy, results["nominal"])
            conditioning(policy, results)


if __name__ == "__main__":
    main()
