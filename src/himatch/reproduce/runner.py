"""All jobs of a benchmark: in turn, on several processes, or on a Ray cluster; failures are listed, not fatal."""

from __future__ import annotations

import importlib
import signal
import threading
import time
import traceback
from collections.abc import Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any, Literal

import torch
from rich.console import Console
from rich.text import Text

from himatch._runtime.files import check_target, new_file, read_json, write_json
from himatch._runtime.progress import HANGUP, interrupt, on_signals, progress_bar
from himatch._runtime.source import source_tree
from himatch.errors import HimatchError, note, one_line
from himatch.reproduce.execution import MODELS, run_job
from himatch.reproduce.jobs import Job, Options, plan_jobs
from himatch.reproduce.results import SCORES
from himatch.reproduce.unseen import REPORTED_SEED
from himatch.runs.folder import RunFolder
from himatch.simulation.simulator import available_cpus

Executor = Literal["local", "ray"]
FAILURES, KIND = "failures", "benchmark.json"
TRIES = 3  # of a job whose machine is lost
DIGITS = 12  # of the name of a source tree


@dataclass(frozen=True)
class Outcome:
    """How a job ended: nothing, or one line that says what went wrong."""

    key: str
    failure: str | None = None


def run_benchmark(
    suites: Sequence[str],
    out: str | Path,
    options: Options | None = None,
    *,
    executor: Executor = "local",
    workers: int = 1,
    address: str | None = None,
    quiet: bool = False,
) -> list[Outcome]:
    """Run every job that some suites need; results appear in ``out`` as they come.

    Parameters
    ----------
    executor
        ``local``: this machine; ``ray``: a Ray cluster that shares ``out`` (``address``, or one that is started here).
    workers
        Processes on this machine, which share its cores. On one GPU a few of them keep it busy while others compile,
        load or simulate.
    """
    options, folder = options or Options(), Path(out)
    jobs = plan_jobs(suites, options)
    if workers < 1:
        raise HimatchError(f"there must be at least one worker, got {workers}")
    if options.data is not None and not Path(options.data).exists():
        raise HimatchError(f"--data: there is no file or folder {options.data}")
    check_target(folder / KIND)
    folder.mkdir(parents=True, exist_ok=True)
    _keep_to_one_kind(folder / KIND, options)
    open_jobs = [job for job in jobs if job.missing(folder)]
    outcomes: list[Outcome] = [Outcome(job.key) for job in jobs if job not in open_jobs]
    if executor == "local" and workers == 1:
        return outcomes + list(_in_turn(open_jobs, len(jobs), folder, options, quiet))
    if executor == "ray":
        running = _on_ray(open_jobs, folder, options, workers, address)
    else:
        running = _in_processes(open_jobs, folder, options, workers)
    with closing(running), progress_bar("benchmark", len(jobs), len(outcomes), unit="jobs", quiet=quiet) as bar:
        started, before = time.perf_counter(), len(outcomes)
        for outcome in running:
            outcomes.append(outcome)
            rate = (len(outcomes) - before) / max(time.perf_counter() - started, 1e-9)
            bar(len(outcomes), rate, outcome.key if outcome.failure is None else f"{outcome.key} failed")
    return outcomes


def _keep_to_one_kind(path: Path, options: Options) -> None:
    """Results of one folder go into one table: refuse to add those of another budget or of other data."""
    data = None if options.data is None else Path(options.data).name
    kind = {"budget": options.budget, "seeds": options.seed_count, "rollouts": options.rollouts}
    # Folders were of one head once. What another one left there has the names of the paper's policy.
    kind |= {"steps": options.steps, "head": None, "data": data, "target_seed": options.target_seed}
    kind |= {"recorded_at": options.recorded_at}
    begun = any((path.parent / SCORES).glob("*.json")) or any(
        RunFolder(folder).begun for folder in (path.parent / MODELS).glob("*")
    )
    if begun and path.is_file():
        # Earlier ones do not say all of it.
        stored = {**kind, "recorded_at": "t", "target_seed": REPORTED_SEED, "source": source_tree(), **read_json(path)}
        other = [f"{name} {stored[name]}, now {value}" for name, value in kind.items() if stored[name] != value]
        if other:
            raise HimatchError(f"{path.parent} holds other results ({'; '.join(other)}); choose another --out")
        if stored["source"] != source_tree():
            note(
                f"{path.parent} was begun by another source of himatch ({stored['source'][:DIGITS]}, now "
                f"{source_tree()[:DIGITS]}); each result says which it is of"
            )
            return
    write_json(path, {**kind, "source": source_tree()})


def attempt(job: str, out: str, options: dict[str, Any], quiet: bool = True) -> tuple[str, str | None]:
    """Run a job in whatever process this is; plain values in and out."""
    work, folder = Job.from_json(job), Path(out)
    settings: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
    try:
        run_job(work, folder, Options(**settings), quiet=quiet)
    except HimatchError as reason:
        _note_failure(folder, work, str(reason))
        return work.key, str(reason).splitlines()[0]
    except Exception as reason:  # one job that fails must not take the others with it
        _note_failure(folder, work, traceback.format_exc())
        return work.key, one_line(reason)
    (folder / FAILURES / f"{work.key}.txt").unlink(missing_ok=True)
    return work.key, None


