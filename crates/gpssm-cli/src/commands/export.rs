//! `gpssm export`: a model as sources that others compile.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::{Args, ValueEnum};
use gpssm::posterior::Distilled;
use gpssm_export::{ExportError, File, Filter, Model, Options, Precision, c, fmu, onnx};

use crate::commands::distil::{SizeArgs, say_losses};
use crate::commands::fit::make_way_for_file;
use crate::failure::Failure;
use crate::fitted::{DrawArgs, Fitted};

/// What is written.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Format {
    /// C99 sources, with a second file for casadi.external.
    C,
    /// One step with mean and variance as an ONNX model.
    Onnx,
    /// A functional mock-up unit for co-simulation (FMI 3.0), compiled if there is a C compiler.
    Fmu,
}

/// Size of numbers.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Numbers {
    /// 64 bits.
    Double,
    /// 32 bits.
    Float,
}

/// The state estimator.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Estimator {
    /// Extended where noise is Gaussian and outputs rise or fall with each state throughout the data, otherwise particles.
    Auto,
    /// Square-root extended Kalman filter.
    Extended,
    /// Particle filter of fixed size.
    Particles,
}

/// Arguments of `gpssm export`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gpssm export run.zarr --to c -o controller               mean and variance of f, outputs, Jacobians, a filter, free runs
  gpssm export run.zarr --to c -o controller --scenarios 20   and 20 posterior functions for scenario control
  gpssm export small.json --to c -o controller             a model that gpssm distil wrote
  gpssm export run.zarr --to fmu -o units                  a unit for Simulink, OpenModelica, FMPy, ...
  make -C controller casadi                                a library for casadi.external(\"f\", ...)

The model is distilled first and judged as by gpssm distil. The header states names, ranges, losses and worst-case operations;
every function returns flags for extrapolation and bad arguments. Sensors, kernels and initial states that are functions of
another program cannot be exported.")]
pub struct ExportArgs {
    /// A posterior store, or a distilled model (.json).
    pub run: PathBuf,
    /// Format.
    #[arg(long, value_enum)]
    pub to: Format,
    /// Folder for the files.
    #[arg(long, short, value_name = "DIR")]
    pub out: PathBuf,
    /// Prefix of all names in the sources [default: the name of the run].
    #[arg(long)]
    pub name: Option<String>,
    /// Number of posterior functions, chosen by kernel herding, in addition to the mean.
    #[arg(long, value_name = "K")]
    pub scenarios: Option<usize>,
    /// Size of numbers.
    #[arg(long, value_enum, default_value = "double")]
    pub precision: Numbers,
    /// The state estimator.
    #[arg(long, value_enum, default_value = "auto")]
    pub filter: Estimator,
    /// Particles of a particle filter.
    #[arg(long, default_value_t = 200)]
    pub particles: usize,
    /// How large the model is.
    #[command(flatten)]
    pub size: SizeArgs,
    /// Overwrite existing files.
    #[arg(long)]
    pub overwrite: bool,
    /// Draws.
    #[command(flatten)]
    pub draws: DrawArgs,
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Option { option, message } => Self::input(format!("--{option}: {message}")),
            other => Self::input(other),
        }
    }
}

/// Runs `gpssm export`; the exit code.
pub fn run(args: &ExportArgs) -> Result<u8, Failure> {
    args.size.check()?;
    let options = Options {
        name: args.name.clone().unwrap_or_else(|| name_of(&args.run)),
        precision: match args.precision {
            Numbers::Double => Precision::Double,
            Numbers::Float => Precision::Float,
        },
        filter: match args.filter {
            Estimator::Auto => Filter::Auto,
            Estimator::Extended => Filter::Extended,
            Estimator::Particles => Filter::Particles,
        },
        particles: args.particles,
    };
    options.check()?;
    check_format(args)?;
    if args.out.exists() && !args.out.is_dir() {
        return Err(Failure::input(format!("{}: is a file; give a folder with -o", args.out.display())));
    }
    let distilled = distilled(args)?;
    let model = Model::new(&distilled, &options)?;
    let files = match args.to {
        Format::C => c::export(&model)?,
        Format::Onnx => vec![onnx::export(&model)?],
        Format::Fmu => {
            let binary = compiled(&fmu::sources(&model)?, &model.options.name);
            if binary.is_none() {
                eprintln!("warning: there is no C compiler (cc): the unit holds its sources only");
            }
            vec![fmu::unit(&model, &binary.into_iter().collect::<Vec<_>>())?]
        }
    };
    write(&args.out, &files, args.overwrite)?;
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    eprintln!("{}: {} written", args.out.display(), names.join(", "));
    if model.options.filter == Filter::Particles && args.scenarios.is_some() {
        eprintln!("warning: the particle filter follows the mean model only, not each scenario");
    }
    Ok(0)
}

