//! `gpssm completions` and `gpssm man`: completions of shells and man pages, made from the description of the command line.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::failure::Failure;
use crate::usage;

/// Arguments of `gpssm completions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gpssm completions bash > ~/.local/share/bash-completion/completions/gpssm
  gpssm completions zsh > ~/.zfunc/_gpssm
  gpssm completions fish > ~/.config/fish/completions/gpssm.fish")]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Arguments of `gpssm man`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gpssm man | man -l -                        read the page of the program
  gpssm man -o ~/.local/share/man/man1        a page for each command, for man gpssm-fit")]
pub struct ManArgs {
    /// Folder for a page for each command [default: the page of the program, on standard output].
    #[arg(long, short, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
}

/// Runs `gpssm completions`; the exit code.
pub fn completions(args: &CompletionsArgs) -> Result<u8, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut usage::command(), "gpssm", &mut text);
    print(&text)
}

/// Runs `gpssm man`; the exit code.
pub fn man(args: &ManArgs) -> Result<u8, Failure> {
    let mut command = usage::command();
    command.build();
    let Some(folder) = &args.out else {
        return print(&page(&command, "gpssm")?);
    };
    if !folder.is_dir() {
        return Err(Failure::input(format!("{}: there is no such folder; make it first", folder.display())));
    }
    write(folder, "gpssm", &command)?;
    for part in command.get_subcommands().filter(|part| part.get_name() != "help") {
        write(folder, &format!("gpssm-{}", part.get_name()), part)?;
    }
    Ok(0)
}

fn page(command: &Command, name: &str) -> Result<Vec<u8>, Failure> {
    // A page needs a name that lives as long as the program.
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    let mut text = Vec::new();
    let written = Man::new(command.clone().name(name)).title(name.to_uppercase()).render(&mut text);
    written.map_err(|error| Failure::other(format!("{name}: the page cannot be made: {error}")))?;
    Ok(text)
}

fn write(folder: &Path, name: &str, command: &Command) -> Result<(), Failure> {
    let path = folder.join(format!("{name}.1"));
    std::fs::write(&path, page(command, name)?).map_err(|error| Failure::writing(&path, &error))
}

/// To standard output; who closes it early has seen enough.
fn print(text: &[u8]) -> Result<u8, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::other(format!("standard output cannot be written: {error}")))
        }
        _ => Ok(0),
    }
}
