"""Experiments: studies as data, the runner that keeps them, and the report."""
