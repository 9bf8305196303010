//! What a run looks like while it goes on: bars on a terminal, plain lines elsewhere.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gpssm::diagnostics::{ess_bulk, rhat};
use gpssm::{Draw, Phase, Progress, Settings};
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
const LINE_SECONDS: f64 = 10.0;
/// Seconds between looks at R-hat.
const LOOK_SECONDS: f64 = 2.0;
/// Draws of a chain that are kept to look at; every second one is dropped when there are more.
const KEPT: usize = 1_000;

/// Watches the chains of a run.
pub struct Monitor<'a> {
    progress_mode: ProgressMode,
    settings: &'a Settings,
    /// Fitted parameters: index in theta and name.
    learned: Vec<(usize, String)>,
    stop: Arc<AtomicBool>,
    bars: Option<MultiProgress>,
    inner: Mutex<Inner>,
}

struct Inner {
    chains: BTreeMap<u32, ChainView>,
    footer: Option<ProgressBar>,
    last_look: Instant,
    last_line: Instant,
}

struct ChainView {
    bar: Option<ProgressBar>,
    phase: Phase,
    phase_began: Instant,
    done_before: u64,
    done: u64,
    total: u64,
    /// By learned parameter.
    kept: Vec<Vec<f64>>,
    every: u64,
}

impl ChainView {
    fn rate(&self) -> f64 {
        let seconds = self.phase_began.elapsed().as_secs_f64();
        if seconds > 0.0 { (self.done - self.done_before) as f64 / seconds } else { 0.0 }
    }

    /// Seconds until the end of all phases, judged by the speed of this one.
    fn seconds_left(&self, settings: &Settings) -> Option<f64> {
        let rate = self.rate();
        let later = if self.phase == Phase::Tune { settings.draws } else { 0 };
        (rate > 0.0 && self.phase != Phase::Start).then(|| (self.total - self.done + later) as f64 / rate)
    }
}

impl<'a> Monitor<'a> {
    /// For a run of these settings; `learned` names the entries of theta that move.
    pub fn new(
        progress_mode: ProgressMode,
        settings: &'a Settings,
        learned: Vec<(usize, String)>,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let bars = (progress_mode == ProgressMode::Bars).then(MultiProgress::new);
        let now = Instant::now();
        let inner = Inner { chains: BTreeMap::new(), footer: None, last_look: now, last_line: now };
        Self { progress_mode, settings, learned, stop, bars, inner: Mutex::new(inner) }
    }

