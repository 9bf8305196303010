//! Fits small problems in memory and writes their reports, and one of each single figure, into a folder:
//! `cargo run --release -p gpssm-report --example preview FOLDER [name ...]`.

use std::path::Path;

use gpssm::model::{Predictor, ProcessNoiseSpec, SensorSpec};
use gpssm::posterior::{Target, standard_quantile};
use gpssm::{Functions, MemorySink, Model, Posterior, Problem, Record, Sequence, Settings, sample};
use gpssm_dev::benchmark;
use gpssm_report::chart::TimeTicks;
use gpssm_report::figures::{
    Coverage, Intervals, OneStepSeries, Series, SurfaceData, figure_calibration, figure_free_run,
    figure_one_step, figure_states, figure_surface,
};
use gpssm_report::{Names, ReportInput, report};
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};

type AnyError = Box<dyn std::error::Error>;

struct Noise(ChaCha8Rng);

impl Noise {
    fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    fn normal(&mut self, sd: f64) -> f64 {
        sd * standard_quantile(self.0.random_range(1e-9..1.0 - 1e-9))
    }

    fn poisson(&mut self, rate: f64) -> f64 {
        let (mut n, mut product) = (0.0, self.0.random_range(0.0..1.0));
        while product > (-rate).exp() {
            n += 1.0;
            product *= self.0.random_range(0.0..1.0);
        }
        n
    }
}

struct Case {
    name: &'static str,
    title: &'static str,
    model: Model,
    functions: Functions,
    record: Record,
    names: Names,
}

