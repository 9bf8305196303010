//! Every bad input ends in one line that says what to do, exit code 2, and nothing written (T12).

mod common;

use std::path::{Path, PathBuf};

use common::{bytes_of, copy, folder_with_run, gpssm, text, words};

/// Something a user might do wrong.
struct Case {
    /// What is typed after `gpssm`.
    line: String,
    /// Files beside `data.csv` and `run.zarr`.
    files: Vec<(&'static str, Vec<u8>)>,
    /// What happened to them before.
    change: fn(&Path),
    /// Parts of the one line.
    says: Vec<&'static str>,
}

fn nothing(_: &Path) {}

/// A line that is typed, and what it says.
fn typed(line: &str, says: &[&'static str]) -> Case {
    Case { line: line.to_owned(), files: Vec::new(), change: nothing, says: says.to_vec() }
}

/// A table in `d.csv` that is fitted.
fn table(content: impl Into<Vec<u8>>, says: &[&'static str]) -> Case {
    let case = typed("fit d.csv --y y --u u --time t", says);
    Case { files: vec![("d.csv", content.into())], ..case }
}

/// A run file in `m.toml` that is fitted.
fn run_file(content: impl Into<Vec<u8>>, says: &[&'static str]) -> Case {
    Case { files: vec![("m.toml", content.into())], ..typed("fit m.toml", says) }
}

/// A model in a run file for the data.
fn model(lines: &str, says: &[&'static str]) -> Case {
    let data = "[data]\nfile = 'data.csv'\ny = 'y'\nu = 'u'\ntime = 't'\n[model]\n";
    run_file(format!("{data}{lines}\n"), says)
}

/// A model file that states everything, with one key written differently, and calibration by simulation.
fn stated(instead: &str, options: &str, says: &[&'static str]) -> Case {
    let lines = [
        "standardise = false",
        "kernel = { squared_exponential = { sigma_f = 'log_normal(1, 0.4)', ell = ['log_normal(1, 0.4)'] } }",
        "process_noise = 'log_normal(0.4, 0.4)'",
        "sensor = { noise = 'log_normal(0.3, 0.4)' }",
        "initial = { gaussian = { mean = [0.0], sd = [1.0] } }",
    ];
    let key = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    let kept = lines.iter().filter(|line| key(line) != key(instead));
    let model = kept.fold(format!("[model]\n{instead}\n"), |all, line| all + line + "\n");
    let content = format!("[data]\ny = 'y'\n{model}[[model.state]]\nscale = 1.0\n");
    let line = format!("sbc m.toml --runs 1 --draws 3 {options}");
    Case { files: vec![("m.toml", content.into())], ..typed(&line, says) }
}

/// An option of a fit.
fn option(option: &str, says: &[&'static str]) -> Case {
    typed(&format!("fit data.csv --y y --u u --time t {option}"), says)
}

/// A store that something happened to.
fn damaged(line: &str, change: fn(&Path), says: &[&'static str]) -> Case {
    Case { change, ..typed(line, says) }
}

/// A command that reads `p.csv`.
fn with_file(line: &str, content: &str, says: &[&'static str]) -> Case {
    Case { files: vec![("p.csv", content.into())], ..typed(line, says) }
}

/// Two parts of a record, and lags of inputs.
fn evaluations() -> Vec<Case> {
    vec![
        typed("evaluate --train data.csv --split 1.5 --y y --u u", &["--split 1.5", "between 0 and 1"]),
        typed("evaluate --train data.csv --y y", &["--test"]),
        typed("evaluate --train none.csv --split 0.5 --y y", &["none.csv", "no such file"]),
        typed("evaluate --train data.csv --split 0.5 --y z", &["data.csv", "'z'"]),
        typed("evaluate --train data.csv --split 0.5 --y y --states many", &["--states many", "auto"]),
        typed("evaluate --train data.csv --split 0.5 --y y --paths 0", &["--paths 0"]),
        typed("fit data.csv --y y --input-lags 2", &["input_lags and delay need inputs"]),
        typed("fit data.csv --y y --u u --delay 5000", &["5000", "at most 1000"]),
        option("--states 2 --set sampler.narx=true", &["sampler.narx", "outputs or their lags"]),
        typed("reproduce benchmarks --data nowhere", &["nowhere", "no such folder"]),
    ]
}

const RECORD: &str = "t,u,y\n0,1,0.1\n0.1,2,0.4\n0.2,1,0.3\n0.3,0,0.1\n0.4,1,0.2\n0.5,0,0.1\n";

fn tables() -> Vec<Case> {
    let rows =
        |row: &dyn Fn(usize) -> String| (0..9).map(row).fold(String::from("t,u,y\n"), |all, row| all + &row);
    vec![
        table("", &["d.csv", "the file is empty"]),
        table("\n\n\n", &["d.csv", "the file is empty"]),
        table("t,u,y\n", &["d.csv", "no rows below the header"]),
        table("t,u,y\n0,1,2\n", &["d.csv, line 2", "only one row"]),
        table("t,u,y\n0,1,2\n1,2\n2,1,3\n", &["d.csv, line 3", "2 fields, but the header names 3"]),
        table("t,u,y\n0,1,2\n1,2,0,5\n2,1,3\n", &["d.csv, line 3", "4 fields", "decimal point"]),
        table("t;u;y\n0;1,5;2\n1;2.5;3\n", &["d.csv, line 2, column 'u'", "'1,5' has a decimal comma"]),
        table("\u{feff}t,u,y\r\n0,1,2\r\n1,x,3\r\n", &["d.csv, line 3, column 'u'", "'x' is not a number"]),
        table("t,u,y\r0,1,2\r1,2,3\r", &["d.csv, line 1", "carriage return alone"]),
        table("t,u,y\n0,1,\"2\n1,2,3\n", &["d.csv, line 2", "a quote is opened here"]),
        table("t,u,y\n0,1,2\n1,inf,3\n", &["d.csv, line 3, column 'u'", "'inf' is not a finite number"]),
        table("t,u,y\n0,1,2\n1,1e999,3\n", &["d.csv, line 3, column 'u'", "'1e999'"]),
        table("t,u,y\n0,1,2\n1,NaN,3\n", &["d.csv, line 3, column 'u'", "the input is missing"]),
        table("t,u,y\n0,1,2\n,2,3\n", &["d.csv, line 3, column 't'", "the time is missing"]),
        table(
            "t,u,y\n0,1,2\nsoon,2,3\n",
            &["d.csv, line 3, column 't'", "'soon' is neither a number nor a date"],
        ),
        table("t,u,y\n0,1,2\n2,1,2\n1,2,3\n", &["d.csv, line 4, column 't'", "sort the rows by time"]),
        table("t,u,y\n0,1,2\n0,1,2\n1,2,3\n", &["d.csv, line 3, column 't'", "--sequence"]),
        table(
            "t,u,y\n0,1,2\n1,1,2\n3000,2,3\n3001,1,1\n",
            &["d.csv, line 4, column 't'", "2998 rows are missing"],
        ),
        table("t,u,z\n0,1,2\n1,2,3\n", &["d.csv", "there is no column 'y'", "t, u, z"]),
        table("t,u,y,y\n0,1,2,3\n1,2,3,4\n", &["d.csv", "2 columns have the name 'y'"]),
        table("0,1,2\n1,2,3\n2,3,4\n", &["d.csv", "there is no header"]),
        table(*b"PK\x03\x04 and more", &["d.csv", "a spreadsheet or zip archive"]),
        table(*b"t,u,y\n0,1,\0\n", &["d.csv", "a binary file"]),
        table(*b"t,u,y\n0,1,2\n1,2,\xff\xfe\n", &["d.csv, line 3, column 'y'"]),
        table(*b"t,u,\xff\n0,1,2\n", &["there is no column 'y'"]),
        table(
            format!("t,u,y\n0,1,{}\n1,2,3\n", "9".repeat(100_000)),
            &["d.csv, line 2, column 'y'", "999..."],
        ),
        table("a".repeat(17 << 20), &["d.csv, line 1", "a row of more than"]),
        table("t,u,y\n0,1,\u{1b}[31m\n1,2,3\n", &["d.csv, line 2, column 'y'", "is not a number"]),
        table(rows(&|i| format!("{i},{i}e-310,{i}\n")), &["linear_sigma[x, u]", "not a finite number"]),
        typed("fit missing.csv --y y", &["missing.csv", "there is no such file"]),
        typed("fit run.zarr --y y", &["run.zarr exists", "--resume it"]),
        typed("fit '' --y y", &["a value is required for '[INPUT]'", "see gpssm fit --help"]),
        typed("init missing.csv", &["missing.csv", "there is no such file"]),
        typed("init data.csv -o data.csv --overwrite", &["data.csv", "choose another name"]),
        typed("init data.csv -o nodir/m.toml", &["there is no folder nodir"]),
        with_file("init p.csv", "a,b\nx,y\nz,w\n", &["p.csv", "no output is named"]),
    ]
}

fn run_files() -> Vec<Case> {
    let deep = |open: &str, close: &str| format!("a = {}{}", open.repeat(9_000), close.repeat(9_000));
    vec![
        run_file("", &["no data", "data.file"]),
        run_file("states = 2\n", &["m.toml", "states", "line 1"]),
        run_file("[data]\ny = 'y'\n[data]\nu = 'u'\n", &["m.toml", "not valid TOML", "line 3"]),
        run_file("[data]\ny = 'y'\ny = 'z'\n", &["m.toml", "not valid TOML", "line 3"]),
        run_file("[data", &["m.toml", "not valid TOML", "line 1"]),
        run_file(*b"[data]\ny = '\xff'\n", &["m.toml", "UTF-8"]),
        run_file(deep("[", "]"), &["m.toml", "not valid TOML"]),
        run_file(deep("{a=", "}"), &["m.toml", "not valid TOML"]),
        run_file("#".repeat((4 << 20) + 1), &["m.toml", "this is not a run file"]),
        run_file("[data]\nfile = 'nope.csv'\ny = 'y'\n", &["nope.csv", "there is no such file"]),
        run_file("[data]\nfile = 3\n", &["m.toml: data.file", "expected a text in quotes", "line 2"]),
        model("state = 2", &["m.toml: model.state", "line 7"]),
        model("kernl = 'se'", &["m.toml: model.kernl: unknown key; did you mean 'kernel'?", "line 7"]),
        model("kernel = 'se(x7)'", &["m.toml: model.kernel", "x7", "line 7"]),
        model("kernel = ['se', 3]", &["m.toml: model.kernel", "line 7"]),
        model("mean = 'x1 +'", &["m.toml: model.mean", "column 5", "line 7"]),
        model("mean = '2^3^2'", &["m.toml: model.mean", "column", "line 7"]),
        model("mean = 'system(x1)'", &["m.toml: model.mean", "unknown function 'system'", "line 7"]),
        model("mean = 'a*x1'", &["m.toml: model.mean", "unknown name 'a'", "line 7"]),
        model(
            &format!("mean = '{}x1{}'", "(".repeat(5_000), ")".repeat(5_000)),
            &["m.toml: model.mean", "line 7"],
        ),
        model(&format!("mean = '{}'", "x1+".repeat(50_000)), &["m.toml: model.mean", "line 7"]),
        model("sensor = 'poisson'", &["data.csv, line 2, column 'y'", "non-negative integer"]),
        model("sensor = 'gausian'", &["m.toml: model.sensor", "did you mean 'gaussian'?", "line 7"]),
        model("process_noise = 'normal(0, 1)'", &["m.toml: model.process_noise", "line 7"]),
        model("dynamics = 'hilbert(0)'", &["m.toml: model.dynamics", "at least one", "line 7"]),
        model("lags = 1000", &["m.toml: model.lags", "more than 100 states"]),
        model("[model.parameters]\na = 'normal(0, 1)'", &["m.toml: model.parameters.a", "not used"]),
        model("[sampler]\ndraws = 0", &["m.toml: sampler.draws: must be at least one"]),
        model("[sampler]\ndraws = 'many'", &["m.toml: sampler.draws", "expected a whole number", "line 8"]),
        typed("fit nope.toml", &["nope.toml", "there is no such file"]),
        typed("fit data.csv --model data.csv", &["data.csv", "not valid TOML"]),
        typed("simulate --prior nope.toml", &["nope.toml", "there is no such file"]),
    ]
}

fn options() -> Vec<Case> {
    vec![
        typed("bogus", &["unrecognized subcommand 'bogus'", "see gpssm --help"]),
        typed("fit", &["required arguments were not provided", "see gpssm fit --help"]),
        option("--bogus", &["unexpected argument '--bogus'", "see gpssm fit --help"]),
        option("--drwas 4", &["unexpected argument '--drwas'", "similar argument exists: '--draws'"]),
        option("--draws", &["a value is required for '--draws <N>'"]),
        option("--draws 0", &["invalid value '0' for '--draws <N>'", "1..="]),
        option("--draws -1", &["invalid value '-1' for '--draws <N>'"]),
        option("--draws 18446744073709551615", &["'18446744073709551615' for '--draws <N>'"]),
        option("--tune -5", &["--tune -5", "sampler.tune"]),
        option("--particles 1", &["--particles 1", "at least two"]),
        option("--particles 1000000000", &["--particles 1000000000", "MB are allowed"]),
        option("--chains 0", &["--chains 0", "must be at least one"]),
        option("--chains 4294967296", &["--chains 4294967296", "too large"]),
        option("--chain-id 4", &["chain 4", "chains 0 to 3"]),
        option("--chain-id 1", &["--chain-id 1 needs --draws", "all chains together"]),
        option("--chains 1", &["--chains 1", "one chain cannot be judged", "set draws"]),
        option("--ess 0", &["invalid value '0' for '--ess <N>'", "1..="]),
        option("--ess 100 --draws 10", &["'--ess <N>' cannot be used with '--draws <N>'"]),
        option("--budget soon", &["--budget soon", "'soon' is no time; write 90s, 10m, 1h30m or none"]),
        option("--budget 0s", &["--budget 0s", "'0s' is no time"]),
        typed("fit --resume run.zarr --budget soon", &["--budget", "'soon' is no time"]),
        option("--seed -1", &["--seed -1", "sampler.seed"]),
        option("--threads 0", &["--threads 0", "must be at least one"]),
        option("--states 0", &["--states 0", "at least one state"]),
        option("--states -1", &["--states -1", "model.states"]),
        option("--states 1000000000", &["--states 1000000000", "more than 100 states"]),
        option("--rows 5:3", &["data.csv", "rows 5 to 3"]),
        option("--rows 0:3", &["data.csv", "rows count from 1"]),
        option("--rows -1:3", &["--rows -1:3", "data.rows"]),
        option("--rows 1:999", &["data.csv", "there are 30"]),
        option("--rows abc", &["--rows abc", "data.rows"]),
        option("--every 0", &["data.csv", "every = 0"]),
        option("--every -2", &["--every -2", "data.every"]),
        option("--every 1000", &["data.csv", "only one row"]),
        typed("fit data.csv --y y --dt -1", &["data.csv", "dt = -1 must be a positive number"]),
        typed("fit data.csv --y y --dt nan", &["data.csv", "must be a positive number"]),
        typed("fit data.csv", &["data.csv", "no output is named"]),
        typed("fit data.csv --y y,y", &["data.csv", "'y' is named twice"]),
        typed("fit data.csv --y y --u y", &["data.csv", "as output and as input"]),
        typed("fit data.csv --y yy", &["data.csv", "did you mean 'y'?"]),
        option("--kernel 'se +'", &["--kernel se +", "column"]),
        option("--mean x9+1", &["--mean x9+1", "unknown name 'x9'"]),
        option("--set sampler.draw=3", &["--set sampler.draw=3", "did you mean 'draws'?"]),
        option("--set sampler.draws", &["--set sampler.draws", "write key=value"]),
        option("--set model=3", &["--set model=3", "expected a table"]),
        option(
            "--set sampler.max_memory_mb=1 --set sampler.particles=5000",
            &["needs about", "1 MB are allowed"],
        ),
        option("-o run.zarr", &["run.zarr exists", "--overwrite"]),
        option("-o data.csv --overwrite", &["data.csv: not a posterior store, so it is not overwritten"]),
        option("-o . --overwrite", &["not a posterior store, so it is not overwritten"]),
        option("-o run.zarr --overwrite --chain-id 9", &["chain 9"]),
        option("-o run.zarr/inner.zarr", &["lies inside the store run.zarr"]),
        option("-o nodir/run.zarr", &["there is no folder nodir"]),
        option("--resume run.zarr", &["cannot be used with '--resume <RUN>'"]),
        typed("summary run.zarr --level 2", &["--level 2", "between 0 and 1"]),
        typed("summary run.zarr --level nan", &["--level NaN", "between 0 and 1"]),
    ]
}

/// The file of the store whose name begins like this.
fn file(folder: &Path, start: &str) -> PathBuf {
    let store = folder.join("run.zarr");
    let names = bytes_of(&store);
    let found = names.keys().find(|name| name.to_string_lossy().starts_with(start));
    store.join(found.expect("a file of the store"))
}

fn flip(path: &Path) {
    let mut bytes = std::fs::read(path).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    std::fs::write(path, bytes).expect("a file");
}

fn remove(path: &Path) {
    std::fs::remove_file(path).expect("a file");
}

fn cut(folder: &Path, length: usize) {
    let path = file(folder, "zarr.json");
    let bytes = std::fs::read(&path).expect("a file");
    std::fs::write(path, &bytes[..length]).expect("a file");
}

fn stores() -> Vec<Case> {
    let foreign = Case {
        files: vec![(
            "other/zarr.json",
            br#"{"zarr_format":3,"node_type":"group","attributes":{}}"#.to_vec(),
        )],
        ..typed("summary other", &["other/zarr.json", "not a gpssm run"])
    };
    let nested = Case {
        files: vec![("run.zarr/zarr.json", vec![b'['; 100_000])],
        ..typed("summary run.zarr", &["zarr.json", "not a gpssm run"])
    };
    vec![
        foreign,
        nested,
        typed("summary nope.zarr", &["nope.zarr", "there is no such folder"]),
        typed("summary data.csv", &["data.csv", "a run is a folder"]),
        typed("summary .", &["there is no zarr.json in it"]),
        typed("report nope.zarr", &["nope.zarr", "not a gpssm run"]),
        typed("fit --resume nope.zarr", &["nope.zarr", "not a gpssm run"]),
        typed("fit --resume data.csv", &["data.csv", "a run is a folder"]),
        typed("fit --resume run.zarr --draws 3", &["run.zarr", "8 draws, more than 3", "ask for 8 or more"]),
        typed("fit --resume run.zarr --draws 0", &["invalid value '0' for '--draws <N>'"]),
        typed("fit --resume run.zarr --draws 18446744073709551615", &["for '--draws <N>'"]),
        typed("fit --resume run.zarr --threads 0", &["--threads 0", "at least one"]),
        typed("fit --resume run.zarr --seed 4", &["'--resume <RUN>' cannot be used with '--seed <SEED>'"]),
        typed("fit --resume run.zarr --dry-run", &["'--resume <RUN>' cannot be used with '--dry-run'"]),
        damaged("summary run.zarr", |folder| flip(&file(folder, "zarr.json")), &["run.zarr/zarr.json"]),
        damaged("summary run.zarr", |folder| cut(folder, 100), &["run.zarr/zarr.json"]),
        damaged("summary run.zarr", |folder| cut(folder, 0), &["run.zarr/zarr.json"]),
        damaged(
            "summary run.zarr",
            |folder| flip(&file(folder, "posterior/x/c.")),
            &["posterior/x/c.", "checksum"],
        ),
        damaged(
            "summary run.zarr",
            |folder| remove(&file(folder, "posterior/x/c.")),
            &["the file is missing"],
        ),
        damaged(
            "report run.zarr",
            |folder| flip(&file(folder, "observed_data/y/c.")),
            &["observed_data/y/c."],
        ),
        damaged(
            "report run.zarr",
            |folder| remove(&file(folder, "constant_data/u/c.")),
            &["constant_data/u/c."],
        ),
        damaged(
            "fit --resume run.zarr --draws 9",
            |folder| flip(&file(folder, "state/")),
            &["state/", "checksum"],
        ),
        damaged(
            "fit --resume run.zarr --draws 9",
            |folder| remove(&file(folder, "state/")),
            &["state/", "missing"],
        ),
        damaged(
            "fit --resume run.zarr --draws 9",
            |folder| flip(&file(folder, "posterior/x/c.")),
            &["posterior/x/c.", "checksum"],
        ),
        typed("merge run.zarr run.zarr -o m.zarr", &["run.zarr", "chain 0 is also in"]),
        typed("merge run.zarr -o run.zarr", &["run.zarr", "exists already"]),
        typed("merge data.csv -o m.zarr", &["data.csv", "a run is a folder"]),
        typed("merge run.zarr -o nodir/m.zarr", &["there is no folder nodir"]),
        typed("merge -o m.zarr", &["required arguments were not provided"]),
        damaged("merge run.zarr -o m.zarr", |folder| remove(&file(folder, "posterior/x/c.")), &["missing"]),
    ]
}

fn posteriors() -> Vec<Case> {
    vec![
        typed("predict run.zarr nope.csv", &["nope.csv", "there is no such file"]),
        with_file("predict run.zarr p.csv", "a,b\n1,2\n3,4\n", &["p.csv", "there is no column 'x'"]),
        with_file("predict run.zarr p.csv", "x,u\n1,2\n2,\n", &["p.csv", "'u'", "row 2"]),
        with_file("predict run.zarr p.csv -o p.csv", "x,u\n1,2\n2,3\n", &["p.csv", "this command reads it"]),
        with_file("predict run.zarr p.csv -o out.xls", RECORD, &["out.xls", ".csv or .parquet"]),
        #[cfg(not(feature = "parquet"))]
        with_file("predict run.zarr p.csv -o out.parquet", RECORD, &["out.parquet", "--features parquet"]),
        with_file("predict run.zarr p.csv -o nodir/f.csv", RECORD, &["there is no folder nodir"]),
        with_file("predict run.zarr p.csv --max-draws 0", RECORD, &["--max-draws 0"]),
        with_file("predict run.zarr p.csv --horizon 0", RECORD, &["--horizon"]),
        with_file("predict run.zarr p.csv --horizon 90", RECORD, &["--horizon"]),
        with_file("predict run.zarr p.csv --horizon 2 --samples 0", RECORD, &["--samples"]),
        with_file(
            "predict run.zarr p.csv --horizon 2 --initial 1,2",
            RECORD,
            &["--initial 1,2", "1 numbers"],
        ),
        with_file("predict run.zarr p.csv --horizon 2 --initial nan", RECORD, &["--initial nan"]),
        with_file("predict run.zarr p.csv --horizon 2 --rows 5:2", RECORD, &["--rows 5:2"]),
        with_file("predict run.zarr p.csv --horizon 2 --every 0", RECORD, &["p.csv", "every = 0"]),
        with_file(
            "predict run.zarr p.csv --horizon 2 --y a,b",
            RECORD,
            &["--y", "2 columns, but the model has 1"],
        ),
        with_file("predict run.zarr p.csv --horizon 2 --next-state", RECORD, &["cannot be used with"]),
        with_file(
            "predict run.zarr p.csv --horizon 2 --samples 99999999999999",
            RECORD,
            &["--samples", "MB are allowed"],
        ),
        with_file(
            "simulate run.zarr --inputs p.csv --paths 1000000000000",
            RECORD,
            &["--paths", "MB are allowed"],
        ),
        with_file(
            "filter run.zarr p.csv --functions 99999999999999",
            RECORD,
            &["--functions", "MB are allowed"],
        ),
        with_file("smooth run.zarr p.csv --paths 99999999999999", RECORD, &["--paths", "MB are allowed"]),
        with_file(
            "score run.zarr p.csv --n-init 2 --paths 99999999999999",
            RECORD,
            &["--paths", "MB are allowed"],
        ),
        typed("simulate", &["required arguments were not provided", "see gpssm simulate --help"]),
        typed("simulate run.zarr --steps 5", &["--inputs", "the model has 1 inputs"]),
        with_file(
            "simulate run.zarr --inputs p.csv",
            "t,v\n0,1\n1,2\n",
            &["p.csv", "there is no column 'u'"],
        ),
        with_file(
            "simulate run.zarr --inputs p.csv",
            "t,u\n0,1\n0.1,\n",
            &["p.csv, line 3", "an input is missing"],
        ),
        with_file("simulate run.zarr --inputs p.csv --n-init 0", RECORD, &["--n-init 0"]),
        with_file("simulate run.zarr --inputs p.csv --n-init 7", RECORD, &["--n-init 7", "6 rows"]),
        with_file("simulate run.zarr --inputs p.csv --paths 0", RECORD, &["--paths"]),
        with_file("simulate run.zarr --inputs p.csv --steps 5", RECORD, &["cannot be used with"]),
        with_file(
            "simulate run.zarr --inputs p.csv --samples s.csv -o s.csv",
            RECORD,
            &["--samples", "same file"],
        ),
        typed("forecast run.zarr --steps 5", &["--inputs", "the model has 1 inputs"]),
        typed("forecast run.zarr --steps 5 --after north", &["--after north", "the sequences 1"]),
        with_file("forecast run.zarr --inputs p.csv", RECORD, &["p.csv", "the first time is"]),
        with_file("filter run.zarr p.csv --functions 0", RECORD, &["--functions"]),
        with_file("filter run.zarr p.csv --particles 0", RECORD, &["--particles"]),
        with_file("filter run.zarr p.csv --forgetting 2", RECORD, &["--forgetting"]),
        with_file("filter run.zarr p.csv --forgetting nan", RECORD, &["--forgetting"]),
        with_file("smooth run.zarr p.csv --paths 0", RECORD, &["--paths"]),
        with_file("smooth run.zarr p.csv --initial last", RECORD, &["--initial last"]),
        with_file("score run.zarr p.csv --n-init 50", RECORD, &["--n-init"]),
        with_file("score run.zarr p.csv --n-init 2 --horizon 0", RECORD, &["--horizon"]),
        with_file(
            "compare run.zarr nope.zarr --record-file p.csv",
            RECORD,
            &["nope.zarr", "not a gpssm run"],
        ),
        with_file("compare run.zarr --record-file p.csv --n-init 50", RECORD, &["--n-init"]),
        typed("compare run.zarr", &["give a CSV file beside the runs"]),
        typed("compare run.zarr --method record", &["give a CSV file beside the runs"]),
        with_file("compare run.zarr p.csv --plot figures.svg", RECORD, &["--plot figures.svg", ".html"]),
        typed("compare run.zarr --method best", &["best", "record, lfo"]),
        typed("compare run.zarr --method lfo --record-file p.csv", &["p.csv", "--method lfo"]),
        typed("compare run.zarr run.zarr --method lfo", &["run.zarr", "the same run twice"]),
        typed("compare run.zarr --method lfo --n-init 1", &["--n-init", "1 rows to learn from"]),
        typed("compare run.zarr --method lfo --n-init 500", &["--n-init", "500 rows to learn from"]),
        typed("compare run.zarr --method lfo --functions 5", &["--functions", "at least 25"]),
        with_file(
            "compare run.zarr --record-file p.csv --functions 50",
            RECORD,
            &["--functions", "only for --method lfo"],
        ),
        typed("thin run.zarr --keep 0", &["--keep"]),
        typed("thin run.zarr", &["--keep <N>", "see gpssm thin --help"]),
        typed("distil run.zarr -o d.txt", &["d.txt", ".json"]),
        typed("distil run.zarr -o nodir/d.json", &["there is no folder nodir"]),
        typed("distil run.zarr -o d.json --size 0", &["--size"]),
        typed("distil run.zarr -o d.json --tolerance -1", &["--tolerance -1", "positive"]),
        typed("distil run.zarr -o d.json --max-loss=-1", &["--max-loss -1", "from 0 on"]),
        typed("distil run.zarr -o d.json --tolerance nan", &["--tolerance NaN", "positive"]),
        typed("export run.zarr --to c -o out --name 2fast", &["--name", "'2fast' is no name in C"]),
        typed("export run.zarr --to c -o out --particles 0", &["--particles", "at least one"]),
        typed("export run.zarr --to c -o data.csv", &["data.csv", "is a file"]),
        typed("export data.json --to c -o out", &["data.json"]),
        typed("export run.zarr --to c -o out --scenarios 99", &["--scenarios 99", "from 1 to 16"]),
        typed("export run.zarr --to onnx -o out --precision float", &["--precision float", "64 bits"]),
        typed("export run.zarr --to onnx -o out --scenarios 2", &["--scenarios", "--to c or fmu"]),
        typed("fit data.csv --y y --point --draws 5", &["--point", "--draws"]),
        typed(
            "fit data.csv --y y --states 1 --point --set sampler.chains=2",
            &["sampler.chains", "one chain"],
        ),
        typed("linearize run.zarr --at x=1", &["--at", "the input u has no value"]),
        typed("linearize run.zarr --at x=1,v=2", &["--at v=2", "there are x, u"]),
        typed("linearize run.zarr --at x=1,x=2,u=0", &["--at x=2", "twice"]),
        typed("linearize run.zarr --at x=one,u=0", &["--at x=one", "no finite number"]),
        typed("linearize run.zarr --at x=1,u=0 --level 2", &["--level 2", "between 0 and 1"]),
        typed("equilibrium run.zarr", &["--at", "the input u has no value"]),
        stated("", "--steps 4 --thin 0", &["--thin"]),
        stated("", "", &["m.toml", "no data file", "--steps"]),
        stated("", "--inputs data.csv", &["--inputs", "has no inputs", "--steps"]),
        stated("", "--steps 0", &["--steps 0"]),
        stated("", "--steps 4 -o run.zarr", &["run.zarr", "not a folder of gpssm sbc"]),
        stated("standardise = true", "--steps 4", &["m.toml", "model.standardise", "set it to false"]),
        stated("process_noise = []", "--steps 4", &["m.toml", "model.process_noise", "state its prior"]),
        stated("sensor = 'gaussian'", "--steps 4", &["m.toml", "model.sensor", "state the priors"]),
        stated("kernel = 'se'", "--steps 4", &["m.toml", "kernel", "state the prior of se."]),
        stated("dynamics = 'hilbert(9)'", "--steps 4", &["m.toml", "model.dynamics", "half_width"]),
        stated("dynamics = 'fic(9)'", "--steps 4", &["m.toml", "model.dynamics", "inducing inputs"]),
        typed("report run.zarr -o data.csv", &["data.csv", ".html"]),
        typed("report run.zarr -o nodir/r.html", &["there is no folder nodir"]),
    ]
}

/// What is wrong with how the program took a case.
fn faults(template: &Path, case: &Case) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    copy(template, folder.path());
    for (name, bytes) in &case.files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    }
    (case.change)(folder.path());
    let before = bytes_of(folder.path());
    let output = gpssm(folder.path()).args(words(&case.line)).output().expect("the program starts");
    let said = text(&output.stderr);
    let mut faults = Vec::new();
    let mut check = |good: bool, what: &str| {
        if !good {
            let short: String = said.chars().take(400).collect();
            faults.push(format!("gpssm {}\n    {what}: {short}", case.line));
        }
    };
    check(output.status.code() == Some(2), &format!("ended with {}", output.status));
    check(said.starts_with("error: ") && said.trim_end().lines().count() == 1, "is not one line");
    check(said.len() < 600, "is too long");
    check(output.stdout.is_empty(), "printed something");
    check(bytes_of(folder.path()) == before, "wrote something");
    for part in &case.says {
        check(said.contains(part), &format!("does not say \"{part}\""));
    }
    faults
}

#[test]
fn every_bad_input_gets_its_one_line() {
    let template = folder_with_run();
    let cases: Vec<Case> = [tables(), run_files(), options(), stores(), posteriors(), evaluations()]
        .into_iter()
        .flatten()
        .collect();
    assert!(cases.len() >= 70);
    let faults: Vec<String> = cases.iter().flat_map(|case| faults(template.path(), case)).collect();
    assert!(faults.is_empty(), "{} faults in {} cases:\n{}", faults.len(), cases.len(), faults.join("\n"));
}
