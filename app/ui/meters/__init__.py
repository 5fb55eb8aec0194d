"""The meters: what speculative decoding does, as it happens."""
