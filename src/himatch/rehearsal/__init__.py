"""Rehearsal: what this policy really does, found out beforehand on training episodes."""
