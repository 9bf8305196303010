//! Internal units from the data.

use crate::error::Error;
use crate::linalg::small;
use crate::model::functions::Functions;
use crate::model::spec::{Model, Predictor, TransitionSpec, Value};
use crate::record::Record;
use crate::scaling::{Affine, Scaling, mean_and_sd};

/// Standard deviation of output `k` over all sequences; none for a constant or unseen output.
pub(super) fn output_size(record: &Record, k: usize) -> Option<f64> {
    output_statistics(record, k).and_then(|(_, sd)| sd)
}

fn output_statistics(record: &Record, k: usize) -> Option<(f64, Option<f64>)> {
    mean_and_sd(record.sequences().iter().flat_map(move |sequence| sequence.output(k)))
}

/// Units in which inputs, the outputs of a linear-Gaussian sensor, and the states that it shows have mean
/// zero and standard deviation one. Everything else keeps its own.
pub(super) fn scaling(model: &Model, functions: &Functions, record: &Record) -> Result<Scaling, Error> {
    let n_x = model.states.len();
    let mut scaling = Scaling::identity(n_x, model.n_u, model.n_y);
    if model.standardise {
        for c in 0..model.n_u {
            let column = record.sequences().iter().flat_map(|sequence| sequence.input(c));
            set(&mut scaling.u, c, mean_and_sd(column));
        }
        if model.sensor.is_linear_gaussian() {
            for k in 0..model.n_y {
                set(&mut scaling.y, k, output_statistics(record, k));
            }
            states_from_outputs(model, functions, &mut scaling);
        }
    }
    for (d, state) in model.states.iter().enumerate() {
        if let Some(scale) = state.scale {
            scaling.x.scale[d] = scale;
        }
    }
    // A lag is measured like the state it copies.
    for d in 0..n_x {
        let mut source = d;
        while let TransitionSpec::Lag { of } = model.states[source].transition {
            source = of;
        }
        scaling.x.scale[d] = scaling.x.scale[source];
        scaling.x.shift[d] = scaling.x.shift[source];
    }
    Ok(scaling)
}

fn set(affine: &mut Affine, c: usize, statistics: Option<(f64, Option<f64>)>) {
    if let Some((mean, sd)) = statistics {
        affine.shift[c] = mean;
        // A constant column keeps its size, so that its noise has one.
        affine.scale[c] = sd.unwrap_or(if mean == 0.0 { 1.0 } else { mean.abs() });
    }
}

/// Sizes of the states from those of the outputs through the pseudo-inverse of C; a state that no output
/// shows keeps its unit.
fn states_from_outputs(model: &Model, functions: &Functions, scaling: &mut Scaling) {
    let (n_x, n_y) = (model.states.len(), model.n_y);
    if let Some(Predictor::States) = model.sensor.predictor() {
        // Output and state are the same number: the same unit to the last bit.
        for k in 0..n_y.min(n_x) {
            scaling.x.scale[k] = scaling.y.scale[k];
            scaling.x.shift[k] = scaling.y.shift[k];
        }
        return;
    }
    let middle = |value: &Value| {
        let mut prior = value.prior();
        // A density that cannot be used is refused with its name when its parameter is placed.
        prior.attach(functions).map_or(f64::NAN, |()| prior.median())
    };
    let (c, offset): (Vec<f64>, Vec<f64>) = match model.sensor.predictor() {
        Some(Predictor::Linear { c, offset, .. })
            if c.len() == n_y && c.iter().all(|row| row.len() == n_x) =>
        {
            (
                c.iter().flatten().map(middle).collect(),
                (0..n_y).map(|k| offset.get(k).map_or(0.0, middle)).collect(),
            )
        }
        _ => {
            let mut c = vec![0.0; n_y * n_x];
            (0..n_y.min(n_x)).for_each(|k| c[k * n_x + k] = 1.0);
            (c, vec![0.0; n_y])
        }
    };
    // C is measured in output units, so that outputs of different size count alike.
    let scaled: Vec<f64> = (0..n_y * n_x).map(|i| c[i] / scaling.y.scale[i / n_x]).collect();
    let mut gram = vec![0.0; n_y * n_y];
    for a in 0..n_y {
        for b in 0..n_y {
            gram[a * n_y + b] = (0..n_x).map(|d| scaled[a * n_x + d] * scaled[b * n_x + d]).sum();
        }
    }
    let largest = (0..n_y).map(|k| gram[k * n_y + k]).fold(0.0, f64::max);
    (0..n_y).for_each(|k| gram[k * n_y + k] += 1e-9 * largest);
    if !(largest > 0.0 && largest.is_finite() && small::cholesky(&mut gram, n_y)) {
        return;
    }
    for d in 0..n_x {
        let mut row: Vec<f64> = (0..n_y).map(|k| scaled[k * n_x + d]).collect();
        if row.iter().all(|&c| c == 0.0) {
            continue;
        }
        small::solve_lower(&gram, n_y, &mut row);
        small::solve_lower_transposed(&gram, n_y, &mut row);
        let size = row.iter().map(|p| p * p).sum::<f64>().sqrt();
        if size > 0.0 && size.is_finite() {
            let middle = |k: usize| (scaling.y.shift[k] - offset[k]) / scaling.y.scale[k];
            scaling.x.scale[d] = size;
            scaling.x.shift[d] = (0..n_y).map(|k| row[k] * middle(k)).sum();
        }
    }
}
