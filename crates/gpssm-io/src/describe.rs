//! Description of a run: what `--dry-run` prints.

use std::fmt::Write;

use gpssm::convergence::R_HAT_LIMIT;
use gpssm::model::{
    DynamicsSpec, FunctionSpec, InducingSpec, InitialSpec, Mode, Orientation, Parameter, ParameterPrior,
    Predictor, ProcessNoiseSpec, Quantity, ScaleKind, ScalePrior, SensorNoiseSpec, SensorSpec,
    TransitionSpec, Unit,
};
use gpssm::run::{FIRST_LOOK, next_look};
use gpssm::{Prior, Problem, Settings};

use crate::auto;
use crate::config::{Run, RunConfig};
use crate::table::{Data, TimeUnit, describe_step};

/// Describes a run; `seconds_per_sweep` is the measured time of one sweep of one chain.
pub fn describe(run: &Run, data: &Data, seconds_per_sweep: Option<f64>) -> String {
    let mut text = String::new();
    section(&mut text, "Data", data_lines(data));
    section(&mut text, "Model", model_lines(run, data));
    section(&mut text, "Priors (units of the data)", prior_lines(&run.problem, data));
    section(&mut text, "Run", run_lines(run, seconds_per_sweep));
    text
}

/// The data of a run whose model is chosen when it begins, and how that is done.
pub fn describe_open(config: &RunConfig, data: &Data, given: &dyn Fn(&str) -> bool) -> String {
    let mut text = String::new();
    section(&mut text, "Data", data_lines(data));
    let mut lines = vec!["chosen from the data when the fit begins (states = \"auto\")".to_owned()];
    match auto::plan(config, data, given) {
        Ok((candidates, cost)) => {
            lines.push("candidates, compared by free runs over held-out parts of the record:".to_owned());
            lines.extend(candidates.iter().map(|candidate| format!("  {}", candidate.describe())));
            let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            // The best of them are tried again, and cores are shared.
            let seconds = cost / (RATE * cores.min(candidates.len().max(1)) as f64);
            lines.push(format!(
                "the choice takes about {} to {} on {}; the fit of the chosen model comes after it",
                duration(0.5 * seconds),
                duration(3.0 * seconds + 1.0),
                plural(cores, "core")
            ));
        }
        Err(reason) => {
            lines.push(format!("{reason}: the default model with one state for each output is taken"))
        }
    }
    lines.push("for a model whose time can be told before, give --states 1 or more".to_owned());
    section(&mut text, "Model", lines);
    text
}

/// Multiply-adds of the trials in a second, on one core.
const RATE: f64 = 5e9;

fn section(text: &mut String, title: &str, lines: Vec<String>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{}{title}", if text.is_empty() { "" } else { "\n" });
    for line in lines {
        let _ = writeln!(text, "  {line}");
    }
}

fn data_lines(data: &Data) -> Vec<String> {
    let n_outputs = data.n_rows * data.outputs.len();
    let quoted =
        |names: &[String]| names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    let mut lines = vec![format!("{}: {}", data.source, plural(data.n_rows, "row"))];
    lines.push(format!(
        "outputs {}: {}",
        quoted(&data.outputs),
        match data.n_missing {
            0 => "none missing".to_owned(),
            n => format!("{n} of {} missing", plural(n_outputs, "value")),
        }
    ));
    lines.push(match data.inputs.is_empty() {
        true => "no inputs".to_owned(),
        false => format!("inputs {}", quoted(&data.inputs)),
    });
    let lengths: Vec<usize> = data.lines.iter().map(Vec::len).collect();
    if let (2.., Some(least), Some(most)) = (lengths.len(), lengths.iter().min(), lengths.iter().max()) {
        lines.push(format!(
            "{} sequences of {least} to {most} rows, with one transition function for all",
            lengths.len()
        ));
    }
    let months = data.dates.as_ref().and_then(|dates| dates.months);
    lines.push(match (data.dt, months) {
        (Some(_), Some(months)) => format!("one row every {} (dates)", plural(months as usize, "month")),
        (Some(dt), None) if data.time_unit == TimeUnit::Seconds => {
            format!("one row every {} (dates)", describe_step(dt, data.time_unit))
        }
        (Some(dt), None) => format!("sampling time {}", short(dt)),
        (None, _) => "no times given: rows are equally spaced".to_owned(),
    });
    lines.extend(data.notes.iter().map(|note| format!("note: {note}")));
    lines
}

