//! What was fitted, in words.

use gpssm::KernelSpec;
use gpssm::model::{DynamicsSpec, ProcessNoiseSpec, SensorSpec, TransitionSpec};

use super::{ReportInput, count};

/// A kernel in words.
pub(crate) fn kernel(spec: &KernelSpec) -> String {
    let join = |parts: &[KernelSpec], sign: &str| parts.iter().map(kernel).collect::<Vec<_>>().join(sign);
    match spec {
        KernelSpec::Part(part) => part.kind.title.into(),
        KernelSpec::User(user) => user.name.clone(),
        KernelSpec::Scaled(scaled) => format!("{} × ({})", scaled.factor, kernel(&scaled.kernel)),
        KernelSpec::Power(power) => format!("({})^{}", kernel(&power.kernel), power.exponent),
        KernelSpec::Sum(parts) => join(parts, " + "),
        KernelSpec::Product(parts) => format!("({})", join(parts, " × ")),
        KernelSpec::ChangePoint(change) => {
            let [before, after] = change.kernels.each_ref().map(kernel);
            format!("({before}) changing to ({after})")
        }
        KernelSpec::Odd(inner) => format!("odd part of ({})", kernel(inner)),
    }
}

fn dynamics(spec: &DynamicsSpec) -> &'static str {
    match spec {
        DynamicsSpec::Exact => "the exact Gaussian process",
        DynamicsSpec::Fic { .. } => "a Gaussian process on inducing inputs (FIC)",
        DynamicsSpec::Dtc { .. } => "a Gaussian process on inducing inputs (DTC)",
        DynamicsSpec::Hilbert { .. } => "a Hilbert-space basis of the Gaussian process",
        DynamicsSpec::Fourier { .. } => "random Fourier features of the Gaussian process",
    }
}

fn sensor(spec: &SensorSpec) -> &'static str {
    spec.family().map_or("a user-defined distribution", |(family, _)| family.summary)
}

/// Sentences on model, data and draws.
pub(crate) fn summary(input: &ReportInput) -> Vec<String> {
    let (problem, names) = (input.problem, &input.names);
    let (model, record) = (problem.model(), problem.record());
    let list = |n: usize, name: &dyn Fn(usize) -> String| {
        let all: Vec<String> = (0..n.min(8)).map(name).collect();
        format!("{}{}", all.join(", "), if n > 8 { ", …" } else { "" })
    };
    let mut kernels: Vec<String> = Vec::new();
    let (mut learned, mut parametric, mut lags) = (0, 0, 0);
    for state in &model.states {
        match &state.transition {
            TransitionSpec::Gp { kernel: spec, .. } => {
                learned += 1;
                let words = kernel(spec);
                if !kernels.contains(&words) {
                    kernels.push(words);
                }
            }
            TransitionSpec::Parametric { .. } => parametric += 1,
            TransitionSpec::Lag { .. } => lags += 1,
        }
    }
    let mut text = format!(
        "A state-space model with {} ({})",
        count(model.states.len(), "state", "states"),
        list(model.states.len(), &|d| names.state(d))
    );
    if model.n_u > 0 {
        let inputs = list(model.n_u, &|c| names.input(c));
        text += &format!(", {} ({inputs})", count(model.n_u, "input", "inputs"));
    }
    text += &format!(
        " and {} ({}), measured with {}.",
        count(model.n_y, "output", "outputs"),
        list(model.n_y, &|k| names.output(k)),
        sensor(&model.sensor)
    );
    let mut parts = Vec::new();
    if learned > 0 {
        parts.push(format!(
            "{} with an unknown transition function: {}, kernel {}",
            count(learned, "state", "states"),
            dynamics(&model.dynamics),
            kernels.join("; ")
        ));
    }
    if parametric > 0 {
        parts.push(format!("{} with a known transition function", count(parametric, "state", "states")));
    }
    if lags > 0 {
        parts.push(format!("{} of other states", count(lags, "lag", "lags")));
    }
    let full = matches!(model.process_noise, ProcessNoiseSpec::Full(_));
    let noise = if full { "correlated between states" } else { "independent between states" };
    let transition = format!("{}; process noise {noise}.", capital(&parts.join("; ")));
    let sequences = record.sequences();
    let rows: usize = sequences.iter().map(|s| s.n_rows()).sum();
    let missing =
        sequences.iter().flat_map(|s| (0..s.n_rows()).flat_map(|t| s.y(t))).filter(|y| y.is_nan()).count();
    let mut data = format!("Data: {} with {rows} rows", count(sequences.len(), "sequence", "sequences"));
    if missing > 0 {
        data += &format!(", {missing} values missing");
    }
    let draws: Vec<usize> = input.chains.iter().map(|chain| chain.theta.len()).collect();
    let same = draws.windows(2).all(|pair| pair[0] == pair[1]);
    let each = match draws.first() {
        Some(n) if same => format!("{n} draws each"),
        _ => format!("{} draws in total", draws.iter().sum::<usize>()),
    };
    let drawn =
        format!("Posterior: {} of particle Gibbs with {each}.", count(draws.len(), "chain", "chains"));
    vec![text, transition, format!("{data}."), drawn]
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
