//! What a run looks like while it goes on: bars on a terminal, plain lines elsewhere.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gpssm::run::FIRST_LOOK;
use gpssm::{Look, Phase, Progress, Settings};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressMode {
    /// Bars that move.
    Bars,
    /// A line now and then.
    Lines,
    /// Nothing.
    Quiet,
}

impl ProgressMode {
    /// Bars on a terminal, lines elsewhere.
    pub fn choose(quiet: bool) -> Self {
        if quiet {
            Self::Quiet
        } else if console_is_terminal() {
            Self::Bars
        } else {
            Self::Lines
        }
    }
}

fn console_is_terminal() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stderr())
}

/// Seconds between plain lines.
pub const LINE_SECONDS: f64 = 10.0;
/// Seconds between changes of the line below the bars.
const FOOTER_SECONDS: f64 = 0.5;

/// Watches the chains of a run.
pub struct Monitor<'a> {
    progress_mode: ProgressMode,
    settings: &'a Settings,
    n_chains: usize,
    began: Instant,
    stop: Arc<AtomicBool>,
    bars: Option<MultiProgress>,
    inner: Mutex<Inner>,
}

struct Inner {
    chains: BTreeMap<u32, ChainView>,
    /// When the first sweep was done.
    first_sweep: Option<Instant>,
    look: Option<Arc<Look>>,
    footer: Option<ProgressBar>,
    last_said: Instant,
}

struct ChainView {
    bar: Option<ProgressBar>,
    phase: Phase,
    done: u64,
    total: u64,
    /// Sweeps in all, and those that were there when it was first seen to sweep.
    sweeps: u64,
    first: Option<u64>,
}

impl<'a> Monitor<'a> {
    /// For a run of so many chains with these settings.
    pub fn new(
        progress_mode: ProgressMode,
        settings: &'a Settings,
        n_chains: usize,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let bars = (progress_mode == ProgressMode::Bars).then(MultiProgress::new);
        let began = Instant::now();
        let inner =
            Inner { chains: BTreeMap::new(), first_sweep: None, look: None, footer: None, last_said: began };
        Self { progress_mode, settings, n_chains, began, stop, bars, inner: Mutex::new(inner) }
    }

    /// Called after every restart and sweep; false when the run is to stop.
    pub fn progress(&self, progress: &Progress) -> bool {
        if self.progress_mode != ProgressMode::Quiet {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            self.note(&mut inner, progress);
            self.show(&mut inner);
        }
        !self.stop.load(Ordering::Relaxed)
    }

