//! Coordinates of a path in which it hardly depends on theta: those of a frozen Gaussian approximation of
//! p(x_{0:T} | y, theta).
//!
//! An [`Anchor`] holds what is frozen: a path x̄ and slopes A_t along it. With these the model is linear,
//!
//! s_{t+1} = m(z̄_t) + A_t (x_t - x̄_t) + phi(z̄_t)' w + v_t,  w ~ N(0, I),  v_t ~ N(0, Q),
//!
//! s the states that are not lags, phi the linear functions of z; the sensor is expanded at x̄_t to second order. With w
//! integrated out, the posterior of this model is Gaussian with precision B - U U', B banded: a square root S of the
//! covariance takes O(T), and a path has the coordinates z = S^{-1} (x - mu). A move of theta that holds z takes the path along,
//! x(theta) = mu(theta) + S(theta) z, with volume log |S|. As the linear part of f is unknown in the approximation, too, the
//! path is not tied to what f happens to be; a finer approximation of f does that, and noise then moves less (decision 15).
//!
//! Exact for any anchor, as long as mu and S depend on y, u, theta at its new value, states that are held, and the
//! anchor; never on the states that move (on their signs alone where the anchor has two branches: then a move ends where a
//! sign changes). So anchors come from the warm-up and are frozen with it.

mod anchor;
mod frame;
mod seen;

pub use anchor::Anchor;
pub(crate) use frame::Frame;
