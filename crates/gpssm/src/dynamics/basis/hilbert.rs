//! Laplace eigenfunctions on a box (Solin, Särkkä 2020, doi 10.1007/s11222-019-09886-w):
//!
//! ```text
//! k(z, z') ~ sum_j S(sqrt(lambda_j)) psi_j(z) psi_j(z'),
//! psi_j(z) = prod_c sin(pi j_c (z_c + L_c) / (2 L_c)) / sqrt(L_c),  lambda_j = sum_c (pi j_c / (2 L_c))^2
//! ```
//!
//! Outside the box the features are zero, so f is its mean there.

use std::cell::Cell;
use std::f64::consts::PI;
use std::sync::{Arc, Mutex, PoisonError};

use pulp::Simd;
use serde::{Deserialize, Serialize};

use super::features::BasisError;
use crate::kernel::radial::Radial;
use crate::kernel::{Kernel, Part};
use crate::linalg::simd::{Vectorised, dispatch, multiply_add};
use crate::points::Points;

/// A box around the data, and how many functions a kernel gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HilbertChoice {
    /// Centre of the box, for each component of z, internal units.
    pub center: Vec<f64>,
    /// Half-widths of the box.
    pub half_width: Vec<f64>,
    /// Functions for each kernel of a sum.
    pub n_functions: usize,
    /// Multi-indices of the functions, once they were asked for.
    #[serde(skip)]
    pub(crate) indices: IndexCache,
}

/// Components, whether only odd functions were wanted, and the multi-indices on them.
type Indices = (Vec<usize>, bool, Arc<Vec<usize>>);

/// The multi-indices on all components that were asked for; they depend on the box alone.
#[derive(Debug, Default)]
pub(crate) struct IndexCache(Mutex<Vec<Indices>>);

impl Clone for IndexCache {
    /// A copy starts empty: what it holds can be found again.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for IndexCache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl HilbertChoice {
    /// A box and a number of functions.
    pub fn new(center: Vec<f64>, half_width: Vec<f64>, n_functions: usize) -> Self {
        Self { center, half_width, n_functions, indices: IndexCache::default() }
    }

    /// j_c of all functions on some components of z, or of the odd ones, row-major (function, component).
    fn indices_on(&self, components: &[usize], odd: bool) -> Arc<Vec<usize>> {
        let mut known = self.indices.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((.., indices)) = known.iter().find(|(of, parity, _)| of == components && *parity == odd) {
            return Arc::clone(indices);
        }
        let half_width: Vec<f64> = components.iter().map(|&c| self.half_width[c]).collect();
        let indices = Arc::new(smallest(&half_width, self.n_functions, odd));
        known.push((components.to_vec(), odd, Arc::clone(&indices)));
        indices
    }
}

/// The one kernel that it is, and whether it is wanted for the odd part of a function only.
pub(super) fn of_odd_part(kernel: &Kernel) -> Result<(&Part, Radial<'_>, bool), BasisError> {
    let (inner, odd) = match kernel {
        Kernel::Odd(inner) => (&**inner, true),
        kernel => (kernel, false),
    };
    match inner {
        Kernel::Part(part) => {
            part.radial().map(|radial| (part, radial, odd)).ok_or_else(|| refused(part.kind.title()))
        }
        Kernel::Product(_) => Err(refused("product")),
        Kernel::Sum(_) | Kernel::Odd(_) => Err(refused("composed")),
    }
}

/// A kernel without spectral density.
pub(super) fn refused(kind: &str) -> BasisError {
    BasisError::NoSpectralDensity { kind: kind.to_owned() }
}

/// The functions of one kernel, with the square root of the spectral density as their scale.
#[derive(Clone, Debug, PartialEq)]
pub struct HilbertBasis {
    components: Vec<usize>,
    center: Vec<f64>,
    half_width: Vec<f64>,
    scale: Vec<f64>,
    /// Largest j_c of each component, and where the sine of each j_c stands in one table of all of them,
    /// (component, function).
    largest: Vec<usize>,
    places: Vec<usize>,
}