def _note_failure(folder: Path, job: Job, text: str) -> None:
    with new_file(folder / FAILURES / f"{job.key}.txt") as partial:
        partial.write_text(text + "\n")


def _in_turn(jobs: Sequence[Job], total: int, out: Path, options: Options, quiet: bool) -> Generator[Outcome]:
    console = Console(stderr=True, quiet=quiet, highlight=False)
    for number, job in enumerate(jobs, start=total - len(jobs) + 1):
        console.print(f"[{number}/{total}] {job.key}", markup=False)
        yield Outcome(*attempt(job.as_json(), str(out), asdict(options), quiet))


def _in_processes(jobs: Sequence[Job], out: Path, options: Options, workers: int) -> Generator[Outcome]:
    share = max(1, available_cpus() // workers)
    options = replace(options, threads=options.threads or share)
    others = set(active_children())
    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=_begin, initargs=(share,)) as pool:
        try:
            waiting = {pool.submit(_work, job.as_json(), str(out), asdict(options)): job for job in jobs}
            for future in as_completed(waiting):
                try:
                    yield Outcome(*future.result())
                except Exception as reason:  # the process itself was lost
                    yield Outcome(waiting[future].key, f"its process was lost ({type(reason).__name__})")
        except BaseException:  # interrupted: trainings save and leave, what waits is not begun
            for process in set(active_children()) - others:
                process.terminate()
            pool.shutdown(cancel_futures=True)  # waits; if this process were gone first, nobody would end the others
            raise


_STOPPED = threading.Event()


def _begin(threads: int) -> None:
    """A process of its own waits for the word of the one that began it, though a terminal tells both."""
    torch.set_num_threads(threads)
    for number in filter(None, (signal.SIGINT, HANGUP)):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda _, __: _STOPPED.set())


def _work(job: str, out: str, options: dict[str, Any]) -> tuple[str, str | None]:
    """As :func:`attempt`. A process that is to stop stays, lest the pool end the others while they save."""
    try:
        with on_signals(interrupt, signal.SIGTERM):
            if not _STOPPED.is_set():
                return attempt(job, out, options)
    except KeyboardInterrupt:
        _STOPPED.set()
    return Job.from_json(job).key, "interrupted"


def _on_ray(jobs: Sequence[Job], out: Path, options: Options, workers: int, address: str | None) -> Generator[Outcome]:
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError:
        raise HimatchError('the executor ray is not installed: pip install "himatch[ray]"') from None
    if not ray.is_initialized():
        cpus = None if address else workers
        try:
            ray.init(address=address, num_cpus=cpus, include_dashboard=False, log_to_driver=False)
        except (ConnectionError, ValueError, RuntimeError) as reason:
            raise HimatchError(f"there is no Ray cluster at {address or 'this machine'} ({one_line(reason)})") from None
    there = ray.cluster_resources()
    gpus = 0 if options.device == "cpu" else int(there.get("GPU", 0))
    threads = options.threads or (max(1, int(there.get("CPU", 1)) // gpus) if gpus else 1)
    # Machines differ in the last bits of what they simulate, so one of them makes a dataset for all.
    cache = options.cache or (str(out / "data") if address else None)
    paths = {"data": options.data, "cache": cache}
    resolved = {name: None if path is None else str(Path(path).resolve()) for name, path in paths.items()}
    imports = tuple(str(Path(name).resolve()) if name.endswith(".py") else name for name in options.imports)
    options = replace(options, threads=threads, imports=imports, **resolved)  # type: ignore[arg-type]
    # A machine that is lost takes no result with it: they are files, and a job that runs again skips what is there.
    resources = {"num_cpus": threads, "num_gpus": 1 if gpus else 0}
    remote = ray.remote(max_retries=TRIES, retry_exceptions=False, **resources)(attempt)
    waiting = {remote.remote(job.as_json(), str(out.resolve()), asdict(options)): job for job in jobs}
    while waiting:
        ready, _ = ray.wait(list(waiting), num_returns=1)
        for reference in ready:
            job = waiting.pop(reference)
            try:
                yield Outcome(*ray.get(reference))
            except Exception as reason:  # lost more often than it was tried again
                yield Outcome(job.key, f"its worker was lost ({type(reason).__name__})")


def show_outcomes(outcomes: Sequence[Outcome], console: Console) -> None:
    """What failed, one line each."""
    failed = [outcome for outcome in outcomes if outcome.failure is not None]
    console.print(f"{len(outcomes) - len(failed)} of {len(outcomes)} jobs done", highlight=False)
    for outcome in failed:
        console.print(Text(f"failed: {outcome.key}: {outcome.failure}", style="red"), soft_wrap=True)
