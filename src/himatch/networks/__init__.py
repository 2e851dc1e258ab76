"""Networks: the sequence policy and the learned statistics, K models at a time."""
