use gpssm::dynamics::transition::*; use gpssm::function::ScalarFunction; use gpssm::kernel::*; use gpssm::smc::filter::*; use gpssm::sensor::*; use gpssm::model::family::Family; use gpssm::initial::BoundInitial; use gpssm::record::Sequence;
use rand::{SeedableRng, rngs::ChaCha8Rng, RngExt}; use rand_distr::StandardNormal; use std::time::Instant;
use std::sync::Arc;
fn main() {
    let g = Arc::new(|z: &gpssm::Points, _p: &[f64], out: &mut [f64]| for (o, x) in out.iter_mut().zip(z.column(0)) { *o = 0.05 * x * x });
    for (t, n) in [(100usize,20usize),(200,20),(400,20),(800,20)] {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut x = vec![0.0f64]; let u: Vec<f64> = (0..=t).map(|t| (1.2 * (t as f64 + 1.0)).cos()).collect();
        for s in 0..t { let v: f64 = rng.sample(StandardNormal); let p = x[s]; x.push(0.5 * p + 25.0 * p / (1.0 + p * p) + 8.0 * u[s] + 10f64.sqrt() * v); }
        let y: Vec<f64> = x.iter().map(|x| 0.05 * x * x + rng.sample::<f64, _>(StandardNormal)).collect();
        let seq = Sequence::scalar(&y, Some(&u)).unwrap();
        let model = StateSpace { transition: Transition { kernels: vec![Kernel::squared_exponential(100.0, &[5.0, 1.0])], means: vec![ScalarFunction::Component(0)], noise: ProcessNoise::Diagonal(vec![10.0]) },
            sensor: BoundSensor::Family { predictors: vec![ScalarFunction::User { function: gpssm::function::UserFunction { function: g.clone(), parameters: vec![], scaling: None }, shift: 0.0, scale: 1.0 }], families: vec![Family::Gaussian { sd: 1.0 }] },
            initial: BoundInitial::Gaussian { mean: vec![0.0], chol: vec![5f64.sqrt()] } };
        let mut path = x.clone();
        let reps = (40_000_000 / (t * t * t / 10)).clamp(1, 30);
        let shared = SharedPairs::none(1, 1);
        let mut best = f64::MAX;
        for _ in 0..reps { let t0 = Instant::now();
            path = conditional_filter(&model, &seq, &shared, FilterOptions::new(n), &path, &mut rng).unwrap().path; best = best.min(t0.elapsed().as_secs_f64()); }
        let floor = (n as f64 + 2.0) * (t as f64).powi(3);
        println!("T={t} N={n} sweep {:.2} ms, {:.1} GF/s-equivalent floor", best * 1e3, floor / best * 1e-9);
        if t == 200 { let mut best = f64::MAX; for _ in 0..3 { let t0 = Instant::now(); let o = particle_filter(&model, &seq, &shared, FilterOptions::new(3000), &mut rng).unwrap(); best = best.min(t0.elapsed().as_secs_f64()); println!("logZ {}", o.log_evidence); } println!("filter N=3000 {:.0} ms", best*1e3); }
    }
    let n = 1000; let a = faer::Mat::<f64>::from_fn(n, n, |i, j| (i * 7 + j) as f64 % 13.0); let mut c = faer::Mat::<f64>::zeros(n, n); let mut best = f64::MAX;
    for _ in 0..5 { let t0 = Instant::now(); faer::linalg::matmul::matmul(c.as_mut(), faer::Accum::Replace, a.as_ref(), a.as_ref(), 1.0, faer::Par::Seq); best = best.min(t0.elapsed().as_secs_f64()); }
    println!("gemm {:.1} GF/s", 2e9 / best * 1e-9);
}
