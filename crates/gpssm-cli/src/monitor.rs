//! What a run looks like while it goes on: bars on a terminal, plain lines elsewhere.

use std::collections::{BTreeMap, VecDeque};
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
    /// Seconds of a sweep before any was seen.
    expected: Option<f64>,
    inner: Mutex<Inner>,
}

struct Inner {
    chains: BTreeMap<u32, ChainView>,
    /// When the first sweep was done.
    first_sweep: Option<Instant>,
    look: Option<Arc<Look>>,
    footer: Option<ProgressBar>,
    last_said: Instant,
    pace: Pace,
}

/// How long starts and sweeps take, as far as they were seen.
#[derive(Default)]
struct Pace {
    /// Seconds of each start that is done.
    starts: Vec<f64>,
    /// Seconds from sweep to sweep of one chain, the last ones.
    gaps: VecDeque<f64>,
    /// Since all chains sweep: seconds, and sweeps of all chains until then.
    together: VecDeque<(f64, u64)>,
}

/// Sweeps that are remembered.
const REMEMBERED: usize = 200;
/// A gap of so many usual ones was a wait for a thread, not a sweep.
const WAITED: f64 = 5.0;
/// Seconds between the counts of sweeps that are remembered, and of counts that tell a pace.
const COUNT_SECONDS: f64 = 0.5;
const FEWEST_SECONDS: f64 = 3.0;
/// The share of the time since all chains sweep that tells the pace, and its least number of seconds.
const RECENT: f64 = 0.5;
const RECENT_SECONDS: f64 = 20.0;

impl Pace {
    fn add_gap(&mut self, seconds: f64) {
        if self.gaps.len() == REMEMBERED {
            self.gaps.pop_front();
        }
        self.gaps.push_back(seconds);
    }

    /// Takes note of how many sweeps were made, once all chains sweep.
    fn add_count(&mut self, seconds: f64, sweeps: u64) {
        if self.together.back().is_some_and(|(last, _)| seconds - last < COUNT_SECONDS) {
            return;
        }
        self.together.push_back((seconds, sweeps));
        let Some(&(first, _)) = self.together.front() else { return };
        let kept = RECENT_SECONDS.max(RECENT * (seconds - first));
        while self.together.len() > 2 && self.together.get(1).is_some_and(|(at, _)| seconds - at >= kept) {
            self.together.pop_front();
        }
    }

    /// Seconds of a thread for a sweep. What all chains made is the best witness, as it knows of everything else that the machine
    /// does; while some have not started, times between the sweeps of a chain are the next best.
    fn sweep(&self, threads: usize) -> Option<f64> {
        if let (Some(first), Some(last)) = (self.together.front(), self.together.back())
            && last.0 - first.0 >= FEWEST_SECONDS
            && last.1 > first.1
        {
            return Some((last.0 - first.0) * threads as f64 / (last.1 - first.1) as f64);
        }
        self.usual_gap()
    }

    /// Seconds between sweeps of a chain, without waits for a thread.
    fn usual_gap(&self) -> Option<f64> {
        let mut gaps: Vec<f64> = self.gaps.iter().copied().collect();
        gaps.sort_unstable_by(f64::total_cmp);
        let median = *gaps.get(gaps.len() / 2)?;
        let usual: Vec<f64> = gaps.into_iter().filter(|gap| *gap <= WAITED * median).collect();
        Some(usual.iter().sum::<f64>() / usual.len() as f64)
    }

    /// Seconds of a start.
    fn start(&self) -> Option<f64> {
        let n = self.starts.len();
        (n > 0).then(|| self.starts.iter().sum::<f64>() / n as f64)
    }
}

/// What a chain has to do yet.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Left {
    /// Its start has run for so many seconds and is done to this share.
    Start { seconds: f64, share: f64, sweeps: f64 },
    /// Nothing has begun.
    All { sweeps: f64 },
    /// Sweeps alone.
    Sweeps(f64),
}

