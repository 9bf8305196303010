"""Results: draws in ArviZ's schema, and everything that can be done with them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from . import _core
from ._arguments import checked
from ._chains import Chain, Draws, Ended, Outcome
from ._choice import Choice, from_keys
from ._data import Data, default_names
from ._filters import Filters
from ._forecasts import Forecasts
from ._index import DatesTable, from_seconds
from ._layout import DataKeys, Layout
from ._linear import Linear
from ._scores import Scores
from ._settings import Sampler, whole
from ._smaller import Smaller, ThinLoss
from ._tree import common_length, draws_groups, draws_tree, quantities
from ._types import Floats, Table
from .model import Model

if TYPE_CHECKING:
    import arviz as az
    import pandas as pd

__all__ = ["Result", "open"]

COLUMNS = ("mean", "sd", "lower", "upper", "mcse_mean", "ess_bulk", "ess_tail", "r_hat")


class Result(Forecasts, Filters, Scores, Linear, Smaller):
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
        What ``states="auto"`` tried and chose: ``trials``, ``chosen`` (an index), ``calibration``, ``notes``.
    ended : str
        ``"complete"``, or ``"interrupted"`` or ``"budget"`` for a run that was stopped; `resume` continues it.

    Examples
    --------
    >>> import numpy as np, gpssm
    >>> y = np.sin(0.4 * np.arange(20))
    >>> result = gpssm.fit(y, draws=10, tune=5, chains=2, progress_bar=False, states=1)
    >>> result.n_draws, result.state_names, result.parameter_names[0]
    (20, ['x'], 'se_sigma_f[x]')
    """

    def __init__(
        self,
        model: Model,
        data: Data,
        sampler: Sampler,
        chains: Sequence[Chain],
        *,
        basis: str | None = None,
        ended: Ended = "complete",
    ) -> None:
        self.basis = basis
        self.loss: ThinLoss | None = None
        self.choice: Choice | None = None
        self.path: Path | None = None
        self.save_warmup = False
        self.model, self.data, self.sampler = model, data, sampler
        self.chains = sorted(chains, key=lambda chain: chain.chain)
        self.ended: Ended = ended

    @cached_property
    def _problem(self) -> _core.Problem:
        problem = self.model._problem(self.data, self.sampler)
        return problem if self.basis is None else problem.with_basis(self.basis)

    @cached_property
    def state_names(self) -> list[str]:
        """Names of the states."""
        return self._problem.state_names

    @cached_property
    def resolved(self) -> Table:
        """The model with every default written out, as the engine has it."""
        found: Table = json.loads(self._problem.model)
        return found

    def to_toml(self) -> str:
        """Give the run file with every default written out, as the program would write it.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(20))
        >>> result = gpssm.fit(y, draws=10, tune=5, chains=2, progress_bar=False, states=1)
        >>> print(result.to_toml().splitlines()[0])
        [data]
        """
        return self._problem.to_toml()

    @cached_property
    def parameter_names(self) -> list[str]:
        """Names of all hyper-parameters, fixed ones included."""
        return self._problem.parameter_names

    @cached_property
    def _complete(self) -> list[tuple[int, Draws]]:
        """Chains of equal length: of all choices the one with the most draws."""
        return common_length([(chain.chain, chain.draws) for chain in self.chains])

    @cached_property
    def _groups(self) -> tuple[xr.Dataset, xr.Dataset]:
        """Draws, and what happened in each sweep."""
        return draws_groups(self, self._complete)

    @cached_property
    def posterior(self) -> xr.DataTree:
        """All draws as a DataTree in ArviZ's schema.

        Groups posterior (hyper-parameters such as ``process_sd`` (chain, draw, state) and ``se_ell`` (chain,
        draw, state, component), and states ``x`` (chain, draw, time, state)), sample_stats
        (``log_likelihood_total`` is log p(y | x, theta)), log_likelihood (log p(y_{t,k} | x_t, theta) of every
        observation; it sums to the total), log_prior (of every hyper-parameter), observed_data, constant_data,
        and warmup_posterior and
        warmup_sample_stats if warm-up was saved. ``az.loo`` and ``az.compare`` use log_likelihood; states were
        drawn given the observation that is left out, so leave-future-out (``method="lfo"`` of `gpssm.compare`)
        and scores of predictions (`score`) are the better guide. `groups` adds the predictive groups.

        Sequences follow each other along time,
        which holds times if no time comes twice and numbers of rows otherwise; the coordinates ``sequence`` and
        ``time_value`` of observed_data and constant_data tell the label and the time of every row. After an
        interrupt, chains are cut to a common length; `chains` has all draws of each.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(20))
        >>> result = gpssm.fit(y, draws=10, tune=5, chains=2, progress_bar=False, states=1)
        >>> result.posterior["posterior"]["x"].sizes
        Frozen({'chain': 2, 'draw': 10, 'time': 20, 'state': 1})
        """
        return draws_tree(self)

    @checked
    def to_arviz(self, tree: xr.DataTree | None = None) -> xr.DataTree | az.InferenceData:
        """Give the draws as the installed ArviZ wants them: a DataTree (1.x) or InferenceData (0.x).

        Parameters
        ----------
        tree : xarray.DataTree, optional
            What is given instead of `posterior`, such as `posterior_predictive`.

        Examples
        --------
        >>> import arviz as az, numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(20))
        >>> result = gpssm.fit(y, draws=10, tune=5, chains=2, progress_bar=False, states=1)
        >>> table = az.summary(result.to_arviz(), var_names=["process_sd"])
        """
        import arviz as az

        if int(az.__version__.split(".")[0]) >= 1:
            return self.posterior if tree is None else tree
        tree = self.posterior if tree is None else tree
        groups = {name: group.to_dataset() for name, group in tree.children.items()}
        return az.InferenceData(**groups, attrs=dict(tree.attrs))

    @checked
    def posterior_predictive(self, *, seed: int = 1) -> xr.DataTree:
        """Draw the training record again: y_t from p(y | x_t, theta) of every draw, with the draws beside it.

        Row 0 is the first row of the training record. States are those of the draws, so this checks the sensor; a
        free run (`simulate`) checks the dynamics.

        Parameters
        ----------
        seed : int
            Seed of the outputs.

        Returns
        -------
        xarray.DataTree
            `posterior` with the group posterior_predictive: ``y`` (chain, draw, time, output). As ``az.plot_ppc``
            of ArviZ 1.x takes it; for 0.x give it to `to_arviz`.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(20))
        >>> result = gpssm.fit(y, draws=10, tune=5, chains=2, progress_bar=False, states=1)
        >>> result.posterior_predictive()["posterior_predictive"]["y"].sizes
        Frozen({'chain': 2, 'draw': 10, 'time': 20, 'output': 1})
        """
        from ._checks import replicates

        self._check_sensor()
        tree = self.posterior.copy()
        tree["posterior_predictive"] = xr.DataTree(replicates(self, seed))
        return tree

    @checked
    def groups(
        self,
        *,
        prior: int = 500,
        predictions: xr.Dataset | None = None,
        missing: bool = False,
        output: str | None = None,
        seed: int = 1,
    ) -> xr.DataTree:
        """Give all groups of ArviZ's schema in one tree, for its figures and comparisons.

        Parameters
        ----------
        prior : int
            Draws from the prior, for the groups prior and prior_predictive; 0 leaves them out.
        predictions : xarray.Dataset, optional
            What `forecast` gave, for the groups predictions and predictions_constant_data.
        missing : bool
            Whether rows without any observed output stay in observed_data, constant_data and the predictive
            groups; figures of ArviZ cannot draw them.
        output : str, optional
            Name of one output: y has no dimension ``output`` then, nor u of a single input the dimension
            ``input``, as ``az.plot_ts`` and ``az.plot_lm`` want them.
        seed : int
            Seed of the simulations.

        Returns
        -------
        xarray.DataTree
            `posterior` with posterior_predictive, prior, prior_predictive and predictions. For ArviZ 0.x give it
            to `to_arviz`.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(20))
        >>> result = gpssm.fit(y, draws=10, tune=5, chains=2, progress_bar=False, states=1)
        >>> tree = result.groups(prior=20, predictions=result.forecast(5, paths=30))
        >>> tree["predictions"]["y"].sizes
        Frozen({'chain': 1, 'draw': 30, 'time': 5, 'output': 1})
        """
        from ._checks import all_groups, of_one_output

        self._check_sensor()
        tree = all_groups(self, whole("prior", prior, 0), predictions, missing, whole("seed", seed, 0))
        return tree if output is None else of_one_output(tree, output)

    @checked
    def sensitivity(
        self,
        var_names: Sequence[str] | str | None = None,
        *,
        prior: Sequence[str] | str | None = None,
        alphas: tuple[float, float] = (0.99, 1.01),
    ) -> pd.DataFrame:
        """How much the posterior depends on the priors and on the data: power-scaling sensitivity.

        Prior or likelihood p(y | x, theta) is raised to powers near 1, by weighting the draws, and the change of
        each distribution is measured by the cumulative Jensen-Shannon distance per doubling of the power.

        Parameters
        ----------
        var_names : str or list of str, optional
            Variables of the posterior; all hyper-parameters by default.
        prior : str or list of str, optional
            The hyper-parameters whose priors are raised; all by default.
        alphas : (float, float)
            A power below and one above 1.

        Returns
        -------
        pandas.DataFrame
            ``prior``, ``likelihood`` and a ``diagnosis`` for each quantity: from 0.05 on, a distribution that
            moves with prior and likelihood shows a conflict of prior and data, one that moves with the prior
            alone a strong prior or weak data. Pareto k of the weights is in ``attrs``.

        References
        ----------
        Kallioinen, Paananen, Bürkner and Vehtari (2023), Detecting and diagnosing prior and likelihood sensitivity
        with power-scaling. The same numbers as ``az.psense`` of ArviZ 1.x.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(20))
        >>> result = gpssm.fit(y, draws=100, tune=50, chains=2, progress_bar=False, states=1)
        >>> list(result.sensitivity().columns)
        ['prior', 'likelihood', 'diagnosis']
        """
        from ._sensitivity import sensitivity

        return sensitivity(self, var_names, prior, alphas)

    @checked
    def summary(self, var_names: Sequence[str] | str | None = None, *, level: float = 0.9) -> pd.DataFrame:
        """Estimates and diagnostics of every unknown hyper-parameter, or of `var_names`.

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

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(20))
        >>> result = gpssm.fit(y, draws=10, tune=5, chains=2, progress_bar=False, states=1)
        >>> list(result.summary(level=0.8).columns[:4])
        ['mean', 'sd', 'eti80_lb', 'eti80_ub']
        """
        import pandas as pd

        if not 0.0 < level < 1.0:
            raise ValueError(f"level: must lie between 0 and 1, not {level}")
        found = quantities(self._groups[0], var_names)
        table = _core.summarise([draws for _, draws in found], level)
        percent = f"{100 * level:g}"
        columns = [{"lower": f"eti{percent}_lb", "upper": f"eti{percent}_ub"}.get(c, c) for c in COLUMNS]
        return pd.DataFrame(table, index=[label for label, _ in found], columns=columns)

    @cached_property
    def _assessment(self) -> tuple[bool, list[tuple[str, float, float, float]], list[str], list[str]]:
        fixed = self.sampler.get("draws") is not None
        more = f"ess={self.sampler['ess']}" if fixed else 'budget="10m"'
        chains = [c.draws._to_core() for c in self.chains]
        return _core.assess(self._problem, json.dumps(self.sampler), chains, f"result.resume({more})")

    @property
    def converged(self) -> bool:
        """Whether every identified quantity has R-hat at most 1.01 and effective sample sizes of at least ``ess``.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(20))
        >>> gpssm.fit(y, draws=10, tune=5, chains=2, progress_bar=False, states=1).converged
        False
        """
        return self._assessment[0]

    @property
    def convergence(self) -> pd.DataFrame:
        """R-hat and effective sample sizes of all that `converged` looks at.

        Hyper-parameters, states at some twenty rows, and the mean of f given each draw at points that the data
        visit. What the data do not determine (sign, scale and rotation of hidden states) is left out and listed
        in ``result.convergence.attrs["not_identified"]``; f along the sampled paths and the means of the outputs
        take its place.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(20))
        >>> result = gpssm.fit(y, draws=10, tune=5, chains=2, progress_bar=False, states=1)
        >>> list(result.convergence.columns)
        ['r_hat', 'ess_bulk', 'ess_tail']
        """
        import pandas as pd

        _, judged, excluded, _ = self._assessment
        rows = [list(numbers) for _, *numbers in judged]
        table = pd.DataFrame(rows, index=[name for name, *_ in judged], columns=["r_hat", "ess_bulk", "ess_tail"])
        table.attrs["not_identified"] = excluded
        return table

    @cached_property
    def warnings(self) -> list[str]:
        """Warnings about convergence and the model; empty if nothing is wrong.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(20))
        >>> result = gpssm.fit(y, draws=10, tune=5, chains=2, progress_bar=False, states=1)
        >>> len(result.warnings) > 0  # the run is far too short
        True
        """
        return self._assessment[3]

    @property
    def n_draws(self) -> int:
        """Number of draws of all chains."""
        return sum(len(chain.draws) for chain in self.chains)

    def _headline(self) -> str:
        lengths = {len(chain.draws) for chain in self.chains}
        each = f"{lengths.pop()} draws each" if len(lengths) == 1 else f"{self.n_draws} draws in all"
        stopped = {"complete": "", "interrupted": ", interrupted", "budget": ", budget ended"}[self.ended]
        return f"{len(self.chains)} chain{'s' * (len(self.chains) != 1)}, {each}{stopped}"

    def __repr__(self) -> str:
        lines = [f"<gpssm.Result: {self._headline()}>", repr(self.model), repr(self.data)]
        if self._complete:
            lines.append(self.summary().to_string(float_format=lambda value: f"{value:.3g}"))
        lines.extend(f"warning: {warning}" for warning in self.warnings)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from ._html import page

        return page(self)

    @checked
    def resume(
        self,
        draws: int | None = None,
        *,
        ess: int | None = None,
        budget: str | float | None = None,
        threads: int | None = None,
        progress_bar: bool = True,
        executor: Executor | None = None,
    ) -> Result:
        """Continue the chains: until they have converged, or until each has `draws` draws.

        The draws are those that a run without a stop would have given.

        Parameters
        ----------
        draws : int, optional
            Draws of each chain in all; by default as many as the run was to have, or as many again if it is
            complete.
        ess : int, optional
            Effective sample size of all that is identified, in place of a fixed number of draws.
        budget : str or float, optional
            Time limit from here on, see `gpssm.fit`.
        threads, progress_bar, executor
            See `gpssm.fit`.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(20))
        >>> result = gpssm.fit(y, draws=10, tune=5, chains=2, progress_bar=False, states=1)
        >>> result.resume(15, progress_bar=False).n_draws
        30
        """
        from ._fit import go_on

        return go_on(
            self, draws, ess=ess, budget=budget, threads=threads, progress_bar=progress_bar, executor=executor
        )

    @checked
    def save(self, out: str | Path) -> None:
        """Write the run to a new folder: a Zarr store that `gpssm.open`, the program and xarray read.

        Models with Python functions can be saved; to open them, `gpssm.open` needs the model again.

        Parameters
        ----------
        out : path
            The folder.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(20))
        >>> result = gpssm.fit(y, draws=10, tune=5, chains=2, progress_bar=False, states=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result.save(folder + "/run.zarr")
        ...     gpssm.open(folder + "/run.zarr").n_draws
        20
        """
        chains = [(c.chain, c.state, c.warmup._to_core(), c.draws._to_core()) for c in self.chains]
        if any(state is None for _, state, _, _ in chains):
            raise ValueError("save: a thinned result has no chains to resume; save the whole result")
        _core.save_run(str(out), self._problem, json.dumps(self.sampler), chains)

    @checked
    def report(self, out: str | Path | None = None, *, title: str = "gpssm") -> str:
        """Write a report with figures: one HTML page that opens anywhere.

        Parameters
        ----------
        out : path, optional
            Where it is written; without it the page is only returned.
        title : str
            Title of the page.

        Returns
        -------
        str
            The page.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(20))
        >>> result = gpssm.fit(y, draws=10, tune=5, chains=2, progress_bar=False, states=1)
        >>> page = result.report(title="Sine")
        >>> "<title>Sine</title>" in page
        True
        """
        facts = [("Run", self._headline()), ("Seed", str(self.sampler["seed"])), ("Version", _core.VERSION)]
        chains = [c.draws._to_core() for c in self.chains]
        page = _core.report(self._problem, chains, json.dumps(self.sampler), title, facts)
        if out is not None:
            Path(out).write_text(page, encoding="utf-8")
        return page

    def _with_chains(self, outcome: Outcome, sampler: Sampler) -> Result:
        """The same run with more draws."""
        mine = {chain.chain: chain for chain in self.chains}
        for chain in outcome.chains:
            before = mine.get(chain.chain)
            mine[chain.chain] = chain if before is None else before.followed_by(chain)
        chains = list(mine.values())
        longer = Result(self.model, self.data, sampler, chains, basis=outcome.basis, ended=outcome.ended)
        longer.choice, longer.save_warmup = self.choice, self.save_warmup
        return longer

    def __getstate__(self) -> dict[str, object]:
        """Everything but what is computed from the rest, when it is asked for."""
        computed = {name for kind in type(self).__mro__ for name, value in vars(kind).items() if _is_cached(value)}
        return {name: value for name, value in vars(self).items() if name not in computed}


