"""Functions that worker processes can import."""

import os
import signal
from pathlib import Path

import numpy as np


def mean(x, u, a):
    return a * np.tanh(x[:, 0]) + 0.5 * u[:, 0]


class DeadlyMean:
    """A mean function whose process dies once, half-way: the first worker to see enough calls kills itself."""

    __name__ = "deadly"

    def __init__(self, marker, parent):
        self.marker, self.parent, self.calls = str(marker), parent, 0

    def __call__(self, x):
        self.calls += 1
        if os.getpid() != self.parent and self.calls > 200:
            try:
                # Only one process ever makes the file.
                Path(self.marker).touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return x[:, 0]
