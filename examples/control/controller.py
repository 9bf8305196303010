"""Learning with gpssm, and a predictive controller that calls the exported C functions."""

from __future__ import annotations

import ctypes
import json
import subprocess
from dataclasses import dataclass, field
from math import erf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from plant import FORCE, TRACK, Plant

Floats = NDArray[np.float64]

HERE = Path(__file__).parent
MARGIN = 0.15
"""Distance from the end of the track that plans keep, m."""
OVERRUN, TURNS = 0.5, 3 * np.pi
"""An experiment ends where the cart is so far beyond the track, m, or the pendulum has turned so far, rad."""
FIRST_SCENARIO = 2
"""Number of the first posterior function in mpc.c, after the mean and the linear model."""
KINDS = ("scenarios", "mean", "linear")


@dataclass
class Record:
    """Rows of position, angle, force, force before; and the position as it was."""

    rows: list[tuple[float, float, float, float]] = field(default_factory=list)
    truth: list[Floats] = field(default_factory=list)
    promised: float = 0.0

    def outside(self) -> int:
        """Count rows on which the cart was beyond the track."""
        return sum(abs(x[0]) > TRACK for x in self.truth)


def run(command: list[str], folder: Path) -> str:
    """Run a program and give what it prints; its messages if it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def pointer(values: Floats) -> ctypes._Pointer[ctypes.c_double]:
    """Address of an array of float64 for C."""
    return values.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


class Learned:
    """A model learned from records: exported, compiled and loaded."""

    def __init__(self, records: list[Record], folder: Path, gpssm: str, scenarios: int, tune: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        lines = ["record,position,angle,force,force_before"]
        for number, record in enumerate(records, 1):
            lines += [",".join([str(number), *(f"{value:.6f}" for value in row)]) for row in record.rows]
        (folder / "records.csv").write_text("\n".join(lines) + "\n")
        (folder / "model.toml").write_text((HERE / "model.toml").read_text())
        (folder / "mpc.c").write_text((HERE / "mpc.c").read_text())
        fit = ["fit", "model.toml", "--point", "--tune", str(tune), "--overwrite", "-o", "run.zarr", "--quiet"]
        run([gpssm, *fit], folder)
        size = str(min(80, 30 + 20 * len(records)))
        export = ["--to", "c", "-o", ".", "--name", "cartpole", "--scenarios", str(scenarios), "--size", size]
        run([gpssm, "export", "run.zarr", *export, "--max-loss", "100", "--overwrite"], folder)
        library = f"controller{len(records)}.so"
        run(["cc", "-std=c99", "-O2", "-fPIC", "-shared", "-o", library, "mpc.c", "cartpole.c", "-lm"], folder)
        self.c = ctypes.CDLL(str(folder / library))
        for function in (self.c.mpc_plan, self.c.mpc_scenarios, self.c.mpc_next_position):
            function.restype = ctypes.c_double
        self.c.mpc_filter_size.restype = ctypes.c_size_t
        self.scenarios = scenarios
        self.horizon: int = self.c.mpc_horizon()
        self.noise = self._noise(run([gpssm, "summary", "run.zarr", "--json"], folder))
        self.linear = least_squares(records)
        self.c.mpc_linear(pointer(self.linear))

    @staticmethod
    def _noise(summary: str) -> float:
        """Process noise of the position, a standard deviation."""
        text = json.dumps(json.loads(summary)["parameters"])
        for entry in json.loads(text):
            if entry["name"] == "process_sd[position]":
                return float(entry["mean"])
        raise SystemExit("the summary has no process_sd[position]")


def least_squares(records: list[Record]) -> Floats:
    """A linear model of the same rows, x' = A x + B u + c, as one row for each state."""
    past, future = [], []
    for record in records:
        rows = np.array(record.rows)
        states = np.column_stack([rows[1:, :2], rows[:-1, :2]])
        past.append(np.column_stack([states, rows[1:, 2:], np.ones(len(states))])[:-1])
        future.append(rows[2:, :2])
    coefficients, *_ = np.linalg.lstsq(np.concatenate(past), np.concatenate(future), rcond=None)
    copies = np.zeros((2, 7))
    copies[0, 0] = copies[1, 1] = 1.0
    return np.ascontiguousarray(np.concatenate([coefficients.T, copies]))


@dataclass
class Plan:
    """Forces, the gains that go with them, and the rows that they lead to."""

    forces: Floats
    gains: Floats
    rows: Floats
    cost: float = np.inf

    def shifted(self) -> Plan:
        """Give the plan one row later."""
        later = [np.concatenate([values[1:], values[-1:]]) for values in (self.forces, self.gains, self.rows)]
        return Plan(*later)