/// Refuses what a format does not hold, before any work is done.
fn check_format(args: &ExportArgs) -> Result<(), Failure> {
    if !matches!(args.to, Format::Onnx) {
        return Ok(());
    }
    if matches!(args.precision, Numbers::Float) {
        return Err(Failure::input("--precision float: ONNX models are written in 64 bits; leave it out"));
    }
    if args.scenarios.is_some() {
        return Err(Failure::input(
            "--scenarios: an ONNX model is the mean and the variance of f; use --to c or fmu",
        ));
    }
    Ok(())
}

fn distilled(args: &ExportArgs) -> Result<Distilled, Failure> {
    if args.run.extension().is_some_and(|ending| ending == "json") {
        if args.scenarios.is_some() {
            let message = "--scenarios: a distilled file has no draws any more; export the run itself";
            return Err(Failure::input(message));
        }
        let wrong =
            |error: &dyn std::fmt::Display| Failure::input(format!("{}: {error}", args.run.display()));
        let text = std::fs::read_to_string(&args.run).map_err(|error| wrong(&error))?;
        return serde_json::from_str(&text).map_err(|error| wrong(&format!("no distilled model: {error}")));
    }
    let fitted = Fitted::open(&args.run, args.draws)?;
    let n = fitted.model.posterior.len();
    if let Some(k) = args.scenarios.filter(|&k| k == 0 || (k > n && n > 1)) {
        return Err(Failure::input(format!(
            "--scenarios {k}: give a number from 1 to {n}, that of the draws"
        )));
    }
    let mut distilled = args.size.distil(&fitted)?;
    if let Some(k) = args.scenarios {
        fitted.model.posterior.add_scenarios(&mut distilled, k, args.draws.seed)?;
    }
    say_losses(&distilled, &args.size);
    Ok(distilled)
}

/// Sources as a shared library for this machine, with the name of its platform in FMI; none without a compiler.
fn compiled(sources: &[File], name: &str) -> Option<(String, Vec<u8>)> {
    let folder = std::env::temp_dir().join(format!("gpssm-{name}-{}", std::process::id()));
    let library = folder.join("library");
    let make = || -> std::io::Result<Option<Vec<u8>>> {
        std::fs::create_dir_all(&folder)?;
        for file in sources {
            std::fs::write(folder.join(&file.name), &file.bytes)?;
        }
        let mut compiler = Command::new("cc");
        compiler.current_dir(&folder).args(["-std=c99", "-O2", "-fPIC", "-shared", "-o", "library"]);
        let inputs = sources.iter().map(|file| &file.name).filter(|name| name.ends_with(".c"));
        let made = compiler.args(inputs).arg("-lm").stderr(Stdio::null()).status()?;
        if made.success() { std::fs::read(&library).map(Some) } else { Ok(None) }
    };
    let bytes = make().ok().flatten();
    // What is left of it is of no use to anyone.
    let _ = std::fs::remove_dir_all(&folder);
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    bytes.map(|bytes| (format!("{}-{system}", std::env::consts::ARCH), bytes))
}

/// Letters, digits and underscores of the run's name.
fn name_of(run: &Path) -> String {
    let stem = run.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let name: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(40).collect();
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name } else { "model".into() }
}

fn write(folder: &Path, files: &[File], overwrite: bool) -> Result<(), Failure> {
    for file in files {
        make_way_for_file(&folder.join(&file.name), overwrite)?;
    }
    std::fs::create_dir_all(folder).map_err(|error| Failure::writing(folder, &error))?;
    for file in files {
        let path = folder.join(&file.name);
        std::fs::write(&path, &file.bytes).map_err(|error| Failure::writing(&path, &error))?;
    }
    Ok(())
}
