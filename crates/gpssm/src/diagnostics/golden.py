"""Golden values for src/diagnostics/golden.rs.

  python3 -m venv v && v/bin/pip install arviz-stats && v/bin/python golden.py

With `arviz` (0.23) installed instead, it prints that version's values.
The generator and the data sets below are the same in golden.rs, operation by
operation, so that both see the same bits.
"""
import sys
import warnings
warnings.simplefilter("ignore")
import numpy as np

try:
    from arviz_stats.base import array_stats
    ax = dict(chain_axis=0, draw_axis=1)
    rhat = lambda x: array_stats.rhat(x, method="rank", **ax)
    ess = lambda x, m: array_stats.ess(x, method=m, **ax, **({"prob": (0.05, 0.95)} if m == "tail" else {}))
    mcse = lambda x: array_stats.mcse(x, method="mean", **ax)
except ImportError:
    import arviz as az
    rhat = lambda x: az.rhat(x, method="rank")
    ess = lambda x, m: az.ess(x, method=m)
    mcse = lambda x: az.mcse(x, method="mean")


class Lcg:
    def __init__(self, seed):
        self.s = seed

    def uniform(self):
        self.s = (self.s * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.s >> 11) / 2.0**53

    def bell(self):  # nearly normal, and only sums: no library function to differ
        total = 0.0
        for _ in range(12):
            total += self.uniform()
        return total - 6.0


def ar(seed, chains, draws, phi):
    g, out = Lcg(seed), []
    for _ in range(chains):
        x, chain = 0.0, []
        for _ in range(draws):
            x = phi * x + g.bell()
            chain.append(x)
        out.append(chain)
    return out


def each(chains, f):
    return [[f(m, i, x) for i, x in enumerate(c)] for m, c in enumerate(chains)]


def heavy(seed, chains, draws):  # a ratio: no mean, like Cauchy
    g = Lcg(seed)
    return [[g.bell() / (g.uniform() - 0.5) for _ in range(draws)] for _ in range(chains)]


SETS = [
    ("independent", ar(1, 4, 500, 0.0)),
    ("autocorrelated", ar(2, 4, 500, 0.7)),
    ("odd_length", ar(3, 4, 501, 0.5)),
    ("slow", ar(4, 4, 1000, 0.99)),
    ("antithetic", ar(5, 4, 400, -0.6)),
    ("strongly_antithetic", ar(6, 4, 400, -0.97)),
    ("shifted", each(ar(7, 4, 300, 0.3), lambda m, i, x: x + 0.5 * m)),
    ("scaled", each(ar(8, 4, 300, 0.3), lambda m, i, x: x * (1.0 + m))),
    ("drifting", each(ar(9, 4, 301, 0.3), lambda m, i, x: x + 0.01 * i)),
    ("one_stuck", each(ar(10, 4, 250, 0.4), lambda m, i, x: 0.25 if m == 2 else x)),
    ("all_stuck_apart", each(ar(11, 4, 40, 0.0), lambda m, i, x: float(m))),
    ("ties", each(ar(12, 4, 203, 0.6), lambda m, i, x: np.floor(2.0 * x) * 0.1)),
    ("binary", each(ar(13, 4, 200, 0.5), lambda m, i, x: 1.0 if x > 0.0 else -1.0)),
    ("rare_event", each(ar(14, 4, 200, 0.5), lambda m, i, x: 1.0 if x > 2.0 else 0.0)),
    ("heavy_tails", heavy(15, 4, 400)),
    ("large_level", each(ar(16, 4, 200, 0.5), lambda m, i, x: x + 1e6)),
    ("one_chain", ar(17, 1, 300, 0.5)),
    ("quantile_on_a_draw", ar(18, 1, 101, 0.5)),
    ("two_chains", ar(19, 2, 150, 0.8)),
    ("four_draws", ar(20, 4, 4, 0.0)),
    ("five_draws", ar(21, 4, 5, 0.3)),
    ("seven_draws", ar(22, 3, 7, 0.3)),
    ("nine_draws", ar(23, 2, 9, 0.9)),
    ("twelve_draws", ar(24, 2, 12, 0.9)),
    ("thirteen_draws_one_chain", ar(25, 1, 13, 0.9)),
]
for i in range(int(sys.argv[1]) if len(sys.argv) > 1 else 0):  # a wider sweep, for a check by hand
    g = Lcg(1000 + i)
    c, n = 1 + int(g.uniform() * 4.0), 4 + int(g.uniform() * 40.0)
    SETS.append((f"sweep_{i}", ar(2000 + i, c, n, 1.98 * g.uniform() - 0.99)))


def show(v):
    v = float(v)
    return "None" if np.isnan(v) else "Some(f64::INFINITY)" if np.isinf(v) else f"Some({v!r})"


for name, data in SETS:
    x = np.array(data)
    values = [rhat(x), ess(x, "bulk"), ess(x, "tail"), ess(x, "mean"), mcse(x)]
    print(f'    ("{name}", [{", ".join(show(v) for v in values)}]),')
