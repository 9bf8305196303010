//! Ctrl-C and SIGTERM: the program ends at once, except where draws are being made, which are kept first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::failure::{Failure, code};

/// Runs under way that stop by themselves after the sweep under way.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// While it lives, the first signal lets the sweep under way end.
pub struct Finishing(());

impl Finishing {
    /// Something begins that looks at the stop flag after every step, and keeps what it has.
    pub fn begin() -> Self {
        UNDER_WAY.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Finishing {
    fn drop(&mut self) {
        UNDER_WAY.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The first signal asks a run to stop after its sweep, and ends everything else at once; the second ends the program in
/// any case. Files are written under other names and renamed, and stores stand at any moment, so nothing is cut.
pub fn listen(stop: &Arc<AtomicBool>) -> Result<(), Failure> {
    let stop = stop.clone();
    let handler = move || {
        let again = stop.swap(true, Ordering::SeqCst);
        if again || UNDER_WAY.load(Ordering::SeqCst) == 0 {
            if !again {
                eprintln!("\nstopped; files that were written are kept");
            }
            std::process::exit(i32::from(code::STOPPED));
        }
        eprintln!("\nstopping after the sweep under way; press Ctrl-C again to end at once");
    };
    ctrlc::set_handler(handler).map_err(|error| Failure::other(format!("signals cannot be caught: {error}")))
}