fn text(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// One state with one input, saturating.
fn tank() -> Result<Case, AnyError> {
    let mut noise = Noise::new(1);
    let u: Vec<f64> =
        (0..120).map(|t| 1.0 + (0.11 * f64::from(t)).sin() + 0.5 * (0.37 * f64::from(t)).cos()).collect();
    let mut x = vec![1.0];
    for t in 0..119 {
        let next = x[t] + 0.4 * u[t] - 0.45 * f64::sqrt(f64::max(x[t], 0.0)) + noise.normal(0.05);
        x.push(next);
    }
    let y: Vec<f64> = x.iter().map(|x| x + noise.normal(0.1)).collect();
    Ok(Case {
        name: "tank",
        title: "Level of a tank",
        model: Model::observed(1, 1),
        functions: Functions::new(),
        record: Sequence::scalar(&y, Some(&u))?.into(),
        names: Names {
            states: text(&["level"]),
            inputs: text(&["pump / V"]),
            outputs: text(&["level gauge / cm"]),
            time_label: "time / s".into(),
            times: vec![(0..120).map(|t| 4.0 * f64::from(t)).collect()],
            ..Names::default()
        },
    })
}

/// An oscillator of which the position is seen.
fn hidden() -> Result<Case, AnyError> {
    let mut noise = Noise::new(2);
    let (mut p, mut v) = (1.5, 0.0);
    let mut y = Vec::new();
    for _ in 0..110 {
        y.push(p + noise.normal(0.08));
        p += 0.5 * v + noise.normal(0.03);
        v = 0.99 * v - 0.125 * p - 0.04 * p * p * p + noise.normal(0.05);
    }
    Ok(Case {
        name: "hidden",
        title: "An oscillator with a hidden velocity",
        model: Model::with_hidden_states(2, 1, 0),
        functions: Functions::new(),
        record: Sequence::scalar(&y, None)?.into(),
        names: Names {
            states: text(&["position", "velocity"]),
            outputs: text(&["position"]),
            ..Names::default()
        },
    })
}

/// The paper's benchmark, whose sensor does not see the sign of the state.
fn benchmark() -> Result<Case, AnyError> {
    let model = benchmark::model(benchmark::kernel());
    let record = benchmark::simulate(3, 99).record()?;
    let functions = Functions::new();
    Ok(Case { name: "benchmark", title: "y = 0.05 x²", model, functions, record, names: Names::default() })
}

/// Counts whose log rate wanders.
fn counts() -> Result<Case, AnyError> {
    let mut noise = Noise::new(4);
    let mut x = 0.5;
    let mut y = Vec::new();
    for t in 0..140 {
        y.push(if (60..70).contains(&t) { f64::NAN } else { noise.poisson(f64::exp(x)) });
        x = 0.2 + 0.85 * x + noise.normal(0.3);
    }
    Ok(Case {
        name: "counts",
        title: "Counts a month",
        model: Model { sensor: SensorSpec::Poisson { log_rate: Predictor::States }, ..Model::observed(1, 0) },
        functions: Functions::new(),
        record: Sequence::scalar(&y, None)?.into(),
        names: Names {
            states: text(&["log rate"]),
            outputs: text(&["cases"]),
            time_label: "month".into(),
            ..Names::default()
        },
    })
}

/// Two sequences of two outputs with missing values, and names that try to break the page.
fn sequences() -> Result<Case, AnyError> {
    let mut noise = Noise::new(5);
    let mut all = Vec::new();
    for n in [60, 45] {
        let (mut a, mut b) = (1.0, -0.5);
        let mut y = Vec::new();
        for t in 0..n {
            let gap = t % 9 == 4 || (20..28).contains(&t);
            y.push(vec![if gap { f64::NAN } else { a + noise.normal(0.1) }, b + noise.normal(0.1)]);
            (a, b) = (
                0.9 * a + 0.35 * f64::sin(2.0 * b) + noise.normal(0.07),
                0.85 * b - 0.4 * a + noise.normal(0.07),
            );
        }
        all.push(Sequence::new(y, Vec::new())?);
    }
    Ok(Case {
        name: "sequences",
        title: "Two runs <script>alert('title')</script>",
        model: Model { process_noise: ProcessNoiseSpec::Full(None), ..Model::observed(2, 0) },
        functions: Functions::new(),
        record: Record::new(all)?,
        names: Names {
            states: text(&["a<b>&amp;\"'", "a rather long name of a state that does not fit into its place"]),
            outputs: text(&["</svg><script>alert(1)</script>", "b"]),
            sequences: text(&["first run", "second & last"]),
            ..Names::default()
        },
    })
}

fn run(case: &Case, folder: &Path) -> Result<(), AnyError> {
    let problem = Problem::new(case.model.clone(), &case.functions, case.record.clone())?;
    let settings = Settings { seed: 1, chains: 2, tune: 100, draws: Some(100), ..Settings::default() };
    let sink = MemorySink::new();
    let run = sample(&problem, &settings, &sink, &|_| true)?;
    let problem = run.basis.as_ref().map_or(problem.clone(), |basis| problem.with_basis(basis.clone()));
    let chains = sink.into_chains();
    let input = ReportInput {
        title: case.title,
        problem: &problem,
        chains: &chains,
        names: case.names.clone(),
        verdict: None,
        lights: None,
        warnings: vec!["This is a preview: 100 draws are too few for conclusions.".into()],
        facts: vec![("seed".into(), "1".into()), ("particles".into(), settings.particles.to_string())],
        choice: None,
        configuration: Some("[model]\nstates = 1\n"),
    };
    let page = report(&input)?;
    println!("{}: {} kB", case.name, page.len() / 1000);
    std::fs::write(folder.join(format!("{}.html", case.name)), page)?;
    if case.name == "benchmark" {
        single_figures(&Posterior::new(&problem, &chains)?, folder)?;
    }
    Ok(())
}

/// The figures of the paper and others, as files of their own.
fn single_figures(posterior: &Posterior, folder: &Path) -> Result<(), AnyError> {
    let grid = |low: f64, high: f64, n: u32| -> Vec<f64> {
        (0..n).map(|i| low + (high - low) * f64::from(i) / f64::from(n - 1)).collect()
    };
    let (x, u) = (grid(-20.0, 20.0, 33), grid(-1.0, 1.0, 15));
    let at = |f: &dyn Fn(f64, f64) -> f64| {
        u.iter().flat_map(|u| x.iter().map(|x| f(*x, *u))).collect::<Vec<f64>>()
    };
    let sequence = &posterior.problem().record().sequences()[0];
    let draws = posterior.draws().iter().step_by(20);
    let points = draws.flat_map(|draw| {
        let path = draw.paths[0].clone();
        (1..path.len()).map(move |t| [path[t - 1], sequence.u(t - 1)[0], path[t]])
    });
    let data = SurfaceData {
        labels: ["x".into(), "u".into(), "next x".into()],
        truth: at(&benchmark::truth),
        truth_name: "true transition function".into(),
        mean_function: at(&|x, _| 0.3 * x + 7.5 * x / (1.0 + x * x)),
        points: points.collect(),
        x,
        y: u,
    };
    std::fs::write(folder.join("surface.svg"), figure_surface("transition function", &data))?;
    let t: Vec<f64> = (0..80).map(f64::from).collect();
    let x_star: Vec<Vec<f64>> = t.iter().map(|t| vec![12.0 * (0.21 * t).sin()]).collect();
    let u_star: Vec<Vec<f64>> = t.iter().map(|t| vec![(1.2 * t).cos()]).collect();
    let truth: Vec<f64> = x_star.iter().zip(&u_star).map(|(x, u)| benchmark::truth(x[0], u[0])).collect();
    let prediction = posterior.predict(&x_star, &u_star, Target::NextState)?;
    let n = 0..t.len();
    let quantile = |p: f64| n.clone().map(|i| prediction.quantile(i, 0, p)).collect::<Vec<f64>>();
    let bands = Intervals {
        low: quantile(0.05),
        inner_low: quantile(0.25),
        middle: quantile(0.5),
        inner_high: quantile(0.75),
        high: quantile(0.95),
    };
    let one_step = OneStepSeries {
        title: "x".into(),
        t: t.clone(),
        truth: truth.clone(),
        mean: n.clone().map(|i| prediction.mean(i)[0]).collect(),
        sd: n.clone().map(|i| prediction.sd(i, 0)).collect(),
    };
    std::fs::write(folder.join("one_step.svg"), figure_one_step("one step ahead", "t", &[one_step]))?;
    let series =
        Series { title: "x".into(), t, truth: truth.clone(), bands: Some(bands), ..Series::default() };
    std::fs::write(folder.join("states.svg"), figure_states("states", "t", std::slice::from_ref(&series)))?;
    let run = Series { data: truth.clone(), truth: Vec::new(), ..series };
    std::fs::write(
        folder.join("free_run.svg"),
        figure_free_run("free run", "t", &TimeTicks::default(), &[run]),
    )?;
    let levels = grid(0.0, 1.0, 21);
    let pit: Vec<f64> = truth.iter().enumerate().map(|(i, x)| prediction.marginal(i, 0).cdf(*x)).collect();
    let inside = |level: &f64| {
        pit.iter().filter(|p| (*p - 0.5).abs() <= level / 2.0).count() as f64 / pit.len() as f64
    };
    let shares = levels.iter().map(inside).collect();
    let calibration =
        Coverage { levels, methods: vec![("GP-SSM, noise-free outcomes".into(), shares)], n: pit.len() };
    std::fs::write(folder.join("calibration.svg"), figure_calibration("calibration", &calibration))?;
    Ok(())
}

fn main() -> Result<(), AnyError> {
    let mut arguments = std::env::args().skip(1);
    let Some(folder) = arguments.next() else {
        eprintln!("usage: preview FOLDER [tank | hidden | benchmark | counts | sequences ...]");
        std::process::exit(2);
    };
    let wanted: Vec<String> = arguments.collect();
    std::fs::create_dir_all(&folder)?;
    for case in [tank()?, hidden()?, benchmark()?, counts()?, sequences()?] {
        if wanted.is_empty() || wanted.iter().any(|name| name == case.name) {
            run(&case, Path::new(&folder))?;
        }
    }
    Ok(())
}
