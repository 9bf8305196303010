//! What is drawn between two axes.

use super::heat::Heat;
use super::scale::{Scale, range};
use super::style::Class;
use super::svg::PathData;
use super::thin;

/// More points than this are drawn as their range in every pixel column.
const MOST_POINTS: usize = 2_000;

/// A mark, in the units of the axes. Values that are not finite are gaps.
#[derive(Clone, Debug)]
pub enum Mark {
    /// A line through points.
    Line {
        /// Places.
        x: Vec<f64>,
        /// Heights.
        y: Vec<f64>,
        /// Its look.
        class: Class,
    },
    /// The area between two lines.
    Band {
        /// Places.
        x: Vec<f64>,
        /// Lower ends.
        low: Vec<f64>,
        /// Upper ends.
        high: Vec<f64>,
        /// Its look.
        class: Class,
    },
    /// Dots.
    Points {
        /// Places.
        x: Vec<f64>,
        /// Heights.
        y: Vec<f64>,
        /// Their look.
        class: Class,
    },
    /// Bars from zero between consecutive edges.
    Bars {
        /// One more than bars.
        edges: Vec<f64>,
        /// Heights.
        heights: Vec<f64>,
        /// Their look.
        class: Class,
    },
    /// The outline of bars.
    Steps {
        /// One more than bars.
        edges: Vec<f64>,
        /// Heights.
        heights: Vec<f64>,
        /// Its look.
        class: Class,
    },
    /// Thin lines from zero, with a dot at the end.
    Stems {
        /// Places.
        x: Vec<f64>,
        /// Heights.
        y: Vec<f64>,
        /// Their look.
        class: Class,
    },
    /// Ticks along the lower axis.
    Rug {
        /// Places.
        x: Vec<f64>,
    },
    /// A line across.
    Horizontal {
        /// Its height.
        y: f64,
        /// Its look.
        class: Class,
    },
    /// A strip across.
    Between {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
        /// Its look.
        class: Class,
    },
    /// A strip from bottom to top.
    Strip {
        /// Left end.
        from: f64,
        /// Right end.
        to: f64,
        /// Its look.
        class: Class,
    },
    /// A function of two arguments as shades.
    Heat(Heat),
}

/// The rectangle of a panel, in pixels.
pub(crate) struct Frame {
    pub x: Scale,
    pub y: Scale,
    pub width: f64,
    pub height: f64,
}

impl Frame {
    pub(crate) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.width * self.x.fraction(x), self.height * (1.0 - self.y.fraction(y)))
    }
}

/// Runs of points without gaps, in pixels.
fn runs(frame: &Frame, x: &[f64], y: &[f64]) -> Vec<Vec<(f64, f64)>> {
    let mut runs = vec![Vec::new()];
    for (x, y) in x.iter().zip(y) {
        if x.is_finite() && y.is_finite() {
            runs[0].push(frame.at(*x, *y));
        } else if !runs[0].is_empty() {
            runs.insert(0, Vec::new());
        }
    }
    runs.retain(|run| !run.is_empty());
    runs.reverse();
    runs
}

impl Mark {
    /// Values that the vertical axis should show.
    pub(crate) fn heights(&self) -> (f64, f64) {
        match self {
            Self::Line { y, .. } | Self::Points { y, .. } => range(y.iter().copied()),
            Self::Band { low, high, .. } => range(low.iter().chain(high).copied()),
            Self::Bars { heights, .. } | Self::Steps { heights, .. } => {
                range(heights.iter().copied().chain([0.0]))
            }
            Self::Stems { y, .. } => range(y.iter().copied().chain([0.0])),
            Self::Horizontal { y, .. } => (*y, *y),
            Self::Between { low, high, .. } => (*low, *high),
            Self::Rug { .. } | Self::Strip { .. } => (f64::NAN, f64::NAN),
            Self::Heat(heat) => range(heat.y.iter().copied()),
        }
    }

