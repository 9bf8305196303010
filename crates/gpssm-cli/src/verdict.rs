//! The verdict on a run in the words of this program: three lights, a table beside linear models, and what to do next.

use std::path::Path;

use gpssm::convergence::Assessment;
use gpssm::{Record, Settings};
use gpssm_identify::lights::State;
use gpssm_identify::{Commands, Judging, Lights, lights};
use gpssm_io::fit::LoadedRun;
use gpssm_io::table::{Columns, read_record};

use crate::commands::summary::with_wording;
use crate::failure::Failure;
use crate::progress::steps;
use crate::table::Table;

/// Most bytes of a data file that is read to count its rows.
const SMALL_FILE: u64 = 20_000_000;
/// Columns of text on a terminal.
const WIDTH: usize = 100;

/// The verdict on a run, from its training record or rows that were not used in the fit.
pub fn verdict(
    run: &LoadedRun,
    found: &Assessment,
    held_out: Option<(&Record, &str)>,
    quiet: bool,
) -> Result<Lights, Failure> {
    let commands = commands(run);
    let progress = (!quiet).then(|| steps("verdict"));
    let tell = |done: usize, of: usize| progress.as_ref().is_none_or(|progress| progress.tell(done, of));
    with_wording(run, |wording| {
        let judging = Judging {
            problem: &run.problem,
            assessment: found,
            wording,
            fitted: &|most| run.fitted(most),
            held_out,
            commands: &commands,
        };
        lights(&judging, &tell)
    })
    .map_err(Failure::from)
}

/// A word of a command line.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "._-/:,+=~@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// How more draws of a run are asked for.
pub fn resume(run: &LoadedRun) -> String {
    let more = match run.settings.draws {
        Some(_) => format!("--ess {}", run.settings.ess),
        None => "--budget 10m".to_owned(),
    };
    format!("gpssm fit --resume {} {more}", quoted(&run.path.display().to_string()))
}

/// The command lines that a verdict may recommend.
fn commands(run: &LoadedRun) -> Commands {
    let store = quoted(&run.path.display().to_string());
    let (again, auto) = (free_name("again"), free_name("auto"));
    let data = &run.data;
    let file = data.file.as_deref().map_or_else(|| "data.csv".to_owned(), quoted);
    let mut columns = format!("--y {}", quoted(&data.y.join(",")));
    for (option, value) in [
        ("--u", (!data.u.is_empty()).then(|| data.u.join(","))),
        ("--time", data.time.clone()),
        ("--dt", data.dt.filter(|_| data.time.is_none()).map(|dt| dt.to_string())),
        ("--sequence", data.sequence.clone()),
        ("--rows", data.rows.map(|(from, to)| format!("{from}:{to}"))),
    ] {
        columns += &value.map_or_else(String::new, |value| format!(" {option} {}", quoted(&value)));
    }
    // What auto chose ends in ordinary keys; past outputs as states and a calibration are its marks.
    let chosen = run.settings.narx || !run.calibration.is_identity();
    let new = held_out_rows(run).map_or_else(|| "NEW.csv".to_owned(), |rows| format!("{file} --rows {rows}"));
    let inputs = if data.u.is_empty() { String::new() } else { " --inputs NEW.csv".to_owned() };
    Commands {
        more: resume(run),
        more_starts: format!("gpssm fit {store} --set sampler.start.restarts=256 -o {again}"),
        more_chains: format!("gpssm fit {store} --chains 4 -o {again}"),
        posterior: format!(
            "gpssm fit {store} --set sampler.point=false --chains 4 --ess {} -o {again}",
            Settings::default().ess
        ),
        choose: (!chosen).then(|| format!("gpssm fit {file} {columns} --states auto -o {auto}")),
        held_out: format!("gpssm summary {store} {new}"),
        check: format!("gpssm check {store}"),
        simulate: match inputs.is_empty() {
            true => format!("gpssm forecast {store}"),
            false => format!("gpssm simulate {store}{inputs}"),
        },
    }
}

/// A name of a store that is not taken.
fn free_name(stem: &str) -> String {
    let names = std::iter::once(format!("{stem}.zarr")).chain((2..100).map(|i| format!("{stem}{i}.zarr")));
    names.into_iter().find(|name| !Path::new(name).exists()).unwrap_or_else(|| format!("{stem}.zarr"))
}

/// The rows of the data file after those that were fitted, if there are enough of them.
fn held_out_rows(run: &LoadedRun) -> Option<String> {
    let (_, last) = run.data.rows?;
    let path = Path::new(run.data.file.as_deref()?);
    if std::fs::metadata(path).ok()?.len() > SMALL_FILE {
        return None;
    }
    let all = read_record(path, &Columns { rows: None, ..run.data.columns() }.as_measured()).ok()?;
    let rows = |lines: &Vec<u64>| 1 + lines.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let n: usize = all.lines.iter().map(rows).sum();
    (n >= last + 20).then(|| format!("{}:{n}", last + 1))
}

/// The verdict as text.
pub fn text(lights: &Lights) -> String {
    let mut text = format!("{}\n", wrapped(&lights.paragraph, 0));
    for light in &lights.lights {
        text += &format!("\n{}\n", wrapped(&format!("[{}] {}", light.state.word(), light.question), 0));
        text += &format!("    {}\n", wrapped(&light.finding, 4));
        if light.state != State::Good || light.next != "Nothing." {
            // Commands are copied, so their lines are not broken.
            text += &format!("    -> {}\n", light.next);
        }
    }
    if !lights.compared.is_empty() {
        text += &format!("\nPredictions of {}: fit %, and share inside the 90 % intervals\n", lights.rows);
        text += &compared(lights);
    }
    text
}

/// Model and baselines, output by output.
fn compared(lights: &Lights) -> String {
    let fit = |fit: Option<f64>| fit.map_or_else(|| "-".into(), |fit| format!("{fit:.1}"));
    let share =
        |share: Option<f64>| share.map_or_else(|| "-".into(), |share| format!("{:.0} %", 100.0 * share));
    let of_output = |rows: &[gpssm_identify::lights::Compared]| {
        let mut table = Table::new(&[&rows[0].output, "free run", "inside", "one step ahead", "inside"]);
        for row in rows {
            let cells =
                [fit(row.free_run), share(row.free_run_inside), fit(row.ahead), share(row.ahead_inside)];
            table.push([vec![row.name.clone()], cells.to_vec()].concat());
        }
        table.render()
    };
    lights.compared.chunk_by(|a, b| a.output == b.output).map(of_output).collect()
}

/// Text in lines, all but the first one indented.
fn wrapped(text: &str, indent: usize) -> String {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let last =
            lines.last_mut().filter(|line| line.chars().count() + word.chars().count() + indent < WIDTH);
        match last {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => line.push_str(&format!(" {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines.join(&format!("\n{}", " ".repeat(indent)))
}
