//! Functions of two arguments as wire surfaces, with points above and below them.

use super::figure::{Key, WIDTH, draw_legend, wrap};
use super::panel::{Axis, label, line};
use super::scale::labels;
use super::style::{Class, LIGHT};
use super::svg::{PathData, number};

/// A function on a grid.
#[derive(Clone, Debug)]
pub struct Wire {
    /// Places of the columns.
    pub x: Vec<f64>,
    /// Places of the rows.
    pub y: Vec<f64>,
    /// Heights, row-major (y, x).
    pub values: Vec<f64>,
    /// Its look.
    pub class: Class,
}

/// Wire surfaces and points in a box with three axes.
#[derive(Clone, Debug)]
pub struct Surface {
    /// What it shows, for readers who do not see it.
    pub title: String,
    /// Entries of the legend.
    pub legend: Vec<(Key, String)>,
    /// First argument, second argument, height.
    pub axes: [Axis; 3],
    /// Surfaces.
    pub wires: Vec<Wire>,
    /// Points.
    pub points: Vec<[f64; 3]>,
    /// Their look.
    pub point_class: Class,
}

const HEIGHT: f64 = 430.0;
/// Looking along (sin, cos) of this angle in the plane of the arguments.
const AZIMUTH: f64 = 0.62;
const ELEVATION: f64 = 0.42;

impl Surface {
    /// Place on the page and depth, from fractions along the axes.
    fn project(&self, at: [f64; 3]) -> (f64, f64, f64) {
        let [x, y, z] = [at[0] - 0.5, at[1] - 0.5, at[2] - 0.5];
        let (along, deep) = (x * AZIMUTH.cos() - y * AZIMUTH.sin(), x * AZIMUTH.sin() + y * AZIMUTH.cos());
        let up = z * 0.72 * ELEVATION.cos() + deep * ELEVATION.sin();
        (WIDTH / 2.0 + 20.0 + 400.0 * along, HEIGHT / 2.0 - 8.0 - 285.0 * up, deep)
    }

    fn place(&self, at: [f64; 3]) -> (f64, f64, f64) {
        self.project([0, 1, 2].map(|c| self.axes[c].scale.fraction(at[c]).clamp(-0.5, 1.5)))
    }

    /// The SVG for a file of its own.
    pub fn standalone(&self) -> String {
        let mut body = String::new();
        let top = draw_legend(&self.legend, WIDTH, false, &mut body);
        body.push_str(&format!("<g transform=\"translate(0 {})\">", number(top)));
        self.draw_box(&mut body);
        // From the back to the front, so that nearer parts cover those behind them.
        let mut parts: Vec<(f64, String)> = Vec::new();
        for wire in &self.wires {
            self.add_cells(wire, &mut parts);
        }
        for point in self.points.iter().filter(|point| point.iter().all(|v| v.is_finite())) {
            let (x, y, depth) = self.place(*point);
            let mut dot = PathData::default();
            dot.move_to(x, y);
            dot.line_to(x, y);
            parts.push((depth, dot.element(self.point_class.name())));
        }
        parts.sort_by(|a, b| b.0.total_cmp(&a.0));
        parts.iter().for_each(|(_, part)| body.push_str(part));
        body.push_str("</g>");
        let namespace = " xmlns=\"http://www.w3.org/2000/svg\"";
        wrap(&self.title, namespace, &format!("<style>{LIGHT}</style>"), WIDTH, HEIGHT + top, &body)
    }

    fn add_cells(&self, wire: &Wire, parts: &mut Vec<(f64, String)>) {
        let (n, m) = (wire.x.len(), wire.y.len());
        if n < 2 || m < 2 || wire.values.len() != n * m {
            return;
        }
        for (j, i) in (0..m - 1).flat_map(|j| (0..n - 1).map(move |i| (j, i))) {
            let corner = |j: usize, i: usize| self.place([wire.x[i], wire.y[j], wire.values[j * n + i]]);
            let corners = [corner(j, i), corner(j, i + 1), corner(j + 1, i + 1), corner(j + 1, i)];
            let mut path = PathData::default();
            path.move_to(corners[0].0, corners[0].1);
            corners[1..].iter().for_each(|corner| path.line_to(corner.0, corner.1));
            path.close();
            let depth = corners.iter().map(|corner| corner.2).sum::<f64>() / 4.0;
            parts.push((depth, path.element(&format!("wi {}", wire.class.name()))));
        }
    }

    /// Floor, back edges and the numbers along three edges.
    fn draw_box(&self, out: &mut String) {
        let mut edge = |a: [f64; 3], b: [f64; 3], class: &str| {
            let (a, b) = (self.project(a), self.project(b));
            line(out, class, (a.0, a.1), (b.0, b.1));
        };
        for (a, b) in [
            ([0.0, 1.0, 0.0], [1.0, 1.0, 0.0]),
            ([1.0, 1.0, 0.0], [1.0, 0.0, 0.0]),
            ([1.0, 1.0, 0.0], [1.0, 1.0, 1.0]),
            ([0.0, 1.0, 1.0], [1.0, 1.0, 1.0]),
            ([1.0, 0.0, 1.0], [1.0, 1.0, 1.0]),
            ([1.0, 0.0, 0.0], [1.0, 0.0, 1.0]),
        ] {
            edge(a, b, "gr");
        }
        edge([0.0, 0.0, 0.0], [1.0, 0.0, 0.0], "ax");
        edge([0.0, 0.0, 0.0], [0.0, 1.0, 0.0], "ax");
        edge([0.0, 1.0, 0.0], [0.0, 1.0, 1.0], "ax");
        let on_edge = |c: usize, at: f64| match c {
            0 => [at, 0.0, 0.0],
            1 => [0.0, at, 0.0],
            _ => [0.0, 1.0, at],
        };
        for (c, axis) in self.axes.iter().enumerate() {
            let ticks = axis.scale.ticks(5);
            let (texts, _) = labels(&ticks);
            for (tick, text) in ticks.iter().zip(&texts) {
                let (x, y, _) = self.project(on_edge(c, axis.scale.fraction(*tick)));
                match c {
                    0 => label(out, "", "middle", x + 5.0, y + 17.0, text),
                    1 => label(out, "", "end", x - 8.0, y + 9.0, text),
                    _ => label(out, "", "end", x - 8.0, y + 4.0, text),
                }
            }
            let (x, y, _) = self.project(on_edge(c, if c == 2 { 1.0 } else { 0.5 }));
            match c {
                0 => label(out, "la", "middle", x + 26.0, y + 38.0, &axis.label),
                1 => label(out, "la", "end", x - 40.0, y + 26.0, &axis.label),
                _ => label(out, "la", "middle", x, y - 12.0, &axis.label),
            }
        }
    }
}
