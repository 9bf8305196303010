//! `gpssm linearize` and `gpssm equilibrium`: a model near a point.

use std::path::PathBuf;

use clap::Args;
use gpssm_identify::linearised::{Interval, LinearOptions, Linearised, Rest};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::fitted::{DrawArgs, Fitted};
use crate::output::{Column, Output, check_table};
use crate::table::number;

/// Arguments of `gpssm linearize`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gpssm linearize run.zarr --at level=4.2,flow=1           at a state and an input
  gpssm linearize run.zarr --at flow=1                     at the equilibrium under this input
  gpssm linearize run.zarr --at flow=1 --json > plant.json A, B, C, D for python-control and MATLAB (jsondecode)
  gpssm linearize run.zarr --at flow=1 -o plant.csv        every number as a row of a table

x' = f + A (x - x*) + B (u - u*) and y = h + C (x - x*) + D (u - u*), in steps of the model. Intervals are over the draws, with
what is not known of f within each.")]
pub struct LinearizeArgs {
    /// A posterior store.
    pub run: PathBuf,
    /// The point: values of states and inputs, such as x=0.5,u=1; without states the equilibrium under the inputs.
    #[arg(long, value_name = "NAME=VALUE,...", allow_hyphen_values = true)]
    pub at: String,
    /// Rows of the step responses [default: until the slowest pole has left a hundredth].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub steps: Option<u32>,
    /// What is asked for in common with equilibria.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Arguments of `gpssm equilibrium`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gpssm equilibrium run.zarr --at flow=1                   the state that stays where it is under this input
  gpssm equilibrium run.zarr --at flow=1,level=4           the one near this state")]
pub struct EquilibriumArgs {
    /// A posterior store.
    pub run: PathBuf,
    /// Values of all inputs, and of states where the search starts, such as u=1,x=0.5.
    #[arg(long, value_name = "NAME=VALUE,...", allow_hyphen_values = true, default_value = "")]
    pub at: String,
    /// What is asked for in common with linear models.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// What both commands know.
#[derive(Debug, Args)]
pub struct CommonArgs {
    /// Probability of the intervals.
    #[arg(long, default_value_t = 0.9)]
    pub level: f64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Table of all numbers (.csv, or .parquet if built with it).
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Draws.
    #[command(flatten)]
    pub draws: DrawArgs,
}

/// Names of a model, and the values that were given for some of them.
struct Point {
    states: Vec<String>,
    inputs: Vec<String>,
    outputs: Vec<String>,
    x: Vec<Option<f64>>,
    u: Vec<f64>,
}

impl Point {
    fn new(fitted: &Fitted, text: &str) -> Result<Self, Failure> {
        let model = fitted.run.problem.model();
        let (states, inputs, outputs) = (model.state_names(), model.input_names(), model.output_names());
        let (mut x, mut u) = (vec![None; states.len()], vec![None; inputs.len()]);
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let refuse = |message: String| Failure::input(format!("--at {part}: {message}"));
            let (name, value) =
                part.rsplit_once('=').ok_or_else(|| refuse("give a name, =, and a number".into()))?;
            let value: f64 = value
                .trim()
                .parse()
                .ok()
                .filter(|value: &f64| value.is_finite())
                .ok_or_else(|| refuse(format!("'{}' is no finite number", value.trim())))?;
            let find = |names: &[String]| names.iter().position(|known| known == name.trim());
            let place = match (find(&states), find(&inputs)) {
                (Some(d), _) => &mut x[d],
                (None, Some(c)) => &mut u[c],
                (None, None) => {
                    let known = [&states[..], &inputs].concat().join(", ");
                    return Err(refuse(format!("no state or input has this name; there are {known}")));
                }
            };
            if place.replace(value).is_some() {
                return Err(refuse("this name is given twice".into()));
            }
        }
        if let Some(c) = u.iter().position(Option::is_none) {
            return Err(Failure::input(format!("--at: the input {} has no value", inputs[c])));
        }
        Ok(Self { states, inputs, outputs, x, u: u.into_iter().flatten().collect() })
    }

