"""Types as a user sees them: misspelt and wrong arguments are found before anything runs."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("mypy")

# Packages are read once for all tests.
CACHE = Path(os.environ.get("XDG_CACHE_HOME", tempfile.gettempdir())) / "gpssm-mypy"

GOOD = """
import numpy as np
import gpssm
from gpssm import plot

y, u = np.zeros(9), np.zeros((9, 1))
model = gpssm.Model(2, kernel=gpssm.Matern32(ell=[1.0, gpssm.Gamma(2.0, 1.0)]) + gpssm.Linear(), sensor="poisson")
result = gpssm.fit([y, y], [u, u], model=model, draws=3, progress_bar=False)
other = gpssm.fit(y.tolist(), states=[gpssm.Gp(), gpssm.Lag("x1")], process_noise=gpssm.OnVariance("gamma(2, 1)"))
run = result.simulate(u, y=y, n_init=3, initial=("last", 0))
plot.intervals(run, y)
noise: float = result.sampler["ess"] + other.chains[0].draws.theta[0, 0]
names: list[str] = result.state_names + result.warnings
several = gpssm.fit_many([(y, u), (y, u)], threads=2, lags=1)
"""

# Each line and a part of what is said about it.
BAD = {
    'gpssm.fit([1.0], kernal="se")': '"kernal"',
    'gpssm.fit([1.0], proposal="best")': '"proposal"',
    "gpssm.fit([1.0], kernel=3)": '"kernel"',
    "gpssm.fit_many([[1.0]], thread=2)": '"thread"',
    "gpssm.Model(states=2.5)": '"states"',
    "gpssm.Model(sensors=None)": '"sensors"',
    'gpssm.Model(sampler={"draw": 3})': '"sampler"',
    "gpssm.Matern32(sigma=1.0)": '"sigma"',
    'gpssm.FIC(mode="exact")': '"mode"',
    "gpssm.Lag(0)": '"Lag"',
    "gpssm.Gaussian(scale=1.0)": '"scale"',
    "gpssm.Normal(median=0.0, sd=1.0)": '"median"',
    "gpssm.open('run.zarr').simulate(path=3)": '"path"',
    "gpssm.open('run.zarr').filter([1.0], particle=3)": '"particle"',
    "gpssm.open('run.zarr').sensitivity(alpha=(0.9, 1.1))": '"alpha"',
    "gpssm.open('run.zarr').groups(priors=3)": '"priors"',
    'gpssm.compare([], method="loo")': '"method"',
    'gpssm.compare([], methods="lfo")': '"methods"',
    "gpssm.open('run.zarr').thin(3, method='best')": '"method"',
}


def check(text, tmp_path):
    (tmp_path / "program.py").write_text(text)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "--cache-dir",
        str(CACHE),
    ]
    done = subprocess.run([*command, "program.py"], cwd=tmp_path, capture_output=True, text=True)
    return [line for line in done.stdout.splitlines() if "error" in line]


# Seen to fail: arguments as **options; Any in place of the unions.
def test_good_programs_pass_and_bad_lines_do_not(tmp_path):
    bad = GOOD + "".join(f"{line}\n" for line in BAD)
    found = check(bad, tmp_path)
    first = GOOD.count("\n") + 1
    numbers = {first + k: line for k, line in enumerate(BAD)}
    said = {int(line.split(":")[1]): line for line in found}
    assert set(said) == set(numbers), "\n".join(found)
    for number, line in numbers.items():
        assert BAD[line] in said[number], said[number]


def test_every_method_has_an_example():
    import gpssm
    from gpssm import plot
    from gpssm.sklearn import GPSSM

    names = [f"{kind.__name__}.{name}" for kind in (gpssm.Result, gpssm.Model) for name in vars_of(kind)]
    functions = [getattr(getattr(gpssm, name.split(".")[0]), name.split(".")[1]) for name in names]
    functions += [gpssm.fit, gpssm.fit_many, gpssm.open, gpssm.as_data, gpssm.compare, GPSSM]
    functions += [getattr(plot, name) for name in plot.__all__]
    missing = [function.__qualname__ for function in functions if ">>>" not in (function.__doc__ or "")]
    assert not missing


def vars_of(kind):
    found = {name: part for part in kind.__mro__[:-1] for name, part in vars(part).items()}
    return [name for name, part in found.items() if not name.startswith("_") and callable(getattr(kind, name))]


PAGES = Path(__file__).parents[2] / "docs" / "site"


def examples(folder):
    """Write the programs of the documentation's pages, one file for each."""
    for page in sorted(PAGES.rglob("*.md")):
        blocks = re.findall(r"```\{run\}\n(?::hide:\n)?(.*?)```", page.read_text(encoding="utf-8"), re.S)
        if blocks:
            (folder / f"{page.stem}_page.py").write_text("\n".join(blocks))
    found = sorted(folder.glob("*_page.py"))
    assert len(found) > 5, f"no examples below {PAGES}"
    return found


def test_examples_of_the_documentation_are_typed(tmp_path):
    pages = examples(tmp_path)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "--disable-error-code=import-untyped",
    ]
    # Pages are programs of their own, which reuse names for things of other types.
    command += ["--allow-redefinition", "--cache-dir", str(CACHE), "--scripts-are-modules"]
    done = subprocess.run([*command, *map(str, pages)], cwd=tmp_path, capture_output=True, text=True)
    assert not [line for line in done.stdout.splitlines() if " error:" in line], done.stdout


def test_pyright_finds_nothing_in_the_examples(tmp_path):
    pyright = shutil.which("pyright", path=str(Path(sys.executable).parent)) or shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed")
    pages = examples(tmp_path)
    (tmp_path / "pyrightconfig.json").write_text(
        '{"typeCheckingMode": "basic", "reportMissingModuleSource": false}'
    )
    command = [pyright, "--pythonpath", sys.executable, *map(str, pages)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
