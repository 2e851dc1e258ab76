"""The paper's experiments: suites as data, jobs that run anywhere, results as files."""

from himatch.reproduce.jobs import Job, Options, plan_jobs
from himatch.reproduce.results import JobResult, TargetScore, read_results
from himatch.reproduce.runner import Outcome, run_benchmark
from himatch.reproduce.suites import BUDGETS, SUITES

__all__ = [
    "BUDGETS",
    "SUITES",
    "Job",
    "JobResult",
    "Options",
    "Outcome",
    "TargetScore",
    "plan_jobs",
    "read_results",
    "run_benchmark",
]
