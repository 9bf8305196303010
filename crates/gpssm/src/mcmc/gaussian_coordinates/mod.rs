//! Coordinates of a path in which it hardly depends on theta: those of a Gaussian approximation of
//! p(x_{0:T} | y, f, theta), f one draw of the function.
//!
//! Given f ([`GivenFunction`]) a path is a Markov chain, x_{t+1} = f(x_t, u_t) + v_t. An iterated Kalman smoother, started at a
//! path that was frozen with the warm-up ([`Anchor`]), expands f and the sensor around the path it found; the last of these
//! approximations has a mean mu and a precision L L', both banded and made in O(T) ([`Frame`]). A path has the coordinates
//! z = L' (x - mu). A move of theta that holds z takes the path along, x(theta) = mu(theta) + L(theta)^{-T} z, with volume
//! 1 / |L|.
//!
//! Exact whatever is frozen, as long as mu and L depend on y, u, f, theta at its new value, states that are held, and the
//! anchor; never on the states that move (on their signs alone where a sensor does not see these: then a move ends where a
//! sign changes).

mod anchor;
mod frame;
mod given;
mod seen;

pub use anchor::Anchor;
pub(crate) use frame::Frame;
pub(crate) use given::GivenFunction;
