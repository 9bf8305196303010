//! How fast a large CSV file is read, beside a plain look at all its bytes in the same run.
//!
//!     cargo bench -p gpssm-io --bench table [-- rows]
//!
//! Prints one line of JSON; times are the best of three.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::time::Instant;

use gpssm_io::table::{Columns, read_record};

const TRIES: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo adds `--bench`.
    let rows = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(1_000_000);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("big.csv");
    write(&path, rows)?;
    let bytes = path.metadata()?.len();
    let columns = Columns {
        y: vec!["y1".into(), "y2".into()],
        u: vec!["u1".into(), "u2".into()],
        time: Some("t".into()),
        ..Columns::default()
    };
    let mut n_rows = 0;
    let read = best(|| {
        n_rows = read_record(&path, &columns)?.n_rows;
        Ok(())
    })?;
    let mut lines = 0;
    let scan = best(|| {
        lines = count_lines(&path)?;
        Ok(())
    })?;
    if (n_rows, lines) != (rows, rows + 1) {
        return Err(format!("{n_rows} rows and {lines} lines were read, not {rows} rows").into());
    }
    let per_100_mb = read * 1e8 / bytes as f64;
    println!(
        "{{\"rows\":{rows},\"bytes\":{bytes},\"read_s\":{read:.3},\"scan_s\":{scan:.3},\"ratio\":{:.1},\
         \"read_s_per_100_mb\":{per_100_mb:.3}}}",
        read / scan
    );
    Ok(())
}

/// Five columns of some twenty characters, as a measuring program would write them.
fn write(path: &Path, rows: usize) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "t,u1,u2,y1,y2")?;
    for i in 0..rows {
        let t = i as f64;
        let (a, b) = ((0.7 * t).sin(), (0.3 * t).cos());
        writeln!(file, "{i},{a:.17},{b:.17},{:.17},{:.17}", a * b, a - b)?;
    }
    file.flush()
}

fn best(mut work: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut best = f64::INFINITY;
    for _ in 0..TRIES {
        let began = Instant::now();
        work()?;
        best = best.min(began.elapsed().as_secs_f64());
    }
    Ok(best)
}

fn count_lines(path: &Path) -> std::io::Result<usize> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 17];
    let mut lines = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(lines),
            n => lines += buffer[..n].iter().filter(|byte| **byte == b'\n').count(),
        }
    }
}
