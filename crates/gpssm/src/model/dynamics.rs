//! Which prior over functions a model uses: the Gaussian process itself or a finite basis.

use serde::{Deserialize, Serialize};

/// The prior over f.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum DynamicsSpec {
    /// The exact Gaussian process: O(N T^3) a sweep.
    #[default]
    Exact,
    /// Fully independent conditional on inducing inputs (section 4 of the paper): O(N M^2 T) a sweep.
    Fic {
        /// Where the inducing inputs are.
        inducing: InducingSpec,
        /// Whether the weights are integrated out or drawn.
        #[serde(default)]
        mode: Mode,
    },
    /// Inducing inputs without FIC's correction of the variance.
    Dtc {
        /// Where the inducing inputs are.
        inducing: InducingSpec,
        /// Whether the weights are integrated out or drawn.
        #[serde(default)]
        mode: Mode,
    },
    /// Laplace eigenfunctions on a box; squared exponential and Matérn kernels, and linear and constant parts.
    Hilbert {
        /// Functions for each kernel of a sum.
        functions: usize,
        /// Half-widths of the box for each component of (x, u), original units; empty to choose them from
        /// the data.
        #[serde(default)]
        half_width: Vec<f64>,
        /// Whether the weights are integrated out or drawn.
        #[serde(default)]
        mode: Mode,
    },
    /// Random Fourier features; the same kernels.
    Fourier {
        /// Frequencies for each kernel of a sum; each gives two features.
        frequencies: usize,
        /// Whether the weights are integrated out or drawn.
        #[serde(default)]
        mode: Mode,
    },
}

/// How the weights of a finite basis are treated. Both leave the same posterior invariant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Integrated out; ancestor weights over the whole future: O(N M^2 T) a sweep.
    #[default]
    Collapsed,
    /// Drawn once a sweep, then a Markov filter: O(N M T) a sweep.
    Sampled,
}

/// Where inducing inputs are. Whatever is chosen is chosen once for all chains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum InducingSpec {
    /// At these points (x, u), original units.
    Given(Vec<Vec<f64>>),
    /// On a grid over the region that the data fill: so many along each component of (x, u).
    Grid(Vec<usize>),
    /// At the centres of k clusters of a warm-up path.
    KMeans(usize),
    /// At k points of a warm-up path, each the one that tells most given those before it: greedy forward
    /// selection by information gain (Seeger, Williams, Lawrence 2003).
    Greedy(usize),
    /// At k points of a warm-up path, each where those before it leave the largest part of f's prior variance:
    /// greedy forward selection that looks at inputs alone.
    Variance(usize),
}

impl DynamicsSpec {
    /// Whether the weights are drawn in each sweep.
    pub(crate) fn is_sampled(&self) -> bool {
        match self {
            Self::Exact => false,
            Self::Fic { mode, .. }
            | Self::Dtc { mode, .. }
            | Self::Hilbert { mode, .. }
            | Self::Fourier { mode, .. } => *mode == Mode::Sampled,
        }
    }
}
