//! The command line: read with clap, refused in one line like all other bad input.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Command, CommandFactory, FromArgMatches};

use crate::args::Cli;
use crate::failure::code;

/// What was typed, or the exit code if there is nothing to do: help, version, or a mistake that was said.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, u8> {
    let words: Vec<OsString> = words.into_iter().collect();
    let parsed = command().try_get_matches_from(&words).and_then(|found| Cli::from_arg_matches(&found));
    parsed.map_err(|error| {
        let help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
        if !error.use_stderr() || help {
            // A pipe that was closed while help is printed says nothing new.
            let _ = error.print();
            return if help { code::BAD_INPUT } else { 0 };
        }
        eprintln!("error: {}", one_line(&error.render().to_string(), &place(&words)));
        code::BAD_INPUT
    })
}

/// Negative numbers are values, not options: whoever checks the value says what is wrong with it.
pub fn command() -> Command {
    fn numbers(command: Command) -> Command {
        let command = command.mut_args(|arg| {
            let takes_values = arg.get_action().takes_values();
            arg.allow_negative_numbers(takes_values)
        });
        command.mut_subcommands(numbers)
    }
    numbers(Cli::command())
}

/// The command that was meant, as far as there is one: `gpssm fit`.
fn place(words: &[OsString]) -> String {
    let mut at = Cli::command();
    let mut place = "gpssm".to_owned();
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        let Some(next) = at.find_subcommand(word).cloned() else { break };
        place += &format!(" {word}");
        at = next;
    }
    place
}

/// What clap says in paragraphs: the first one, tips that help, and where to look.
fn one_line(said: &str, place: &str) -> String {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut paragraphs = said.split("\n\n");
    let first = words(paragraphs.next().unwrap_or_default());
    let first = first.strip_prefix("error: ").unwrap_or(&first).to_owned();
    let tips = paragraphs.flat_map(str::lines).filter_map(|line| line.trim().strip_prefix("tip: "));
    // Nobody wants a value that looks like an option.
    let tips: String =
        tips.filter(|tip| !tip.contains("'-- ")).map(|tip| format!("; {}", words(tip))).collect();
    format!("{first}{tips}; see {place} --help")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: &[&str]) -> String {
        let error = command().try_get_matches_from(words).expect_err("a mistake");
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        one_line(&error.render().to_string(), &place(&words))
    }

    #[test]
    fn mistakes_are_one_line() {
        for (words, expected) in [
            (
                vec!["gpssm", "fit", "d.csv", "--bogus"],
                "unexpected argument '--bogus' found; see gpssm fit --help",
            ),
            (
                vec!["gpssm", "fit", "d.csv", "--drws", "3"],
                "unexpected argument '--drws' found; a similar argument exists: '--draws'; see gpssm fit --help",
            ),
            (
                vec!["gpssm", "thin", "run.zarr"],
                "the following required arguments were not provided: --keep <N>; see gpssm thin --help",
            ),
            (vec!["gpssm", "bogus"], "unrecognized subcommand 'bogus'; see gpssm --help"),
        ] {
            assert_eq!(said(&words), expected);
        }
    }

    #[test]
    fn negative_numbers_are_values() {
        let found = parse(["gpssm", "fit", "d.csv", "--dt", "-1", "--states", "-2"].map(OsString::from));
        let Ok(Cli { command: crate::args::Command::Fit(args) }) = found else { panic!("refused") };
        assert_eq!((args.dt.as_deref(), args.states.as_deref()), (Some("-1"), Some("-2")));
    }

    #[test]
    fn the_description_of_the_command_line_is_sound() {
        command().debug_assert();
    }
}