    pub(crate) fn draw(&self, frame: &Frame) -> String {
        let mut path = PathData::default();
        let class = match self {
            Self::Line { x, y, class } => {
                for run in runs(frame, x, y) {
                    draw_line(&mut path, &thin::line(&run));
                }
                class
            }
            Self::Band { x, low, high, class } => {
                draw_band(&mut path, frame, x, low, high);
                class
            }
            Self::Points { x, y, class } => {
                let points: Vec<(f64, f64)> = runs(frame, x, y).concat();
                if points.len() > MOST_POINTS {
                    for (x, top, bottom) in thin::ranges(&points) {
                        path.move_to(x, top);
                        path.line_to(x, bottom);
                    }
                } else {
                    for (x, y) in points {
                        path.move_to(x, y);
                        path.line_to(x, y);
                    }
                }
                class
            }
            Self::Bars { edges, heights, class } => {
                for (edge, height) in edges.windows(2).zip(heights).filter(|(_, height)| height.is_finite()) {
                    let ((x0, y0), (x1, y1)) = (frame.at(edge[0], 0.0), frame.at(edge[1], *height));
                    path.rectangle(x0, y0, x1, y1);
                }
                class
            }
            Self::Steps { edges, heights, class } => {
                let corners =
                    edges.windows(2).zip(heights).flat_map(|(edge, h)| [(edge[0], *h), (edge[1], *h)]);
                let corners: Vec<(f64, f64)> = corners.map(|(x, y)| frame.at(x, y)).collect();
                draw_line(&mut path, &corners);
                class
            }
            Self::Stems { x, y, class } => return stems(frame, x, y, *class),
            Self::Rug { x } => {
                let places =
                    x.iter().filter(|x| x.is_finite()).map(|x| (frame.width * frame.x.fraction(*x), 0.0));
                for (x, _, _) in thin::ranges(&places.collect::<Vec<_>>()) {
                    path.move_to(x, frame.height);
                    path.line_to(x, frame.height - 6.0);
                }
                &Class::Rug
            }
            Self::Horizontal { y, class } => {
                let (_, y) = frame.at(frame.x.low(), *y);
                path.move_to(0.0, y);
                path.line_to(frame.width, y);
                class
            }
            Self::Between { low, high, class } => {
                let ((_, y0), (_, y1)) = (frame.at(frame.x.low(), *low), frame.at(frame.x.low(), *high));
                path.rectangle(0.0, y0, frame.width, y1);
                class
            }
            Self::Strip { from, to, class } => {
                let left = (frame.width * frame.x.fraction(*from)).max(0.0);
                path.rectangle(left, 0.0, frame.width * frame.x.fraction(*to), frame.height);
                class
            }
            Self::Heat(heat) => return heat.draw(frame),
        };
        path.element(class.name())
    }
}

fn draw_line(path: &mut PathData, points: &[(f64, f64)]) {
    for (i, (x, y)) in points.iter().enumerate() {
        if i == 0 {
            path.move_to(*x, *y);
        } else {
            path.line_to(*x, *y);
        }
    }
    // A single point between gaps would not be seen.
    if let [(x, y)] = points {
        path.line_to(x + 1.0, *y);
    }
}

fn draw_band(path: &mut PathData, frame: &Frame, x: &[f64], low: &[f64], high: &[f64]) {
    let whole = |i: usize| x[i].is_finite() && low[i].is_finite() && high[i].is_finite();
    let n = x.len().min(low.len()).min(high.len());
    let indices: Vec<usize> = (0..n).collect();
    for run in indices.chunk_by(|a, b| whole(*a) == whole(*b)).filter(|run| whole(run[0])) {
        let points = run.iter().map(|&i| {
            let ((x, upper), (_, lower)) = (frame.at(x[i], high[i]), frame.at(x[i], low[i]));
            (x, upper, lower)
        });
        let points = thin::band(&points.collect::<Vec<_>>());
        for (i, (x, upper, _)) in points.iter().enumerate() {
            if i == 0 {
                path.move_to(*x, *upper);
            } else {
                path.line_to(*x, *upper);
            }
        }
        for (x, _, lower) in points.iter().rev() {
            path.line_to(*x, *lower);
        }
        path.close();
        path.return_to(points[0].0, points[0].1);
    }
}

fn stems(frame: &Frame, x: &[f64], y: &[f64], class: Class) -> String {
    let (mut lines, mut dots) = (PathData::default(), PathData::default());
    for (&x, &y) in x.iter().zip(y).filter(|(x, y)| x.is_finite() && y.is_finite()) {
        let ((px, base), (_, tip)) = (frame.at(x, 0.0), frame.at(x, y));
        lines.move_to(px, base);
        lines.line_to(px, tip);
        dots.move_to(px, tip);
        dots.line_to(px, tip);
    }
    lines.element(class.name()) + &dots.element(Class::Data.name())
}
