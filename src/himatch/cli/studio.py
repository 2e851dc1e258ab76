"""``himatch studio``: draw a robot's future in a browser, and watch it happen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from himatch.cli.flags import Import, optional


@dataclass
class Studio:
    """Open a page on which one draws what a robot's future should look like, and watches it happen."""

    runs: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[RUN ...]")] = ()
    """Run folders, models of himatch models list, or hf:USER/NAME; by default cheetah, hopper and walker."""
    host: Annotated[str, tyro.conf.arg(metavar="ADDRESS")] = "127.0.0.1"
    """Where to listen; other machines reach what is not loopback, and need the token that is printed then."""
    port: Annotated[int | None, optional(metavar="N")] = None
    """Which port; by default 8450, or the next one that is free."""
    demonstrations: Annotated[tuple[str, ...], tyro.conf.arg(metavar="FILE...")] = ()
    """Files of episodes that targets on the page may name; they can name no others."""
    browser: bool = True
    """Open the page; --no-browser does not."""
    device: Annotated[str, tyro.conf.arg(metavar="cuda|cpu")] = "cpu"
    """Where the policies run."""
    imports: Import = ()
    """Python file (or module) that registers tasks of your own."""

    def run(self) -> None:
        """Serve until it is interrupted."""
        from himatch._runtime.extras import import_extra
        from himatch.tasks import import_tasks

        for module in ("fastapi", "uvicorn", "websockets"):
            import_extra(module, "studio", "himatch studio")
        from himatch.studio.server import run_studio

        import_tasks(*self.imports)
        run_studio(
            self.runs,
            host=self.host,
            port=self.port,
            browser=self.browser,
            demonstrations=self.demonstrations,
            device=self.device,
        )
