//! `gpssm fit`: draws from the posterior, into a store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use gpssm::convergence::assess;
use gpssm::mcmc::moves::MoveTotals;
use gpssm::model::{DynamicsSpec, InducingSpec, Mode};
use gpssm::{Budget, Ended, Settings};
use gpssm_identify::auto::Choice;
use gpssm_io::auto;
use gpssm_io::config::{Run, RunConfig, RunFile};
use gpssm_io::fit::{Fit, FitError, LoadedRun, Longer};
use gpssm_io::speed::seconds_per_sweep;
use gpssm_io::store::StoredRun;
use gpssm_io::table::{Data, read_record};

use crate::args::{FitArgs, Verbosity, is_store};
use crate::commands::{dry_run, summary};
use crate::failure::{Failure, code};
use crate::fitted::say_notes;
use crate::journal::Journal;
use crate::monitor::{Monitor, ProgressMode, clock};
use crate::output::check_folder;
use crate::progress::steps;
use crate::signals::Finishing;
use crate::table::{Table, number, number_or_dash};
use crate::verdict::verdict;

/// Runs the command; the exit code.
pub fn run(args: &FitArgs, stop: &Arc<AtomicBool>) -> Result<u8, Failure> {
    if let Some(path) = &args.resume {
        if args.threads == Some(0) {
            return Err(Failure::input("--threads 0: must be at least one"));
        }
        let budget = args.budget.as_deref().map_or(Ok(Budget::Auto), str::parse);
        let budget = budget.map_err(|error| Failure::input(format!("--budget: {error}")))?;
        let (draws, ess, threads) = (args.draws, args.ess, args.threads);
        let fit = Fit::resume(path, &Longer { draws, ess, budget, threads })?;
        return go(fit, args.verbosity, stop);
    }
    let file = run_file(args)?;
    if args.dry_run {
        return dry_run::run(&file, args);
    }
    let out = args.out.clone().unwrap_or_else(|| default_out(args));
    let advice = "--resume it, choose another name with -o, or --overwrite it";
    let check = |settings: &Settings| -> Result<(), Failure> {
        check_place(&out)?;
        if let Some(chain) = args.chain_id.filter(|chain| *chain >= settings.chains) {
            return Err(FitError::NoSuchChain { chain, chains: settings.chains }.into());
        }
        if let Some(chain) = args.chain_id.filter(|_| settings.draws.is_none()) {
            return Err(FitError::NeedsDraws { chain }.into());
        }
        check_way(&out, args.overwrite, advice)
    };
    let quiet = args.verbosity.quiet || args.verbosity.json;
    let (run, data) = read(&file, args.data_file(), quiet, &check)?;
    say_notes(&data);
    make_way(&out, args.overwrite, advice)?;
    let fit = Fit::begin(&out, &run, &data, args.chain_id)?;
    go(fit, args.verbosity, stop)
}

/// Refuses outputs that hold nothing to learn.
pub fn check_learnable(data: &Data) -> Result<(), Failure> {
    let problem = data.nothing_to_learn();
    problem.map_or(Ok(()), |problem| Err(Failure::input(format!("{}: {problem}", data.source))))
}

/// The name of the input with another ending, in the current folder.
fn default_out(args: &FitArgs) -> PathBuf {
    let input = args.model.as_ref().or(args.input.as_ref());
    let stem = input.and_then(|path| path.file_stem()).unwrap_or_else(|| "run".as_ref());
    Path::new(stem).with_extension("zarr")
}

/// A store needs a folder to lie in, which is not a store itself.
fn check_place(out: &Path) -> Result<(), Failure> {
    check_folder(out)?;
    match out.ancestors().skip(1).find(|folder| folder.join("zarr.json").is_file()) {
        Some(store) => Err(Failure::input(format!(
            "{}: lies inside the store {}; choose another place",
            out.display(),
            store.display()
        ))),
        None => Ok(()),
    }
}

/// Refuses to replace what is there, unless it was asked for and is a store of this program.
fn check_way(out: &Path, overwrite: bool, advice: &str) -> Result<(), Failure> {
    if out.symlink_metadata().is_err() {
        return Ok(());
    }
    if !overwrite {
        return Err(Failure::input(format!("{} exists: {advice}", out.display())));
    }
    if !out.is_dir() || !out.join("zarr.json").is_file() || !out.join("state").is_dir() {
        let message = format!("{}: not a posterior store, so it is not overwritten", out.display());
        return Err(Failure::input(message));
    }
    Ok(())
}

/// Removes a store that is to be replaced, see [`check_way`].
pub fn make_way(out: &Path, overwrite: bool, advice: &str) -> Result<(), Failure> {
    check_way(out, overwrite, advice)?;
    if out.symlink_metadata().is_err() {
        return Ok(());
    }
    std::fs::remove_dir_all(out).map_err(|error| Failure::writing(out, &error))
}

