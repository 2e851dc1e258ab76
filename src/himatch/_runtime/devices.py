"""Where tensors live, and random numbers that leave the caller's alone."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from himatch.errors import HimatchError


def find_device(name: str | torch.device | None = None) -> torch.device:
    """The device of that name; without one a GPU where there is one."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    found = re.fullmatch(r"cpu|(cuda)(?::(0|[1-9]\d*))?", str(name))
    if found is None:
        raise HimatchError(f"unknown device {str(name)!r}; known are cpu, cuda, cuda:N")
    if found[1] is not None:
        if not torch.cuda.is_available():
            raise HimatchError("there is no CUDA GPU here; use --device cpu (device='cpu')")
        count = torch.cuda.device_count()
        if int(found[2] or 0) >= count:
            raise HimatchError(f"there is no {name} here; the CUDA GPUs are numbered 0 to {count - 1}")
    return torch.device(name)


def device_name(device: torch.device) -> str:
    """What computes there, in words: which GPU, or which processor and how many cores of it."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{_processor()}, {torch.get_num_threads()} {'core' if torch.get_num_threads() == 1 else 'cores'}"


def _processor() -> str:
    """Its name where the system tells it, as Linux does in a file; else its architecture."""
    try:
        told = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        told = ""
    found = re.search(r"^model name\s*:\s*(\S.*?)\s*$", told, re.MULTILINE)
    return found[1] if found else platform.processor() or platform.machine()


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Random numbers from a seed; the caller's go on afterwards as if none had been drawn."""
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        torch.default_generator.manual_seed(seed)
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield
