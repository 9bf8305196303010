//! Univariate slice sampling with stepping out and shrinkage.
//!
//! Reference: R. M. Neal (2003), "Slice sampling", *Annals of Statistics* 31(3), 705-767,
//! doi 10.1214/aos/1056562461. The steps carry the names of the paper: the *level* y that
//! defines the slice, *stepping out* (figure 3) and *shrinkage* (figure 5).
//!
//! With f the target density, known up to a constant, one update from x0 is
//!
//! 1. draw the level, on the log scale `z = ln y = ln f(x0) + ln u` with `u ~ Uniform(0, 1]`;
//!    the slice is `S = { x : ln f(x) >= z }`;
//! 2. find an interval `I = (L, R)` around x0 by stepping out in steps of `width`;
//! 3. draw x1 from the part of S inside I by shrinkage.
//!
//! The update leaves f invariant for every fixed `width` and every [`SliceLimits`], so these
//! govern cost and mixing only. [`WidthAdaptation`] looks at past states of the chain, so it
//! must be frozen before draws are kept.

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

/// Limits on the work of one slice update. Neither limit disturbs the invariant distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceLimits {
    /// The integer m of Neal's figure 3: the interval grows to at most `m * width`, that is by
    /// at most `m - 1` steps. Zero is read as one (no stepping out).
    pub max_step_out: u32,
    /// Largest number of rejected candidates in shrinkage, after which the old point is kept.
    /// Zero is read as one.
    pub max_shrink: u32,
}

impl Default for SliceLimits {
    /// Sixteen widths, one hundred rejected candidates. Around a narrow slice a rejection leaves
    /// at most 3/4 of the interval on average, so one hundred is reached only where the density
    /// is broken around the current point.
    fn default() -> Self {
        Self { max_step_out: 16, max_shrink: 100 }
    }
}

/// What one slice update did.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SliceOutcome {
    /// The new point, or the old one where the update could not move.
    pub x: f64,
    /// Log density at `x`, as returned by the density (or as passed in where `x` is the old
    /// point).
    pub log_density: f64,
    /// Number of calls of the density.
    pub evaluations: u32,
    /// Number of calls that returned NaN or plus infinity, both treated as minus infinity. It is
    /// one, with `evaluations` zero, where the arguments of the update were unusable.
    pub failures: u32,
    /// Whether a limit was reached: stepping out used all its steps, so that the interval has
    /// its largest size `m * width`, or shrinkage gave up and the old point was kept.
    pub capped: bool,
    /// Number of steps by which stepping out enlarged the interval.
    pub step_outs: u32,
    /// Number of rejected candidates; each shrinks the interval.
    pub shrinks: u32,
    /// Width of the interval after stepping out and before shrinkage.
    pub interval: f64,
}

/// The slice at one level, with a count of the calls that were needed to look at it.
struct Slice<'a> {
    log_density: &'a mut dyn FnMut(f64) -> f64,
    log_level: f64,
    evaluations: u32,
    failures: u32,
}

impl Slice<'_> {
    /// The log density at `x` if `x` lies in the slice.
    fn membership(&mut self, x: f64) -> Option<f64> {
        // Stepping out with a huge width can leave the range of f64. No target has mass there,
        // and few densities are written with an infinite argument in mind.
        if !x.is_finite() {
            return None;
        }
        self.evaluations = self.evaluations.saturating_add(1);
        let value = (self.log_density)(x);
        if value.is_nan() || value == f64::INFINITY {
            self.failures = self.failures.saturating_add(1);
            return None;
        }
        // Neal writes y < f(x). The closed slice has the same measure, and it always holds x0,
        // even where the level rounds to ln f(x0); this is what lets shrinkage end.
        (value >= self.log_level).then_some(value)
    }
}

