//! Distilled models with made-up numbers, and their C sources compiled.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use gpssm::Kernel;
use gpssm::posterior::{
    DistilLoss, Distilled, DistilledInitial, DistilledPredictor, DistilledRows, DistilledSensor,
    DistilledState, OutputDensity, SparseFunction,
};
use gpssm::scaling::Affine;
use gpssm_export::{Model, Options, c};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;
use tempfile::TempDir;

pub fn normals(seed: u64) -> impl FnMut() -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    move || rng.sample::<f64, _>(StandardNormal)
}

pub fn options() -> Options {
    Options { name: "plant".into(), ..Options::default() }
}

/// Lower factor by rows of a matrix given by its entries.
fn packed_factor(n: usize, entry: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let mut l: Vec<f64> = Vec::new();
    for i in 0..n {
        for j in 0..=i {
            let (row, column) = (i * (i + 1) / 2, j * (j + 1) / 2);
            let sum: f64 = (0..j).map(|k| l[row + k] * l[column + k]).sum();
            let left = entry(i, j) - sum;
            l.push(if i == j { left.max(1e-12).sqrt() } else { left / l[column + j] });
        }
    }
    l
}

/// A sparse function with random inducing inputs and weights.
pub fn sparse(kernel: &Kernel, m: usize, n_z: usize, seed: u64) -> SparseFunction {
    let mut normal = normals(seed);
    let inducing: Vec<f64> = (0..m * n_z).map(|_| 1.5 * normal()).collect();
    let at = |i: usize| &inducing[i * n_z..(i + 1) * n_z];
    let chol = packed_factor(m, |i, j| {
        kernel.value(at(i), at(j)) + if i == j { 1e-6 * kernel.diagonal(at(i)) } else { 0.0 }
    });
    let weights: Vec<f64> = (0..m).map(|_| normal()).collect();
    let mut coefficients = weights.clone();
    for i in (0..m).rev() {
        let sum: f64 = (i + 1..m).map(|k| chol[k * (k + 1) / 2 + i] * coefficients[k]).sum();
        coefficients[i] = (coefficients[i] - sum) / chol[i * (i + 1) / 2 + i];
    }
    let variance_factor = (0..m)
        .flat_map(|i| (0..=i).map(move |j| (i, j)))
        .map(|(i, j)| if i == j { 0.3 } else { 0.02 * normal() });
    SparseFunction {
        offset: 0.1,
        slopes: (0..n_z).map(|c| [0.6, -0.3, 0.4][c % 3]).collect(),
        kernel: kernel.clone(),
        variance_factor: variance_factor.collect(),
        inducing,
        n_inducing: m,
        n_components: n_z,
        chol,
        weights,
        coefficients,
    }
}

/// y = x_1 with noise 0.1.
pub fn first_state(n_x: usize, n_u: usize) -> DistilledSensor {
    let mut weights = vec![0.0; n_x + n_u];
    weights[0] = 1.0;
    let predictor = DistilledPredictor::Linear { weights, offset: 0.0 };
    with_density(OutputDensity::Gaussian { predictors: vec![predictor], noise: vec![0.01] })
}

pub fn with_density(density: OutputDensity) -> DistilledSensor {
    DistilledSensor { description: Default::default(), linear: None, density: Some(density) }
}

/// Two states and an input in units of their own, the first learned.
pub fn distilled(states: Vec<DistilledState>, n_u: usize, sensor: DistilledSensor, n_y: usize) -> Distilled {
    let n_x = states.len();
    let names = |letter: &str, n: usize| (1..=n).map(|i| format!("{letter}{i}")).collect();
    let moving = |d: usize| matches!(states[d], DistilledState::Sparse(_));
    let noise = |i: usize| {
        let (d, e) = (i / n_x, i % n_x);
        if !moving(d) || !moving(e) {
            0.0
        } else if d == e {
            0.04
        } else {
            0.01
        }
    };
    Distilled {
        version: 2,
        n_x,
        n_u,
        n_y,
        state_names: names("x", n_x),
        input_names: names("u", n_u),
        output_names: names("y", n_y),
        rows: DistilledRows::default(),
        x_units: Affine { shift: vec![0.3; n_x], scale: vec![1.7; n_x] },
        u_units: Affine { shift: vec![-0.2; n_u], scale: vec![0.8; n_u] },
        y_units: Affine::identity(n_y),
        process_noise: (0..n_x * n_x).map(noise).collect(),
        sensor: Some(sensor),
        initial: Some(DistilledInitial::Gaussian {
            mean: vec![0.2; n_x],
            chol: (0..n_x * n_x).map(|i| if i % (n_x + 1) == 0 { 0.5 } else { 0.0 }).collect(),
        }),
        visited: vec![(-8.0, 8.0); n_x + n_u],
        scenarios: Vec::new(),
        theta_names: Vec::new(),
        theta: Vec::new(),
        loss: DistilLoss::default(),
        states,
    }
}

