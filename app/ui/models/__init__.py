"""Choosing a model and getting it into the engine."""