/// One slice update of `x0` (Neal 2003, figures 3 and 5).
///
/// `log_density` is the log of the target density up to a constant, and `log_density_x0` its
/// value at `x0`. Minus infinity, NaN and plus infinity all mean "outside the slice"; the latter
/// two are counted in [`SliceOutcome::failures`].
///
/// The update does not panic. If `log_density_x0` or `x0` is not finite, or `width` is not
/// finite and positive, no density is called, no random number is drawn, and the old point is
/// returned with `failures` equal to one.
///
/// Random numbers are drawn in this order: the level, the placement U and the split V of
/// figure 3, then one per candidate of figure 5.
pub fn slice_update<R: Rng + ?Sized>(
    x0: f64,
    log_density_x0: f64,
    width: f64,
    limits: SliceLimits,
    log_density: &mut dyn FnMut(f64) -> f64,
    rng: &mut R,
) -> SliceOutcome {
    let mut outcome = SliceOutcome {
        x: x0,
        log_density: log_density_x0,
        evaluations: 0,
        failures: 0,
        capped: false,
        step_outs: 0,
        shrinks: 0,
        interval: 0.0,
    };
    let usable_width = width.is_finite() && width > 0.0;
    if !(log_density_x0.is_finite() && x0.is_finite() && usable_width) {
        outcome.failures = 1;
        return outcome;
    }

    // Level: `random` lies in [0, 1), so one minus it never gives the logarithm of zero.
    let mut slice = Slice {
        log_density,
        log_level: log_density_x0 + (1.0 - rng.random::<f64>()).ln(),
        evaluations: 0,
        failures: 0,
    };

    let (left, right) = step_out(x0, width, limits, &mut slice, rng, &mut outcome);
    outcome.interval = right - left;
    if outcome.interval.is_finite() {
        shrink(x0, left, right, limits, &mut slice, rng, &mut outcome);
    } else {
        // No uniform draw is possible. Giving up is a function of the interval alone, and every
        // point of the slice in it gives the same interval the same probability, so the update
        // stays reversible.
        outcome.capped = true;
    }
    outcome.evaluations = slice.evaluations;
    outcome.failures = slice.failures;
    outcome
}

/// Stepping out, figure 3: the interval (L, R) around `x0`.
///
/// U places x0 uniformly in the first interval and V splits the m - 1 allowed steps into J to
/// the left and K to the right. Both draws are needed for exactness: they make the probability
/// of arriving at (L, R) the same from every point of the slice inside (L, R).
fn step_out<R: Rng + ?Sized>(
    x0: f64,
    width: f64,
    limits: SliceLimits,
    slice: &mut Slice<'_>,
    rng: &mut R,
    outcome: &mut SliceOutcome,
) -> (f64, f64) {
    let placement: f64 = rng.random();
    let mut left = x0 - width * placement;
    let mut right = left + width;

    let largest_number_of_widths = limits.max_step_out.max(1);
    let allowed_steps = largest_number_of_widths - 1;
    let split: f64 = rng.random();
    // floor(m V), by truncation; the minimum guards against a product rounded up to m.
    let allowed_left = ((f64::from(largest_number_of_widths) * split) as u32).min(allowed_steps);
    let allowed_right = allowed_steps - allowed_left;

    let mut steps_left = 0;
    while steps_left < allowed_left && slice.membership(left).is_some() {
        left -= width;
        steps_left += 1;
    }
    let mut steps_right = 0;
    while steps_right < allowed_right && slice.membership(right).is_some() {
        right += width;
        steps_right += 1;
    }
    outcome.step_outs = steps_left + steps_right;
    outcome.capped = outcome.step_outs == allowed_steps;
    (left, right)
}

/// Shrinkage, figure 5: candidates uniform on an interval that shrinks towards `x0` at every
/// rejection, until one lies in the slice.
///
/// The acceptance test of Neal's figure 6 is needed for doubling only; after stepping out every
/// point of the slice inside the interval is acceptable. Keeping the old point at the limit
/// adds mass to the move x0 -> x0 alone, so it leaves detailed balance as it was.
fn shrink<R: Rng + ?Sized>(
    x0: f64,
    mut left: f64,
    mut right: f64,
    limits: SliceLimits,
    slice: &mut Slice<'_>,
    rng: &mut R,
    outcome: &mut SliceOutcome,
) {
    let allowed_rejections = limits.max_shrink.max(1);
    while outcome.shrinks < allowed_rejections {
        let candidate = left + rng.random::<f64>() * (right - left);
        if let Some(value) = slice.membership(candidate) {
            outcome.x = candidate;
            outcome.log_density = value;
            return;
        }
        outcome.shrinks += 1;
        if candidate < x0 {
            left = candidate;
        } else {
            right = candidate;
        }
    }
    outcome.capped = true;
}

