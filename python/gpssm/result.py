"""What a run gave: draws in ArviZ's schema, and everything that can be done with them."""

from __future__ import annotations

import html
import json
import tomllib
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from . import _core
from ._chains import Chain, Draws, Outcome
from ._choice import Choice
from ._data import Data, Layout
from ._settings import Sampler
from ._using import Using
from .model import Model

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Result", "open"]

COLUMNS = ("mean", "sd", "lower", "upper", "mcse_mean", "ess_bulk", "ess_tail", "r_hat")


class Result(Using):
    """Draws from p(x_{0:T}, theta | y), and what to do with them.

    Made by `gpssm.fit` and `gpssm.open`.

    Attributes
    ----------
    model : Model
    data : Data
    sampler : dict
        How the run was made, every default written out.
    save_warmup : bool
        Whether `posterior` shows the warm-up.
    path : pathlib.Path or None
        The store of the run, if it has one.
    loss : dict or None
        What `thin` lost.
    choice : dict or None
        What ``states="auto"`` tried and chose: ``trials``, ``chosen`` (an index), ``notes``.
    interrupted : bool
        Whether the run was stopped before its end; `resume` goes on.
    """

    def __init__(
        self,
        model: Model,
        data: Data,
        sampler: Sampler,
        chains: Sequence[Chain],
        *,
        basis: str | None = None,
        interrupted: bool = False,
    ) -> None:
        self.basis = basis
        self.loss: dict[str, Any] | None = None
        self.choice: Choice | None = None
        self.path: Path | None = None
        self.save_warmup = False
        self.model, self.data, self.sampler = model, data, sampler
        self.chains = sorted(chains, key=lambda chain: chain.chain)
        self.interrupted = interrupted

    @cached_property
    def _problem(self) -> _core.Problem:
        problem = self.model._problem(self.data, self.sampler)
        return problem if self.basis is None else problem.with_basis(self.basis)

    @cached_property
    def state_names(self) -> list[str]:
        """Names of the states."""
        return self._problem.state_names

    @cached_property
    def resolved(self) -> dict[str, Any]:
        """The model with every default written out, as the engine has it."""
        found: dict[str, Any] = json.loads(self._problem.model)
        return found

    def to_toml(self) -> str:
        """Give the run file that leaves nothing open, as the program would write it."""
        return self._problem.to_toml()

    @cached_property
    def parameter_names(self) -> list[str]:
        """Names of all hyper-parameters, fixed ones included."""
        return self._problem.parameter_names

    @cached_property
    def _complete(self) -> list[tuple[int, Draws]]:
        """Chains of equal length: of all choices the one with the most draws."""
        lengths = sorted((len(chain.draws) for chain in self.chains), reverse=True)
        if not lengths or lengths[0] == 0:
            return []
        best = max(range(len(lengths)), key=lambda k: (k + 1) * lengths[k])
        n = lengths[best]
        return [(c.chain, c.draws.head(n)) for c in self.chains if len(c.draws) >= n]

    @cached_property
    def posterior(self) -> xr.DataTree:
        """All draws as a DataTree in ArviZ's schema.

        Groups posterior (hyper-parameters by name, and states ``x`` with dimensions chain, draw, time, state),
        sample_stats, observed_data, constant_data, and warmup_posterior and warmup_sample_stats if warm-up was
        saved. Sequences follow each other along time, which holds times if no time comes twice and numbers of
        rows otherwise; the coordinates ``sequence`` and ``time_value`` of observed_data and constant_data tell
        the label and the time of every row. After an interrupt, chains are cut to a common length; `chains` has
        all draws of each.
        """
        groups: dict[str, xr.Dataset] = {}
        posterior, stats = self._groups(self._complete)
        groups["posterior"], groups["sample_stats"] = posterior, stats
        groups["observed_data"], groups["constant_data"] = self._observed(), self._constant()
        warmup = [(c.chain, c.warmup) for c in self.chains]
        n = min((len(draws) for _, draws in warmup), default=0)
        if n > 0 and self.save_warmup:
            cut = [(number, draws.head(n)) for number, draws in warmup]
            groups["warmup_posterior"], groups["warmup_sample_stats"] = self._groups(cut)
        tree = xr.DataTree.from_dict(groups)
        tree.attrs = {
            "inference_library": "gpssm",
            "inference_library_version": _core.VERSION,
            "seed": self.sampler["seed"],
            "tuning_steps": self.sampler["tune"],
            "configuration": self.to_toml(),
        }
        return tree

    def _time(self) -> dict[str, Any]:
        """Index of the rows: times where they tell rows apart, else numbers, as ArviZ needs a unique index."""
        time = np.concatenate(self.data.time)
        return {"time": time if len(np.unique(time)) == len(time) else np.arange(len(time), dtype=np.float64)}

    def _rows(self) -> dict[str, Any]:
        """Index, label and time of the rows; draws have the index alone, as ArviZ summarises no more than that."""
        labels = np.repeat(self.data.sequences, [len(t) for t in self.data.time])
        time = np.concatenate(self.data.time)
        return {**self._time(), "sequence": ("time", labels), "time_value": ("time", time)}

    def _groups(self, chains: list[tuple[int, Draws]]) -> tuple[xr.Dataset, xr.Dataset]:
        n = len(chains[0][1]) if chains else 0
        coords: dict[str, Any] = {"chain": [number for number, _ in chains], "draw": np.arange(n)}
        draws = [d for _, d in chains]
        variables: dict[str, Any] = {}
        dims = ("chain", "draw")
        for k, name in enumerate(self.parameter_names):
            if not self._problem.parameter_fixed[k]:
                variables[name] = (dims, np.stack([d.theta[:, k] for d in draws]) if draws else np.empty((0, 0)))
        n_rows, n_x = self.data.n_rows, len(self.state_names)
        paths = [np.concatenate(d.paths, axis=1) for d in draws]
        x = np.stack(paths) if paths else np.empty((0, 0, n_rows, n_x))
        variables["x"] = ((*dims, "time", "state"), x)
        posterior = xr.Dataset(variables, {**coords, **self._time(), "state": self.state_names})
        names = list(draws[0].statistics) if draws else []
        stats = {name: (dims, np.stack([d.statistics[name] for d in draws])) for name in names}
        if stats:
            stats["lp"] = stats["log_joint"]
        return posterior, xr.Dataset(stats, coords)

    def _observed(self) -> xr.Dataset:
        y = (("time", "output"), np.concatenate(self.data.y))
        return xr.Dataset({"y": y}, {**self._rows(), "output": self.data.outputs})

    def _constant(self) -> xr.Dataset:
        variables: dict[str, Any] = {}
        coords: dict[str, Any] = self._rows()
        if self.data.u is not None:
            variables["u"] = (("time", "input"), np.concatenate(self.data.u))
            coords["input"] = self.data.inputs
        if self._complete:
            theta = self._complete[0][1].theta[0]
            for k, name in enumerate(self.parameter_names):
                if self._problem.parameter_fixed[k]:
                    variables[name] = ((), theta[k])
        return xr.Dataset(variables, coords)

    def to_arviz(self) -> Any:
        """Give the draws as the installed ArviZ wants them: a DataTree (1.x) or InferenceData (0.x)."""
        import arviz as az

        if int(az.__version__.split(".")[0]) >= 1:
            return self.posterior
        groups = {name: group.to_dataset() for name, group in self.posterior.children.items()}
        return az.InferenceData(**groups, attrs=dict(self.posterior.attrs))

    def summary(self, var_names: Sequence[str] | str | None = None, *, level: float = 0.9) -> pd.DataFrame:
        """Estimates and diagnostics of every learned hyper-parameter, or of `var_names`.

        Parameters
        ----------
        var_names : str or list of str, optional
            Variables of the posterior; ``"x"`` for the states.
        level : float
            Probability of the equal-tailed interval; its columns are named after it.

        Returns
        -------
        pandas.DataFrame
            mean, sd, interval, Monte Carlo standard error of the mean, effective sample sizes (bulk and tail)
            and R-hat, as ArviZ computes them.
        """
        import pandas as pd

        if not 0.0 < level < 1.0:
            raise ValueError(f"level: must lie between 0 and 1, not {level}")
        posterior = self.posterior["posterior"].to_dataset()
        if var_names is None:
            var_names = [str(name) for name in posterior.data_vars if name != "x"]
        elif isinstance(var_names, str):
            var_names = [var_names]
        labels: list[str] = []
        quantities: list[Any] = []
        for name in var_names:
            if name not in posterior:
                known = ", ".join(map(str, posterior.data_vars))
                raise ValueError(f"var_names: there is no {name!r} among {known}")
            values = posterior[name]
            for index in np.ndindex(values.shape[2:]):
                parts = [
                    str(values[dim].values[i]) if dim != "time" else f"{i}"
                    for dim, i in zip(values.dims[2:], index, strict=True)
                ]
                labels.append(f"{name}[{', '.join(parts)}]" if parts else str(name))
                quantities.append(np.ascontiguousarray(values.values[(..., *index)], dtype=np.float64))
        table = _core.summarise(quantities, level)
        percent = f"{100 * level:g}"
        columns = [{"lower": f"eti{percent}_lb", "upper": f"eti{percent}_ub"}.get(c, c) for c in COLUMNS]
        return pd.DataFrame(table, index=labels, columns=columns)

    @cached_property
    def warnings(self) -> list[str]:
        """What a user should know about the run, in words; empty if nothing is wrong."""
        return _core.assess(self._problem, [c.draws._to_core() for c in self.chains])

    @property
    def n_draws(self) -> int:
        """Draws of all chains."""
        return sum(len(chain.draws) for chain in self.chains)

    def _headline(self) -> str:
        lengths = {len(chain.draws) for chain in self.chains}
        each = f"{lengths.pop()} draws each" if len(lengths) == 1 else f"{self.n_draws} draws in all"
        stopped = ", interrupted" if self.interrupted else ""
        return f"{len(self.chains)} chain{'s' * (len(self.chains) != 1)}, {each}{stopped}"

    def __repr__(self) -> str:
        lines = [f"<gpssm.Result: {self._headline()}>", repr(self.model), repr(self.data)]
        if self._complete:
            lines.append(self.summary().to_string(float_format=lambda value: f"{value:.3g}"))
        lines.extend(f"warning: {warning}" for warning in self.warnings)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [f"<h4>gpssm: {html.escape(self._headline())}</h4>"]
        parts.append(f"<p>{html.escape(repr(self.model))}<br>{html.escape(repr(self.data))}</p>")
        if self._complete:
            parts.append(self.summary().to_html(float_format=lambda value: f"{value:.3g}", border=0))
        if self.warnings:
            items = "".join(f"<li>{html.escape(warning)}</li>" for warning in self.warnings)
            parts.append(f"<p><b>Look at this:</b></p><ul>{items}</ul>")
        else:
            parts.append("<p>No warnings: chains agree, draws suffice.</p>")
        return "".join(parts)

    def resume(
        self,
        draws: int | None = None,
        *,
        threads: int | None = None,
        progress_bar: bool = True,
        executor: Executor | None = None,
    ) -> Result:
        """Go on with the chains until each has `draws` draws.

        The draws are those that a run without a stop would have given.

        Parameters
        ----------
        draws : int, optional
            Draws of each chain in all; by default as many as the run was to have, or as many again if it is
            complete.
        """
        from ._fit import go_on

        return go_on(self, draws, threads=threads, progress_bar=progress_bar, executor=executor)

    def save(self, path: str | Path) -> None:
        """Write the run to a new folder: a Zarr store that `gpssm.open`, the program and xarray read.

        Models with Python functions can be saved; to open them, `gpssm.open` needs the model again.
        """
        chains = [(c.chain, c.state, c.warmup._to_core(), c.draws._to_core()) for c in self.chains]
        if any(state is None for _, state, _, _ in chains):
            raise ValueError("save: a thinned result has no chains that could go on; save the whole result")
        _core.save_run(str(path), self._problem, json.dumps(self.sampler), chains)

    def report(self, path: str | Path | None = None, *, title: str = "gpssm") -> str:
        """Write a report with figures: one HTML page that opens anywhere.

        Parameters
        ----------
        path : path, optional
            Where it is written; without it the page is only returned.

        Returns
        -------
        str
            The page.
        """
        facts = [("Run", self._headline()), ("Seed", str(self.sampler["seed"])), ("Version", _core.VERSION)]
        chains = [c.draws._to_core() for c in self.chains]
        page = _core.report(self._problem, chains, title, facts)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def _with_chains(self, outcome: Outcome, sampler: Sampler) -> Result:
        mine = {chain.chain: chain for chain in self.chains}
        for chain in outcome.chains:
            before = mine.get(chain.chain)
            mine[chain.chain] = chain if before is None else before.followed_by(chain)
        chains = list(mine.values())
        basis, interrupted = outcome.basis, outcome.interrupted
        return Result(self.model, self.data, sampler, chains, basis=basis, interrupted=interrupted)

    def __getstate__(self) -> dict[str, Any]:
        kept = (
            "model",
            "data",
            "sampler",
            "chains",
            "basis",
            "interrupted",
            "loss",
            "path",
            "save_warmup",
            "choice",
        )
        return {name: self.__dict__[name] for name in kept}


