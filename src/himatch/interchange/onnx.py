"""``himatch export --format onnx``: one seed as one file that needs neither himatch nor PyTorch."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from himatch._runtime.files import new_file
from himatch._version import __version__
from himatch.errors import HimatchError
from himatch.interchange.facts import as_metadata, facts_of
from himatch.interchange.graph import PolicyGraph, inputs_of, outputs_of
from himatch.interchange.parity import Parity, check_parity
from himatch.interchange.ztables import write_tables, z_file, z_tables
from himatch.methods.base import Port
from himatch.policy import Policy
from himatch.rollout.limits import MARGIN, training_limits
from himatch.rollout.plans import Plans
from himatch.targets import TargetLike

OPSET = 20


def export_onnx(
    policy: Policy,
    path: str | Path,
    *,
    seed: int | None = None,
    targets: Sequence[TargetLike] = (),
    stretches: int | None = None,
    clamp: bool = False,
    margin: float = MARGIN,
) -> Parity:
    """Write one seed (by default the first) as an ONNX file, once onnxruntime has been seen to agree with himatch.

    The file maps raw windows to a raw action: see the inputs' descriptions in it, and docs/interchange.md. The z of
    ``targets`` go into a ``.z.npz`` beside it, for :mod:`himatch.deployed`. Their ``planned`` is laid out over
    ``stretches`` where these are given; it is never made again, which would take the training episodes. With ``clamp``
    the model clips observations to their limits, the training range widened by ``margin`` of it on either side; without
    it only says what they are.
    """
    _check_installed()
    if stretches is not None and not targets:
        raise HimatchError("stretches say how targets are planned, and there is no target to plan")
    one = policy.only(policy.seeds[0] if seed is None else seed)
    if one.device.type != "cpu":
        raise HimatchError(f"export from the CPU: load the run without device={one.device.type!r}")
    limits = training_limits(one.normalizers, margin)
    if clamp and limits is None:
        raise HimatchError(
            f"{one.folder} does not hold the range of its training data, so there is nothing to clamp to; export "
            "without clamp, or train again"
        )
    clipped = limits if clamp else None
    inputs, outputs = inputs_of(one), outputs_of(one)
    facts = facts_of(one, inputs, outputs, margin, clamped=clamp)
    plans = Plans(stretches)
    tables = z_tables(one, targets, facts, plans) if targets else None  # a target that does not fit is refused first
    program = _trace(PolicyGraph(one, clipped), inputs, outputs)
    model = program.model
    model.producer_name, model.producer_version = "himatch", __version__
    model.metadata_props.update(as_metadata(facts))
    for port, value in (*zip(inputs, model.graph.inputs, strict=True), *zip(outputs, model.graph.outputs, strict=True)):
        value.doc_string = port.meaning
    with new_file(Path(path)) as partial:
        program.save(partial, external_data=False)
        found = check_parity(one, partial, clipped)  # a file that differs does not get its name
    if tables is not None:
        write_tables(z_file(path), tables)
    return found


def _trace(graph: PolicyGraph, inputs: tuple[Port, ...], outputs: tuple[Port, ...]) -> Any:
    """The graph as PyTorch's exporter sees it; the batch is free, the context is not."""
    example = tuple(torch.zeros(2, *port.shape) if port.shape else torch.zeros(2, dtype=torch.int64) for port in inputs)
    batch = torch.export.Dim("batch")
    with _quiet():
        return torch.onnx.export(
            graph.eval(),
            example,
            dynamo=True,
            verbose=False,
            opset_version=OPSET,
            input_names=[port.name for port in inputs],
            output_names=[port.name for port in outputs],
            dynamic_shapes=(tuple({0: batch} for _ in inputs),),
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter talks to its programmers, in warnings and in logs."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _check_installed() -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as reason:
        raise HimatchError(f'export to ONNX needs {reason.name}: pip install "himatch[onnx]"') from None
