"""Evaluation: how well rollouts match their targets."""