impl HilbertBasis {
    /// The functions of smallest eigenvalue on the kernel's components; the odd ones among them for the odd part of a
    /// function, as psi_j(-z) = psi_j(z) or -psi_j(z) in a box around zero.
    pub fn new(kernel: &Kernel, choice: &HilbertChoice) -> Result<Self, BasisError> {
        let (part, radial, odd) = of_odd_part(kernel)?;
        let components = &part.components;
        let pick = |values: &[f64]| components.iter().map(|&c| values[c]).collect::<Vec<_>>();
        let (center, half_width) = (pick(&choice.center), pick(&choice.half_width));
        let indices = choice.indices_on(components, odd);
        let d = components.len();
        let mut scale = Vec::with_capacity(choice.n_functions);
        for index in indices.chunks_exact(d) {
            let omega: Vec<f64> =
                index.iter().zip(&half_width).map(|(&j, l)| PI * j as f64 / (2.0 * l)).collect();
            let log_density =
                radial.log_spectral_density(&omega).ok_or_else(|| refused(part.kind.title()))?;
            let volume: f64 = half_width.iter().map(|l| l.ln()).sum();
            scale.push((0.5 * (log_density - volume)).exp());
        }
        let largest: Vec<usize> =
            (0..d).map(|c| indices.iter().skip(c).step_by(d).copied().max().unwrap_or(1)).collect();
        let mut places = Vec::with_capacity(indices.len());
        let mut table = 0;
        for (c, largest) in largest.iter().enumerate() {
            places.extend(indices.iter().skip(c).step_by(d).map(|j| table + j));
            table += largest + 1;
        }
        Ok(Self { components: components.clone(), center, half_width, scale, largest, places })
    }

    pub(super) fn len(&self) -> usize {
        self.scale.len()
    }

    /// Sets the amplitudes of all functions to one; what they were.
    pub(super) fn take_amplitudes(&mut self) -> Vec<f64> {
        let units = vec![1.0; self.len()];
        std::mem::replace(&mut self.scale, units)
    }

    /// The features of all points into rows that are `stride` long, from column `offset` on.
    pub(super) fn evaluate(&self, z: &Points, stride: usize, offset: usize, phi: &mut [f64]) {
        dispatch(Features { basis: self, z, stride, offset, phi });
    }

    /// Adds phi(z) . w at all points.
    pub(super) fn add_values(&self, z: &Points, weights: &[f64], f: &mut [f64]) {
        dispatch(Values { basis: self, z, weights, f });
    }

    /// `factor` prod_c sin(j_c a_c) of function `k` at the points of a table of sines.
    #[inline(always)]
    fn product(&self, k: usize, factor: f64, table: &[Lanes]) -> Lanes {
        let mut product = [factor; LANES];
        for places in self.places.chunks_exact(self.len()) {
            let sines = &table[places[k]];
            for lane in 0..LANES {
                product[lane] *= sines[lane];
            }
        }
        product
    }

    /// A table of sines, to be given back.
    fn table(&self) -> Vec<Lanes> {
        let mut table = TABLE.take();
        table.resize(self.largest.iter().map(|largest| largest + 1).sum(), [0.0; LANES]);
        table
    }

    /// sin(j_c a_c) of the points `from`..`from + LANES` (the last one again and again beyond the end), all of
    /// them zero for a point outside the box.
    #[inline(always)]
    fn sines<S: Simd>(&self, z: &Points, from: usize, table: &mut [Lanes]) {
        let mut table = table;
        for (c, &component) in self.components.iter().enumerate() {
            let column = &z.column(component)[from..];
            let (own, rest) = table.split_at_mut(self.largest[c] + 1);
            let mut position = [0.0; LANES];
            for lane in 0..LANES {
                position[lane] = (column[lane.min(column.len() - 1)] - self.center[c]) / self.half_width[c];
            }
            let (first, twice_cosine) = angles::<S>(&position);
            // sin((j + 1) a) = 2 cos(a) sin(j a) - sin((j - 1) a).
            own[0] = [0.0; LANES];
            own[1] = first;
            for j in 2..own.len() {
                for lane in 0..LANES {
                    own[j][lane] = multiply_add::<S>(twice_cosine[lane], own[j - 1][lane], -own[j - 2][lane]);
                }
            }
            table = rest;
        }
    }
}

/// Points that are worked on together.
const LANES: usize = 8;

type Lanes = [f64; LANES];

thread_local! {
    /// The table of sines, kept because asking for memory would cost as much as a few points do.
    static TABLE: Cell<Vec<Lanes>> = const { Cell::new(Vec::new()) };
}

/// Coefficients of 1, q^2, q^4, ... in cos(q), and of q, q^3, ... in sin(q).
const COSINE: [f64; 12] = taylor(0);
const SINE: [f64; 12] = taylor(1);

const fn taylor(first: u32) -> [f64; 12] {
    let (mut coefficients, mut k, mut power, mut value) = ([0.0; 12], 0, first, 1.0);
    while k < 12 {
        coefficients[k] = value;
        value /= -(((power + 1) * (power + 2)) as f64);
        power += 2;
        k += 1;
    }
    coefficients
}

