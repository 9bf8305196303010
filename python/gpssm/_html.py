"""A result as it is shown in notebooks: verdict, table and figure."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np

from ._types import Floats

if TYPE_CHECKING:
    from .result import Result

SIZE = (640, 150)
"""Width and height of a panel, in pixels."""
MOST_STATES = 3
MOST_ROWS = 400


def page(result: Result) -> str:
    """The result as HTML that needs nothing from elsewhere."""
    parts = [f"<h4>gpssm: {html.escape(result._headline())}</h4>", _verdict(result)]
    if result._complete:
        parts.append(result.summary().to_html(float_format=lambda value: f"{value:.3g}", border=0))
        parts.append(figure(result))
    parts.append(f"<details><summary>Model and data</summary><pre>{html.escape(repr(result.model))}\n")
    parts.append(f"{html.escape(repr(result.data))}</pre></details>")
    return "".join(parts)


def _verdict(result: Result) -> str:
    if result.converged and not result.warnings:
        return "<p><b style='color:#1a7f37'>Converged.</b></p>"
    word = "Converged, with warnings." if result.converged else "Not converged."
    items = "".join(f"<li>{html.escape(warning)}</li>" for warning in result.warnings)
    return f"<p><b style='color:#b35900'>{word}</b></p><ul>{items}</ul>"


def figure(result: Result) -> str:
    """Medians and 90 % intervals of the first states of the first sequence, with outputs, as SVG."""
    x = np.concatenate([chain.draws.paths[0] for chain in result.chains])
    sensor = result.resolved.get("sensor", {})
    direct = isinstance(sensor, dict) and sensor.get("gaussian", {}).get("mean", "states") == "states"
    panels = []
    for d, name in enumerate(result.state_names[:MOST_STATES]):
        bands = np.quantile(x[:, :, d], [0.05, 0.5, 0.95], axis=0)
        y = result.data.y[0][:, d] if direct and d < result.data.n_y else None
        panels.append(_panel(name, bands, y))
    times = result.data.times(0)
    ends = f"{_short(times[0])} to {_short(times[-1])}"
    label = (
        f"<small>States: medians, 90 % intervals{' and outputs' if direct else ''}; {html.escape(ends)}</small>"
    )
    return "".join(panels) + f"<br>{label}"


def _short(time: np.datetime64 | float) -> str:
    if isinstance(time, np.datetime64):
        return str(time.astype("datetime64[s]")).removesuffix("T00:00:00")
    return f"{float(time):g}"


def _panel(name: str, bands: Floats, y: Floats | None) -> str:
    width, height = SIZE
    seen = bands if y is None else np.vstack([bands, y])
    low, high = float(np.nanmin(seen)), float(np.nanmax(seen))
    scale = (height - 20) / (high - low or 1.0)
    n = bands.shape[1]
    rows = np.unique(np.linspace(0, n - 1, min(n, MOST_ROWS)).astype(int))
    across = 50 + (width - 60) * rows / max(1, n - 1)

    def points(values: Floats, places: Floats) -> str:
        heights = height - 10 - scale * (values - low)
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(places, heights, strict=True))

    area = points(np.concatenate([bands[0, rows], bands[2, rows][::-1]]), np.concatenate([across, across[::-1]]))
    shapes = [f"<polygon points='{area}' fill='#1f77b4' fill-opacity='0.25'/>"]
    shapes.append(f"<polyline points='{points(bands[1, rows], across)}' fill='none' stroke='#1f77b4'/>")
    if y is not None:
        dots = [(a, height - 10 - scale * (value - low)) for a, value in zip(across, y[rows], strict=True)]
        shapes += [f"<circle cx='{a:.1f}' cy='{b:.1f}' r='1.5'/>" for a, b in dots if np.isfinite(b)]
    texts = [(4, height / 2, name), (4, 14, f"{high:.3g}"), (4, height - 6, f"{low:.3g}")]
    shapes += [f"<text x='{a}' y='{b:.0f}' font-size='11'>{html.escape(text)}</text>" for a, b, text in texts]
    return f"<svg width='{width}' height='{height}' viewBox='0 0 {width} {height}'>{''.join(shapes)}</svg><br>"