    /// Where a search starts: what is given, otherwise the middle of the data.
    fn start(&self, fitted: &Fitted) -> Vec<f64> {
        let (middle, _) = fitted.model.middle();
        self.x.iter().zip(middle).map(|(given, middle)| given.unwrap_or(middle)).collect()
    }
}

fn open(run: &std::path::Path, common: &CommonArgs) -> Result<(Fitted, LinearOptions), Failure> {
    if !(common.level > 0.0 && common.level < 1.0) {
        return Err(Failure::input(format!("--level {}: must lie between 0 and 1", common.level)));
    }
    if let Some(out) = &common.out {
        check_table(out, &[])?;
    }
    let fitted = Fitted::open(run, common.draws)?;
    let options = LinearOptions { level: common.level, seed: common.draws.seed, ..LinearOptions::default() };
    Ok((fitted, options))
}

/// Runs `gpssm linearize`; the exit code.
pub fn linearize(args: &LinearizeArgs) -> Result<u8, Failure> {
    let (fitted, options) = open(&args.run, &args.common)?;
    let options = LinearOptions { steps: args.steps.map(|steps| steps as usize), ..options };
    let point = Point::new(&fitted, &args.at)?;
    let given: Vec<f64> = point.x.iter().copied().flatten().collect();
    let x = match given.len() {
        n if n == point.x.len() => given,
        0 => {
            let rest = fitted.model.equilibrium(&point.start(&fitted), &point.u, &options)?;
            warn_of_missing(&rest);
            rest.x.iter().map(|x| x.mean).collect()
        }
        _ => {
            let missing = point.x.iter().position(Option::is_none).unwrap_or(0);
            let name = &point.states[missing];
            return Err(Failure::input(format!(
                "--at: the state {name} has no value; give all states or none"
            )));
        }
    };
    warn_of_extrapolation(&fitted, &point, &x);
    let found = fitted.model.linearise(&x, &point.u, &options)?;
    if let Some(out) = &args.common.out {
        table(&found, &point).write(Some(out))?;
    }
    if args.common.json {
        println!("{:#}", as_json(&found, &point, &fitted));
    } else if args.common.out.is_none() {
        print(&found, &point);
    }
    Ok(0)
}

/// Runs `gpssm equilibrium`; the exit code.
pub fn equilibrium(args: &EquilibriumArgs) -> Result<u8, Failure> {
    let (fitted, options) = open(&args.run, &args.common)?;
    let point = Point::new(&fitted, &args.at)?;
    let rest = fitted.model.equilibrium(&point.start(&fitted), &point.u, &options)?;
    warn_of_missing(&rest);
    warn_of_extrapolation(&fitted, &point, &rest.x.iter().map(|x| x.mean).collect::<Vec<_>>());
    let mut output = Output::default();
    let all = || point.states.iter().zip(&rest.x).chain(point.outputs.iter().zip(&rest.y));
    if args.common.json {
        let named: serde_json::Map<String, Value> =
            all().map(|(name, value)| (name.clone(), json!(value))).collect();
        println!(
            "{:#}",
            json!({ "u": rest.u, "level": rest.level, "found": rest.found, "equilibrium": named })
        );
    } else if args.common.out.is_none() {
        all().for_each(|(name, value)| println!("{name} = {}", words(value)));
    }
    if let Some(out) = &args.common.out {
        output.add("name", Column::Texts(all().map(|(name, _)| name.clone()).collect()));
        output.numbers("mean", all().map(|(_, value)| value.mean).collect());
        output.numbers("low", all().map(|(_, value)| value.low).collect());
        output.numbers("high", all().map(|(_, value)| value.high).collect());
        output.write(Some(out))?;
    }
    Ok(0)
}

fn warn_of_missing(rest: &Rest) {
    if rest.found < 1.0 - 1e-9 {
        eprintln!(
            "warning: {:.0} % of the draws have no state that stays near the start; the others are counted",
            100.0 * (1.0 - rest.found)
        );
    }
}

/// Says which components of a point lie outside of the training data.
fn warn_of_extrapolation(fitted: &Fitted, point: &Point, x: &[f64]) {
    let names = point.states.iter().chain(&point.inputs);
    let values = x.iter().chain(&point.u);
    for ((name, value), (low, high)) in names.zip(values).zip(fitted.model.posterior.visited()) {
        if !(low..=high).contains(value) {
            eprintln!(
                "warning: {name} = {} lies outside of the training data, {} to {}: f is a guess there",
                number(*value),
                number(low),
                number(high)
            );
        }
    }
}

fn words(value: &Interval) -> String {
    format!("{} [{}, {}]", number(value.mean), number(value.low), number(value.high))
}

/// A matrix with the names of its rows and columns.
struct Matrix<'a> {
    name: &'static str,
    entries: &'a [Vec<Interval>],
    rows: &'a [String],
    columns: &'a [String],
}

fn matrices<'a>(found: &'a Linearised, point: &'a Point) -> [Matrix<'a>; 4] {
    let (states, inputs, outputs) = (&point.states[..], &point.inputs[..], &point.outputs[..]);
    [
        Matrix { name: "A", entries: &found.a, rows: states, columns: states },
        Matrix { name: "B", entries: &found.b, rows: states, columns: inputs },
        Matrix { name: "C", entries: &found.c, rows: outputs, columns: states },
        Matrix { name: "D", entries: &found.d, rows: outputs, columns: inputs },
    ]
}