def open(path: str | Path, model: Model | None = None) -> Result:
    """Read a run from its store, also one of the program's or one that was killed.

    Parameters
    ----------
    path : path
        The folder.
    model : Model, optional
        Needed for models with Python functions, which no file can hold.

    Examples
    --------
    >>> import tempfile, numpy as np, gpssm
    >>> result = gpssm.fit(np.sin(0.4 * np.arange(12)), draws=4, tune=2, chains=1, progress_bar=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result.save(folder + "/run.zarr")
    ...     again = gpssm.open(folder + "/run.zarr")
    >>> bool((again.posterior["posterior"]["x"] == result.posterior["posterior"]["x"]).all())
    True
    """
    found = _core.open_run(str(path))
    outputs, inputs, sequences, time = found["labels"]
    data = Data(
        list(found["y"]),
        list(found["u"]) if inputs else None,
        [np.asarray(t) for t in time],
        outputs,
        inputs,
        sequences,
        Layout.of(tomllib.loads(found["configuration"]).get("data", {})),
    )
    stored = Model.from_toml(found["configuration"])
    chains = [Chain._from_core({**chain, "start_log_marginal_likelihood": None}) for chain in found["chains"]]
    model = stored if model is None else model
    full = json.loads(model._problem(data, stored.sampler).settings)
    complete = all(len(chain.draws) >= full["draws"] for chain in chains)
    result = Result(model, data, full, chains, basis=found["basis"], interrupted=not complete)
    result.path = Path(path)
    result.save_warmup = True
    return result
