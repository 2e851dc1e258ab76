"""Logged episodes as a caller hands them over: those of a dataset are put into the order of the run's columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import overload

from himatch._runtime.settings import shown
from himatch.data import TrajectoryDataset
from himatch.errors import DataError, HimatchError, note
from himatch.rollout.pace import TOLERANCE
from himatch.runs.run import Run
from himatch.types import Trajectory

Order = list[int] | None


class _Reordered(Sequence[Trajectory]):
    """Episodes of a dataset with their columns in another order; each is copied when it is asked for."""

    def __init__(self, episodes: TrajectoryDataset, observations: Order, actions: Order) -> None:
        self._episodes, self._observations, self._actions = episodes, observations, actions

    def __len__(self) -> int:
        return len(self._episodes)

    @overload
    def __getitem__(self, key: int) -> Trajectory: ...
    @overload
    def __getitem__(self, key: slice) -> _Reordered: ...
    def __getitem__(self, key: int | slice) -> Trajectory | _Reordered:
        if isinstance(key, slice):
            return _Reordered(self._episodes[key], self._observations, self._actions)
        one = self._episodes[key]
        if self._observations is not None:
            final = None if one.final_observation is None else one.final_observation[self._observations]
            one = replace(one, observations=one.observations[:, self._observations], final_observation=final)
        return one if self._actions is None else replace(one, actions=one.actions[:, self._actions])


def logged_episodes(run: Run, given: Sequence[Trajectory]) -> Sequence[Trajectory]:
    """The episodes, in the order of the run's columns where a dataset names its own; what are none is refused."""
    if isinstance(given, TrajectoryDataset) and len(given):
        return _aligned(run, given)
    if isinstance(given, (str, Path)):
        raise HimatchError(f"episodes are needed, not a name; load them first: himatch.load_dataset({str(given)!r})")
    if not isinstance(given, Sequence) or not given:
        raise HimatchError(f"a list of episodes with something in it is needed, not {shown(given)}")
    for number, one in enumerate(given):
        if not isinstance(one, Trajectory):
            raise HimatchError(f"number {number} of the episodes: {_not_an_episode(one)}")
    return given


def check_episode(given: object) -> None:
    """Refuse what is not one episode."""
    if isinstance(given, TrajectoryDataset):
        raise HimatchError("one episode is needed, not a dataset; choose it by its number, such as dataset[0]")
    if not isinstance(given, Trajectory):
        raise HimatchError(_not_an_episode(given))


def note_rate(run: Run, rate: float | None, source: str) -> None:
    """Say so where data was recorded at another rate than that of the run."""
    if rate and run.rate and abs(rate / run.rate - 1.0) > TOLERANCE:
        note(
            f"{source} was recorded at {rate:.4g} Hz, the data of {run.folder} at {run.rate:.4g} Hz; a policy counts "
            "steps, so resample to the rate of the run"
        )


def other_units(run: Run, units: Mapping[str, str]) -> list[str]:
    """The columns whose unit, where both are known, is not the run's, with both units."""
    known = run.units
    return [f"{name} in {unit}, not {known[name]}" for name, unit in units.items() if known.get(name, unit) != unit]


def _not_an_episode(given: object) -> str:
    if isinstance(given, (str, Path)):
        return f"an episode is needed, not a name; load it first: himatch.load_dataset({str(given)!r})[0]"
    return f"an episode (himatch.Trajectory) is needed, not {shown(given)}"


def _aligned(run: Run, data: TrajectoryDataset) -> Sequence[Trajectory]:
    stored = run.description["data"].get("columns") or {}
    orders = [
        _order(run, data.source, what, found, tuple(stored.get(what) or ()))
        for what, found in (("observations", data.observation_names), ("actions", data.action_names))
    ]
    note_rate(run, data.rate, data.source)
    if differing := other_units(run, data.units):
        note(f"{data.source} measures {'; '.join(differing)} as {run.folder} does; convert it")
    return data if orders == [None, None] else _Reordered(data, *orders)


def _order(run: Run, source: str, what: str, found: tuple[str, ...], wanted: tuple[str, ...]) -> Order:
    """Where the run's columns are in the data; ``None`` where they are in its order, or have no names."""
    if not found or not wanted or found == wanted:
        return None
    if sorted(found) != sorted(wanted):
        lacking = ", ".join(name for name in wanted if name not in found) or "nothing"
        more = ", ".join(name for name in found if name not in wanted) or "nothing"
        raise DataError(
            f"{source}: its {what} are not those of {run.folder}: {lacking} is missing, {more} is too much; load it "
            f"with the same columns (--columns.{what})"
        )
    return [found.index(name) for name in wanted]
