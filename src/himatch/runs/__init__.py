"""Runs: the folder that training writes and everything else reads; no other room knows its files."""
