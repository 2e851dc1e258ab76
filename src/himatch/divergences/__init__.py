"""Divergences: pure functions of arrays that say how far two distributions are apart."""

from himatch.divergences.others import energy_distance, kl_bins, moment_errors
from himatch.divergences.statistics import (
    Difference,
    Summary,
    interquartile_mean,
    leave_one_out,
    paired_difference,
    summarize,
)
from himatch.divergences.wasserstein import (
    normalized,
    wasserstein_bins,
    wasserstein_cells,
    wasserstein_joint,
    wasserstein_marginal,
    wasserstein_samples,
)

__all__ = [
    "Difference",
    "Summary",
    "energy_distance",
    "interquartile_mean",
    "kl_bins",
    "leave_one_out",
    "moment_errors",
    "normalized",
    "paired_difference",
    "summarize",
    "wasserstein_bins",
    "wasserstein_cells",
    "wasserstein_joint",
    "wasserstein_marginal",
    "wasserstein_samples",
]
