"""The program `gpssm` that the package installs is the program that cargo builds."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples/tanks.csv"
BUILT = Path(os.environ.get("GPSSM_PROGRAM", Path(__file__).parents[2] / "target/release/gpssm"))
INSTALLED = Path(sys.executable).with_name("gpssm.exe" if os.name == "nt" else "gpssm")
FIT = ["fit", str(EXAMPLE), "--y", "level", "--u", "pump", "--time", "time", "--rows", "1:40", "--states", "1"]
FIT += ["--draws", "10", "--tune", "5", "--chains", "1", "--seed", "1", "--quiet"]


def run(*words, program=INSTALLED, **options):
    assert program.is_file(), "the package installs a program"
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=300, **options)


def test_words_go_in_and_texts_and_exit_codes_come_out(tmp_path):
    said = run("--version")
    assert said.returncode == 0 and said.stdout.startswith("gpssm 0."), said
    module = subprocess.run([sys.executable, "-m", "gpssm", "--version"], capture_output=True, text=True)
    assert (module.returncode, module.stdout) == (0, said.stdout)
    nothing = run("fit", "nothing.csv", cwd=tmp_path)
    assert nothing.returncode == 2 and nothing.stderr.startswith("error: nothing.csv"), nothing
    assert nothing.stderr.count("\n") == 1 and not list(tmp_path.iterdir())
    odd = os.fsdecode(b"caf\xe9.csv") if os.name != "nt" else "café.csv"
    assert run("fit", odd, cwd=tmp_path).returncode == 2


def test_a_run_has_the_bytes_of_the_program_that_cargo_builds(tmp_path):
    if not BUILT.is_file():
        pytest.skip("the program has not been built")
    stores = {}
    for name, program in {"installed": INSTALLED, "built": BUILT}.items():
        done = run(*FIT, "-o", str(tmp_path / f"{name}.zarr"), program=program)
        assert done.returncode == 0, done.stderr
        files = sorted(path for path in (tmp_path / f"{name}.zarr").rglob("*") if path.is_file())
        stores[name] = {path.relative_to(tmp_path / f"{name}.zarr"): path.read_bytes() for path in files}
    assert stores["installed"] == stores["built"] and len(stores["built"]) > 10


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_closed_pipes_and_signals_end_it_quietly(tmp_path):
    lines = "".join(f"{np.sin(0.3 * t):.3f}\n" for t in range(500))
    (tmp_path / "long.csv").write_text("y\n" + lines)
    # A reader that has seen enough is no error.
    with subprocess.Popen([INSTALLED, "man"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as printing:
        assert printing.stdout is not None and printing.stderr is not None
        printing.stdout.read(1)
        printing.stdout.close()
        assert printing.wait(60) == 0 and printing.stderr.read() == b""
    # The first signal ends what has no draws to keep, with the words and the code of the program.
    for which in (signal.SIGINT, signal.SIGTERM):
        words = [INSTALLED, "fit", "long.csv", "--y", "y", "-o", "run.zarr"]
        with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as busy:
            assert busy.stderr is not None
            # Whatever it says first comes after its handlers are there.
            first = busy.stderr.readline()
            assert first
            time.sleep(0.5)
            busy.send_signal(which)
            said = first + busy.stderr.read()
            assert busy.wait(60) == 130, said
        assert "Traceback" not in said and "KeyboardInterrupt" not in said
