"""Scores on new records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._arguments import checked
from ._data import DataLike
from ._fitted import Fitted, warn
from ._settings import whole

if TYPE_CHECKING:
    import pandas as pd


class Scores(Fitted):
    """Methods of `gpssm.Result` that score."""

    @checked
    def score(
        self,
        y: DataLike,
        u: DataLike | None = None,
        *,
        n_init: int | None = None,
        after_training: bool = False,
        horizon: int | None = None,
        paths: int = 1000,
        levels: Sequence[float] = (0.5, 0.9, 0.95),
        seed: int = 1,
        max_draws: int | None = 200,
        raw: bool = False,
    ) -> pd.DataFrame:
        """Score a free run, or predictions `horizon` steps ahead, on a record, beside simple baselines.

        Every row of a free run is scored, with calibrated prediction intervals where the model has a calibration.

        Parameters
        ----------
        y, u
            The record, as for `gpssm.fit`.
        n_init : int, optional
            Number of rows at the beginning that set the state and are not scored; by default the longest lag of
            the model, at least 5. With 0 a free run starts from p(x_0).
        after_training : bool
            Whether the record continues the training record, so that the initial state is known.
        horizon : int, optional
            Number of steps ahead; a free run by default.
        paths : int
            Number of simulated paths.
        levels : list of float
            Probabilities of the central intervals whose coverage is measured.
        seed : int
            Seed of the simulation.
        max_draws : int, optional
            Number of draws that are used, spread evenly over all of them; None for all.
        raw : bool
            Whether calibration is left out.

        Returns
        -------
        pandas.DataFrame
            For each model and output rmse, nrmse = rmse / sd(y), fit = 100 (1 - nrmse) %, r2, mae, crps, coverage
            of central intervals, and log_score (mean log density of a row; of whole numbers the log mass, of
            baselines, too).

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(30))
        >>> result = gpssm.fit(y, draws=10, tune=10, chains=1, progress_bar=False, states=1)
        >>> list(result.score(y, n_init=5, paths=20).columns[:3])
        ['rmse', 'nrmse', 'fit']
        """
        import pandas as pd

        self._check_sensor()
        if after_training and n_init is not None:
            raise ValueError("n_init: not with after_training, which knows the initial state")
        data = self._measured(y, u)
        options = {
            "task": "simulation" if horizon is None else {"ahead": int(horizon)},
            "n_init": None if n_init is None else whole("n_init", n_init, 0),
            "after_training": len(self.data.y) - 1 if after_training else None,
            "n_paths": int(paths),
            "levels": list(levels),
            "filter": {"seed": int(seed)},
            "raw": bool(raw),
        }
        inputs = None if data.u is None else data.u[0]
        text, found = self._some_draws(max_draws).score(data.y[0], inputs, json.dumps(options))
        warn(found)
        rows, index = [], []
        for scores in json.loads(text)["scores"]:
            for name, output in zip(self.data.outputs, scores["outputs"], strict=True):
                index.append((scores["name"], name))
                row = {key: output[key] for key in ("rmse", "nrmse", "fit", "r2", "mae", "crps")}
                row |= {f"coverage_{100 * c['level']:g}": c["share"] for c in output["coverage"]}
                rows.append(row | {"log_score": scores["log_score"], "n": output["n"]})
        return pd.DataFrame(rows, index=pd.MultiIndex.from_tuples(index, names=["model", "output"]))