fn model_lines(run: &Run, data: &Data) -> Vec<String> {
    let model = run.problem.model();
    let n_x = model.states.len();
    let mut lines = vec![match n_x {
        1 => "one state x1".to_owned(),
        _ => format!("{n_x} states x1 to x{n_x}"),
    }];
    if !data.inputs.is_empty() {
        let inputs = data.inputs.iter().enumerate().map(|(c, name)| format!("u{} = '{name}'", c + 1));
        lines[0].push_str(&format!(", inputs {}", inputs.collect::<Vec<_>>().join(", ")));
    }
    let mut described: Vec<(String, Vec<usize>)> = Vec::new();
    for (d, state) in model.states.iter().enumerate() {
        let words = match &state.transition {
            TransitionSpec::Gp { kernel, mean } => format!(
                "f(x, u) + noise, where f has a Gaussian process prior with mean {} and kernel {}",
                function(mean, d),
                kernel
            ),
            TransitionSpec::Parametric { function: known } => {
                format!("{} + noise (known function)", function(known, d))
            }
            TransitionSpec::Lag { of } => format!("previous x{}", of + 1),
        };
        match described.iter_mut().find(|(other, _)| *other == words) {
            Some((_, states)) => states.push(d),
            None => described.push((words, vec![d])),
        }
    }
    for (words, states) in described {
        let named = |d: &usize| match model.names.states.get(*d) {
            Some(name) if *name != format!("x{}", d + 1) => format!("x{} ({name})", d + 1),
            _ => format!("x{}", d + 1),
        };
        lines.push(format!("next {} = {words}", states.iter().map(named).collect::<Vec<_>>().join(", ")));
    }
    lines.push(dynamics(&model.dynamics));
    lines.push(format!(
        "process noise: {}",
        match &model.process_noise {
            ProcessNoiseSpec::Diagonal(_) => "independent for each state",
            ProcessNoiseSpec::Full(_) => "correlated between states",
        }
    ));
    lines.extend(sensor(&model.sensor, data));
    let hidden: Vec<String> = hidden_states(&run.problem).iter().map(|d| format!("x{}", d + 1)).collect();
    if !hidden.is_empty() {
        lines.push(format!("hidden states: {}", hidden.join(", ")));
    }
    lines.push(format!(
        "initial state: {}",
        match &model.initial {
            InitialSpec::Default => default_initial(&run.problem),
            InitialSpec::Gaussian { mean, sd } =>
                format!("Gaussian, mean {}, standard deviation {}", numbers(mean), numbers(sd)),
            InitialSpec::GaussianFull { mean, .. } =>
                format!("Gaussian, mean {}, with a full covariance", numbers(mean)),
            InitialSpec::Fixed(x) => format!("known, {}", numbers(x)),
            InitialSpec::User(name) => format!("the density '{name}'"),
        }
    ));
    for symmetry in &model.symmetries {
        let flipped: Vec<String> = symmetry.flip.iter().map(|d| format!("x{}", d + 1)).collect();
        let rule = match symmetry.orientation {
            Orientation::InputRaisesState { input, state } => format!("u{} raises x{}", input + 1, state + 1),
            Orientation::StateRaisesState { from, to } => format!("x{} raises x{}", from + 1, to + 1),
            Orientation::PositiveMean { state } => format!("the mean of x{} is positive", state + 1),
        };
        lines.push(format!(
            "the data do not determine the sign of {}; draws are reported such that {rule}",
            flipped.join(", ")
        ));
    }
    if model.presample > 0 {
        lines.push(format!(
            "{} presample rows at the beginning of each sequence (excluded from the likelihood)",
            model.presample
        ));
    }
    lines.push(match model.standardise {
        true => "data are standardised internally; results are in the units of the data".to_owned(),
        false => "data are not standardised".to_owned(),
    });
    lines
}

/// Around the middle of each state's units, twice as wide as they are.
fn default_initial(problem: &Problem) -> String {
    let units = &problem.scaling().x;
    let sd: Vec<f64> = units.scale.iter().map(|scale| 2.0 * scale).collect();
    format!("Gaussian, mean {}, standard deviation {}", numbers(&units.shift), numbers(&sd))
}

/// States that no output shows by itself.
fn hidden_states(problem: &Problem) -> Vec<usize> {
    let model = problem.model();
    let moving = |d: &usize| !matches!(model.states[*d].transition, TransitionSpec::Lag { .. });
    match model.sensor.predictor() {
        Some(Predictor::States) => (model.n_y..model.states.len()).filter(moving).collect(),
        _ => Vec::new(),
    }
}

