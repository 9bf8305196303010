"""Smaller models: fewer draws, or one sparse Gaussian process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

import numpy as np

from . import export
from ._arguments import checked
from ._chains import Chain, Draws
from ._fitted import Fitted
from .distilled import Distilled

if TYPE_CHECKING:
    from .result import Result


class ThinLoss(TypedDict):
    """Errors of a thinned mixture against that of all draws."""

    mean_error: float
    sd_error: float
    divergence: float


class Smaller(Fitted):
    """Methods of `gpssm.Result` that make smaller models."""

    @checked
    def thin(self, keep: int, *, method: Literal["herding", "random"] = "herding", seed: int = 1) -> Result:
        """Keep a few draws that say nearly the same as all (kernel herding, Chen, Welling, Smola 2010).

        Parameters
        ----------
        keep : int
            Number of draws to keep.
        method : "herding" or "random"
            How they are chosen.
        seed : int
            Seed of the choice.

        Returns
        -------
        Result
            With one chain of `keep` draws, and what is lost in its attribute ``loss``.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(30))
        >>> result = gpssm.fit(y, draws=10, tune=10, chains=1, progress_bar=False, states=1)
        >>> few = result.thin(5)
        >>> few.n_draws, sorted(few.loss)
        (5, ['divergence', 'mean_error', 'sd_error'])
        """
        from .result import Result

        loss = json.loads(self._posterior.thin(int(keep), method, int(seed)))
        parts = [chain.draws for chain in self.chains if len(chain.draws)]
        everything = parts[0]
        for part in parts[1:]:
            everything = everything.followed_by(part)
        kept = np.asarray(loss.pop("kept"))
        draws = Draws(
            everything.theta[kept],
            [path[kept] for path in everything.paths],
            {name: values[kept] for name, values in everything.statistics.items()},
        )
        chain = Chain(0, None, None, draws, draws.head(0))
        sampler = self.sampler.copy()
        sampler |= {"chains": 1, "draws": int(keep)}
        result = Result(self.model, self.data, sampler, [chain], basis=self.basis)
        result.loss = loss
        return result

    @checked
    def distil(
        self,
        size: int | None = None,
        *,
        tolerance: float = 0.02,
        max_size: int = 50,
        max_loss: float | None = 3.0,
        scenarios: int = 0,
        seed: int = 1,
    ) -> Distilled:
        """Put one sparse Gaussian process in place of the mixture: a model that is evaluated in microseconds.

        Draws whose hidden states differ in sign, scale or rotation are brought to the same coordinates first;
        draws of other solutions are left out. The model is compared with the full posterior on the training
        record, in a free run and one step ahead; what was lost is in its attribute ``loss``.

        Parameters
        ----------
        size : int, optional
            Number of inducing inputs; by default as few as keep the error of the mean below `tolerance`.
        tolerance : float
            Wanted error of the mean, relative to the standard deviation of f.
        max_size : int
            Largest size that is tried.
        max_loss : float, optional
            Percentage points of fit that may be lost on the training record; a model that loses more is refused.
            None to take every model.
        scenarios : int
            Number of posterior functions to add, their draws chosen by kernel herding; `gpssm.export` writes them.
        seed : int
            Seed of these functions.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(30))
        >>> result = gpssm.fit(y, draws=10, tune=10, chains=1, progress_bar=False, states=1)
        >>> result.distil(8, max_loss=None)
        <gpssm.Distilled: 1 states, 0 inputs, inducing inputs [8]>
        """
        rows = {"sampling_time": self._sampling_time(), "time_unit": "s" if self.data.index is not None else None}
        options = {
            "size": size,
            "tolerance": tolerance,
            "max_size": max_size,
            "max_loss": max_loss,
            "rows": rows,
        }
        found = self._posterior.distil(json.dumps(options))
        if scenarios:
            found = self._posterior.with_scenarios(found, int(scenarios), int(seed))
        return Distilled(found)

    @checked
    def export(
        self,
        out: str | Path,
        *,
        to: Literal["c", "onnx", "fmu"] = "c",
        name: str = "model",
        precision: Literal["double", "float"] = "double",
        filter: Literal["auto", "extended", "particles"] = "auto",
        particles: int = 200,
        scenarios: int = 0,
        size: int | None = None,
        tolerance: float = 0.02,
        max_loss: float | None = 3.0,
        seed: int = 1,
        overwrite: bool = False,
    ) -> list[Path]:
        """Distil the model and write it as C sources, as an ONNX model or as a unit of FMI.

        See `distil` for `size`, `tolerance`, `max_loss`, `scenarios` and `seed`; `gpssm.export.c`,
        `gpssm.export.onnx` and `gpssm.export.fmu` for the rest. `precision`, `filter` and `particles` are for C.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(20))
        >>> result = gpssm.fit(y, states=1, draws=10, tune=5, chains=1, progress_bar=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = result.export(folder, size=6, max_loss=None, scenarios=3)
        >>> files[0].name
        'model.h'
        """
        if to not in ("c", "onnx", "fmu"):
            raise ValueError(f"to={to!r}: there are 'c', 'onnx' and 'fmu'")
        small = self.distil(size, tolerance=tolerance, max_loss=max_loss, scenarios=scenarios, seed=seed)
        if to == "onnx":
            return export.onnx(small, out, name=name, overwrite=overwrite)
        if to == "fmu":
            return export.fmu(small, out, name=name, overwrite=overwrite)
        return export.c(
            small,
            out,
            name=name,
            precision=precision,
            filter=filter,
            particles=particles,
            overwrite=overwrite,
        )

    def _sampling_time(self) -> float | None:
        """The time from one row of the model to the next; none where times are row numbers."""
        data = self.data
        index = data.index
        for s, numbers in enumerate(data.time):
            time = numbers if index is None else index[s].seconds_since(index[0].values[0])
            if len(time) < 2 or (index is None and np.array_equal(time, np.arange(len(time)))):
                continue
            return float((time[-1] - time[0]) / (len(time) - 1))
        return None
