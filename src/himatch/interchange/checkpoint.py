"""A checkpoint of Hugging Face's ``DecisionTransformerModel``, read without running anything, under our names.

It is the paper's DT up to names: its position embedding is the same row everywhere (all positions are 0), so it goes
into the bias of the norm before it, and attention scales other than ours go into the queries.
"""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from himatch._runtime.files import read_json
from himatch._runtime.tensors import read_foreign_tensors
from himatch.errors import DataError, note, one_line
from himatch.methods.batch import Dims
from himatch.networks.transformer import ModelConfig

CONFIG, WEIGHTS, PICKLED = "config.json", "model.safetensors", "pytorch_model.bin"
CONTEXT = 20  # of the Decision Transformer on Gym; a configuration says another as max_length


@dataclass(frozen=True)
class HuggingFaceCheckpoint:
    """A checkpoint as it lies on disk."""

    name: str
    config: dict[str, Any]
    tensors: dict[str, Tensor]
    digest: str

    @classmethod
    def read(cls, folder: Path, name: str) -> HuggingFaceCheckpoint:
        """Read configuration and tensors; nothing in them runs."""
        if not (folder / CONFIG).is_file():
            remedy = "; to download one, write hf:USER/NAME" if not folder.exists() else ""
            raise DataError(f"{folder} holds no {CONFIG}{remedy}")
        config = read_json(folder / CONFIG)
        kind = config.get("model_type")
        if kind != "decision_transformer":
            raise DataError(f"{folder / CONFIG} describes a {kind}, not a decision_transformer")
        path = next((folder / name for name in (WEIGHTS, PICKLED) if (folder / name).is_file()), None)
        if path is None:
            raise DataError(f"{folder} holds neither {WEIGHTS} nor {PICKLED}")
        tensors = read_foreign_tensors(path) if path.name == WEIGHTS else _read_pickled(path)
        return cls(name, _checked(config, folder / CONFIG), tensors, hashlib.sha256(path.read_bytes()).hexdigest())

    @property
    def dims(self) -> Dims:
        """What sizes our agent."""
        return Dims(self.config["state_dim"], self.config["act_dim"], 1, self.config["max_ep_len"])

    def model(self, context: int | None) -> ModelConfig:
        """Our model of the same form."""
        config = self.config
        steps = self._context() if context is None else context
        return ModelConfig(steps, config["n_layer"], config["n_head"], config["hidden_size"], config["resid_pdrop"])

    def _context(self) -> int:
        stated = self.config.get("max_length")  # newer versions of their library do not write it
        if isinstance(stated, int):
            return stated
        what = f"{self.name} does not say how many steps it sees"
        note(f"{what}; {CONTEXT} are assumed, as on D4RL (--context N)")
        return CONTEXT

    def weights(self) -> dict[str, Tensor]:
        """The tensors under our names, as one seed's file holds them."""
        given, found = self.tensors, {}

        def take(name: str, *, transposed: bool = False) -> Tensor:
            if name not in given:
                raise DataError(f"{self.name}: the weights lack {name}; is it a DecisionTransformerModel?")
            tensor = given[name].float()
            return tensor.T if transposed else tensor

        def put(ours: str, theirs: str, *, transposed: bool = False) -> None:
            found[f"policy.{ours}.weight"] = take(f"{theirs}.weight", transposed=transposed)
            found[f"policy.{ours}.bias"] = take(f"{theirs}.bias")

        found["policy.embed_time.weight"] = take("embed_timestep.weight")
        for ours, theirs in (("z", "return"), ("state", "state"), ("action", "action")):
            put(f"embed_{ours}", f"embed_{theirs}", transposed=True)
        put("predict", "predict_action.0", transposed=True)
        put("embed_norm", "embed_ln")
        found["policy.embed_norm.bias"] = found["policy.embed_norm.bias"] + take("encoder.wpe.weight")[0]
        put("transformer.norm", "encoder.ln_f")
        for layer in range(self.config["n_layer"]):
            ours, theirs = f"transformer.blocks.{layer}", f"encoder.h.{layer}"
            put(f"{ours}.attention_norm", f"{theirs}.ln_1")
            put(f"{ours}.mlp_norm", f"{theirs}.ln_2")
            put(f"{ours}.qkv", f"{theirs}.attn.c_attn")
            put(f"{ours}.attention_out", f"{theirs}.attn.c_proj")
            put(f"{ours}.mlp_in", f"{theirs}.mlp.c_fc")
            put(f"{ours}.mlp_out", f"{theirs}.mlp.c_proj")
            for part in ("weight", "bias"):
                found[f"policy.{ours}.qkv.{part}"] = self._scaled(found[f"policy.{ours}.qkv.{part}"], layer)
        return found

    def _scaled(self, qkv: Tensor, layer: int) -> Tensor:
        """Queries that make up for a scale of attention other than one over the root of a head's width."""
        config, width = self.config, self.config["hidden_size"]
        factor = 1.0 if config["scale_attn_weights"] else (width // config["n_head"]) ** 0.5
        factor /= layer + 1 if config["scale_attn_by_inverse_layer_idx"] else 1
        return torch.cat([qkv[..., :width] * factor, qkv[..., width:]], dim=-1)


DEFAULTS: dict[str, Any] = {  # of their configuration, where a file leaves something out
    "state_dim": 17,
    "act_dim": 4,
    "hidden_size": 128,
    "max_ep_len": 4096,
    "action_tanh": True,
    "n_layer": 3,
    "n_head": 1,
    "n_inner": None,
    "activation_function": "relu",
    "resid_pdrop": 0.1,
    "layer_norm_epsilon": 1e-5,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
}


def _checked(config: dict[str, Any], where: Path) -> dict[str, Any]:
    """The configuration with its defaults; forms that our policy does not have are refused."""
    full = DEFAULTS | config
    for name in ("state_dim", "act_dim", "hidden_size", "max_ep_len", "n_layer", "n_head"):
        if not isinstance(full[name], int) or full[name] < 1:
            raise DataError(f"{where}: {name} must be a whole number of at least 1, got {full[name]!r}")
    width = 4 * full["hidden_size"]
    for name, wanted in (
        ("activation_function", ("relu",)),
        ("action_tanh", (True,)),
        ("layer_norm_epsilon", (1e-5,)),
        ("n_inner", (None, width)),
    ):
        if full[name] not in wanted:
            raise DataError(f"{where}: {name} is {full[name]!r}; himatch's policy has {wanted[-1]!r} there")
    return full


def _read_pickled(path: Path) -> dict[str, Tensor]:
    """Tensors of a ``pytorch_model.bin``; anything else in it is refused, and nothing runs."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as reason:
        raise DataError(
            f"{path}: damaged, or a pickle of more than tensors, which is not read ({one_line(reason)}); convert it "
            "with safetensors.torch.save_file where you trust it"
        ) from None
    if not isinstance(content, dict) or not all(isinstance(tensor, Tensor) for tensor in content.values()):
        raise DataError(f"{path}: not the weights of one model")
    return content