/// Seconds until all chains are done on so many threads. Chains that begin later have a start before them, too, if the others
/// had one.
fn seconds_left(chains: &[Left], pace: &Pace, expected: Option<f64>, threads: usize) -> Option<f64> {
    let sweep = pace.sweep(threads.max(1)).or(expected)?;
    let under_way = chains.iter().filter_map(|chain| match chain {
        Left::Start { seconds, share, .. } if *share > 0.02 => Some(seconds / share),
        _ => None,
    });
    let under_way: Vec<f64> = under_way.collect();
    let mean = (!under_way.is_empty()).then(|| under_way.iter().sum::<f64>() / under_way.len() as f64);
    let start = pace.start().or(mean);
    let each = chains.iter().map(|chain| match chain {
        Left::Sweeps(sweeps) => sweep * sweeps,
        Left::All { sweeps } => start.unwrap_or(0.0) + sweep * sweeps,
        Left::Start { seconds, share, sweeps } => {
            let whole = if *share > 0.02 { seconds / share } else { start.unwrap_or(2.0 * seconds) };
            (whole - seconds).max(0.0) + sweep * sweeps
        }
    });
    let each: Vec<f64> = each.collect();
    let together = each.iter().sum::<f64>() / threads.max(1) as f64;
    Some(each.iter().fold(together, |left, one| left.max(*one)))
}

