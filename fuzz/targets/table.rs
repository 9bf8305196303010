//! Any bytes as a data file: a record with finite numbers, or one line of error.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use gpssm_io::config::{RunFile, guess_columns, starter};
use gpssm_io::table::{Columns, read_record};
use libfuzzer_sys::fuzz_target;

/// One file for each process, in memory where the system has such a place.
static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
    folder.join(format!("gpssm-fuzz-{}.csv", std::process::id()))
});

fuzz_target!(|bytes: &[u8]| {
    std::fs::write(&*FILE, bytes).expect("a file that can be written");
    let columns = |time: bool, sequence: bool, every: Option<usize>| Columns {
        y: vec!["y".into()],
        u: vec!["u".into()],
        time: time.then(|| "t".into()),
        sequence: sequence.then(|| "s".into()),
        every,
        ..Columns::default()
    };
    for asked in [columns(true, false, None), columns(true, true, Some(2)), columns(false, false, None)] {
        match read_record(&FILE, &asked) {
            Err(error) => assert!(!error.to_string().contains('\n')),
            Ok(data) => {
                assert!(data.time.iter().flatten().all(|time| time.is_finite()));
                for sequence in data.record.sequences() {
                    for t in 0..sequence.n_rows() {
                        assert!(sequence.u(t).iter().all(|u| u.is_finite()));
                        assert!(sequence.y(t).iter().all(|y| !y.is_infinite()));
                    }
                }
            }
        }
    }
    if let Ok((columns, data)) = guess_columns(&FILE) {
        let file = RunFile::parse(&starter(&columns, &data), "starter").expect("a starter that is a run file");
        assert_eq!(file.config().expect("a starter that can be read").data.columns(), columns);
    }
});
