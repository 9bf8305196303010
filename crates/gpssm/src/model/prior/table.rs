//! A density of one number that is known up to a constant, with its distribution function.
//!
//! The line is mapped to a coordinate t in which a step means a factor: v = sinh t, low + e^t, high - e^t, or
//! low + (high - low) / (1 + e^-t). Cells of t are halved until the log density h(t) is nearly straight in each; then
//! a parabola gives the mass of a cell, and a straight h the place within it.

use std::sync::Arc;

use super::super::prior_error::PriorError;
use super::density::PriorDensity;
use crate::special::softplus;

/// Ends of t where v goes to infinity, and where v goes to an end that is finite.
const FAR: f64 = 70.0;
const NEAR: f64 = 150.0;

/// Width of the first cells.
const STEP: f64 = 0.5;

/// A density that has not fallen by this factor (of logarithms) at the ends of t has no finite integral.
const FALL: f64 = 15.0;

/// Cells whose log density is lower than the greatest by this much hold no mass.
const NEGLIGIBLE: f64 = 45.0;

/// Largest bend and slope of h over a cell.
const BEND: f64 = 1e-4;
const RISE: f64 = 0.5;

/// A density that needs more cells is refused.
const MAX_CELLS: usize = 200_000;

#[derive(Clone, Copy)]
enum Map {
    Real,
    Above(f64),
    Below(f64),
    Between(f64, f64),
}

impl Map {
    fn new(low: Option<f64>, high: Option<f64>) -> Self {
        match (low, high) {
            (None, None) => Self::Real,
            (Some(low), None) => Self::Above(low),
            (None, Some(high)) => Self::Below(high),
            (Some(low), Some(high)) => Self::Between(low, high),
        }
    }

    fn ends(self) -> (f64, f64) {
        match self {
            Self::Real => (-FAR, FAR),
            Self::Above(_) | Self::Below(_) => (-NEAR, FAR),
            Self::Between(..) => (-NEAR, NEAR),
        }
    }

    /// v at t; never an end itself.
    fn value(self, t: f64) -> f64 {
        match self {
            Self::Real => t.sinh(),
            Self::Above(low) => (low + t.exp()).max(low.next_up()),
            Self::Below(high) => (high - t.exp()).min(high.next_down()),
            Self::Between(low, high) => {
                // From the nearer end, so that no digits are lost there.
                let part = (high - low) * (-t.abs()).exp() / (1.0 + (-t.abs()).exp());
                let v = if t < 0.0 { low + part } else { high - part };
                v.clamp(low.next_up(), high.next_down())
            }
        }
    }

    /// ln |dv/dt|.
    fn log_slope(self, t: f64) -> f64 {
        match self {
            Self::Real => t.abs() + (-2.0 * t.abs()).exp().ln_1p() - std::f64::consts::LN_2,
            Self::Above(_) | Self::Below(_) => t,
            Self::Between(low, high) => (high - low).ln() - softplus(t) - softplus(-t),
        }
    }

    /// Whether v rises with t.
    fn rises(self) -> bool {
        !matches!(self, Self::Below(_))
    }
}

/// The normalised density.
pub(super) struct Table {
    density: Arc<dyn PriorDensity>,
    map: Map,
    /// Ends of the cells, and h there less its maximum.
    t: Vec<f64>,
    h: Vec<f64>,
    /// Mass of all cells before each end.
    mass: Vec<f64>,
    log_total: f64,
}

/// A cell that may still be halved.
struct Cell {
    from: (f64, f64),
    to: (f64, f64),
}

fn refuse(message: String) -> PriorError {
    PriorError::Density { message }
}

/// h at many places.
fn evaluate(density: &dyn PriorDensity, map: Map, t: &[f64]) -> Result<Vec<f64>, PriorError> {
    let values: Vec<f64> = t.iter().map(|t| map.value(*t)).collect();
    let mut h = vec![f64::NAN; t.len()];
    density.log_density(&values, &mut h);
    for ((h, v), t) in h.iter_mut().zip(&values).zip(t) {
        if h.is_nan() || *h == f64::INFINITY {
            let what = if h.is_nan() { "not a number" } else { "infinite" };
            return Err(refuse(format!(
                "it is {what} at v = {v:.6e}; if v cannot lie there, give low or high"
            )));
        }
        *h += map.log_slope(*t);
    }
    Ok(h)
}

impl Table {
    pub(super) fn new(
        density: Arc<dyn PriorDensity>,
        low: Option<f64>,
        high: Option<f64>,
    ) -> Result<Self, PriorError> {
        let map = Map::new(low, high);
        let h_at = |t: &[f64]| evaluate(&*density, map, t);
        let (first, last) = map.ends();
        let count = ((last - first) / STEP) as usize;
        let mut t: Vec<f64> = (0..=count).map(|i| first + STEP * i as f64).collect();
        let h = h_at(&t)?;
        let top = (0..t.len()).max_by(|&i, &j| h[i].total_cmp(&h[j])).unwrap_or(0);
        if h[top] == f64::NEG_INFINITY {
            return Err(refuse("the density is zero everywhere".into()));
        }
        for (end, towards) in [(0, first), (count, last)] {
            if h[end] > h[top] - FALL {
                let v = match map.value(towards) {
                    v if v.abs() > 1e20 => {
                        if v > 0.0 {
                            "infinity".into()
                        } else {
                            "minus infinity".into()
                        }
                    }
                    v => format!("{}", v as f32),
                };
                return Err(refuse(format!(
                    "it cannot be normalised: the density does not fall off towards {v}; give low or high, or let it fall"
                )));
            }
        }
        let (t_top, h_top) = climb(&h_at, t[top], h[top])?;
        // However narrow the peak is, some cells are as narrow.
        let near = (0..46).flat_map(|j| [-1.0, 1.0].map(|side| t_top + side * STEP * 0.5f64.powi(j)));
        t.extend(near.chain([t_top]).filter(|t| first < *t && *t < last));
        t.sort_by(f64::total_cmp);
        t.dedup();
        let h = h_at(&t)?;
        let h_top = h.iter().fold(h_top, |top, h| top.max(*h));
        Self::refined(&density, map, &t, &h, h_top)
    }