fn function(spec: &FunctionSpec, d: usize) -> String {
    match spec {
        FunctionSpec::Zero => "zero".to_owned(),
        FunctionSpec::Identity => format!("x{}", d + 1),
        FunctionSpec::Linear { .. } => "linear in x and u".to_owned(),
        FunctionSpec::Formula(text) => text.clone(),
        FunctionSpec::User(reference) => format!("the function '{}'", reference.name),
    }
}

fn dynamics(spec: &DynamicsSpec) -> String {
    let inducing = |inducing: &InducingSpec| match inducing {
        InducingSpec::Given(points) => format!("{} given inducing inputs", points.len()),
        InducingSpec::Grid(counts) => {
            let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
            format!("inducing inputs on a grid of {}", counts.join(" x "))
        }
        InducingSpec::KMeans(n) => format!("{n} inducing inputs at cluster centres"),
        InducingSpec::Greedy(n) => format!("{n} inducing inputs, chosen greedily"),
        InducingSpec::Variance(n) => format!("{n} inducing inputs, chosen by posterior variance"),
    };
    let weights = |mode: &Mode| match mode {
        Mode::Collapsed => "weights integrated out",
        Mode::Sampled => "weights sampled in each sweep",
    };
    match spec {
        DynamicsSpec::Exact => "f: exact Gaussian process".to_owned(),
        DynamicsSpec::Fic { inducing: at, mode } => format!("f: FIC, {}, {}", inducing(at), weights(mode)),
        DynamicsSpec::Dtc { inducing: at, mode } => format!("f: DTC, {}, {}", inducing(at), weights(mode)),
        DynamicsSpec::Hilbert { functions, mode, .. } => {
            format!("f: Hilbert-space basis with {functions} eigenfunctions, {}", weights(mode))
        }
        DynamicsSpec::Fourier { frequencies, mode } => {
            format!("f: {frequencies} random Fourier features, {}", weights(mode))
        }
    }
}

fn sensor(spec: &SensorSpec, data: &Data) -> Vec<String> {
    let output =
        |k: usize| data.outputs.get(k).map_or_else(|| format!("y{}", k + 1), |name| format!("'{name}'"));
    let center = |predictor: &Predictor, k: usize| match predictor {
        Predictor::States => format!("x{}", k + 1),
        Predictor::Linear { .. } => "a linear combination of x and u".to_owned(),
        Predictor::Formulas(formulas) => formulas.get(k).cloned().unwrap_or_default(),
        Predictor::Functions(functions) => {
            functions.get(k).map_or_else(String::new, |function| format!("{}(x, u)", function.name))
        }
    };
    let correlated = matches!(spec, SensorSpec::Gaussian { noise: SensorNoiseSpec::Full(_), .. });
    match (spec, spec.family()) {
        (_, Some((family, predictor))) => {
            let statement =
                |k| family.statement.replace("{eta}", &center(predictor, k)).replace("{y}", &output(k));
            let suffix = if correlated { ", correlated between outputs" } else { "" };
            (0..data.outputs.len()).map(|k| statement(k) + suffix).collect()
        }
        (SensorSpec::Formula { log_density, .. }, None) => {
            vec![format!("log density of the outputs = {log_density}")]
        }
        (SensorSpec::User(reference), None) => {
            vec![format!("outputs measured by the sensor '{}'", reference.name)]
        }
        (_, None) => vec![],
    }
}

fn prior_lines(problem: &Problem, data: &Data) -> Vec<String> {
    let table = problem.table();
    let width = table.parameters.iter().map(|parameter| parameter.name.len()).max().unwrap_or(0);
    let line = |parameter: &Parameter| {
        let prior = match &parameter.prior {
            ParameterPrior::Scalar(prior) => prior_words(prior),
            ParameterPrior::Scale(ScalePrior { on: ScaleKind::Sd, prior }) => prior_words(prior),
            ParameterPrior::Scale(ScalePrior { on: ScaleKind::Variance, prior }) => {
                format!("variance: {}", prior_words(prior))
            }
            ParameterPrior::Matrix { matrix, .. } => match &table.matrices[*matrix].prior {
                gpssm::model::CovariancePrior::InverseWishart { dof, .. } => {
                    format!("Cholesky factor, inverse Wishart with {} degrees of freedom", short(*dof))
                }
                gpssm::model::CovariancePrior::Lkj { eta, .. } => {
                    format!("Cholesky factor, LKJ({}) with priors of the standard deviations", short(*eta))
                }
            },
        };
        let unit =
            unit(parameter.identity.unit, problem, data).map_or(String::new(), |unit| format!("  [{unit}]"));
        format!("{:width$}  {prior}{unit}", parameter.name)
    };
    table.parameters.iter().map(line).collect()
}

