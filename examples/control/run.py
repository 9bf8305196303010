"""Swing up a pendulum with a controller learned from a few records, and compare it with two simpler ones.

``python run.py`` takes one seed and writes a page of figures with an animation; ``--seeds 50`` takes many.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from controller import KINDS, Controller, Learned, Record, episode
from page import write_page
from plant import Plant, upright

STANDING = 20
"""Rows at the end of an episode in which the pendulum must stand."""


def succeeded(record: Record, rows: int) -> bool:
    """Whether the pendulum stood at the end, all of the time."""
    return len(record.truth) == rows and all(upright(x[3]) for x in record.truth[-STANDING:])


def learn(seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Gather records with the controller until it succeeds, then compare controllers on the last model."""
    began = time.perf_counter()
    rng = np.random.default_rng(seed)
    folder = Path(arguments.out) / f"seed{seed}"
    records = [episode(Plant(rng), None, arguments.rows)]
    gathered: list[Record] = []
    while True:
        model = Learned(records, folder, arguments.gpssm, arguments.scenarios, arguments.tune)
        done = episode(Plant(rng), Controller(model, "scenarios", rng), arguments.rows)
        gathered.append(done)
        if succeeded(done, arguments.rows) or len(records) == arguments.records:
            break
        records.append(done)
    runs = {"scenarios": done}
    for kind in [kind for kind in KINDS if kind != "scenarios"]:
        plant = Plant(np.random.default_rng(seed + 10**6))
        runs[kind] = episode(plant, Controller(model, kind, rng), arguments.rows)
    return {
        "seed": seed,
        "records": len(records),
        "success": {kind: succeeded(record, arguments.rows) for kind, record in runs.items()},
        "outside": {kind: record.outside() for kind, record in runs.items()},
        "promised": {kind: record.promised for kind, record in runs.items()},
        "gathered": [{"outside": record.outside(), "promised": record.promised} for record in gathered],
        "seconds": time.perf_counter() - began,
        "truth": {kind: [x.tolist() for x in record.truth] for kind, record in runs.items()},
        "force": {kind: [row[2] for row in record.rows] for kind, record in runs.items()},
        "learning": [[x.tolist() for x in record.truth] for record in [records[0], *gathered]],
    }


def table(found: list[dict[str, Any]]) -> str:
    """Give what came of all seeds, in words."""
    lines = [f"{'controller':<12}{'swing-ups':>14}{'rows beyond the track':>26}{'promised':>12}"]
    for kind in KINDS:
        n = sum(one["success"][kind] for one in found)
        outside = sum(one["outside"][kind] for one in found)
        promised = sum(one["promised"][kind] for one in found)
        lines.append(f"{kind:<12}{f'{n} of {len(found)}':>14}{outside:>26}{promised:>12.1f}")
    needed = sorted(one["records"] for one in found if one["success"]["scenarios"])
    if needed:
        lines.append(f"records needed: {needed[0]} to {needed[-1]}, median {needed[len(needed) // 2]}")
    lines.append(f"seconds in all: {sum(one['seconds'] for one in found):.0f}")
    return "\n".join(lines)


def main() -> None:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds")
    parser.add_argument("--records", type=int, default=5, help="most records to learn from")
    parser.add_argument("--rows", type=int, default=100, help="rows of a record, 0.1 s each")
    parser.add_argument("--scenarios", type=int, default=8, help="posterior functions that a plan must suit")
    parser.add_argument("--tune", type=int, default=80, help="iterations of a fit")
    parser.add_argument("--workers", type=int, default=1, help="seeds at one time")
    parser.add_argument("--gpssm", default="gpssm", help="the program")
    parser.add_argument("--out", default="cart-pole", help="folder for everything that is written")
    arguments = parser.parse_args()
    out = Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    found = []
    with ProcessPoolExecutor(arguments.workers) as pool:
        for one in pool.map(learn, seeds, [arguments] * len(seeds)):
            found.append(one)
            said = "stands" if one["success"]["scenarios"] else "does not stand"
            print(f"seed {one['seed']}: {said} after {one['records']} records, {one['seconds']:.0f} s", flush=True)
            (out / "found.json").write_text(json.dumps(found))
    print(table(found))
    write_page(out / "control.html", found, table(found))
    print(f"{out / 'control.html'} written")


if __name__ == "__main__":
    main()