def _is_cached(attribute: object) -> bool:
    """Whether an attribute of a class is a cached property."""
    return isinstance(attribute, cached_property)


@checked
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
    >>> result = gpssm.fit(np.sin(0.4 * np.arange(12)), draws=4, tune=2, chains=1, progress_bar=False, states=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result.save(folder + "/run.zarr")
    ...     again = gpssm.open(folder + "/run.zarr")
    >>> bool((again.posterior["posterior"]["x"] == result.posterior["posterior"]["x"]).all())
    True
    """
    found = _core.open_run(str(path))
    keys: DataKeys = tomllib.loads(found["configuration"]).get("data", {})
    outputs, inputs, sequences, time, text = found["labels"]
    layout = Layout.of(keys, keys.get("u", ()))
    dates: DatesTable | None = None if text is None else json.loads(text)
    index = None if dates is None else [from_seconds(np.asarray(t), dates) for t in time]
    measured = None
    if found["measured"] is not None:
        measured = _measured(found["measured"], keys, outputs, sequences, dates)
        if measured.index is not None:
            # Of every k-th row of the record, the frequency is not that of the record.
            index = [times.part(slice(None, None, layout.every)) for times in measured.index]
    data = Data(
        list(found["y"]),
        list(found["u"]) if inputs else None,
        [np.asarray(t) for t in time] if index is None else [times.seconds for times in index],
        outputs,
        inputs,
        sequences,
        layout,
        measured,
        index,
        named=(outputs != default_names("y", len(outputs)), inputs != default_names("u", len(inputs))),
    )
    stored = Model.from_toml(found["configuration"])
    chains = [Chain._from_core({**chain, "start_log_marginal_likelihood": None}) for chain in found["chains"]]
    model = stored if model is None else model._settled({}, stored.calibration, stored._choice)
    full = json.loads(model._problem(data, stored.sampler).settings)
    ended: Ended = (
        "complete" if _is_complete([len(chain.draws) for chain in chains], full.get("draws")) else "interrupted"
    )
    result = Result(model, data, full, chains, basis=found["basis"], ended=ended)
    result.path = Path(path)
    result.save_warmup = True
    result.choice = from_keys(stored._choice, stored.calibration)
    return result


def _is_complete(lengths: list[int], draws: int | None) -> bool:
    """Whether no chain is shorter than it was to be; a run that goes on until it is good ends at a look."""
    if draws is not None:
        return all(length >= draws for length in lengths)
    look = _core.next_look(0)
    while look < max(lengths, default=0):
        look = _core.next_look(look)
    return all(length == look for length in lengths)


def _measured(
    found: tuple[list[Floats], list[Floats]],
    keys: DataKeys,
    outputs: list[str],
    sequences: list[str],
    dates: DatesTable | None,
) -> Data:
    """A record as it was measured: its dates where they are known, else rows numbered."""
    y, u = found
    index = None
    if dates is not None and "measured" in dates:
        index = [from_seconds(np.asarray(seconds), dates) for seconds in dates["measured"]]
    time = [np.arange(len(rows), dtype=np.float64) for rows in y]
    time = time if index is None else [times.seconds for times in index]
    inputs = list(keys.get("u", ()))
    return Data(y, u if inputs else None, time, outputs, inputs, sequences, index=index)