/// Two states with a squared exponential each.
pub fn sparse_states() -> Distilled {
    let kernel = |ell: f64| Kernel::squared_exponential(0.2, &[ell, ell, 2.0 * ell]);
    let state = |seed: u64| DistilledState::Sparse(Box::new(sparse(&kernel(1.0 + seed as f64), 6, 3, seed)));
    distilled(vec![state(1), state(2)], 1, first_state(2, 1), 1)
}

pub fn points(rows: &[&[f64]]) -> Vec<Vec<f64>> {
    rows.iter().map(|row| row.to_vec()).collect()
}

pub fn random_points(distilled: &Distilled, n: usize) -> Vec<Vec<f64>> {
    let mut normal = normals(9);
    (0..n).map(|_| (0..distilled.n_x + distilled.n_u).map(|_| 1.5 * normal()).collect()).collect()
}

/// The compilers that are there; says which are not.
pub fn compilers() -> Vec<&'static str> {
    ["gcc", "clang"]
        .into_iter()
        .filter(|compiler| {
            let there =
                Command::new(compiler).arg("--version").output().is_ok_and(|found| found.status.success());
            if !there {
                println!("{compiler} is not installed: the C export was not tested with it");
            }
            there
        })
        .collect()
}

/// A program that reads points and prints what the model says of them.
const PROBE: &str = include_str!("probe.c");

/// An exported model as a program.
pub struct Compiled {
    folder: TempDir,
}

impl Compiled {
    pub fn new(distilled: &Distilled, options: &Options, compiler: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let model = Model::new(distilled, options).unwrap();
        for file in c::export(&model).unwrap() {
            std::fs::write(folder.path().join(&file.name), &file.bytes).unwrap();
        }
        std::fs::write(folder.path().join("probe.c"), PROBE).unwrap();
        let compile = |out: &str, sources: &[&str]| {
            let mut command = Command::new(compiler);
            command.current_dir(folder.path()).args([
                "-std=c99",
                "-Wall",
                "-Wextra",
                "-Wpedantic",
                "-Werror",
            ]);
            let has_outputs = model.sensor.moments.is_some();
            command.arg(if has_outputs { "-DHAS_OUTPUT" } else { "-DNO_OUTPUT" });
            command.arg(if distilled.n_u > 0 { "-DHAS_INPUTS" } else { "-DNO_INPUTS" });
            // Warnings of all kinds need optimisation; a large model would take its time.
            let level = if distilled.n_x > 4 { "-O1" } else { "-O3" };
            let run = command.args([level, "-o", out]).args(sources).arg("-lm").output().unwrap();
            assert!(run.status.success(), "{compiler}: {}", String::from_utf8_lossy(&run.stderr));
        };
        compile("probe", &["probe.c", "plant.c"]);
        compile("example", &["main.c", "plant.c"]);
        compile("plant_casadi.so", &["-fPIC", "-shared", "plant_casadi.c", "plant.c"]);
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What a program that measures times prints.
    pub fn speed(&self, compiler: &str, source: &str) -> Vec<String> {
        std::fs::write(self.path("speed.c"), source).unwrap();
        let mut command = Command::new(compiler);
        command
            .current_dir(self.folder.path())
            .args(["-std=c99", "-O3", "-o", "speed", "speed.c", "plant.c", "-lm"]);
        let made = command.output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let output = Command::new(self.path("speed")).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    /// What the probe prints for each of some rows of numbers.
    pub fn run(&self, task: &str, rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let mut child = Command::new(self.path("probe"))
            .arg(task)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let text: String = rows
            .iter()
            .map(|row| row.iter().map(|v| format!("{v:?}")).collect::<Vec<_>>().join(" ") + "\n")
            .collect();
        let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| line.split(' ').map(|v| v.parse().unwrap()).collect()).collect()
    }
}
