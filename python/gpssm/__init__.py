"""Learn nonlinear dynamics from recorded inputs and outputs, with calibrated uncertainty.

    x_{t+1} = f(x_t, u_t) + v_t      f unknown: a Gaussian process
    y_t     ~ p(y | x_t, u_t)        the sensor, known up to parameters

`fit` samples states and hyper-parameters from their exact posterior, with f integrated out, by particle Gibbs with
ancestor sampling. The result holds an xarray DataTree that ArviZ reads directly.
"""

from __future__ import annotations

from . import bases, blocks, export, functions, initial, kernels, model, priors, sensors, testing, transitions
from ._checks import compare
from ._core import VERSION as __version__
from ._data import Data, as_data
from ._fit import fit, fit_many
from .bases import *  # noqa: F403
from .compiled import CompiledFunction
from .distilled import Distilled
from .functions import *  # noqa: F403
from .initial import *  # noqa: F403
from .kernels import *  # noqa: F403
from .model import *  # noqa: F403
from .priors import *  # noqa: F403
from .result import Result, open
from .sensors import *  # noqa: F403
from .transitions import *  # noqa: F403

__all__ = [
    "CompiledFunction",
    "Data",
    "Distilled",
    "Result",
    "__version__",
    "as_data",
    "bases",
    "blocks",
    "compare",
    "export",
    "fit",
    "fit_many",
    "functions",
    "initial",
    "kernels",
    "model",
    "open",
    "priors",
    "sensors",
    "testing",
    "transitions",
    *bases.__all__,
    *functions.__all__,
    *initial.__all__,
    *kernels.__all__,
    *model.__all__,
    *priors.__all__,
    *sensors.__all__,
    *transitions.__all__,
]
