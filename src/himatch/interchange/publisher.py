"""``himatch push``: a run on the Hugging Face Hub, where ``himatch.load("hf:USER/NAME")`` finds it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from himatch.errors import HimatchError
from himatch.interchange.card import model_card
from himatch.policy import load
from himatch.runs.folder import PORTABLE, RunFolder
from himatch.runs.hub import HubName, asking_the_hub


def push(run: str | Path, name: str, *, private: bool = False) -> str:
    """Upload what loading needs of a run, with a model card made from it, as one commit; returns its address.

    The repository is made if it is not there (``private``: for its owner alone). What an earlier push left in it is
    replaced. Neither the state of training nor held-out episodes leave the machine.
    """
    where = HubName.parse(name)
    if where.revision is not None:
        raise HimatchError(f"{name}: a run is pushed to the main branch; leave out @{where.revision}")
    policy = load(run)  # a damaged run is refused here, not by whoever downloads it
    with tempfile.TemporaryDirectory() as place:
        staged = Path(place)
        for path in policy.run.folder.portable():
            copy = staged / path.relative_to(policy.folder)
            copy.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, copy)
        RunFolder(staged).write_description(policy.run.folder.description())  # lists the files that come along
        RunFolder(staged).card.write_text(model_card(policy, where))
        with asking_the_hub(where):
            from huggingface_hub import HfApi

            hub = HfApi()
            hub.create_repo(where.repository, private=private or None, exist_ok=True)
            hub.upload_folder(
                repo_id=where.repository,
                folder_path=staged,
                commit_message=f"A {policy.method.name} of himatch for {policy.task.name}",
                delete_patterns=list(PORTABLE),
            )
            return f"{hub.endpoint}/{where.repository}"