    /// Takes the bars away.
    pub fn finish(&self) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        for view in inner.chains.values() {
            if let Some(bar) = &view.bar {
                bar.abandon();
            }
        }
        if let Some(footer) = inner.footer.take() {
            footer.finish();
        }
    }

    /// Takes note of how far a chain is.
    fn note(&self, inner: &mut Inner, progress: &Progress) {
        let fresh = || ChainView {
            bar: self.bars.as_ref().map(|bars| bars.add(chain_bar(progress.chain))),
            phase: progress.phase,
            done: 0,
            total: 0,
            sweeps: 0,
            first: None,
        };
        let view = inner.chains.entry(progress.chain).or_insert_with(fresh);
        (view.phase, view.done, view.total) = (progress.phase, progress.done, progress.total);
        if view.phase != Phase::Start {
            let before = if view.phase == Phase::Sample { self.settings.tune } else { 0 };
            view.sweeps = before + view.done;
            view.first.get_or_insert(view.sweeps - 1);
            inner.first_sweep.get_or_insert_with(Instant::now);
        }
        if let Some(bar) = &view.bar {
            bar.set_length(progress.total);
            bar.set_position(progress.done);
            bar.set_message(phase_name(view.phase));
        }
        if progress.look.is_some() {
            inner.look.clone_from(&progress.look);
        }
    }

    fn show(&self, inner: &mut Inner) {
        let waited = inner.last_said.elapsed().as_secs_f64();
        match self.progress_mode {
            ProgressMode::Lines if waited > LINE_SECONDS => eprintln!("{}", self.line(inner)),
            ProgressMode::Bars if waited > FOOTER_SECONDS => {
                let text = self.line(inner);
                let bars = self.bars.as_ref();
                let footer = inner.footer.get_or_insert_with(|| {
                    let bar = ProgressBar::new_spinner().with_style(style("  {msg}"));
                    bars.map_or(bar.clone(), |bars| bars.add(bar))
                });
                footer.set_message(text);
            }
            _ => return,
        }
        inner.last_said = Instant::now();
    }

    /// All chains in one line: the one that is furthest behind, what the last look found, and the time left.
    fn line(&self, inner: &Inner) -> String {
        let behind = inner.chains.values().min_by_key(|view| (view.first.is_some(), view.sweeps, view.done));
        let Some(view) = behind else { return String::new() };
        let mut text = format!("{} {}/{}", phase_name(view.phase), view.done, view.total);
        let rate = self.rate(inner);
        if let Some(rate) = rate {
            text += &format!(", {rate:.1} sweeps/s");
        }
        if let Some(look) = &inner.look {
            text += &format!("; {}", describe_look(look, self.settings.ess));
        }
        let left = rate.and_then(|rate| self.time_left(inner, rate));
        left.map_or(text.clone(), |left| format!("{text}; {left}"))
    }

    /// Sweeps of all chains in a second.
    fn rate(&self, inner: &Inner) -> Option<f64> {
        let seconds = inner.first_sweep?.elapsed().as_secs_f64();
        let sweeps: u64 = inner.chains.values().map(|view| view.sweeps - view.first.unwrap_or(0)).sum();
        (seconds > 1.0 && sweeps > 0).then(|| sweeps as f64 / seconds)
    }

    /// How long the run will take, as far as that can be said.
    fn time_left(&self, inner: &Inner, rate: f64) -> Option<String> {
        let until = |draws: u64| {
            let end = self.settings.tune.saturating_add(draws);
            let done: u64 = inner.chains.values().map(|view| view.sweeps.min(end)).sum();
            (end as f64 * self.n_chains as f64 - done as f64) / rate
        };
        let limit = self.settings.time_limit();
        let budget = limit.map(|limit| limit.as_secs_f64() - self.began.elapsed().as_secs_f64());
        let (seconds, about) = match (self.settings.draws, &inner.look) {
            (Some(draws), _) => (until(draws), ""),
            (None, None) => {
                let seconds = clock(until(FIRST_LOOK));
                return Some(format!("first check after {FIRST_LOOK} draws, in {seconds}"));
            }
            (None, Some(look)) => match look.expected {
                Some(draws) => (until(draws), "about "),
                None => (f64::INFINITY, "about "),
            },
        };
        Some(match budget {
            Some(budget) if budget < seconds => {
                let needed = match seconds.is_finite() {
                    true => format!("{about}{} are needed", clock(seconds)),
                    false => "no end in sight".to_owned(),
                };
                format!("the budget ends in {}, {needed}", clock(budget))
            }
            _ => format!("{about}{} left", clock(seconds)),
        })
    }
}

/// What the last look found.
pub fn describe_look(look: &Look, target: u64) -> String {
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "undefined".to_owned(), |value| format!("{value:.digits$}"))
    };
    format!(
        "at draw {}: smallest ESS {} of {target} ({}), largest R-hat {} ({})",
        look.draws,
        number(look.ess.0, 0),
        look.ess.1,
        number(look.r_hat.0, 3),
        look.r_hat.1
    )
}

/// Hours, minutes, seconds.
pub fn clock(seconds: f64) -> String {
    let seconds = Duration::from_secs_f64(seconds.clamp(0.0, 1e9)).as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Start => "start",
        Phase::Tune => "warm-up",
        Phase::Sample => "draws",
    }
}

fn chain_bar(chain: u32) -> ProgressBar {
    let text = format!("chain {:>2} {{wide_bar:.cyan/blue}} {{pos:>6}}/{{len}} {{msg:8}}", chain);
    ProgressBar::new(1).with_style(style(&text))
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
