"""States of new records: online, and given all rows."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from ._arguments import checked
from ._data import DataLike
from ._fitted import QUANTILES, Fitted, InitialState, filter_options, warn
from ._settings import Proposal


class Filters(Fitted):
    """Methods of `gpssm.Result` that estimate states of new records."""

    @checked
    def filter(
        self,
        y: DataLike,
        u: DataLike | None = None,
        *,
        initial: InitialState = "model",
        functions: int = 50,
        particles: int = 50,
        waves: int = 256,
        forgetting: float = 1.0,
        proposal: Proposal = "auto",
        seed: int = 1,
    ) -> xr.Dataset:
        """Filter a record online: row t is x_t given y_{0:t}, and row 0 is the first row of the record.

        Parameters
        ----------
        y, u
            The record, as for `gpssm.fit`.
        initial : "model", "last", ("last", sequence) or array_like (n_x,)
            Where the filter starts, as for `simulate`.
        functions : int
            Number of functions drawn from the posterior.
        particles : int
            Number of particles of each function.
        waves : int
            Random Fourier features of the prior draw behind each function of an exact Gaussian process.
        forgetting : float
            Forgetting factor of the functions' weights, in (0, 1], for very long records.
        proposal : "auto", "bootstrap", "adapted" or "shortlist"
            How states are proposed.
        seed : int
            Seed of the filter.

        Returns
        -------
        xarray.Dataset
            ``mean``, ``sd`` (time, state) and ``log_marginal_likelihood`` (time), log p(y_t | y_{0:t-1}): low
            values mark rows that the model did not expect.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(30))
        >>> result = gpssm.fit(y, draws=10, tune=10, chains=1, progress_bar=False, states=1)
        >>> result.filter(y, functions=10)["mean"].sizes
        Frozen({'time': 30, 'state': 1})
        """
        data, outputs, inputs = self._record(y, u)
        options = filter_options(functions, particles, waves, forgetting, proposal, seed)
        found = self._posterior.filter(outputs, inputs, self._initial(initial), options)
        warn(found["warnings"])
        return xr.Dataset(
            {
                "mean": (("time", "state"), found["mean"]),
                "sd": (("time", "state"), found["sd"]),
                "log_marginal_likelihood": ("time", found["log_marginal_likelihood"]),
            },
            {"time": data.times(), "state": self.state_names},
        )

    @checked
    def smooth(
        self,
        y: DataLike,
        u: DataLike | None = None,
        *,
        paths: int = 500,
        quantiles: Sequence[float] = QUANTILES,
        functions: int = 50,
        particles: int = 50,
        waves: int = 256,
        forgetting: float = 1.0,
        proposal: Proposal = "auto",
        seed: int = 1,
    ) -> xr.Dataset:
        """Draw states of a new record given all its outputs; row 0 is the first row of the record.

        Parameters
        ----------
        y, u
            The record, as for `gpssm.fit`.
        paths : int
            Number of paths.
        quantiles : list of float
            Probabilities of the quantiles.
        functions, particles, waves, forgetting, proposal, seed
            The filter, see `filter`.

        Returns
        -------
        xarray.Dataset
            ``x`` (path, time, state) with ``x_mean``, ``x_sd``, ``x_quantile``; log p(y) in the attributes.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(30))
        >>> result = gpssm.fit(y, draws=10, tune=10, chains=1, progress_bar=False, states=1)
        >>> result.smooth(y, paths=20, functions=10)["x"].sizes
        Frozen({'path': 20, 'time': 30, 'state': 1})
        """
        data, outputs, inputs = self._record(y, u)
        options = filter_options(functions, particles, waves, forgetting, proposal, seed)
        found = self._posterior.smooth(outputs, inputs, int(paths), options)
        warn(found["warnings"])
        intervals = self._intervals({"x": found["x"]}, data.times(), quantiles)
        return intervals.assign_attrs(log_marginal_likelihood=found["log_marginal_likelihood"])