struct ChainView {
    bar: Option<ProgressBar>,
    phase: Phase,
    done: u64,
    total: u64,
    /// Sweeps in all, and those that were there when it was first seen to sweep.
    sweeps: u64,
    first: Option<u64>,
    /// When it was first and last heard of.
    began: Instant,
    last: Instant,
    /// Whether it had to be started.
    started: bool,
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
        let inner = Inner {
            chains: BTreeMap::new(),
            first_sweep: None,
            look: None,
            footer: None,
            last_said: began,
            pace: Pace::default(),
        };
        Self {
            progress_mode,
            settings,
            n_chains,
            began,
            stop,
            bars,
            expected: None,
            inner: Mutex::new(inner),
        }
    }

    /// The same with what a sweep is expected to take before any was seen.
    pub fn expecting(self, seconds_per_sweep: f64) -> Self {
        Self { expected: Some(seconds_per_sweep), ..self }
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
        let now = Instant::now();
        let fresh = || ChainView {
            bar: self.bars.as_ref().map(|bars| bars.add(chain_bar(progress.chain))),
            phase: progress.phase,
            done: 0,
            total: 0,
            sweeps: 0,
            first: None,
            began: now,
            last: now,
            started: false,
        };
        let pace = &mut inner.pace;
        let view = inner.chains.entry(progress.chain).or_insert_with(fresh);
        (view.phase, view.done, view.total) = (progress.phase, progress.done, progress.total);
        if view.phase != Phase::Start {
            let before = if view.phase == Phase::Sample { self.settings.tune } else { 0 };
            view.sweeps = before + view.done;
            match view.first {
                Some(_) => pace.add_gap(now.duration_since(view.last).as_secs_f64()),
                None if view.started => pace.starts.push(now.duration_since(view.began).as_secs_f64()),
                None => {}
            }
            view.first.get_or_insert(view.sweeps.saturating_sub(1));
            inner.first_sweep.get_or_insert(now);
        }
        view.started |= view.phase == Phase::Start;
        view.last = now;
        if let Some(bar) = &view.bar {
            bar.set_length(progress.total);
            bar.set_position(progress.done);
            bar.set_message(phase_name(view.phase));
        }
        if progress.look.is_some() {
            inner.look.clone_from(&progress.look);
        }
        self.count(inner, now);
    }

    /// Counts the sweeps of all chains, if none has to start any more.
    fn count(&self, inner: &mut Inner, now: Instant) {
        let begun = inner.chains.values().filter(|view| view.first.is_some()).count();
        if begun == self.n_chains {
            let sweeps = inner.chains.values().map(|view| view.sweeps).sum();
            inner.pace.add_count(now.duration_since(self.began).as_secs_f64(), sweeps);
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
        let left = self.time_left(inner);
        left.map_or(text.clone(), |left| format!("{text}; {left}"))
    }

    /// Sweeps of all chains in a second.
    fn rate(&self, inner: &Inner) -> Option<f64> {
        let seconds = inner.first_sweep?.elapsed().as_secs_f64();
        let sweeps: u64 = inner.chains.values().map(|view| view.sweeps - view.first.unwrap_or(0)).sum();
        (seconds > 1.0 && sweeps > 0).then(|| sweeps as f64 / seconds)
    }

    /// Seconds until each chain has so many draws, starts and warm-up included.
    fn until(&self, inner: &Inner, draws: u64) -> Option<f64> {
        let end = self.settings.tune.saturating_add(draws);
        let of = |view: &ChainView| {
            let sweeps = (end - view.sweeps.min(end)) as f64;
            match view.phase {
                Phase::Start => {
                    let seconds = view.began.elapsed().as_secs_f64();
                    Left::Start { seconds, share: view.done as f64 / view.total.max(1) as f64, sweeps }
                }
                _ => Left::Sweeps(sweeps),
            }
        };
        let mut chains: Vec<Left> = inner.chains.values().map(of).collect();
        chains.resize(self.n_chains.max(chains.len()), Left::All { sweeps: end as f64 });
        let threads = self.settings.n_threads().min(self.n_chains);
        seconds_left(&chains, &inner.pace, self.expected, threads)
    }

    /// How long the run will take, as far as that can be said.
    fn time_left(&self, inner: &Inner) -> Option<String> {
        let until = |draws: u64| self.until(inner, draws);
        let limit = self.settings.time_limit();
        let budget = limit.map(|limit| limit.as_secs_f64() - self.began.elapsed().as_secs_f64());
        let (seconds, about) = match (self.settings.draws, &inner.look) {
            (Some(draws), _) => (until(draws)?, "about "),
            (None, None) => {
                let seconds = until(FIRST_LOOK)?;
                let check = format!("first check after {FIRST_LOOK} draws, in {}", clock(seconds));
                return Some(match budget {
                    Some(budget) if budget < seconds => {
                        format!("the budget ends in {}, {check}", clock(budget))
                    }
                    _ => check,
                });
            }
            (None, Some(look)) => match look.expected {
                Some(draws) => (until(draws)?, "about "),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Four chains on two threads, all starts of 10 s, 100 sweeps of 0.5 s each: 120 s in all, whatever is done by when.
    #[test]
    fn the_time_left_counts_starts_and_all_chains() {
        let left = |chains: &[Left], pace: &Pace| seconds_left(chains, pace, Some(0.5), 2).expect("a time");
        let all = Left::All { sweeps: 100.0 };
        let half = Left::Start { seconds: 5.0, share: 0.5, sweeps: 100.0 };
        let none = Pace::default();
        assert!((left(&[half, half, all, all], &none) - 115.0).abs() < 1e-9);
        let pace = Pace { starts: vec![10.0, 10.0], gaps: vec![0.5; 20].into(), ..Pace::default() };
        assert!((left(&[Left::Sweeps(40.0), Left::Sweeps(40.0), all, all], &pace) - 80.0).abs() < 1e-9);
        // One chain that is far behind is waited for.
        assert!((left(&[Left::Sweeps(0.0), Left::Sweeps(80.0)], &pace) - 40.0).abs() < 1e-9);
        // A run that goes on has no starts.
        let resumed = Pace { gaps: vec![0.5; 20].into(), ..Pace::default() };
        assert!((left(&[Left::Sweeps(10.0), all], &resumed) - 50.0).abs() < 1e-9);
        assert_eq!(seconds_left(&[all], &none, None, 1), None);
    }

    /// Waits for a thread are no sweeps.
    #[test]
    fn the_pace_leaves_waits_out() {
        let mut pace = Pace::default();
        (0..50).for_each(|i| pace.add_gap(if i % 10 == 0 { 30.0 } else { 0.2 }));
        assert!((pace.sweep(2).expect("sweeps") - 0.2).abs() < 1e-12);
    }

    /// Two threads make four sweeps a second, then one a second when the machine has other work: the recent past counts.
    #[test]
    fn the_pace_is_that_of_all_chains() {
        let mut pace = Pace::default();
        (0..50).for_each(|_| pace.add_gap(0.01));
        (0..=40).for_each(|t| pace.add_count(f64::from(t), 4 * t as u64));
        assert!((pace.sweep(2).expect("sweeps") - 0.5).abs() < 1e-12);
        (41..=140).for_each(|t| pace.add_count(f64::from(t), 160 + (t - 40) as u64));
        assert!((pace.sweep(2).expect("sweeps") - 2.0).abs() < 1e-12);
        assert!(pace.together.len() < 200);
    }
}
