"""Statistics of the rest of a trajectory: features Phi, aggregators, bins, and I^Phi (Table him_summary)."""