    /// Called after every restart and sweep; false when the run is to stop.
    pub fn progress(&self, progress: &Progress) -> bool {
        if self.progress_mode != ProgressMode::Quiet {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            self.show(&mut inner, progress);
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

    fn show(&self, inner: &mut Inner, progress: &Progress) {
        let now = Instant::now();
        let fresh = || ChainView {
            bar: self.bars.as_ref().map(|bars| bars.add(chain_bar(progress.chain))),
            phase: progress.phase,
            phase_began: now,
            done_before: progress.done.saturating_sub(1),
            done: progress.done,
            total: progress.total,
            kept: vec![Vec::new(); self.learned.len()],
            every: 1,
        };
        let view = inner.chains.entry(progress.chain).or_insert_with(fresh);
        if view.phase != progress.phase {
            (view.phase, view.phase_began) = (progress.phase, now);
            view.done_before = progress.done.saturating_sub(1);
        }
        (view.done, view.total) = (progress.done, progress.total);
        if let Some(bar) = &view.bar {
            bar.set_length(progress.total);
            bar.set_position(progress.done);
            let left =
                view.seconds_left(self.settings).map_or(String::new(), |s| format!("  {} left", clock(s)));
            let rate =
                if view.phase == Phase::Start { String::new() } else { format!("{:.1}/s", view.rate()) };
            bar.set_message(format!("{} {rate}{left}", phase_name(view.phase)));
        }
        if self.progress_mode == ProgressMode::Bars && inner.last_look.elapsed().as_secs_f64() > LOOK_SECONDS
        {
            inner.last_look = now;
            if let Some(text) = self.agreement(inner) {
                let bars = self.bars.as_ref();
                let footer = inner.footer.get_or_insert_with(|| {
                    let bar = ProgressBar::new_spinner().with_style(style("  {msg}"));
                    bars.map_or(bar.clone(), |bars| bars.add(bar))
                });
                footer.set_message(text);
            }
        }
        let ended = progress.done == progress.total && progress.phase != Phase::Start;
        if self.progress_mode == ProgressMode::Lines
            && (ended || inner.last_line.elapsed().as_secs_f64() > LINE_SECONDS)
        {
            inner.last_line = now;
            eprintln!("{}", self.line(inner, progress.chain));
            if let Some(text) = self.agreement(inner) {
                eprintln!("{text}");
            }
        }
    }

    fn line(&self, inner: &Inner, chain: u32) -> String {
        let view = &inner.chains[&chain];
        let mut text = format!("chain {}: {} {}/{}", chain, phase_name(view.phase), view.done, view.total);
        if view.phase != Phase::Start {
            text += &format!(", {:.1} sweeps/s", view.rate());
        }
        if let Some(seconds) = view.seconds_left(self.settings).filter(|seconds| *seconds > 0.0) {
            text += &format!(", {} left", clock(seconds));
        }
        text
    }

    /// Running R-hat and worst effective sample size over the chains that have draws.
    fn agreement(&self, inner: &Inner) -> Option<String> {
        let views: Vec<&ChainView> = inner.chains.values().filter(|view| !view.kept.is_empty()).collect();
        // Chains keep every k-th draw, k a power of two: what they share is the coarsest of these.
        let every = views.iter().map(|view| view.every).max()?;
        let column = |view: &ChainView, k: usize| -> Vec<f64> {
            view.kept[k].iter().copied().step_by((every / view.every) as usize).collect()
        };
        let mut worst_r_hat: Option<(f64, &str)> = None;
        let mut worst_ess: Option<(f64, &str)> = None;
        for (k, (_, name)) in self.learned.iter().enumerate() {
            let columns: Vec<Vec<f64>> = views.iter().map(|view| column(view, k)).collect();
            let common = columns.iter().map(Vec::len).min()?;
            let columns: Vec<&[f64]> = columns.iter().map(|column| &column[..common]).collect();
            if let Some(r_hat) = rhat(&columns)
                && worst_r_hat.is_none_or(|(worst, _)| r_hat > worst)
            {
                worst_r_hat = Some((r_hat, name));
            }
            if let Some(ess) = ess_bulk(&columns)
                && worst_ess.is_none_or(|(worst, _)| ess < worst)
            {
                worst_ess = Some((ess, name));
            }
        }
        let (ess, ess_name) = worst_ess?;
        let r_hat = worst_r_hat.map_or(String::new(), |(r, name)| format!("worst R-hat {r:.2} ({name}), "));
        Some(format!("{r_hat}smallest ESS {ess:.0} ({ess_name})"))
    }

    /// Looks at a draw on its way.
    pub fn look(&self, draw: &Draw) {
        if draw.phase != Phase::Sample || self.progress_mode == ProgressMode::Quiet {
            return;
        }
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(view) = inner.chains.get_mut(&draw.chain) else { return };
        if !draw.index.is_multiple_of(view.every) {
            return;
        }
        for (kept, (k, _)) in view.kept.iter_mut().zip(&self.learned) {
            kept.push(draw.theta[*k]);
        }
        if view.kept.first().is_some_and(|kept| kept.len() >= 2 * KEPT) {
            view.every *= 2;
            for kept in &mut view.kept {
                *kept = kept.iter().copied().step_by(2).collect();
            }
        }
    }
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
    let text = format!("chain {:>2} {{wide_bar:.cyan/blue}} {{pos:>6}}/{{len}} {{msg:32}}", chain);
    ProgressBar::new(1).with_style(style(&text))
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
