"""Names on the Hugging Face Hub (``hf:USER/NAME`` or ``hf:USER/NAME@REVISION``) and files fetched from it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from himatch.errors import HimatchError, one_line

PREFIX = "hf:"
_NAME = re.compile(r"hf:(?P<repository>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")


@dataclass(frozen=True)
class HubName:
    """A repository and, where it matters, a branch, tag or commit of it."""

    repository: str
    revision: str | None = None

    @classmethod
    def parse(cls, text: str) -> HubName:
        """From ``hf:USER/NAME`` or ``hf:USER/NAME@REVISION``."""
        found = _NAME.fullmatch(text)
        if found is None:
            raise HimatchError(f"{text!r} names nothing on the Hub; write hf:USER/NAME or hf:USER/NAME@REVISION")
        return cls(found["repository"], found["revision"])

    def __str__(self) -> str:
        return PREFIX + self.repository + (f"@{self.revision}" if self.revision else "")


def is_hub_name(source: str | Path) -> bool:
    """Whether this means the Hub and no file."""
    return str(source).startswith(PREFIX)


def fetch(name: HubName, files: Sequence[str]) -> Path:
    """Download the files that match these patterns into the Hub's own cache; the folder where they lie.

    What is in the cache is not downloaded again and serves without a network.
    """
    with asking_the_hub(name):
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(name.repository, revision=name.revision, allow_patterns=list(files)))


@contextmanager
def asking_the_hub(name: HubName) -> Iterator[None]:
    """Turn what ``huggingface_hub`` and the network say into one line."""
    try:
        from huggingface_hub import errors
    except ImportError:
        raise HimatchError(f'{name} needs huggingface_hub: pip install "himatch[hub]"') from None
    try:
        yield
    except errors.GatedRepoError:
        raise HimatchError(f"access to {name} must be granted on its page first; then log in: hf auth login") from None
    except errors.RepositoryNotFoundError:
        raise HimatchError(
            f"there is no {name} on the Hub, or it is private; check the name, or log in: hf auth login"
        ) from None
    except errors.RevisionNotFoundError:
        raise HimatchError(f"{name}: the repository has no branch, tag or commit of that name") from None
    except errors.LocalEntryNotFoundError:
        raise HimatchError(f"{name}: the Hub cannot be reached, and there is no copy in the cache") from None
    except Exception as reason:  # several HTTP libraries, by version, and whatever a proxy may say
        status = getattr(getattr(reason, "response", None), "status_code", None)
        if status in (401, 403) or isinstance(reason, errors.LocalTokenNotFoundError):
            raise HimatchError(f"{name}: the Hub does not let you do that; log in: hf auth login") from None
        raise HimatchError(f"{name}: the Hub cannot be reached or refuses ({one_line(reason)})") from None
