"""Power-scaling sensitivity: what a posterior owes to its priors and to the data (Kallioinen et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from . import _core
from ._suggest import did_you_mean
from ._tree import log_prior, quantities
from ._types import Floats
from ._warn import warn

if TYPE_CHECKING:
    import pandas as pd

    from .result import Result

THRESHOLD = 0.05
"""Sensitivities from here on are worth a look, as in priorsense."""


def sensitivity(
    result: Result,
    var_names: Sequence[str] | str | None,
    prior: Sequence[str] | str | None,
    alphas: tuple[float, float],
) -> pd.DataFrame:
    """How far distributions move when a component is raised to a power; see `gpssm.Result.sensitivity`."""
    import pandas as pd

    lower, upper = (float(alpha) for alpha in alphas)
    if not 0.0 < lower < 1.0 < upper:
        raise ValueError(f"alphas: expected one power below and one above 1, not {alphas}")
    posterior, stats = result._groups
    components = {
        "prior": _log_prior(result, prior),
        "likelihood": np.asarray(stats["log_likelihood_total"], dtype=np.float64).ravel(),
    }
    found = quantities(posterior, var_names)
    table = pd.DataFrame(index=[label for label, _ in found])
    largest = {}
    for name, log_density in components.items():
        moved, shapes = np.zeros(len(found)), []
        for alpha in (lower, upper):
            log_weights, k, trusted = _core.smooth_weights(np.ascontiguousarray((alpha - 1.0) * log_density))
            shapes.append((k, trusted))
            weights = np.exp(log_weights)
            for i, (_, draws) in enumerate(found):
                moved[i] += _distance(draws.ravel(), weights) / abs(np.log2(alpha)) / 2.0
        table[name] = moved
        largest[name] = max(k for k, _ in shapes)
        if any(k > trusted for k, trusted in shapes):
            _warn_of(name, largest[name])
    table["diagnosis"] = [_words(p, d) for p, d in zip(table["prior"], table["likelihood"], strict=True)]
    table.attrs["pareto_k"] = largest
    return table


def _log_prior(result: Result, names: Sequence[str] | str | None) -> Floats:
    """Log prior density of every draw: of all hyper-parameters, or of some."""
    densities = log_prior(result)
    wanted = (
        [str(name) for name in densities.data_vars]
        if names is None
        else [names]
        if isinstance(names, str)
        else list(names)
    )
    for name in wanted:
        if name not in densities:
            known = [str(one) for one in densities.data_vars]
            raise ValueError(f"prior: there is no {name!r}{did_you_mean(name, known) or f' among {known}'}")
    draws = ("chain", "draw")
    parts = [densities[name].sum([dim for dim in densities[name].dims if dim not in draws]) for name in wanted]
    total: Floats = np.sum([np.asarray(part, dtype=np.float64).ravel() for part in parts], axis=0)
    return total


def _distance(values: Floats, weights: Floats) -> float:
    """Cumulative Jensen-Shannon distance from draws to the same draws with weights, in [0, 1]; to either side."""
    order = np.argsort(values, kind="stable")
    widths = np.diff(values[order])
    p = (np.arange(1, len(values) + 1) / len(values))[:-1]
    q = np.minimum(np.cumsum(weights[order]), 1.0)[:-1]
    return float(np.sqrt(max(_divergence(p, q, widths), _divergence(1.0 - p, 1.0 - q, widths))))


def _divergence(p: Floats, q: Floats, widths: Floats) -> float:
    """Cumulative Jensen-Shannon divergence of distribution functions over its bound (Nguyen and Vreeken 2015)."""
    bound = float(widths @ (p + q))
    if bound <= 0.0:
        return 0.0
    middle = (p + q) / 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.where(one > 0.0, one * np.log2(one / middle), 0.0) for one in (p, q)]
    # The corrections for the different integrals of p and q cancel in the symmetric sum.
    return max(float(widths @ (terms[0] + terms[1])) / bound, 0.0)


def _words(prior: float, likelihood: float) -> str:
    if prior < THRESHOLD:
        return ""
    return "prior-data conflict" if likelihood >= THRESHOLD else "strong prior or weak data"


def _warn_of(component: str, k: float) -> None:

    warn(
        f"sensitivity to the {component}: the weights are unreliable (Pareto k {k:.2f}); give alphas nearer to 1 "
        "or more draws"
    )
