//! Have the chains converged?

use gpssm::convergence::{R_HAT_LIMIT, Warning};

use super::{Judging, Light, State};

/// R-hat and effective sample size from which on means, though not tails, may be used.
const USABLE: (f64, f64) = (1.05, 100.0);

pub(super) fn light(judging: &Judging) -> Light {
    let (found, commands) = (judging.assessment, judging.commands);
    let verdict = &found.verdict;
    let more = format!("Continue with: {}", commands.more);
    let of = |state, finding: String, next: String| Light {
        state,
        question: "Have the chains converged?".into(),
        finding,
        next,
    };
    for warning in &found.warnings {
        match warning {
            Warning::TooShort { draws } => {
                let finding =
                    format!("Not known: the shortest chain has {draws} draws, too few for any diagnostic.");
                return of(State::Unknown, finding, more);
            }
            Warning::LeftOut { chains, .. } => {
                let finding = format!(
                    "Not known: {} of {} chains have too few draws to be compared with the others.",
                    chains.len(),
                    found.draws.len()
                );
                return of(State::Unknown, finding, more);
            }
            Warning::Point => {
                let finding = "There are none: this is a point estimate. What is not known of hyper-parameters and states is left \
                               out of all intervals, which are too narrow."
                    .to_owned();
                return of(State::Fair, finding, format!("Draw from the posterior: {}", commands.posterior));
            }
            Warning::OneChain => {
                let finding =
                    "Not known: there is only one chain, and nothing to compare it with.".to_owned();
                return of(State::Unknown, finding, format!("Run four: {}", commands.more_chains));
            }
            _ => {}
        }
    }
    let all = verdict.judged.len();
    if verdict.is_good() {
        let finding = format!(
            "Yes: all {all} quantities that the data determine (hyper-parameters, f, states or outputs at some rows) have R-hat \
             at most {R_HAT_LIMIT} and effective sample sizes of at least {:.0}.",
            verdict.target
        );
        return of(State::Good, finding, "Nothing.".into());
    }
    let worst = verdict.describe_worst(judging.wording);
    if verdict.apart {
        let finding = format!("No, the chains found different solutions: {worst}.");
        return of(State::Bad, finding, format!("Fit again with more starts: {}", commands.more_starts));
    }
    let r_hat = verdict.worst_r_hat().and_then(|judged| judged.r_hat);
    let ess = verdict.worst_ess().and_then(|judged| judged.ess());
    match (r_hat, ess) {
        (Some(r_hat), Some(ess)) if r_hat <= USABLE.0 && ess >= USABLE.1 => {
            of(State::Fair, format!("Nearly; means may be used, tails not yet: {worst}."), more)
        }
        _ => of(State::Bad, format!("No: {worst}."), more),
    }
}
