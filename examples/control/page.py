"""A page with figures and an animation; text alone, nothing is loaded from elsewhere."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from plant import DT, LENGTH, TRACK

COLOURS = {"scenarios": "#0072b2", "mean": "#e69f00", "linear": "#999999"}

SCRIPT = """
const data = JSON.parse(document.getElementById("data").textContent);
const canvas = document.getElementById("cart"), pen = canvas.getContext("2d");
const scale = 150, middle = canvas.width / 2, floor = 170;
let kind = "scenarios", row = 0;
function draw() {
  const rows = data.truth[kind];
  const [p, , , angle] = rows[row % rows.length];
  pen.clearRect(0, 0, canvas.width, canvas.height);
  pen.strokeStyle = "#bbb"; pen.lineWidth = 2;
  pen.beginPath(); pen.moveTo(0, floor); pen.lineTo(canvas.width, floor); pen.stroke();
  pen.strokeStyle = "#d55e00";
  for (const end of [-data.track, data.track]) {
    const at = middle + scale * end;
    pen.beginPath(); pen.moveTo(at, floor - 25); pen.lineTo(at, floor + 25); pen.stroke();
  }
  const x = middle + scale * p;
  pen.fillStyle = data.colours[kind]; pen.fillRect(x - 25, floor - 14, 50, 28);
  pen.strokeStyle = "#222"; pen.lineWidth = 7; pen.lineCap = "round"; pen.beginPath(); pen.moveTo(x, floor);
  const reach = scale * data.length;
  pen.lineTo(x + reach * Math.sin(angle), floor + reach * Math.cos(angle)); pen.stroke();
  pen.fillStyle = "#222"; pen.fillText((row % rows.length * data.dt).toFixed(1) + " s", 10, 20);
  row += 1;
}
for (const button of document.querySelectorAll("button")) {
  button.onclick = () => { kind = button.textContent; row = 0; };
}
draw();
if (!window.matchMedia("(prefers-reduced-motion: reduce)").matches) setInterval(draw, 1000 * data.dt);
"""


def lines(title: str, series: dict[str, list[float]], marks: list[float], colours: dict[str, str]) -> str:
    """Give an SVG figure of series over time."""
    width, height = 560, 170
    values = [value for one in series.values() for value in one] + marks
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    n = max(len(one) for one in series.values())

    def place(t: int, value: float) -> str:
        return f"{40 + 510 * t / max(1, n - 1):.1f},{150 - 120 * (value - low) / span:.1f}"

    parts = [f'<svg viewBox="0 0 {width} {height}" role="img"><title>{html.escape(title)}</title>']
    parts.append(f'<text x="40" y="18">{html.escape(title)}</text>')
    for mark in marks:
        a, b = place(0, mark), place(n - 1, mark)
        parts.append(f'<polyline points="{a} {b}" fill="none" stroke="#d55e00" stroke-dasharray="4 4"/>')
    for name, one in series.items():
        points = " ".join(place(t, value) for t, value in enumerate(one))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colours[name]}" stroke-width="1.8"/>')
    parts.append(f'<text x="4" y="34">{high:.3g}</text><text x="4" y="152">{low:.3g}</text>')
    parts.append(f'<text x="500" y="167">{(n - 1) * DT:.0f} s</text></svg>')
    return "".join(parts)


def write_page(path: Path, found: list[dict[str, Any]], table: str) -> None:
    """Write the page for the first seed that succeeded, with the table of all."""
    shown = next((one for one in found if one["success"]["scenarios"]), found[0])
    truth = shown["truth"]
    figures = [
        lines("angle, rad (up: 3.14, -3.14)", {k: [x[3] for x in v] for k, v in truth.items()}, [], COLOURS),
        lines("position, m", {k: [x[0] for x in v] for k, v in truth.items()}, [-TRACK, TRACK], COLOURS),
        lines("force, N", shown["force"], [], COLOURS),
    ]
    learning = []
    for number, rows in enumerate(shown["learning"], 1):
        what = "random forces" if number == 1 else "the controller"
        title = f"record {number}, {what}: angle, rad"
        learning.append(lines(title, {"scenarios": [x[3] for x in rows]}, [], COLOURS))
    data = {"truth": truth, "track": TRACK, "length": LENGTH, "dt": DT, "colours": COLOURS}
    keys = " ".join(f'<button style="color:{colour}">{name}</button>' for name, colour in COLOURS.items())
    path.write_text(
        f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Cart and pole</title>
<style>body{{font:15px system-ui;max-width:760px;margin:2em auto;padding:0 1em}}svg,canvas{{width:100%}}
text{{font:12px system-ui}}button{{font:inherit;font-weight:600}}pre{{overflow:auto}}</style>
<h1>Cart and pole, learned from {shown["records"]} records</h1>
<p>Position and angle are seen, with noise; velocities are hidden. One plan is made for all scenarios in each row,
through the exported C functions. Seed {shown["seed"]}.</p>
<p>{keys}</p><canvas id="cart" width="640" height="290"></canvas>{"".join(figures)}
<h2>While learning</h2>{"".join(learning)}
<h2>All seeds</h2><pre>{html.escape(table)}</pre>
<script type="application/json" id="data">{json.dumps(data)}</script><script>{SCRIPT}</script></html>"""
    )
