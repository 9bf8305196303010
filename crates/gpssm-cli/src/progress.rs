//! One bar for work whose steps can be counted.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar with time left; silent where there is no terminal.
pub struct Steps {
    bar: ProgressBar,
}

/// Work of this name.
pub fn steps(name: &'static str) -> Steps {
    let style = ProgressStyle::with_template("{msg} {wide_bar:.cyan/blue} {pos}/{len}  {eta} left");
    let bar = ProgressBar::new(0).with_message(name);
    Steps { bar: bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())) }
}

impl Steps {
    /// So much is done; always goes on.
    pub fn tell(&self, done: usize, of: usize) -> bool {
        self.bar.set_length(of as u64);
        self.bar.set_position(done as u64);
        true
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