/// A prior, and where 95 % of it lie.
pub fn prior_words(prior: &Prior) -> String {
    let of = |name: &str, parameters: &[(&str, f64)], low: f64, high: f64| {
        let parameters: Vec<String> =
            parameters.iter().map(|(name, value)| format!("{name} {}", short(*value))).collect();
        format!("{name}, {}: 95 % in {} .. {}", parameters.join(", "), short(low), short(high))
    };
    match *prior {
        Prior::Fixed { value } => format!("known, {}", short(value)),
        Prior::LogNormal { median, sigma } => {
            let factor = (1.959_964 * sigma).exp();
            of("log-normal", &[("median", median), ("sigma", sigma)], median / factor, median * factor)
        }
        Prior::Normal { mean, sd } => {
            of("normal", &[("mean", mean), ("sd", sd)], mean - 1.959_964 * sd, mean + 1.959_964 * sd)
        }
        Prior::Gamma { shape, rate } => {
            format!("gamma, shape {}, rate {} (mean {})", short(shape), short(rate), short(shape / rate))
        }
        Prior::InverseGamma { shape, scale } => {
            format!("inverse gamma, shape {}, scale {}", short(shape), short(scale))
        }
        Prior::HalfNormal { sd } => of("half-normal", &[("sd", sd)], 0.0, 1.959_964 * sd),
        Prior::HalfCauchy { scale } => of("half-Cauchy", &[("scale", scale)], 0.0, 25.451_7 * scale),
        Prior::Uniform { low, high } => format!("uniform from {} to {}", short(low), short(high)),
        Prior::LogDensity(ref density) => {
            let text = density.formula.as_ref().or(density.function.as_ref());
            let (low, high) = (density.quantile(0.025), density.quantile(0.975));
            format!(
                "log density {}: 95 % in {} .. {}",
                text.map_or("", String::as_str),
                short(low),
                short(high)
            )
        }
    }
}

/// A unit by the columns of the data, where it has one: the slope of an output along an input is in y/u.
fn unit(unit: Unit, problem: &Problem, data: &Data) -> Option<String> {
    let model = problem.model();
    let shown =
        matches!(model.sensor.predictor(), Some(Predictor::States)) && model.sensor.is_linear_gaussian();
    let column = |quantity: Quantity| match quantity {
        Quantity::State(d) => data.outputs.get(d).filter(|_| shown && d < model.n_y),
        Quantity::Input(c) => data.inputs.get(c),
        Quantity::Output(k) => data.outputs.get(k),
    };
    match (unit.of, unit.per) {
        (Some(of), None) => column(of).cloned(),
        (Some(of), Some(per)) if of == per => None,
        (Some(of), Some(per)) => Some(format!("{}/{}", column(of)?, column(per)?)),
        (None, per) => Some(format!("1/{}", column(per?)?)),
    }
}

/// Where expected times come from.
const FIGURES: &str =
    "estimated from the sizes and the figures of docs/performance.md, within a factor of a few";

