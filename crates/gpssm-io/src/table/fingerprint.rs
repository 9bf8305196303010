//! A fingerprint of the data as they are used, whatever the file looks like.

use std::fmt::Write;

use gpssm::Record;
use sha2::{Digest, Sha256};

use super::Columns;

/// SHA-256 of names, labels, times and values; equal for files that differ in layout only.
pub(super) fn fingerprint(
    record: &Record,
    columns: &Columns,
    labels: &[String],
    time: &[Vec<f64>],
) -> String {
    let mut hash = Sha256::new();
    let mut names = |names: &[String]| {
        hash.update((names.len() as u64).to_le_bytes());
        for name in names {
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name.as_bytes());
        }
    };
    names(&columns.y);
    names(&columns.u);
    names(labels);
    let mut bytes = Vec::new();
    let mut put = |value: f64, bytes: &mut Vec<u8>| {
        // One NaN and one zero.
        let value = if value.is_nan() { f64::NAN } else { value + 0.0 };
        bytes.extend_from_slice(&value.to_bits().to_le_bytes());
        if bytes.len() >= 1 << 13 {
            hash.update(&*bytes);
            bytes.clear();
        }
    };
    for (sequence, time) in record.sequences().iter().zip(time) {
        put(sequence.n_rows() as f64, &mut bytes);
        for t in 0..sequence.n_rows() {
            put(time[t], &mut bytes);
            sequence.y(t).iter().chain(sequence.u(t)).for_each(|&value| put(value, &mut bytes));
        }
    }
    hash.update(&bytes);
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
