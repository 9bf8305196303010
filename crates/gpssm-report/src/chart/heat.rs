//! Functions of two arguments as shades with contour lines.

use super::mark::Frame;
use super::panel::label;
use super::scale::{Scale, labels};
use super::style::shade;
use super::svg::PathData;

/// Values on a grid, in steps between round levels.
#[derive(Clone, Debug)]
pub struct Heat {
    /// Places of the columns, increasing.
    pub x: Vec<f64>,
    /// Places of the rows, increasing.
    pub y: Vec<f64>,
    /// Row-major (y, x); finite.
    pub values: Vec<f64>,
    /// Levels between the shades, increasing.
    pub levels: Vec<f64>,
    /// Where there were no data, row-major; empty for none.
    pub faded: Vec<bool>,
}

/// Cells between two grid points, in each direction: smooth enough to the eye.
const FINER: usize = 3;

impl Heat {
    /// With about ten levels.
    pub fn new(x: Vec<f64>, y: Vec<f64>, values: Vec<f64>) -> Self {
        let scale = Scale::covering(values.iter().copied());
        Self { x, y, values, levels: scale.ticks(9), faded: Vec::new() }
    }

    /// Texts of the levels.
    pub fn level_labels(&self) -> (Vec<String>, Option<String>) {
        labels(&self.levels)
    }

    /// The colour between level k - 1 and level k.
    pub fn colour(&self, k: usize) -> String {
        shade(k as f64 / self.levels.len().max(1) as f64)
    }

    /// Boxes from the lowest shade to the highest, with the levels between them; in pixels.
    pub(crate) fn bar(&self, x: f64, y: f64, height: f64) -> String {
        let (n, mut out) = (self.levels.len() + 1, String::new());
        let step = height / n as f64;
        let (texts, unit) = self.level_labels();
        for k in 0..n {
            let top = y + height - (k + 1) as f64 * step;
            let mut path = PathData::default();
            path.rectangle(x, top, x + 12.0, top + step);
            out.push_str(&path.filled(&self.colour(k)));
            if let Some(text) = texts.get(k) {
                label(&mut out, "", "start", x + 16.0, top + 3.8, text);
            }
        }
        if let Some(unit) = unit {
            label(&mut out, "", "start", x, y - 5.0, &unit);
        }
        out
    }

    fn level_of(&self, value: f64) -> usize {
        self.levels.partition_point(|level| *level <= value)
    }

    /// Value at a place in grid units, by bilinear interpolation.
    fn between(&self, column: f64, row: f64) -> f64 {
        let n = self.x.len();
        let (i, j) = ((column as usize).min(n - 2), (row as usize).min(self.y.len() - 2));
        let (a, b) = (column - i as f64, row - j as f64);
        let v = |j: usize, i: usize| self.values[j * n + i];
        (1.0 - b) * ((1.0 - a) * v(j, i) + a * v(j, i + 1))
            + b * ((1.0 - a) * v(j + 1, i) + a * v(j + 1, i + 1))
    }

    pub(crate) fn draw(&self, frame: &Frame) -> String {
        let (n, m) = (self.x.len(), self.y.len());
        if n < 2 || m < 2 || self.values.len() != n * m {
            return String::new();
        }
        let place = |grid: &[f64], at: f64| {
            let i = (at as usize).min(grid.len() - 2);
            grid[i] + (at - i as f64) * (grid[i + 1] - grid[i])
        };
        let mut paths: Vec<PathData> = (0..=self.levels.len()).map(|_| PathData::default()).collect();
        let mut fade = PathData::default();
        let finer = FINER as f64;
        for j in 0..(m - 1) * FINER {
            let row = (j as f64 + 0.5) / finer;
            let (y0, y1) = (place(&self.y, j as f64 / finer), place(&self.y, (j + 1) as f64 / finer));
            let cells: Vec<(usize, bool)> = (0..(n - 1) * FINER)
                .map(|i| {
                    let column = (i as f64 + 0.5) / finer;
                    let nearest = row.round() as usize * n + column.round() as usize;
                    let faded = self.faded.get(nearest).copied().unwrap_or(false);
                    (self.level_of(self.between(column, row)), faded)
                })
                .collect();
            // Equal neighbours in a row are one rectangle.
            let stretch = |same: &dyn Fn(usize, usize) -> bool,
                           draw: &mut dyn FnMut(usize, (f64, f64), (f64, f64))| {
                let mut from = 0;
                for i in 1..=cells.len() {
                    if i == cells.len() || !same(from, i) {
                        let (x0, x1) =
                            (place(&self.x, from as f64 / finer), place(&self.x, i as f64 / finer));
                        draw(from, frame.at(x0, y0), frame.at(x1, y1));
                        from = i;
                    }
                }
            };
            stretch(&|a, b| cells[a].0 == cells[b].0, &mut |i, from, to| {
                paths[cells[i].0].rectangle(from.0, from.1, to.0, to.1);
            });
            stretch(&|a, b| cells[a].1 == cells[b].1, &mut |i, from, to| {
                if cells[i].1 {
                    fade.rectangle(from.0, from.1, to.0, to.1);
                }
            });
        }
        let mut out = String::from("<g shape-rendering=\"crispEdges\">");
        for (k, path) in paths.iter().enumerate() {
            out.push_str(&path.filled(&self.colour(k)));
        }
        out.push_str(&fade.element("fa"));
        out.push_str("</g>");
        out.push_str(&self.contours(frame).element("co"));
        out
    }

    /// Marching squares: a piece of each contour line in every cell that it crosses.
    fn contours(&self, frame: &Frame) -> PathData {
        let (n, m) = (self.x.len(), self.y.len());
        let mut path = PathData::default();
        for level in &self.levels {
            for (j, i) in (0..m - 1).flat_map(|j| (0..n - 1).map(move |i| (j, i))) {
                let corners = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)];
                let mut crossings = Vec::new();
                for k in 0..4 {
                    let ((i0, j0), (i1, j1)) = (corners[k], corners[(k + 1) % 4]);
                    let (a, b) = (self.values[j0 * n + i0] - level, self.values[j1 * n + i1] - level);
                    if (a < 0.0) != (b < 0.0) {
                        let at = a / (a - b);
                        let x = self.x[i0] + at * (self.x[i1] - self.x[i0]);
                        let y = self.y[j0] + at * (self.y[j1] - self.y[j0]);
                        crossings.push(frame.at(x, y));
                    }
                }
                for pair in crossings.chunks_exact(2) {
                    path.move_to(pair[0].0, pair[0].1);
                    path.line_to(pair[1].0, pair[1].1);
                }
            }
        }
        path
    }
}
