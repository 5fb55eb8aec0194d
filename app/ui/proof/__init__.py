"""Drafting set against plain decoding, for all to see: a proof of one prompt, and a replay."""