fn run_lines(run: &Run, seconds_per_sweep: Option<f64>) -> Vec<String> {
    let Settings { seed, chains, tune, draws, ess, particles, .. } = run.settings;
    let settings = &run.settings;
    let threads = settings.n_threads();
    let limit = settings.time_limit().map(|limit| limit.as_secs_f64());
    let warm_up = format!("{}, each with {tune} warm-up sweeps", plural(chains as usize, "chain"));
    let mut lines = vec![
        match draws {
            Some(draws) => format!("{warm_up} and {}", plural(draws as usize, "draw")),
            None => format!(
                "{warm_up}, then draws until all that is identified has ESS {ess} and R-hat {R_HAT_LIMIT} (--ess), \
                 {FIRST_LOOK} draws or more"
            ),
        },
        match limit {
            Some(limit) => {
                format!("time limit: {} (--budget); a run that is stopped can be resumed", duration(limit))
            }
            None => "no time limit".to_owned(),
        },
        format!("{particles} particles, seed {seed}, {}", plural(threads, "thread")),
        format!("memory: about {}", bytes(settings.memory_bytes(&run.problem) + store_bytes_of_block(run))),
        match draws {
            Some(draws) => format!("store: at most {}", bytes(store_bytes(run, draws))),
            None => {
                format!("store: at most {} for each 1000 draws of all chains", bytes(store_bytes(run, 1_000)))
            }
        },
    ];
    if let Some(seconds) = seconds_per_sweep.filter(|seconds| seconds.is_finite() && *seconds > 0.0) {
        let rounds = f64::from(chains.div_ceil(threads as u32));
        let time = |draws: u64| seconds * (tune + draws) as f64 * rounds;
        lines.push(match (draws, limit) {
            (Some(draws), _) => {
                format!(
                    "time: about {} ({} per sweep), and the search for a start; {FIGURES}",
                    duration(time(draws)),
                    duration(seconds)
                )
            }
            (None, limit) => {
                let most = limit.map_or_else(String::new, |limit| {
                    let draws = (limit / (seconds * rounds) - tune as f64).max(0.0);
                    format!(", about {draws:.0} draws of each chain in {}", duration(limit))
                });
                format!(
                    "time: at least about {}{most} ({} per sweep), and the search for a start; {FIGURES}",
                    duration(time(next_look(FIRST_LOOK))),
                    duration(seconds)
                )
            }
        });
    }
    lines
}

/// Size of the draws on disk before compression, those of the warm-up included.
pub fn store_bytes(run: &Run, draws: u64) -> u64 {
    let sweeps = run.settings.tune.saturating_add(draws);
    sweeps.saturating_mul(u64::from(run.settings.chains)).saturating_mul(draw_bytes(&run.problem))
}

/// A block of draws waits in memory before it is written.
fn store_bytes_of_block(run: &Run) -> u64 {
    const BLOCK: u64 = 100;
    BLOCK * u64::from(run.settings.chains) * draw_bytes(&run.problem)
}

/// States of all rows, theta, and a few statistics.
fn draw_bytes(problem: &Problem) -> u64 {
    let n_rows: usize = problem.record().sequences().iter().map(|sequence| sequence.n_rows()).sum();
    8 * (n_rows * problem.n_x() + problem.table().len() + 16) as u64
}

fn plural(n: usize, what: &str) -> String {
    if n == 1 { format!("one {what}") } else { format!("{n} {what}s") }
}

fn numbers(values: &[f64]) -> String {
    values.iter().map(|value| short(*value)).collect::<Vec<_>>().join(", ")
}

/// Three significant digits.
fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(1e-3..1e6).contains(&size) {
        return format!("{value:.2e}");
    }
    let digits = (2.0 - size.log10().floor()).clamp(0.0, 6.0) as usize;
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

fn bytes(n: u64) -> String {
    match n as f64 {
        n if n < 1e6 => format!("{} kB", short((n / 1e3).max(1.0))),
        n if n < 1e9 => format!("{} MB", short(n / 1e6)),
        n => format!("{} GB", short(n / 1e9)),
    }
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{} ms", short(1e3 * s)),
        s if s < 120.0 => format!("{} s", short(s)),
        s if s < 7_200.0 => format!("{} min", short(s / 60.0)),
        s if s < 172_800.0 => format!("{} h", short(s / 3_600.0)),
        s => format!("{} d", short(s / 86_400.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_short() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.1234, "0.123"),
            (12.345, "12.3"),
            (1234.5, "1234"),
            (-0.5, "-0.5"),
            (1e-5, "1.00e-5"),
            (3.2e9, "3.20e9"),
            (100.0, "100"),
        ] {
            assert_eq!(short(value), text);
        }
        assert_eq!(duration(0.0123), "12.3 ms");
        assert_eq!(duration(300.0), "5 min");
        assert_eq!(bytes(12_345_678), "12.3 MB");
        assert_eq!(describe_step(7.0 * 86_400.0, TimeUnit::Seconds), "7 d");
        assert_eq!(describe_step(3_600.0, TimeUnit::Seconds), "60 min");
    }

    #[test]
    fn priors_say_where_they_lie() {
        assert_eq!(
            prior_words(&Prior::LogNormal { median: 2.0, sigma: 1.0 }),
            "log-normal, median 2, sigma 1: 95 % in 0.282 .. 14.2"
        );
        assert_eq!(prior_words(&Prior::Fixed { value: 3.0 }), "known, 3");
    }
}