class Controller:
    """A plan made anew in each row; with scenarios it keeps the track for all of them."""

    def __init__(self, model: Learned, kind: str, rng: np.random.Generator) -> None:
        self.model, self.kind, self.rng = model, kind, rng
        self.filter = ctypes.create_string_buffer(model.c.mpc_filter_size())
        model.c.cartpole_filter_init(self.filter)
        self.plan: Plan | None = None
        self.before = 0.0
        self.last: Floats | None = None
        self.track = np.full(model.horizon, TRACK - MARGIN)

    def state(self, seen: Floats) -> Floats:
        """Estimate the state; the linear model takes what is seen."""
        if self.kind == "linear":
            last = seen if self.last is None else self.last
            self.last = seen
            return np.concatenate([seen, last])
        self.model.c.cartpole_filter_step(self.filter, pointer(seen), pointer(np.array([self.before, 0.0])), None)
        mean = np.zeros(4)
        self.model.c.cartpole_filter_estimate(self.filter, pointer(mean), None)
        return mean

    def scenario_states(self) -> Floats:
        """Estimate the state by each scenario."""
        found = np.zeros((self.model.scenarios, 4))
        for k, row in enumerate(found):
            self.model.c.cartpole_filter_scenario(self.filter, ctypes.c_size_t(k), pointer(row), None, None)
        return found

    def candidates(self) -> list[Plan]:
        """Plans to begin with: the last one a row later, and some swings."""
        n = self.model.horizon
        found = [] if self.plan is None else [self.plan.shifted()]
        for _ in range(10 if self.plan is None else 2):
            period, phase, size = self.rng.uniform(8, 20), self.rng.uniform(0, 2 * np.pi), self.rng.uniform(2, 9)
            swing = size * np.sin(2 * np.pi * np.arange(n) / period + phase)
            found.append(Plan(swing, np.zeros((n, 5)), np.zeros((n + 1, 5))))
        return found

    def improve(self, x: Floats, plan: Plan, iterations: int) -> Plan:
        """Give a better plan with its cost."""
        better = Plan(plan.forces.copy(), plan.gains.copy(), plan.rows.copy())
        cost = self.model.c.mpc_plan(
            1 if self.kind == "linear" else 0,
            pointer(x),
            ctypes.c_double(self.before),
            pointer(better.forces),
            pointer(self.track),
            ctypes.c_double(FORCE),
            iterations,
            pointer(better.gains),
            pointer(better.rows),
        )
        better.cost = cost if np.isfinite(cost) else np.inf
        return better

    def led(self, states: Floats, plan: Plan) -> tuple[float, Floats]:
        """Lead all scenarios by a plan: their mean cost, and the largest distance of the cart in each row."""
        farthest = np.zeros(self.model.horizon)
        cost = self.model.c.mpc_scenarios(
            ctypes.c_size_t(len(states)),
            pointer(states),
            ctypes.c_double(self.before),
            pointer(plan.forces),
            pointer(plan.gains),
            pointer(plan.rows),
            pointer(self.track),
            ctypes.c_double(FORCE),
            pointer(farthest),
        )
        return (cost if np.isfinite(cost) else np.inf), farthest

    def force(self, x: Floats) -> float:
        """Give the first force of the best plan."""
        bound = TRACK - MARGIN
        self.track[:] = bound
        plans = [self.improve(x, plan, 8) for plan in self.candidates()]
        if self.kind == "scenarios":
            states = self.scenario_states()
            best = min(plans, key=lambda plan: self.led(states, plan)[0])
            # The nominal cart keeps as far from the end as the farthest scenario goes beyond it.
            _, farthest = self.led(states, best)
            excess = np.clip(farthest - np.maximum(np.abs(best.rows[1:, 0]), bound), 0.0, 0.6 * bound)
            self.track[:] = bound - excess
        else:
            best = min(plans, key=lambda plan: plan.cost)
        self.plan = self.improve(x, best, 15)
        return float(self.plan.forces[0])

    def promise(self, x: Floats, force: float) -> float:
        """Probability that the next row is beyond the track, by the scenarios with their noise."""
        if self.kind == "linear":
            return 0.0
        states = self.scenario_states() if self.kind == "scenarios" else x[None, :]
        sd = self.model.noise
        total = 0.0
        for k, state in enumerate(states):
            place = self.model.c.mpc_next_position(
                ctypes.c_size_t(FIRST_SCENARIO + k if self.kind == "scenarios" else 0),
                pointer(np.ascontiguousarray(state)),
                ctypes.c_double(self.before),
                ctypes.c_double(force),
            )
            total += 0.5 * (1.0 - erf((TRACK - abs(place)) / (sd * np.sqrt(2.0)))) / len(states)
        return total

    def step(self, seen: Floats) -> tuple[float, float]:
        """Take a row; give the force and the promise for the next row."""
        x = self.state(np.ascontiguousarray(seen))
        force = self.force(x)
        promised = self.promise(x, force)
        self.model.c.cartpole_filter_input(self.filter, pointer(np.array([force, self.before])))
        self.before = force
        return force, promised


def excite(plant: Plant, before: float) -> float:
    """Give a random force that keeps the cart near the middle and the pendulum from turning over."""
    position, velocity, spin, angle = plant.x
    swing = 0.7 * before + 3.2 * plant.rng.normal()
    return float(np.clip(swing - 2 * position - velocity + 0.3 * spin * np.cos(angle), -FORCE, FORCE))


def episode(plant: Plant, controller: Controller | None, n_rows: int) -> Record:
    """Run the plant from rest, under a controller or random forces."""
    record, before = Record(), 0.0
    for _ in range(n_rows):
        seen = plant.see()
        record.truth.append(plant.x.copy())
        if controller is None:
            force = excite(plant, before)
        else:
            force, promised = controller.step(seen)
            record.promised += promised
        record.rows.append((float(seen[0]), float(seen[1]), force, before))
        plant.step(force)
        before = force
        if abs(plant.x[0]) > TRACK + OVERRUN or abs(plant.x[3]) > TURNS:
            # Someone presses the red button.
            break
    return record
