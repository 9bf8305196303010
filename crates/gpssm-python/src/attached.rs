//! A thread of the sampler keeps its Python thread state between the calls of user functions.
//!
//! Without this, every call from a thread that Python does not know makes a thread state and throws it away, which
//! costs far more than the call itself (measured: some 30 us against 1 us). There is no safe interface for it, so this
//! file has unsafe code; the only other one is `native`.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pyo3::ffi;

/// How many thread states a run keeps.
#[derive(Clone, Default)]
pub(crate) struct Kept(Arc<AtomicUsize>);

/// The thread state of this thread; given back when the thread ends.
struct State {
    ensured: ffi::PyGILState_STATE,
    state: *mut ffi::PyThreadState,
    kept: Kept,
}

thread_local! {
    static STATE: RefCell<Option<State>> = const { RefCell::new(None) };
}

impl Kept {
    /// Keeps a thread state for this thread from now on, if Python does not know the thread yet.
    pub(crate) fn keep(&self) {
        // Safety: may be called at any time while the interpreter lives, and it waits for the run that calls us.
        if unsafe { ffi::PyGILState_GetThisThreadState() }.is_null() {
            STATE.with_borrow_mut(|kept| *kept = Some(State::new(self)));
        }
    }

    /// Waits until threads that have ended have given their states back: the interpreter must not end before
    /// that. To be called without the interpreter lock, which they need.
    pub(crate) fn wait(&self) {
        let began = Instant::now();
        while self.0.load(Ordering::Acquire) > 0 && began.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

impl State {
    fn new(kept: &Kept) -> Self {
        kept.0.fetch_add(1, Ordering::AcqRel);
        // Safety: makes a thread state, attaches it, and detaches it again; `drop` undoes both in the same thread.
        let (ensured, state) = unsafe { (ffi::PyGILState_Ensure(), ffi::PyEval_SaveThread()) };
        Self { ensured, state, kept: kept.clone() }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // Safety: the state is that of this thread and detached, as every call of Python has ended; `wait` keeps
        // the interpreter alive.
        unsafe {
            ffi::PyEval_RestoreThread(self.state);
            ffi::PyGILState_Release(self.ensured);
        }
        self.kept.0.fetch_sub(1, Ordering::AcqRel);
    }
}