/// Refuses to replace a file, unless it was asked for and is a plain one.
pub fn make_way_for_file(out: &Path, overwrite: bool) -> Result<(), Failure> {
    match out.symlink_metadata() {
        Err(_) => Ok(()),
        Ok(_) if !overwrite => {
            let advice = "choose another name with -o, or --overwrite it";
            Err(Failure::input(format!("{} exists: {advice}", out.display())))
        }
        Ok(there) if there.is_file() => Ok(()),
        Ok(_) => {
            Err(Failure::input(format!("{}: not a plain file, so it is not overwritten", out.display())))
        }
    }
}

/// Samples, and says what came of it.
pub fn go(fit: Fit, verbosity: Verbosity, stop: &Arc<AtomicBool>) -> Result<u8, Failure> {
    let path = fit.store.path().to_path_buf();
    let began = Instant::now();
    let ended = sample(fit, verbosity, stop)?;
    let seconds = began.elapsed().as_secs_f64();
    if ended == Ended::Cancelled {
        return Ok(code::STOPPED);
    }
    let loaded = LoadedRun::open(&path)?;
    if loaded.chains.iter().any(|chain| chain.theta.is_empty()) {
        // Only a budget ends a run so early.
        let resume = format!("continue with: gpssm fit --resume {}", path.display());
        return Err(Failure::other(format!("the budget ended before every chain had a draw; {resume}")));
    }
    let found = assess(&loaded.problem, &loaded.settings, &loaded.chains, 0.9);
    if verbosity.json {
        let lights = verdict(&loaded, &found, None, true)?;
        println!("{:#}", summary::as_json(&loaded, &found, &lights));
    } else if !verbosity.quiet {
        let lights = verdict(&loaded, &found, None, false)?;
        print!("{}", summary::as_text(&loaded, &found, &lights, 0.9));
        let why = if ended == Ended::Budget { "The budget ended. " } else { "" };
        println!("\n{why}{0} in {1}. Figures: gpssm report {0}", path.display(), clock(seconds));
    }
    Ok(0)
}

/// Samples; how that ended.
pub fn sample(mut fit: Fit, verbosity: Verbosity, stop: &Arc<AtomicBool>) -> Result<Ended, Failure> {
    let path = fit.store.path().to_path_buf();
    let journal = Journal::beside(&path);
    let settings = fit.settings.clone();
    journal.add(&format!(
        "gpssm {} begins: {} chains, {} warm-up sweeps, {}, {} threads",
        env!("CARGO_PKG_VERSION"),
        settings.chains,
        settings.tune,
        settings
            .draws
            .map_or_else(|| format!("until ESS {}", settings.ess), |draws| format!("{draws} draws")),
        settings.n_threads()
    ));
    for warning in &fit.warnings {
        eprintln!("warning: {warning}");
        journal.add(&format!("warning: {warning}"));
    }
    let progress_mode = ProgressMode::choose(verbosity.quiet || verbosity.json);
    let seconds = seconds_per_sweep(&fit.problem, settings.particles);
    let monitor = Monitor::new(progress_mode, &settings, fit.n_chains(), stop.clone()).expecting(seconds);
    let began = Instant::now();
    let finishing = Finishing::begin();
    let sampled = fit.sample(&|progress| monitor.progress(progress));
    monitor.finish();
    let seconds = began.elapsed().as_secs_f64();
    let report = match sampled {
        Ok(report) => report,
        Err(error) => {
            journal.add(&format!("ended after {}: {error}", clock(seconds)));
            let failure = Failure::from(error);
            drop(fit);
            if failure.code == code::BAD_INPUT && nothing_drawn(&path) {
                // Nothing to go on with: the next try must not stumble over it.
                journal.forget();
                std::fs::remove_dir_all(&path).map_err(|error| Failure::writing(&path, &error))?;
                return Err(failure);
            }
            let resume = format!("all draws are kept; continue with: gpssm fit --resume {}", path.display());
            return Err(Failure { message: format!("{}; {resume}", failure.message), code: failure.code });
        }
    };
    for chain in &report.chains {
        journal.add(&format!("chain {}: {}", chain.chain, describe_moves(&chain.moves)));
    }
    let how = match report.ended {
        Ended::Complete => "done",
        Ended::Cancelled => "stopped",
        Ended::Budget => "stopped by the budget",
    };
    journal.add(&format!("{how} after {}", clock(seconds)));
    // The lock goes with the store.
    drop(fit);
    drop(finishing);
    if report.ended == Ended::Cancelled {
        eprintln!("stopped; all draws are kept. Continue with: gpssm fit --resume {}", path.display());
    }
    Ok(report.ended)
}

/// Updates, time and evaluations of each move of a sweep.
fn describe_moves(moves: &[MoveTotals]) -> String {
    let describe = |step: &MoveTotals| {
        let per_update = |total: f64| total / step.updates.max(1) as f64;
        format!(
            "{} {} x {:.2} ms ({:.1} path densities)",
            step.name,
            step.updates,
            per_update(1e3 * step.time.as_secs_f64()),
            per_update(step.density_evaluations as f64)
        )
    };
    moves.iter().map(describe).collect::<Vec<_>>().join(", ")
}

fn nothing_drawn(path: &Path) -> bool {
    let run = StoredRun::open(path);
    run.is_ok_and(|run| run.chains().iter().all(|chain| chain.warmup + chain.draws == 0))
}