/// Distances moved per width. With x0 and x1 both uniform on an interval slice of length s the
/// mean distance is s / 3, so three mean distances are one typical slice. With a width equal
/// to the slice, stepping out takes 2 + s / width = 3 evaluations on average and shrinkage
/// about two more; the cost changes little between half and twice this width.
const DISTANCES_PER_WIDTH: f64 = 3.0;

/// Number of updates that the running mean of distances remembers.
const MEMORY: u32 = 100;

/// Divisor of the width after an update that could not move.
const SHRINK_FACTOR: f64 = 8.0;

/// An interval of this many widths without an edge of the slice shows that the width is of the
/// wrong magnitude; a shorter one is common under a small `max_step_out` and a good width.
const MANY_WIDTHS: f64 = 4.0;

/// Smallest and largest width that adaptation gives.
const WIDTH_RANGE: (f64, f64) = (1e-150, 1e150);

/// Adaptation of the width of [`slice_update`] during warm-up.
///
/// The width is `3 * mean |x1 - x0|` over about the last hundred updates, which is about the
/// length of a typical slice. Two cases do not show that length:
///
/// * Stepping out used all its steps and the first candidate was accepted, so no edge of the
///   slice was seen. The width becomes the whole interval, or at least doubles, and the mean
///   starts afresh. If an edge was seen before and the interval is below four widths, which
///   happens under a small `max_step_out`, the slice is taken as twice the interval instead.
///   Growth is then slow, and with `max_step_out` of one or two warm-up may take hundreds of
///   updates in place of about twenty.
/// * The update gave up without moving. The width is divided by eight and the mean starts
///   afresh.
///
/// The width depends on the past of the chain, so the chain has the right invariant distribution
/// only after [`WidthAdaptation::freeze`]. There is no randomness in the adaptation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WidthAdaptation {
    width: f64,
    mean_distance: f64,
    distances: u32,
    frozen: bool,
}

impl WidthAdaptation {
    /// Starts from `initial_width`. A value that is not finite and positive is read as one.
    pub fn new(initial_width: f64) -> Self {
        let usable = initial_width.is_finite() && initial_width > 0.0;
        Self {
            width: clamp_width(if usable { initial_width } else { 1.0 }),
            mean_distance: 0.0,
            distances: 0,
            frozen: false,
        }
    }

    /// The width for the next update.
    pub fn width(&self) -> f64 {
        self.width
    }

    /// Learns from an update that started at `x0`, made with the current width. Does nothing
    /// once frozen, nor for an update that was refused for its arguments.
    pub fn observe(&mut self, x0: f64, outcome: &SliceOutcome) {
        let refused = outcome.evaluations == 0 && !outcome.capped;
        if self.frozen || refused {
            return;
        }
        let mut distance = (outcome.x - x0).abs();
        if outcome.capped && outcome.shrinks == 0 && outcome.interval.is_finite() {
            if self.distances == 0 || outcome.interval >= MANY_WIDTHS * self.width {
                self.restart(outcome.interval.max(2.0 * self.width));
                return;
            }
            distance = 2.0 * outcome.interval / DISTANCES_PER_WIDTH;
        } else if outcome.capped && distance == 0.0 {
            self.restart(self.width / SHRINK_FACTOR);
            return;
        }
        self.distances = self.distances.saturating_add(1).min(MEMORY);
        self.mean_distance += (distance - self.mean_distance) / f64::from(self.distances);
        self.width = clamp_width(DISTANCES_PER_WIDTH * self.mean_distance);
    }

    /// Ends the adaptation: the width no longer changes.
    pub fn freeze(&mut self) {
        self.frozen = true;
    }

    /// Whether [`WidthAdaptation::freeze`] was called.
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Moves to `width` and forgets the distances, which belong to a width of another magnitude.
    fn restart(&mut self, width: f64) {
        self.width = clamp_width(width);
        self.mean_distance = 0.0;
        self.distances = 0;
    }
}

/// Keeps `width` positive and finite, so that adaptation can always come back from an extreme.
fn clamp_width(width: f64) -> f64 {
    let (smallest, largest) = WIDTH_RANGE;
    width.clamp(smallest, largest)
}
