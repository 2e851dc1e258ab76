"""``himatch export``, ``push`` and ``import``: runs for other programs and machines, weights from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from himatch.cli.data import DataOptions
from himatch.cli.flags import Import, PathName, RunFolder, optional
from himatch.cli.match import check_writable

Numbers = Annotated[str | None, optional(metavar="LIST|FILE")]


@dataclass
class ExportRun:
    """Write one seed of a run as a file that runs without himatch, checked against it."""

    run_folder: RunFolder
    """Folder that himatch train wrote, a model of himatch models list, or hf:USER/NAME."""
    format: Annotated[Literal["onnx"], tyro.conf.arg(metavar="onnx")] = "onnx"
    """ONNX, for onnxruntime and the like."""
    seed: Annotated[int | None, optional(metavar="S")] = None
    """Which seed; the first by default."""
    out: PathName = None
    """File to write, RUN/seed-S/policy.onnx by default."""
    target: Annotated[tuple[str, ...], tyro.conf.arg(metavar="EXPR"), tyro.conf.UseAppendAction] = ()
    """A target whose z goes into a .z.npz beside the file, for himatch.deployed; can be given several times."""
    stretches: Annotated[int | None, optional(metavar="N")] = None
    """Plan those targets with stretches of N steps of training episodes instead of whole ones."""
    clamp: bool = False
    """Have the model clip observations to their limits: the training range and a margin."""
    margin: Annotated[float, tyro.conf.arg(metavar="X")] = 0.5
    """What the limits add on either side of the training range, as a part of it."""
    weights: Annotated[Literal["best", "last"], tyro.conf.arg(metavar="best|last")] = "last"
    """The last weights, or those of the lowest validation loss, which says little about rollouts."""
    imports: Import = ()
    """Python file (or module) that registers tasks of your own."""

    def run(self) -> None:
        """Load, export, compare."""
        from himatch.interchange import export_onnx
        from himatch.interchange.graph import samples
        from himatch.interchange.ztables import z_file
        from himatch.policy import load
        from himatch.tasks import import_tasks

        import_tasks(*self.imports)
        check_writable(self.run_folder, self.out)
        policy = load(self.run_folder, weights=self.weights)
        seed = policy.seeds[0] if self.seed is None else self.seed
        path = Path(self.out) if self.out is not None else policy.run.folder.seed(seed) / "policy.onnx"
        parity = export_onnx(
            policy,
            path,
            seed=seed,
            targets=self.target,
            stretches=self.stretches,
            clamp=self.clamp,
            margin=self.margin,
        )
        print(f"{policy.method.name} for {policy.task.name}, seed {seed}, written to {path}")
        if self.target:
            print(f"z of {len(self.target)} target(s) written to {z_file(path)}")
        if samples(policy):
            print(f"samples actions at temperature {policy.temperature:g}: takes standard normal noise as an input")
        print(f"onnxruntime against himatch: {parity}")


@dataclass
class PushRun:
    """Upload a run to the Hugging Face Hub, with a model card; himatch.load("hf:USER/NAME") gives it back."""

    run_folder: RunFolder
    """Folder that himatch train wrote."""
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="hf:USER/NAME")]
    """Repository to upload to; it is made if it is not there."""
    private: bool = False
    """Make it for its owner alone."""
    imports: Import = ()
    """Python file (or module) that registers tasks of your own."""

    def run(self) -> None:
        """Check, describe and upload."""
        from himatch.interchange import push
        from himatch.tasks import import_tasks

        import_tasks(*self.imports)
        print(f"pushed to {push(self.run_folder, self.name, private=self.private)}")


@dataclass
class ImportWeights:
    """Make a dt run from the weights of a Hugging Face DecisionTransformerModel."""

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER|hf:USER/NAME")]
    """Folder with config.json and model.safetensors (or pytorch_model.bin), or a name on the Hub."""
    out: Annotated[str, tyro.conf.arg(metavar="RUN")]
    """Run folder to write."""
    episodes: Annotated[str | None, optional(name="data", metavar="SOURCE")] = None
    """The episodes it was trained on: they say how states are normalised and what is achievable."""
    state_mean: Numbers = None
    """Means of the states, as [1.3, -0.1, ...] or a JSON file; a model card has them."""
    state_std: Numbers = None
    """Standard deviations of the states, likewise."""
    return_scale: Annotated[float, tyro.conf.arg(metavar="X")] = 1000.0
    """What returns were divided by."""
    context: Annotated[int | None, optional(metavar="N")] = None
    """Steps the policy sees; what the checkpoint says, else 20."""
    env: Annotated[str | None, optional(metavar="ID")] = None
    """Gymnasium environment it was trained in; what the data says, else the task's."""
    data: DataOptions = field(default_factory=DataOptions)

    def run(self) -> None:
        """Read, convert and write."""
        from himatch.interchange import import_hugging_face

        self.data.register()
        policy = import_hugging_face(
            self.source,
            self.out,
            task=self.data.task,
            data=None if self.episodes is None else self.data.load(self.episodes),
            state_mean=_numbers(self.state_mean, "--state-mean"),
            state_std=_numbers(self.state_std, "--state-std"),
            return_scale=self.return_scale,
            context=self.context,
            env_id=self.env,
        )
        print(f"{policy.method.name} for {policy.task.name}, context {policy.context}, written to {self.out}")


def _numbers(text: str | None, option: str) -> list[float] | None:
    """A list of numbers, written out or in a JSON file."""
    import json

    from himatch.errors import DataError

    if text is None:
        return None
    written_out = text.lstrip().startswith("[")
    if not written_out and not Path(text).is_file():
        raise DataError(f"{option}: there is no file {text}; name one, or write a list such as [1.3, -0.1]")
    try:
        content = json.loads(text if written_out else Path(text).read_text())
        return [float(number) for number in content]
    except (OSError, ValueError, TypeError) as reason:
        raise DataError(f"{option}: expected a list of numbers such as [1.3, -0.1] ({reason})") from None
