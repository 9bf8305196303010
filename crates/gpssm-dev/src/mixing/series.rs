//! Real series with the models that a default fit of them has.

use std::path::Path;

use gpssm::model::{Predictor, SensorSpec};
use gpssm::{Model, Record, Sequence};

/// Columns of a CSV file, at most `rows` values of each; empty fields are missing values.
fn columns(path: &Path, names: &[&str], rows: usize) -> Option<Vec<Vec<f64>>> {
    let text = std::fs::read_to_string(path).ok()?;
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next()?.split(',').collect();
    let places: Vec<usize> =
        names.iter().map(|name| head.iter().position(|h| h == name)).collect::<Option<_>>()?;
    let mut columns = vec![Vec::new(); names.len()];
    for line in lines.take(rows) {
        let fields: Vec<&str> = line.split(',').collect();
        for (column, &place) in columns.iter_mut().zip(&places) {
            column.push(fields.get(place)?.parse().unwrap_or(f64::NAN));
        }
    }
    Some(columns)
}

/// A record of one output.
fn scalar(path: &Path, rows: usize) -> Option<Record> {
    let y = columns(path, &["y"], rows)?.remove(0);
    Some(Sequence::scalar(&y, None).ok()?.into())
}

/// A record of one output and one input.
fn with_input(path: &Path, rows: usize) -> Option<Record> {
    let both = columns(path, &["y", "u"], rows)?;
    Some(Sequence::scalar(&both[0], Some(&both[1])).ok()?.into())
}

pub(super) fn nile(data: &Path) -> Option<(Model, Record)> {
    Some((Model::observed(1, 0), scalar(&data.join("nile.csv"), usize::MAX)?))
}

pub(super) fn polio(data: &Path) -> Option<(Model, Record)> {
    let sensor = SensorSpec::Poisson { log_rate: Predictor::States };
    Some((Model { sensor, ..Model::observed(1, 0) }, scalar(&data.join("polio.csv"), usize::MAX)?))
}

pub(super) fn pound_dollar(data: &Path) -> Option<(Model, Record)> {
    let sensor = SensorSpec::StochasticVolatility { log_variance: Predictor::States };
    let record = scalar(&data.join("pound_dollar_8185.csv"), 300)?;
    Some((Model { sensor, ..Model::observed(1, 0) }, record))
}

pub(super) fn hare_lynx(data: &Path) -> Option<(Model, Record)> {
    let both = columns(&data.join("hare_lynx.csv"), &["hare", "lynx"], usize::MAX)?;
    let y = both[0].iter().zip(&both[1]).map(|(hare, lynx)| vec![*hare, *lynx]).collect();
    Some((Model::observed(2, 0), Sequence::new(y, Vec::new()).ok()?.into()))
}

pub(super) fn gas_furnace(data: &Path, n_x: usize) -> Option<(Model, Record)> {
    let record = with_input(&data.join("gas_furnace.csv"), usize::MAX)?;
    Some((Model::with_hidden_states(n_x, 1, 1), record))
}

pub(super) fn drive(data: &Path) -> Option<(Model, Record)> {
    Some((Model::with_hidden_states(2, 1, 1), with_input(&data.join("drive.csv"), 250)?))
}