fn print(found: &Linearised, point: &Point) {
    let at: Vec<String> = point
        .states
        .iter()
        .zip(&found.x)
        .chain(point.inputs.iter().zip(&found.u))
        .map(|(name, value)| format!("{name} = {}", number(*value)))
        .collect();
    println!("at {} ({:.0} % intervals over {} draws)", at.join(", "), 100.0 * found.level, found.n_draws);
    for Matrix { name, entries, rows, columns } in matrices(found, point) {
        for (row, entries) in rows.iter().zip(entries) {
            for (column, entry) in columns.iter().zip(entries) {
                println!("{name}[{row}, {column}] = {}", words(entry));
            }
        }
    }
    for pole in &found.poles {
        let imaginary = if pole.im == 0.0 { String::new() } else { format!(" {:+.4}i", pole.im) };
        println!("pole {:.4}{imaginary}, modulus {}", pole.re, words(&pole.modulus));
    }
    println!("stable in {:.0} % of the draws", 100.0 * found.stable);
    for (output, row) in point.outputs.iter().zip(found.dc_gain.iter().flatten()) {
        for (input, gain) in point.inputs.iter().zip(row) {
            println!("dc gain {input} to {output} = {}", words(gain));
        }
    }
}

/// Means as plain matrices under A, B, C, D, intervals beside them.
fn as_json(found: &Linearised, point: &Point, fitted: &Fitted) -> Value {
    let mut all = serde_json::Map::new();
    all.insert("states".into(), json!(point.states));
    all.insert("inputs".into(), json!(point.inputs));
    all.insert("outputs".into(), json!(point.outputs));
    all.insert("dt".into(), json!(crate::commands::distil::sampling(fitted).sampling_time));
    all.insert("x".into(), json!(found.x));
    all.insert("u".into(), json!(found.u));
    all.insert("level".into(), json!(found.level));
    all.insert("draws".into(), json!(found.n_draws));
    let part = |entries: &[Vec<Interval>], of: fn(&Interval) -> f64| -> Vec<Vec<f64>> {
        entries.iter().map(|row| row.iter().map(of).collect()).collect()
    };
    for Matrix { name, entries, .. } in matrices(found, point) {
        all.insert(name.into(), json!(part(entries, |entry| entry.mean)));
        all.insert(format!("{name}_low"), json!(part(entries, |entry| entry.low)));
        all.insert(format!("{name}_high"), json!(part(entries, |entry| entry.high)));
    }
    all.insert("f".into(), json!(found.f));
    all.insert("h".into(), json!(found.h));
    all.insert("poles".into(), json!(found.poles));
    all.insert("stable".into(), json!(found.stable));
    all.insert("dc_gain".into(), json!(found.dc_gain));
    all.insert("step_responses".into(), json!(found.step_responses));
    Value::Object(all)
}

/// One row for each number.
fn table(found: &Linearised, point: &Point) -> Output {
    let mut rows: Vec<(String, String, String, i64, Interval)> = Vec::new();
    for Matrix { name, entries, rows: of, columns: by } in matrices(found, point) {
        for (row, entries) in of.iter().zip(entries) {
            for (column, entry) in by.iter().zip(entries) {
                rows.push((name.into(), row.clone(), column.clone(), 0, *entry));
            }
        }
    }
    for (rank, pole) in found.poles.iter().enumerate() {
        rows.push(("pole_modulus".into(), String::new(), String::new(), rank as i64, pole.modulus));
        rows.push(("pole_imaginary".into(), String::new(), String::new(), rank as i64, pole.imaginary));
    }
    for (output, row) in point.outputs.iter().zip(found.dc_gain.iter().flatten()) {
        for (input, gain) in point.inputs.iter().zip(row) {
            rows.push(("dc_gain".into(), output.clone(), input.clone(), 0, *gain));
        }
    }
    for response in &found.step_responses {
        for (t, row) in response.rows.iter().enumerate() {
            for (output, value) in point.outputs.iter().zip(row) {
                let input = point.inputs[response.input].clone();
                rows.push(("step_response".into(), output.clone(), input, t as i64, *value));
            }
        }
    }
    let mut output = Output::default();
    output.add("quantity", Column::Texts(rows.iter().map(|row| row.0.clone()).collect()));
    output.add("row", Column::Texts(rows.iter().map(|row| row.1.clone()).collect()));
    output.add("column", Column::Texts(rows.iter().map(|row| row.2.clone()).collect()));
    output.add("index", Column::Integers(rows.iter().map(|row| row.3).collect()));
    output.numbers("mean", rows.iter().map(|row| row.4.mean).collect());
    output.numbers("low", rows.iter().map(|row| row.4.low).collect());
    output.numbers("high", rows.iter().map(|row| row.4.high).collect());
    output
}
