"""Value heads of linear attention, from the order of the checkpoint to that of ggml.

A key head serves several value heads. Checkpoints store the value heads grouped by their
key head, `k0v0 k0v1 k1v0 k1v1`; ggml repeats a tensor as a whole, so head i meets key head
`i mod keys`, which asks for `k0v0 k1v0 k0v1 k1v1` (llama.cpp PR 19468).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.convert.weights import Array


@dataclass(frozen=True, slots=True)
class ValueHeads:
    """`values` heads of `width` numbers each over `keys` key heads."""

    keys: int
    values: int
    width: int

    def rows(self, tensor: Array) -> Array:
        """[values * width, ...], reordered by head."""
        return self._along_first(tensor, self.width)

    def scalars(self, tensor: Array) -> Array:
        """[values, ...], one row a head."""
        return self._along_first(tensor, 1)

    def columns(self, tensor: Array) -> Array:
        """[n, values * width]."""
        return np.ascontiguousarray(self.rows(tensor.T).T)

    def tail(self, tensor: Array) -> Array:
        """[queries + keys + values * width, ...]; queries and keys stay where they are."""
        start = len(tensor) - self.values * self.width
        result = tensor.copy()
        result[start:] = self.rows(tensor[start:])
        return result

    def _along_first(self, tensor: Array, width: int) -> Array:
        groups = tensor.reshape(self.keys, self.values // self.keys, width, *tensor.shape[1:])
        return groups.swapaxes(0, 1).reshape(tensor.shape)
