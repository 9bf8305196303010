//! The table in `docs/performance.md`: written with `--save`, read with `--compare`.

use std::path::Path;

use serde::{Deserialize, Serialize};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/performance.md");
const BEGIN: &str = "<!-- begin: written by cargo bench --bench sweep -- --save -->";
const END: &str = "<!-- end -->";
const HEAD: &str = "| case | sweep, CPU ms | wall ms | in products | hyper-parameters, CPU ms | in products | evaluations \
                    | times the floor | GFLOP/s | date |";
/// A ratio that grew by more than this is named.
const TOLERANCE: f64 = 0.15;

/// What was measured of one case. Times in products are CPU times over that of a matrix product of order 1000 in the same run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub case: String,
    pub sweep_cpu_ms: f64,
    pub sweep_wall_ms: f64,
    pub sweep_products: f64,
    pub hyper_cpu_ms: Option<f64>,
    pub hyper_products: Option<f64>,
    pub evaluations: Option<f64>,
    pub floor_ratio: Option<f64>,
    pub gflops: f64,
    pub date: String,
}

/// A number with three figures; a dash for none.
fn figures(value: Option<f64>) -> String {
    let Some(value) = value else { return "-".into() };
    let decimals = (2 - value.abs().max(1e-9).log10().floor() as i32).clamp(0, 6) as usize;
    format!("{value:.decimals$}")
}

impl Row {
    fn line(&self) -> String {
        let cells = [
            self.case.clone(),
            figures(Some(self.sweep_cpu_ms)),
            figures(Some(self.sweep_wall_ms)),
            figures(Some(self.sweep_products)),
            figures(self.hyper_cpu_ms),
            figures(self.hyper_products),
            figures(self.evaluations),
            figures(self.floor_ratio),
            figures(Some(self.gflops)),
            self.date.clone(),
        ];
        format!("| {} |", cells.join(" | "))
    }

    fn parse(line: &str) -> Result<Self, String> {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [case, cpu, wall, products, hyper_cpu, hyper_products, evaluations, floor, gflops, date] =
            cells[..]
        else {
            return Err(format!("{} cells instead of 10", cells.len()));
        };
        let number =
            |text: &str| text.parse::<f64>().map_err(|_| format!("'{text}' where a number should be"));
        let optional = |text: &str| if text == "-" { Ok(None) } else { number(text).map(Some) };
        Ok(Self {
            case: case.into(),
            sweep_cpu_ms: number(cpu)?,
            sweep_wall_ms: number(wall)?,
            sweep_products: number(products)?,
            hyper_cpu_ms: optional(hyper_cpu)?,
            hyper_products: optional(hyper_products)?,
            evaluations: optional(evaluations)?,
            floor_ratio: optional(floor)?,
            gflops: number(gflops)?,
            date: date.into(),
        })
    }
}

/// The stored table: the machine, and a row for each case.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub machine: String,
    pub rows: Vec<Row>,
}

impl Table {
    /// The lines between the marks, and where they stand in the text.
    fn span(text: &str) -> Result<std::ops::Range<usize>, String> {
        let begin = text.find(BEGIN).map(|at| at + BEGIN.len());
        let end = text.find(END);
        match (begin, end) {
            (Some(begin), Some(end)) if begin <= end => Ok(begin..end),
            _ => Err(format!("no table between the lines '{BEGIN}' and '{END}'; put them back")),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let span = Self::span(text)?;
        let first = text[..span.start].lines().count();
        let (mut machine, mut rows) = (String::new(), Vec::new());
        for (i, line) in text[span].lines().enumerate() {
            if let Some(name) = line.strip_prefix("Machine: ") {
                machine = name.trim_end_matches('.').into();
            } else if line.starts_with('|') && line != HEAD && !line.starts_with("|---") {
                rows.push(Row::parse(line).map_err(|error| format!("line {}: {error}", first + i))?);
            }
        }
        Ok(Self { machine, rows })
    }

    /// What `docs/performance.md` holds.
    pub fn read() -> Result<Self, String> {
        let text = read()?;
        Self::parse(&text).map_err(in_file)
    }

    /// Puts rows in the place of those of the same cases, in the order of `order`. Rows of another machine go.
    pub fn save(machine: &str, measured: &[Row], order: &[String]) -> Result<(), String> {
        let text = read()?;
        let stored = Self::parse(&text).map_err(in_file)?;
        let kept = stored.rows.iter().filter(|_| stored.machine == machine);
        let rows: Vec<&Row> = measured.iter().chain(kept).collect();
        let rows = order.iter().filter_map(|case| rows.iter().find(|row| row.case == *case));
        let lines: Vec<String> = rows.map(|row| row.line()).collect();
        let rule = format!("|---{}", "|---:".repeat(HEAD.matches(" | ").count() - 1)) + "|---|";
        let table = format!("\nMachine: {machine}.\n\n{HEAD}\n{rule}\n{}\n", lines.join("\n"));
        let span = Self::span(&text).map_err(in_file)?;
        let text = format!("{}{table}{}", &text[..span.start], &text[span.end..]);
        std::fs::write(Path::new(FILE), text).map_err(|error| format!("{FILE}: {error}"))
    }

    /// What became of the rows: a line for each case with the ratios to the stored ones, and how many are slower by more than the
    /// tolerance.
    pub fn compare(&self, measured: &[Row]) -> (Vec<String>, usize) {
        let (mut lines, mut n_slower) = (Vec::new(), 0);
        for row in measured {
            let Some(stored) = self.rows.iter().find(|stored| stored.case == row.case) else {
                lines.push(format!("{}: not in the stored table", row.case));
                continue;
            };
            let mut parts = Vec::new();
            let pairs = [
                ("sweep", Some(stored.sweep_products), Some(row.sweep_products)),
                ("hyper-parameters", stored.hyper_products, row.hyper_products),
            ];
            for (name, stored, now) in pairs {
                let (Some(stored), Some(now)) = (stored, now) else { continue };
                let slower = now > (1.0 + TOLERANCE) * stored;
                n_slower += usize::from(slower);
                parts.push(format!(
                    "{name} {:.2} of the stored time{}",
                    now / stored,
                    if slower { ", SLOWER" } else { "" }
                ));
            }
            lines.push(format!("{}: {}", row.case, parts.join("; ")));
        }
        (lines, n_slower)
    }

    /// The head of the table, and one line of it, to be shown while rows are measured.
    pub fn show(row: &Row, first: bool) {
        if first {
            println!("{HEAD}");
        }
        println!("{}", row.line());
    }
}

fn read() -> Result<String, String> {
    std::fs::read_to_string(FILE).map_err(|error| format!("{FILE}: {error}"))
}

fn in_file(error: String) -> String {
    format!("{FILE}: {error}")
}
