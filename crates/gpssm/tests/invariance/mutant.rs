//! Planted bugs. They live in the slow twin only.

/// What is wrong with a twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// Nothing.
    None,
    /// Ancestor weight p(x~_{t:T} | path), without w_{t-1}.
    AncestorWithoutWeight,
    /// The new path is drawn uniformly.
    FinalUniform,
    /// The new path never is the one that ends in the reference.
    ReferenceNeverReselected,
    /// The reference's x_0 is drawn anew.
    StartRedrawn,
    /// States are proposed with the covariance of f alone.
    SigmaWithoutQ,
    /// Ancestor weight w p(path, x~_{t:T}) instead of w p(x~_{t:T} | path).
    JointInsteadOfRatio,
    /// Weights p(y | x)^0.9.
    Tempered,
    /// Ancestor weight w p(x~_t | path), as if the model were Markov.
    OneStepAncestor,
    /// One-step predictions, in proposals and futures, given the last two transitions only.
    HistoryCut,
    /// Systematic resampling of the others given the reference's own line, then its ancestor is drawn.
    ReverseOrder,
    /// Ordinary systematic resampling of all, then the reference's slot is overwritten.
    PinnedSlot,
    /// Fully adapted, ancestor weight with p(y_t | path).
    AncestorWithEvidence,
    /// The pairs of the other sequence are forgotten.
    ContextIgnored,
    /// Ancestor weight without the outputs that see the reference's changed lags.
    LagSensorIgnored,
    /// The reference keeps its lags whatever its new ancestor.
    LagKept,
    /// The others are taken from a shortlist as if the reference were not on it.
    ReferenceNotListed,
    /// What was taken from a shortlist by its weight keeps that weight.
    WeighedTwice,
}
