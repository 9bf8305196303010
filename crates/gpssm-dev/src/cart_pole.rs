//! A cart with a free pendulum: equations of motion, and records of it under random forces.
//!
//! The equations and parameters are those of Deisenroth, *Efficient Reinforcement Learning using Gaussian Processes*
//! (2010), appendix C: cart 0.5 kg, pendulum 0.5 kg and 0.6 m long, friction 0.1 N s/m, g = 9.82 m/s^2; the angle is
//! counted from the hanging position.

use std::f64::consts::TAU;

use rand::{RngExt, rngs::ChaCha8Rng};
use rand_distr::StandardNormal;

const M_CART: f64 = 0.5;
const M_POLE: f64 = 0.5;
const LENGTH: f64 = 0.6;
const FRICTION: f64 = 0.1;
const GRAVITY: f64 = 9.82;
/// Seconds between observations.
const DT: f64 = 0.1;
/// Runge-Kutta steps between observations.
const STEPS: usize = 10;
/// Largest force, N.
const FORCE: f64 = 10.0;
/// Standard deviation of the part of the force that excites, N.
const EXCITATION: f64 = 5.2;
/// Tones it holds, each from a band of its own between 0.1 and 3.1 Hz.
const TONES: usize = 30;
/// Width of such a band, Hz.
const BAND: f64 = 0.1;
/// The force that acts differs from the one that is recorded; standard deviation, N.
const ACTUATOR: f64 = 0.06;
/// Standard deviation of the instruments: m, m/s, rad/s, rad.
const NOISE: State = [0.004, 0.02, 0.1, 0.015];

/// Names of the states.
pub const NAMES: [&str; 4] = ["position", "velocity", "angular_velocity", "angle"];
/// Their units.
pub const UNITS: [&str; 4] = ["m", "m/s", "rad/s", "rad"];

/// Position, velocity, angular velocity, angle.
pub type State = [f64; 4];

/// Time derivatives of (position, velocity, angular velocity, angle) under a force.
fn derivative(x: &State, force: f64) -> State {
    let [_, velocity, spin, angle] = *x;
    let (sin, cos) = angle.sin_cos();
    let total = M_CART + M_POLE;
    let push = force - FRICTION * velocity;
    let acceleration =
        (2.0 * M_POLE * LENGTH * spin * spin * sin + 3.0 * M_POLE * GRAVITY * sin * cos + 4.0 * push)
            / (4.0 * total - 3.0 * M_POLE * cos * cos);
    let angular =
        (-3.0 * M_POLE * LENGTH * spin * spin * sin * cos - 6.0 * total * GRAVITY * sin - 6.0 * push * cos)
            / (4.0 * LENGTH * total - 3.0 * M_POLE * LENGTH * cos * cos);
    [velocity, acceleration, angular, spin]
}

/// The state one observation later, by Runge-Kutta of order four.
fn step(x: &State, force: f64) -> State {
    let h = DT / STEPS as f64;
    let along = |x: &State, d: &State, h: f64| -> State { std::array::from_fn(|i| x[i] + h * d[i]) };
    let mut x = *x;
    for _ in 0..STEPS {
        let a = derivative(&x, force);
        let b = derivative(&along(&x, &a, 0.5 * h), force);
        let c = derivative(&along(&x, &b, 0.5 * h), force);
        let d = derivative(&along(&x, &c, h), force);
        x = std::array::from_fn(|i| x[i] + h / 6.0 * (a[i] + 2.0 * b[i] + 2.0 * c[i] + d[i]));
    }
    x
}

/// States and forces of a record.
pub struct Motion {
    /// States.
    pub x: Vec<State>,
    /// Forces as they are recorded, N.
    pub u: Vec<f64>,
}

/// A record that begins at rest. The force holds a sum of tones with random frequencies and phases, times what `strength`
/// says of each row; it pulls back a cart that is far away, and takes a part of the swing out of the pendulum, which has no
/// friction of its own: it swings widely but does not turn over.
pub fn simulate(rng: &mut ChaCha8Rng, rows: usize, strength: impl Fn(usize) -> f64) -> Motion {
    let mut tone = |k: usize| (BAND * ((k + 1) as f64 + rng.random::<f64>()), TAU * rng.random::<f64>());
    let tones: Vec<(f64, f64)> = (0..TONES).map(&mut tone).collect();
    let excitation = |t: usize| {
        let now = t as f64 * DT;
        let sum: f64 = tones.iter().map(|(frequency, phase)| (TAU * frequency * now + phase).cos()).sum();
        EXCITATION * (2.0 / TONES as f64).sqrt() * sum
    };
    let (mut x, mut u) = (vec![[0.0; 4]], Vec::new());
    for t in 0..rows {
        let [position, velocity, spin, angle] = x[t];
        let force = strength(t) * excitation(t) - 4.0 * position - 1.5 * velocity + 0.6 * spin * angle.cos();
        u.push(force.clamp(-FORCE, FORCE));
        x.push(step(&x[t], u[t] + ACTUATOR * rng.sample::<f64, _>(StandardNormal)));
    }
    x.truncate(rows);
    Motion { x, u }
}

/// What the instruments say of a state.
pub fn observe(rng: &mut ChaCha8Rng, x: &State) -> Vec<f64> {
    x.iter().zip(NOISE).map(|(x, sd)| x + sd * rng.sample::<f64, _>(StandardNormal)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    /// Kinetic and potential energy; the pendulum is a uniform rod.
    fn energy(x: &State) -> f64 {
        let [_, v, w, angle] = *x;
        let (sin, cos) = angle.sin_cos();
        let (half, inertia) = (0.5 * LENGTH, M_POLE * LENGTH * LENGTH / 12.0);
        let (vx, vy) = (v + half * w * cos, half * w * sin);
        0.5 * M_CART * v * v + 0.5 * M_POLE * (vx * vx + vy * vy) + 0.5 * inertia * w * w
            - M_POLE * GRAVITY * half * cos
    }

    #[test]
    fn energy_changes_by_the_work_of_force_and_friction() {
        for (x, force) in
            [([0.3, 1.2, -2.0, 0.7], 4.0), ([-1.0, -0.4, 3.0, 2.5], -7.0), ([0.0, 0.9, 0.1, -1.1], 0.0)]
        {
            let d = derivative(&x, force);
            let h = 1e-6;
            let along = |h: f64| -> State { std::array::from_fn(|i| x[i] + h * d[i]) };
            let change = (energy(&along(h)) - energy(&along(-h))) / (2.0 * h);
            let work = (force - FRICTION * x[1]) * x[1];
            assert!((change - work).abs() < 1e-6 * (1.0 + work.abs()), "{change} {work}");
        }
    }

    #[test]
    fn the_pendulum_swings_widely_and_does_not_turn_over() {
        for seed in 0..40 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let widest = |motion: &Motion| motion.x.iter().map(|x| x[3].abs()).fold(0.0, f64::max);
            let angle = widest(&simulate(&mut rng, 500, |t| 0.5 - 0.5 * (TAU * t as f64 / 100.0).cos()));
            assert!(angle > 0.6 && angle < 3.0, "seed {seed}: {angle}");
        }
    }
}