/// sin a and 2 cos a of a = pi (position + 1) / 2, both zero outside the box: cos q and -2 sin q with q = pi position / 2, which
/// is at most pi / 2 in absolute value; there the series are right to the last few bits of one.
#[inline(always)]
fn angles<S: Simd>(position: &Lanes) -> (Lanes, Lanes) {
    let (mut sine, mut twice_cosine) = ([COSINE[11]; LANES], [SINE[11]; LANES]);
    let q = position.map(|position| 0.5 * PI * position);
    let square = q.map(|q| q * q);
    for k in (0..11).rev() {
        for lane in 0..LANES {
            sine[lane] = multiply_add::<S>(sine[lane], square[lane], COSINE[k]);
            twice_cosine[lane] = multiply_add::<S>(twice_cosine[lane], square[lane], SINE[k]);
        }
    }
    for lane in 0..LANES {
        // A comparison that NaN fails: it is outside too.
        let inside = position[lane].abs() < 1.0;
        sine[lane] = if inside { sine[lane] } else { 0.0 };
        twice_cosine[lane] = if inside { -2.0 * q[lane] * twice_cosine[lane] } else { 0.0 };
    }
    (sine, twice_cosine)
}

/// [`HilbertBasis::evaluate`].
struct Features<'a> {
    basis: &'a HilbertBasis,
    z: &'a Points,
    stride: usize,
    offset: usize,
    phi: &'a mut [f64],
}

impl Vectorised for Features<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { basis, z, stride, offset, phi } = self;
        let mut table = basis.table();
        for from in (0..z.len()).step_by(LANES) {
            basis.sines::<S>(z, from, &mut table);
            let phi = &mut phi[from * stride + offset..];
            let count = LANES.min(z.len() - from);
            for (k, &scale) in basis.scale.iter().enumerate() {
                let values = basis.product(k, scale, &table);
                for (lane, value) in values.iter().enumerate().take(count) {
                    phi[lane * stride + k] = *value;
                }
            }
        }
        TABLE.set(table);
    }
}

/// [`HilbertBasis::add_values`].
struct Values<'a> {
    basis: &'a HilbertBasis,
    z: &'a Points,
    weights: &'a [f64],
    f: &'a mut [f64],
}

impl Vectorised for Values<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { basis, z, weights, f } = self;
        let mut table = basis.table();
        for from in (0..z.len()).step_by(LANES) {
            basis.sines::<S>(z, from, &mut table);
            let mut sum = [0.0; LANES];
            for (k, (scale, weight)) in basis.scale.iter().zip(weights).enumerate() {
                let values = basis.product(k, scale * weight, &table);
                for lane in 0..LANES {
                    sum[lane] += values[lane];
                }
            }
            f[from..].iter_mut().zip(sum).for_each(|(f, sum)| *f += sum);
        }
        TABLE.set(table);
    }
}

/// The `n` multi-indices j >= 1 with the smallest sum of (j_c / L_c)^2, ties in lexicographic order.
fn smallest(half_width: &[f64], n: usize, odd: bool) -> Vec<usize> {
    let d = half_width.len();
    let key =
        |index: &[usize]| -> f64 { index.iter().zip(half_width).map(|(&j, l)| (j as f64 / l).powi(2)).sum() };
    // sin(pi j (z + L) / (2 L)) is odd about zero for even j.
    let is_odd = |index: &[usize]| index.iter().filter(|j| *j % 2 == 0).count() % 2 == 1;
    let (mut passed, mut chosen) = (Vec::new(), Vec::with_capacity(n * d));
    // Candidates next to what was chosen: each has all its predecessors chosen before it.
    let mut candidates: Vec<Vec<usize>> = vec![vec![1; d]];
    while chosen.len() < n * d {
        let best = (0..candidates.len())
            .min_by(|&a, &b| {
                key(&candidates[a])
                    .total_cmp(&key(&candidates[b]))
                    .then_with(|| candidates[a].cmp(&candidates[b]))
            })
            .unwrap_or(0);
        let index = candidates.swap_remove(best);
        for c in 0..d {
            let mut next = index.clone();
            next[c] += 1;
            if !candidates.contains(&next) && !passed.chunks_exact(d).any(|other| other == next) {
                candidates.push(next);
            }
        }
        if !odd || is_odd(&index) {
            chosen.extend(&index);
        }
        passed.extend(index);
    }
    chosen
}