    fn refined(
        density: &Arc<dyn PriorDensity>,
        map: Map,
        t: &[f64],
        h: &[f64],
        h_top: f64,
    ) -> Result<Self, PriorError> {
        let places: Vec<(f64, f64)> = t.iter().copied().zip(h.iter().copied()).collect();
        let mut open: Vec<Cell> = places.windows(2).map(|p| Cell { from: p[0], to: p[1] }).collect();
        // (t, h) at the left end of a cell that is done, and its mass.
        let mut done: Vec<(f64, f64, f64)> = Vec::new();
        while !open.is_empty() {
            if open.len() + done.len() > MAX_CELLS {
                return Err(refuse("it is too rough to be integrated".into()));
            }
            let middles: Vec<f64> = open.iter().map(|cell| 0.5 * (cell.from.0 + cell.to.0)).collect();
            let values = evaluate(&**density, map, &middles)?;
            let mut next = Vec::new();
            for ((cell, middle), h) in open.into_iter().zip(middles).zip(values) {
                let Cell { from, to } = cell;
                let matters = from.1.max(to.1).max(h) > h_top - NEGLIGIBLE;
                let straight = (from.1 - to.1).abs() <= RISE && (h - 0.5 * (from.1 + to.1)).abs() <= BEND;
                let width = to.0 - from.0;
                if matters && !straight && width > 1e-13 * from.0.abs().max(1.0) {
                    next.push(Cell { from, to: (middle, h) });
                    next.push(Cell { from: (middle, h), to });
                } else {
                    let mass = width * mean_density(from.1 - h_top, h - h_top, to.1 - h_top);
                    done.push((from.0, from.1 - h_top, mass));
                }
            }
            open = next;
        }
        done.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut total = 0.0;
        let mut table =
            Self { density: Arc::clone(density), map, t: vec![], h: vec![], mass: vec![], log_total: 0.0 };
        for (t, h, mass) in done {
            table.t.push(t);
            table.h.push(h);
            table.mass.push(total);
            total += mass;
        }
        let end = t.len() - 1;
        table.t.push(t[end]);
        table.h.push(h[end] - h_top);
        table.mass.push(total);
        table.log_total = h_top + total.ln();
        if table.log_total.is_finite() { Ok(table) } else { Err(refuse("it cannot be normalised".into())) }
    }

    /// Normalised log density at v.
    pub(super) fn log_density(&self, v: f64) -> f64 {
        let mut out = [f64::NAN];
        self.density.log_density(&[v], &mut out);
        out[0] - self.log_total
    }

    /// The value below which a fraction `p` lies.
    pub(super) fn quantile(&self, p: f64) -> f64 {
        let total = self.mass[self.mass.len() - 1];
        let below = total * if self.map.rises() { p } else { 1.0 - p };
        let i = self.mass.partition_point(|mass| *mass <= below).clamp(1, self.mass.len() - 1) - 1;
        let mass = self.mass[i + 1] - self.mass[i];
        let part = if mass > 0.0 { ((below - self.mass[i]) / mass).clamp(0.0, 1.0) } else { 0.5 };
        let rise = self.h[i + 1] - self.h[i];
        let place = if rise.abs() < 1e-9 || !rise.is_finite() {
            part
        } else {
            ((part * rise.exp_m1()).ln_1p() / rise).clamp(0.0, 1.0)
        };
        self.map.value(self.t[i] + place * (self.t[i + 1] - self.t[i]))
    }
}

/// Mean of e^h over a cell from h at its ends and its middle.
///
/// A parabola whose bend d is small: e^h = e^(a + D s) (1 + 4 d s (1 - s)), integrated as a series in D. Where h bends or
/// rises more than that (a jump, or no mass worth a word) Simpson's rule has to do.
fn mean_density(a: f64, middle: f64, b: f64) -> f64 {
    let (rise, bend) = (b - a, middle - 0.5 * (a + b));
    if !(rise.abs() <= RISE && bend.abs() <= BEND) {
        return (a.exp() + 4.0 * middle.exp() + b.exp()) / 6.0;
    }
    // D^k / k! for k = 0, 1, ...
    let (mut power, mut sum) = (1.0, 0.0);
    for k in 0..12 {
        let k = f64::from(k);
        sum += power * (1.0 / (k + 1.0) + 4.0 * bend / ((k + 2.0) * (k + 3.0)));
        power *= rise / (k + 1.0);
    }
    a.exp() * sum
}

/// The top of a hill that rises within a step of `t`.
fn climb(
    h_at: &impl Fn(&[f64]) -> Result<Vec<f64>, PriorError>,
    t: f64,
    h: f64,
) -> Result<(f64, f64), PriorError> {
    let (mut best, mut half) = ((t, h), STEP);
    for _ in 0..16 {
        let places: Vec<f64> = (-7..=7).map(|i| best.0 + half * f64::from(i) / 8.0).collect();
        for (t, h) in places.iter().zip(h_at(&places)?) {
            if h > best.1 {
                best = (*t, h);
            }
        }
        half /= 8.0;
    }
    Ok(best)
}
