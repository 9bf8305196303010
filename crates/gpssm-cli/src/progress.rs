//! Progress of work whose steps can be counted: a bar on a terminal, a line now and then elsewhere.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use crate::monitor::{LINE_SECONDS, clock};

/// A bar with time left, or lines.
pub struct Steps {
    name: &'static str,
    bar: ProgressBar,
    began: Instant,
    last_said: Mutex<Instant>,
}

/// Work of this name.
pub fn steps(name: &'static str) -> Steps {
    let style = ProgressStyle::with_template("{msg} {wide_bar:.cyan/blue} {pos}/{len}  {eta} left");
    let bar = ProgressBar::new(0).with_message(name);
    let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let began = Instant::now();
    Steps { name, bar, began, last_said: Mutex::new(began) }
}

impl Steps {
    /// So much is done; always goes on.
    pub fn tell(&self, done: usize, of: usize) -> bool {
        self.bar.set_length(of as u64);
        self.bar.set_position(done as u64);
        if self.bar.is_hidden() {
            self.say(done, of);
        }
        true
    }

    /// A line, if the last one is long ago.
    fn say(&self, done: usize, of: usize) {
        let mut last = self.last_said.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed().as_secs_f64() < LINE_SECONDS {
            return;
        }
        *last = Instant::now();
        let left = self.began.elapsed().as_secs_f64() * of.saturating_sub(done) as f64 / done.max(1) as f64;
        let left = if done > 0 { format!(", about {} left", clock(left)) } else { String::new() };
        eprintln!("{} {done}/{of}{left}", self.name);
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
