"""Types that the modules share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
"""Arrays of float64."""

Function = Callable[..., ArrayLike]
"""A Python function that is called with many points at once."""

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
"""What a run file can hold."""

Table = dict[str, Json]
"""A table of a run file."""
