//! A small layer for figures: axes, marks, panels, one SVG.
//!
//! - [`scale`]: axes and their numbers
//! - [`mark`]: lines, bands, points, bars, maps
//! - [`panel`]: marks between two axes
//! - [`figure`]: panels in rows with a legend, as SVG
//! - [`surface`]: functions of two arguments seen from above
//! - [`style`]: what the classes look like, in light and dark and in print
//! - `svg`, `thin`: short text for long series
//!
//! The size of a figure is bounded by its pixels, not by its data.

pub mod figure;
pub mod heat;
pub mod mark;
pub mod panel;
pub mod scale;
pub mod style;
pub mod surface;
pub(crate) mod svg;
pub(crate) mod thin;

pub use figure::{Figure, Key, Row};
pub use heat::Heat;
pub use mark::Mark;
pub use panel::{Axis, Panel, TimeTicks};
pub use scale::Scale;
pub use style::Class;
pub use svg::escape;
