//! What is counted of the arithmetic of a filter.

/// Where a filter met the limits of its arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Numerics {
    /// Predictive covariances that rounding pushed below the process noise.
    pub clamped: u64,
    /// Sums of a finite basis that were formed anew on schedule.
    pub refreshed: u64,
    /// Sums of a finite basis that were formed anew because they could not be factored.
    pub breakdowns: u64,
    /// Largest jitter of the covariance of inducing inputs, relative to its diagonal.
    pub relative_jitter: f64,
}

impl Numerics {
    /// Adds the counts and keeps the larger jitter.
    pub(crate) fn add(&mut self, other: &Self) {
        self.clamped += other.clamped;
        self.refreshed += other.refreshed;
        self.breakdowns += other.breakdowns;
        self.relative_jitter = self.relative_jitter.max(other.relative_jitter);
    }
}
