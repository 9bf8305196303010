//! Time: of the clock, and of the thread alone, which other programs on the machine hardly change.

use std::time::Instant;

/// CPU seconds of this thread; where the system does not tell them, those of the clock.
pub fn cpu_seconds() -> f64 {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
    }
    #[cfg(not(unix))]
    {
        use std::sync::OnceLock;
        static BEGAN: OnceLock<Instant> = OnceLock::new();
        BEGAN.get_or_init(Instant::now).elapsed().as_secs_f64()
    }
}

/// Milliseconds of one run.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    pub cpu_ms: f64,
    pub wall_ms: f64,
}

/// Time of one run.
fn time(run: &mut impl FnMut()) -> Time {
    let (cpu, wall) = (cpu_seconds(), Instant::now());
    run();
    Time { cpu_ms: 1e3 * (cpu_seconds() - cpu), wall_ms: 1e3 * wall.elapsed().as_secs_f64() }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Medians over at least three runs and about a second; a run of half a minute is not repeated.
pub fn typical_time(mut run: impl FnMut()) -> Time {
    let (mut cpu, mut wall) = (Vec::new(), Vec::new());
    let began = Instant::now();
    while cpu.is_empty()
        || (cpu.len() < 3 && began.elapsed().as_secs_f64() < 30.0)
        || (began.elapsed().as_secs_f64() < 1.0 && cpu.len() < 1000)
    {
        let time = time(&mut run);
        cpu.push(time.cpu_ms);
        wall.push(time.wall_ms);
    }
    Time { cpu_ms: median(cpu), wall_ms: median(wall) }
}

/// Floating-point operations of one matrix product of order 1000.
pub const PRODUCT_FLOP: f64 = 2e9;

/// CPU milliseconds of one matrix product of order 1000 on one thread: the unit of the stored ratios. Measured before, between and
/// after what it is compared with.
pub struct MatrixProduct {
    a: faer::Mat<f64>,
    c: faer::Mat<f64>,
    times: Vec<f64>,
}

impl MatrixProduct {
    pub fn new() -> Self {
        let n = 1000;
        let a = faer::Mat::<f64>::from_fn(n, n, |i, j| ((7 * i + j) % 13) as f64);
        Self { a, c: faer::Mat::zeros(n, n), times: Vec::new() }
    }

    /// Measures it, the best of three.
    pub fn measure(&mut self) {
        let Self { a, c, times } = self;
        let mut product =
            || faer::linalg::matmul::matmul(c.as_mut(), faer::Accum::Replace, &*a, &*a, 1.0, faer::Par::Seq);
        let best = (0..3).map(|_| time(&mut product).cpu_ms).fold(f64::INFINITY, f64::min);
        times.push(best);
    }

    /// Median of the measurements so far.
    pub fn cpu_ms(&self) -> f64 {
        median(self.times.clone())
    }
}
