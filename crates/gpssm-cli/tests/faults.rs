//! Nothing is lost: kills, Ctrl-C, full disks, second writers, and runs in pieces (T10, T11).

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{differences, folder_with_data, gpssm, run, succeed, text};

const FIT: [&str; 19] = [
    "fit", "data.csv", "--y", "y", "--u", "u", "--time", "t", "--states", "1", "--quiet", "--chains", "2",
    "--tune", "60", "--draws", "90", "--seed", "5",
];

fn fit(folder: &Path, out: &str, more: &[&str]) {
    succeed(folder, &[&FIT[..], &["-o", out], more].concat());
}

/// Ends the process at once, as a crash would.
fn kill_after(command: &mut Command, wait: Duration) -> bool {
    let mut child = command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().expect("the program starts");
    let began = Instant::now();
    while began.elapsed() < wait {
        if child.try_wait().expect("a status").is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().expect("a signal");
    child.wait().expect("an end");
    true
}

#[test]
fn a_run_that_is_killed_again_and_again_ends_with_the_same_bytes() {
    let folder = folder_with_data(40);
    let path = folder.path();
    let began = Instant::now();
    fit(path, "unbroken.zarr", &[]);
    let whole = began.elapsed();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let (mut kills, mut runs) = (0, 0);
    while kills < 50 {
        let out = format!("killed-{runs}.zarr");
        let mut tries = 0;
        loop {
            let wait = whole.mul_f64(0.5 * uniform());
            let begun = path.join(&out).exists();
            let mut command = gpssm(path);
            if begun {
                command.args(["fit", "--resume", &out, "--quiet"]);
            } else {
                command.args(FIT).args(["-o", &out]);
            }
            if !kill_after(&mut command, wait) {
                break;
            }
            kills += 1;
            tries += 1;
            // A machine under load may need longer than the unbroken run did.
            if tries > 30 {
                succeed(path, &["fit", "--resume", &out, "--quiet"]);
                break;
            }
        }
        assert_eq!(
            differences(&path.join("unbroken.zarr"), &path.join(&out)),
            Vec::<std::path::PathBuf>::new()
        );
        runs += 1;
    }
}

/// A linear model with little to learn: cheap sweeps that mix well.
const LINEAR: &str = "[data]\nfile = 'data.csv'\ny = 'y'\n[model]\nfunction = '0.7*x1'\nprocess_noise = 0.5\n\
                      [sampler]\nchains = 3\ntune = 30\ness = 200\nseed = 2\nstart = { restarts = 2, particles = 40 }\n";

/// Where a run ends that goes on until it is good depends on nothing but the model and the seed.
#[test]
fn a_run_until_it_is_good_ends_with_the_same_bytes_after_kills_and_budgets() {
    let folder = folder_with_data(30);
    let path = folder.path();
    std::fs::write(path.join("linear.toml"), LINEAR).expect("a model file");
    let begin = |out: &'static str| ["fit", "linear.toml", "--quiet", "-o", out];
    let began = Instant::now();
    succeed(path, &begin("unbroken.zarr"));
    let whole = began.elapsed();
    succeed(path, &[&begin("one-thread.zarr")[..], &["--threads", "1"]].concat());
    let mut kills = 0;
    for part in [0.2, 0.5, 0.3, 0.7, 0.4, 0.6] {
        let mut command = gpssm(path);
        match path.join("killed.zarr").exists() {
            true => command.args(["fit", "--resume", "killed.zarr", "--quiet"]),
            false => command.args(begin("killed.zarr")),
        };
        kills += u32::from(kill_after(&mut command, whole.mul_f64(part)));
    }
    assert!(kills > 0);
    succeed(path, &["fit", "--resume", "killed.zarr", "--quiet"]);
    // A budget that ends in the start, the warm-up or later: whatever there is goes on.
    for (i, budget) in ["0.001s", "0.05s", "0.2s", "0.4s"].iter().enumerate() {
        let words: &[&str] = match i {
            0 => &begin("budget.zarr"),
            _ => &["fit", "--resume", "budget.zarr", "--quiet"],
        };
        let output = run(path, &[words, &["--budget", budget]].concat());
        assert!([Some(0), Some(1)].contains(&output.status.code()), "{}", text(&output.stderr));
        if output.status.code() == Some(1) {
            assert!(text(&output.stderr).contains("continue with: gpssm fit --resume budget.zarr"));
        }
    }
    succeed(path, &["fit", "--resume", "budget.zarr", "--quiet", "--budget", "none"]);
    // Fewer draws first, and what is complete stays as it is.
    succeed(path, &[&begin("longer.zarr")[..], &["--draws", "150"]].concat());
    for _ in 0..2 {
        succeed(path, &["fit", "--resume", "longer.zarr", "--quiet", "--ess", "200"]);
    }
    for other in ["one-thread.zarr", "killed.zarr", "budget.zarr", "longer.zarr"] {
        let differences = differences(&path.join("unbroken.zarr"), &path.join(other));
        assert!(differences.is_empty(), "{other}: {differences:?}");
    }
    let said = succeed(path, &["summary", "unbroken.zarr", "--strict"]);
    assert!(said.contains("[good] Have the chains converged?\n    Yes: all 21 quantities"), "{said}");
    let said = succeed(path, &["summary", "unbroken.zarr", "--json"]);
    assert!(said.contains("\"converged\": true"), "{said}");
}

#[test]
fn more_draws_threads_and_single_chains_give_the_same_bytes() {
    let folder = folder_with_data(30);
    let path = folder.path();
    fit(path, "whole.zarr", &["--threads", "2"]);
    fit(path, "one-thread.zarr", &["--threads", "1"]);
    succeed(path, &[&FIT[..], &["--set", "sampler.draws=20", "-o", "longer.zarr"]].concat());
    succeed(path, &["fit", "--resume", "longer.zarr", "--draws", "90", "--quiet"]);
    fit(path, "chain-1.zarr", &["--chain-id", "1"]);
    fit(path, "chain-0.zarr", &["--chain-id", "0"]);
    succeed(path, &["merge", "chain-1.zarr", "chain-0.zarr", "-o", "merged.zarr"]);
    for other in ["one-thread.zarr", "longer.zarr", "merged.zarr"] {
        let differences = differences(&path.join("whole.zarr"), &path.join(other));
        assert!(differences.is_empty(), "{other}: {differences:?}");
    }
}

#[test]
fn the_first_interrupt_keeps_every_draw_and_says_how_to_go_on() {
    let folder = folder_with_data(60);
    let path = folder.path();
    fit(path, "unbroken.zarr", &[]);
    let mut command = gpssm(path);
    command.args(FIT).args(["-o", "stopped.zarr"]).stderr(Stdio::piped()).stdout(Stdio::null());
    let child = command.spawn().expect("the program starts");
    while !path.join("stopped.zarr/state").is_dir() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    let output = child.wait_with_output().expect("an end");
    if !sent.is_ok_and(|status| status.success()) {
        println!("skipped: no way to send an interrupt here");
        return;
    }
    // A fast machine may have been done before the signal came.
    if output.status.code() == Some(130) {
        let said = text(&output.stderr);
        assert!(said.contains("gpssm fit --resume stopped.zarr"), "{said}");
        succeed(path, &["fit", "--resume", "stopped.zarr", "--quiet"]);
    }
    let differences = differences(&path.join("unbroken.zarr"), &path.join("stopped.zarr"));
    assert!(differences.is_empty(), "{differences:?}");
}

#[test]
fn a_second_process_on_the_same_store_is_refused() {
    let folder = folder_with_data(60);
    let path = folder.path();
    let mut command = gpssm(path);
    command.args(FIT).args(["--set", "sampler.draws=100000", "-o", "busy.zarr"]);
    let mut child = command.stderr(Stdio::null()).spawn().expect("the program starts");
    while !path.join("busy.zarr/zarr.json").is_file() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let second = run(path, &["fit", "--resume", "busy.zarr", "--quiet"]);
    child.kill().expect("a signal");
    child.wait().expect("an end");
    assert_eq!(second.status.code(), Some(2));
    assert!(text(&second.stderr).contains("in use by another process"), "{}", text(&second.stderr));
}

/// A small file system in memory; gone when dropped.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(at: &'a Path, kilobytes: u32) -> Option<Self> {
        std::fs::create_dir_all(at).ok()?;
        let size = format!("size={kilobytes}k");
        let mut command = Command::new("mount");
        let mounted =
            command.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).stderr(Stdio::null()).status();
        mounted.is_ok_and(|status| status.success()).then_some(Self(at))
    }

    fn grow(&self, kilobytes: u32) {
        let size = format!("remount,size={kilobytes}k");
        let grown = Command::new("mount").args(["-o", &size]).arg(self.0).status().expect("a mount");
        assert!(grown.success());
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_stops_the_run_cleanly_and_the_run_goes_on_when_there_is_room() {
    let folder = folder_with_data(60);
    let path = folder.path();
    let small = path.join("small");
    let Some(disk) = SmallDisk::mount(&small, 700) else {
        println!("skipped: mounting a small file system is refused here");
        return;
    };
    fit(path, "unbroken.zarr", &["--set", "sampler.draws=800"]);
    let full = run(path, &[&FIT[..], &["--set", "sampler.draws=800", "-o", "small/run.zarr"]].concat());
    assert_eq!(full.status.code(), Some(1), "{}", text(&full.stderr));
    assert!(text(&full.stderr).contains("gpssm fit --resume small/run.zarr"), "{}", text(&full.stderr));
    disk.grow(100_000);
    succeed(path, &["fit", "--resume", "small/run.zarr", "--quiet"]);
    let differences = differences(&path.join("unbroken.zarr"), &small.join("run.zarr"));
    assert!(differences.is_empty(), "{differences:?}");
}
