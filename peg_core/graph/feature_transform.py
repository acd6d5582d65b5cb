"""Standardise, normalise and reduce features, a chunk of rows in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from peg_core.atomic_file import atomic_path
from peg_core.random_streams import random_stream

# Values in memory at a time, 32 MB in double precision.
CHUNK_VALUES = 2**22

Matrix = npt.NDArray[np.float64]
Features = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Moments:
    """Mean and spread of rows; those of two sets of rows add up.

    Args:
        count: Number of rows.
        mean: [width].
        scatter: Sums of products of deviations from the mean, [width, width], or of
            their squares alone, [width].
    """

    count: int
    mean: Matrix
    scatter: Matrix

    @classmethod
    def of(cls, rows: Matrix, *, products: bool) -> Moments:
        """The moments of some rows [num_rows, width]."""
        mean = rows.mean(axis=0)
        deviation = rows - mean
        scatter = deviation.T @ deviation if products else np.square(deviation).sum(axis=0)
        return cls(len(rows), mean, scatter)

    def merge(self, other: Moments) -> Moments:
        """The moments of both sets together, without the cancellation of sums of squares."""
        count = self.count + other.count
        gap = other.mean - self.mean
        between = np.outer(gap, gap) if self.scatter.ndim == 2 else np.square(gap)
        between *= self.count * other.count / count
        between += self.scatter
        between += other.scatter
        return Moments(count, self.mean + gap * (other.count / count), between)

    def save(self, path: Path) -> None:
        arrays = {"count": np.array(self.count), "mean": self.mean, "scatter": self.scatter}
        with atomic_path(path) as temporary:
            save_file(arrays, temporary)

    @classmethod
    def open(cls, path: Path) -> Moments:
        arrays = load_file(path)
        return cls(int(arrays["count"]), arrays["mean"], arrays["scatter"])


@dataclass(frozen=True)
class FeatureTransform:
    """Standardise, then scale rows to length 1, then project; each step where it is set.

    Args:
        row_normalise: Divide every row by its Euclidean length; rows of zeros stay.
        shift, scale: [width]; a row becomes ``(row - shift) * scale``.
        centre: [width], taken from a row before it is projected.
        components: [width, dimensions].
    """

    row_normalise: bool = False
    shift: Matrix | None = None
    scale: Matrix | None = None
    centre: Matrix | None = None
    components: Matrix | None = None

    def prepare(self, rows: Features) -> Matrix:
        """Rows before the projection, [num_rows, width], float64."""
        prepared: Matrix = rows.astype(np.float64)
        if self.shift is not None and self.scale is not None:
            prepared -= self.shift
            prepared *= self.scale
        if self.row_normalise:
            lengths = np.linalg.norm(prepared, axis=1, keepdims=True)
            prepared /= np.where(lengths == 0, 1.0, lengths)
        return prepared

    def apply(self, rows: Features) -> npt.NDArray[np.float32]:
        """Rows as a model reads them, [num_rows, width or dimensions]."""
        prepared = self.prepare(rows)
        if self.centre is not None:
            prepared -= self.centre
        if self.components is not None:
            prepared = prepared @ self.components
        return prepared.astype(np.float32)

    def save(self, path: Path) -> None:
        """Write a safetensors file, so that other nodes can be treated alike."""
        named = {name: getattr(self, name) for name in ("shift", "scale", "centre", "components")}
        arrays = {name: np.ascontiguousarray(a) for name, a in named.items() if a is not None}
        with atomic_path(path) as temporary:
            save_file(arrays, temporary, metadata={"row_normalise": str(self.row_normalise)})

    @classmethod
    def open(cls, path: Path) -> FeatureTransform:
        with safe_open(path, framework="numpy") as file:
            row_normalise = file.metadata()["row_normalise"] == "True"
        return cls(row_normalise, **load_file(path))


def row_chunks(start: int, stop: int, width: int) -> Iterator[slice]:
    """Consecutive ranges of rows of about :data:`CHUNK_VALUES` values."""
    rows = max(1, CHUNK_VALUES // max(width, 1))
    for first in range(start, stop, rows):
        yield slice(first, min(first + rows, stop))


def moments_of(
    features: Features, transform: FeatureTransform, start: int, stop: int, *, products: bool
) -> Moments:
    """Moments of the prepared rows ``start .. stop``; at least one row is needed."""
    total: Moments | None = None
    for rows in row_chunks(start, stop, features.shape[1]):
        part = Moments.of(transform.prepare(features[rows]), products=products)
        total = part if total is None else total.merge(part)
    assert total is not None
    return total


def fit_scale(moments: Moments) -> tuple[Matrix, Matrix]:
    """Shift and scale that give every column mean 0 and deviation 1; constant ones become 0."""
    variance = moments.scatter / moments.count
    epsilon = np.finfo(np.float64).eps
    # what rounding alone leaves of a constant column
    rounding = moments.count * epsilon * variance + (moments.count * moments.mean * epsilon) ** 2
    deviation = np.where(variance <= rounding, 1.0, np.sqrt(variance))
    return moments.mean, 1.0 / deviation


def fit_principal_components(moments: Moments, dimensions: int) -> tuple[Matrix, Matrix]:
    """The directions in which rows differ most, [width, dimensions], and their variances.

    The sign of a direction is free: its largest entry is made positive.
    """
    width = len(moments.mean)
    covariance = moments.scatter / max(moments.count - 1, 1)
    values, vectors = scipy.linalg.eigh(covariance, subset_by_index=[width - dimensions, width - 1])
    values, vectors = values[::-1].clip(min=0), vectors[:, ::-1]
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.sign(vectors[largest, np.arange(dimensions)])
    return vectors * signs, values


def random_projection(width: int, dimensions: int, *, seed: int) -> Matrix:
    """A matrix [width, dimensions] that keeps inner products on average."""
    rng = random_stream(seed=seed, purpose="random projection of features")
    return rng.normal(scale=dimensions**-0.5, size=(width, dimensions))
