"""The paper's experiments: suites as data, jobs that run anywhere, results as files."""

from himatch.reproduce.budgets import BUDGETS
from himatch.reproduce.jobs import Job, Options, plan_jobs
from himatch.reproduce.results import JobResult, ResultKey, TargetScore, read_results
from himatch.reproduce.runner import Outcome, run_benchmark
from himatch.reproduce.specification import Specification
from himatch.reproduce.suites import SUITES

__all__ = [
    "BUDGETS",
    "SUITES",
    "Job",
    "JobResult",
    "Options",
    "Outcome",
    "ResultKey",
    "Specification",
    "TargetScore",
    "plan_jobs",
    "read_results",
    "run_benchmark",
]
