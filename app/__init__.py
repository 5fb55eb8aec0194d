"""Slipstream: Qwen3.5-4B with DFlash speculative decoding, locally."""