/// Reads the data that a run file speaks of, and settles everything that it left open. `check` sees the settings before a model
/// is chosen, which takes a while.
pub fn read(
    file: &RunFile,
    data_file: Option<&Path>,
    quiet: bool,
    check: &dyn Fn(&Settings) -> Result<(), Failure>,
) -> Result<(Run, Data), Failure> {
    let mut config = file.config()?;
    let path = file.data_path(&config, data_file)?;
    if auto::is_asked_for(&config) {
        let measured = read_record(&path, &config.data.columns().as_measured()).map_err(Failure::input)?;
        check_learnable(&measured)?;
        check(&config.sampler)?;
        (config, _) = choose(file, &config, &path, quiet)?;
    }
    let data = read_record(&path, &config.data.columns()).map_err(Failure::input)?;
    check_learnable(&data)?;
    let run = file.resolve(&config, &data)?;
    check(&run.settings)?;
    Ok((run, data))
}

/// Chooses the model from the record, and says what was tried.
pub fn choose(
    file: &RunFile,
    config: &RunConfig,
    path: &Path,
    quiet: bool,
) -> Result<(RunConfig, Choice), Failure> {
    // What is wrong is said before the search, not after it.
    let laid_out = read_record(path, &config.data.columns()).map_err(Failure::input)?;
    let mut stand_in = config.clone();
    stand_in.model.states = None;
    let small = || DynamicsSpec::Fic { inducing: InducingSpec::Greedy(1), mode: Mode::Sampled };
    stand_in.model.dynamics.get_or_insert_with(small);
    file.resolve(&stand_in, &laid_out)?;
    let data = read_record(path, &config.data.columns().as_measured()).map_err(Failure::input)?;
    let progress = (!quiet).then(|| steps("choose a model"));
    let tell = |done: usize, of: usize| progress.as_ref().is_none_or(|progress| progress.tell(done, of));
    let (config, choice) = auto::choose(config, &data, &|key| file.is_given(key), &tell);
    drop(progress);
    if !quiet {
        eprint!("{}", choice_in_words(&choice));
    }
    Ok((config, choice))
}

/// Candidates that are listed.
const SHOWN: usize = 6;

/// The best candidates with their scores, and which was chosen.
fn choice_in_words(choice: &Choice) -> String {
    let mut text = String::new();
    for note in &choice.notes {
        text += &format!("auto: {note}\n");
    }
    let head = ["free runs over held-out parts of the training record", "CRPS", "RMSE", "in 90 %", "s", ""];
    let mut table = Table::new(&head);
    let mut ranked: Vec<usize> = (0..choice.trials.len()).collect();
    let crps = |i: usize| choice.trials[i].crps.unwrap_or(f64::INFINITY);
    ranked.sort_by(|&a, &b| crps(a).total_cmp(&crps(b)));
    // The chosen one may not be the best, where a simpler one is about as good.
    let (best, rest) = ranked.split_at(ranked.len().min(SHOWN));
    let others = rest.iter().filter(|i| choice.chosen == Some(**i));
    for (i, trial) in best.iter().chain(others).map(|&i| (i, &choice.trials[i])) {
        let mark = match choice.chosen {
            Some(chosen) if chosen == i => "<- chosen",
            _ if trial.again => "close",
            _ => "",
        };
        let (rmse, inside) = match trial.crps {
            Some(_) => (number(trial.rmse), format!("{:.0} %", 100.0 * trial.coverage)),
            None => ("-".into(), "-".into()),
        };
        let crps = number_or_dash(trial.crps);
        let seconds = format!("{:.1}", trial.elapsed.0);
        table.push(vec![trial.candidate.describe(), crps, rmse, inside, seconds, mark.into()]);
    }
    if !choice.trials.is_empty() {
        text += &table.render();
        if rest.iter().any(|i| choice.chosen != Some(*i)) {
            text += &format!("the best of {}; ", choice.trials.len());
        }
        let of = |name: &str, crps: Option<f64>| crps.map(|crps| format!("{name} {}", number(crps)));
        let beside = [of("best linear model", choice.linear_crps), of("constant", choice.constant_crps)];
        let beside: Vec<String> = beside.into_iter().flatten().collect();
        if !beside.is_empty() {
            text += &format!("CRPS of the {}\n", beside.join(", of a "));
        }
        text += "(errors relative to the spread of the outputs; \"outputs as states\" is GP-NARX, without sensor noise; of candidates \
                 that are about equal the simplest is chosen)\n";
    }
    text
}

/// Run file, then options, then `--set`: all through one schema.
fn run_file(args: &FitArgs) -> Result<RunFile, Failure> {
    let mut file = match args.model_file()? {
        Some(path) if is_store(path) => {
            let name = path.display().to_string();
            RunFile::parse(StoredRun::open(path)?.configuration(), &name)?
        }
        Some(path) => RunFile::open(path)?,
        None => RunFile::new(),
    };
    for (option, text) in args.options() {
        file.option(option, &text)?;
    }
    for assignment in &args.set {
        file.set(assignment)?;
    }
    Ok(file)
}
