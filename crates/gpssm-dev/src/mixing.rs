//! The cases of the mixing benchmark: real series and simulated plants, each with the model it is learned with.
//!
//! Real series are read from a folder that is not part of the project; cases without their file are skipped.

mod plants;
mod series;

use std::path::Path;

use gpssm::kernel::{LINEAR, MATERN32, SQUARED_EXPONENTIAL};
use gpssm::model::{DynamicsSpec, InducingSpec, Mode};
use gpssm::{Error, Functions, KernelSpec, Model, Prior, Problem, Record};

use crate::benchmark;

/// A record and a model to learn it with.
pub struct Case {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    source: Source,
}

enum Source {
    /// The paper's benchmark: kernel and prior over f.
    Benchmark(fn() -> KernelSpec, fn() -> DynamicsSpec),
    /// A file of the folder.
    Series(fn(&Path) -> Option<(Model, Record)>),
    /// A simulated plant.
    Plant(fn() -> Result<(Model, Record), Error>),
}

impl Case {
    /// The problem to sample; none if its file is not in the folder.
    pub fn problem(&self, data: &Path) -> Result<Option<Problem>, Error> {
        let (model, record) = match &self.source {
            Source::Benchmark(kernel, dynamics) => {
                let model = Model { dynamics: dynamics(), ..benchmark::model(kernel()) };
                (model, benchmark::simulate(1, benchmark::T).record()?)
            }
            Source::Series(read) => match read(data) {
                Some(found) => found,
                None => return Ok(None),
            },
            Source::Plant(simulate) => simulate()?,
        };
        Problem::new(model, &Functions::new(), record).map(Some)
    }
}

/// Every case.
pub const CASES: [Case; 20] = [
    benchmark_case("paper_se", "paper's benchmark, SE", squared_exponential, exact),
    benchmark_case("paper_matern", "paper's benchmark, Matérn-3/2 + linear", matern_and_linear, exact),
    benchmark_case(
        "paper_table",
        "paper's benchmark, table 1's kernel: odd(Matérn-3/2(x) + SE(u) + linear)",
        table_kernel,
        exact,
    ),
    benchmark_case("paper_fic", "table 1's kernel, FIC with 40 inducing inputs", table_kernel, fic),
    benchmark_case(
        "paper_hilbert",
        "table 1's kernel, 40 Hilbert functions for each part, weights integrated out",
        table_kernel,
        || hilbert(Mode::Collapsed),
    ),
    benchmark_case(
        "paper_hilbert_sampled",
        "table 1's kernel, 40 Hilbert functions for each part, weights drawn",
        table_kernel,
        || hilbert(Mode::Sampled),
    ),
    series_case("nile", "Nile, 100 rows", series::nile),
    series_case("polio", "polio, 168 rows of counts", series::polio),
    series_case(
        "pound_dollar",
        "pound/dollar, stochastic volatility, the first 300 rows",
        series::pound_dollar,
    ),
    series_case("hare_lynx", "hare and lynx, 91 rows, two states", series::hare_lynx),
    series_case("gas_furnace", "gas furnace, 296 rows, one state", |data| series::gas_furnace(data, 1)),
    series_case("gas_furnace_2", "gas furnace, 296 rows, two states", |data| series::gas_furnace(data, 2)),
    series_case("drive_2", "drive, the first 250 rows, two states", series::drive),
    plant_case("precise", "one state, 150 rows, r a hundredth of the output's sd", || plants::seen(0.01)),
    plant_case("weak", "one state, 150 rows, r twice the state's sd", || plants::seen(2.0)),
    plant_case("tank", "driven tank, 140 rows, a curved f with little noise", plants::tank),
    plant_case("four_states", "four states, 100 rows, all seen", plants::four_states),
    plant_case("fitzhugh_nagumo", "FitzHugh-Nagumo, 500 rows, everything learned", || {
        plants::fitzhugh_nagumo(false, DynamicsSpec::Exact)
    }),
    plant_case("fitzhugh_nagumo_known", "FitzHugh-Nagumo, 500 rows, noises and kernel known", || {
        plants::fitzhugh_nagumo(true, DynamicsSpec::Exact)
    }),
    plant_case("fitzhugh_nagumo_hilbert", "FitzHugh-Nagumo, 500 rows, 100 Hilbert functions", || {
        plants::fitzhugh_nagumo(false, plants::fitzhugh_nagumo_basis())
    }),
];

const fn benchmark_case(
    name: &'static str,
    title: &'static str,
    kernel: fn() -> KernelSpec,
    dynamics: fn() -> DynamicsSpec,
) -> Case {
    Case { name, title, source: Source::Benchmark(kernel, dynamics) }
}

const fn series_case(
    name: &'static str,
    title: &'static str,
    read: fn(&Path) -> Option<(Model, Record)>,
) -> Case {
    Case { name, title, source: Source::Series(read) }
}

const fn plant_case(
    name: &'static str,
    title: &'static str,
    simulate: fn() -> Result<(Model, Record), Error>,
) -> Case {
    Case { name, title, source: Source::Plant(simulate) }
}

fn log_normal(median: f64, sigma: f64) -> Prior {
    Prior::LogNormal { median, sigma }
}

fn exact() -> DynamicsSpec {
    DynamicsSpec::Exact
}

fn fic() -> DynamicsSpec {
    DynamicsSpec::Fic { inducing: InducingSpec::Greedy(40), mode: Mode::Collapsed }
}

fn hilbert(mode: Mode) -> DynamicsSpec {
    DynamicsSpec::Hilbert { functions: 40, half_width: Vec::new(), mode }
}

/// As in table 1.
fn squared_exponential() -> KernelSpec {
    KernelSpec::new(&SQUARED_EXPONENTIAL)
        .with("sigma_f", log_normal(10.0, 1.0))
        .with("ell", vec![log_normal(3.0, 0.5), log_normal(5.0, 0.5)])
}

/// As in the program's demo.
fn matern_and_linear() -> KernelSpec {
    let matern32 =
        KernelSpec::new(&MATERN32).with("sigma_f", log_normal(10.0, 1.0)).with("ell", log_normal(5.0, 0.5));
    KernelSpec::Sum(vec![matern32, KernelSpec::new(&LINEAR).with("sigma", log_normal(1.0, 1.0))])
}

/// As in table 1, the kernel of our choice.
fn table_kernel() -> KernelSpec {
    let of_x = KernelSpec::new(&MATERN32)
        .on(&["x"])
        .with("sigma_f", log_normal(10.0, 1.0))
        .with("ell", log_normal(3.0, 0.6));
    let of_u = KernelSpec::new(&SQUARED_EXPONENTIAL)
        .on(&["u"])
        .with("sigma_f", log_normal(10.0, 1.0))
        .with("ell", log_normal(5.0, 0.5));
    let linear = KernelSpec::new(&LINEAR).with("sigma", log_normal(1.0, 1.0));
    KernelSpec::Odd(Box::new(KernelSpec::Sum(vec![of_x, of_u, linear])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_a_valid_problem_or_has_no_file() {
        let nowhere = Path::new("/nowhere");
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
        for case in &CASES {
            let is_series = matches!(case.source, Source::Series(_));
            assert_eq!(case.problem(nowhere).unwrap().is_none(), is_series, "{}", case.name);
            match case.problem(&data).unwrap() {
                Some(problem) => assert!(problem.sequences()[0].n_rows() >= 90, "{}", case.name),
                None => eprintln!("{}: not checked, {} is not there", case.name, data.display()),
            }
        }
    }
}
