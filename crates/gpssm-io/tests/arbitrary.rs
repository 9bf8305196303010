//! Arbitrary bytes as table or run file end in a result, never in a panic.

mod program;

use gpssm_io::config::{RunFile, guess_columns, starter};
use gpssm_io::table::{Columns, read_record};
use proptest::prelude::*;

const GOOD: &str = "t,u,y\n0,1,0.1\n1,2,0.4\n2,1,0.3\n3,0,0.1\n4,1,0.2\n";

const PIECES: &[&[u8]] = &[
    b",",
    b";",
    b"\n",
    b"\r\n",
    b"\"",
    b"y",
    b"u",
    b"t",
    b"1.5",
    b"-2e3",
    b"NA",
    b"2020-01-31",
    b"2020-02",
    b"\xff",
    b" ",
    b"1e999",
    b"\0",
    b"\xef\xbb\xbf",
    b"T12:00",
    b"+",
    b"0",
];

/// Bytes that look like a table more often than noise does.
fn table() -> impl Strategy<Value = Vec<u8>> {
    let piece = proptest::sample::select(PIECES);
    let body = proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat());
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        body.clone(),
        body.prop_map(|body| [&b"t,u,y,s\n"[..], &body].concat()),
    ]
}

const KEYS: &[&str] = &[
    "states",
    "kernel",
    "mean",
    "sensor",
    "dynamics",
    "symmetries",
    "process_noise",
    "initial",
    "lags",
    "function",
    "parameters",
    "scale",
    "lag_of",
    "standardise",
    "presample",
    "draws",
    "particles",
];

const VALUES: &[&str] = &[
    "1",
    "2",
    "-3",
    "nan",
    "inf",
    "1e300",
    "''",
    "'se + linear'",
    "'se(x1)*periodic(u)'",
    "'poisson'",
    "'full'",
    "'hilbert(3)'",
    "'fic(2)'",
    "'a*x1 + u'",
    "'normal(0, 1)'",
    "'uniform(2, 1)'",
    "{ mean = 'abs(x1)' }",
    "{ a = 'gamma(1, 1)' }",
    "[]",
    "[[]]",
    "{}",
    "[0, 1]",
    "'x1'",
    "[{ flip = 'x2', orientation = 'x2 raises x1' }]",
    "{ log_density = '-(y1 - x1)^2' }",
    "{ linear = { a = [1, 2] } }",
    "'x1 + '",
    "true",
    "1979-05-27",
    "'((((('",
    "{ variance = 'inverse_gamma(2, 1)' }",
    "{ gaussian = { mean = [0], sd = [-1] } }",
];

/// Text that looks like a run file more often than noise does.
fn run_file() -> impl Strategy<Value = String> {
    let key = proptest::sample::select(KEYS);
    let value = proptest::sample::select(VALUES);
    let section =
        prop_oneof![Just("[model]"), Just("[[model.state]]"), Just("[model.parameters]"), Just("[sampler]")];
    let line = prop_oneof![
        8 => (key, value).prop_map(|(key, value)| format!("{key} = {value}\n")),
        1 => section.prop_map(|section| format!("{section}\n")),
    ];
    prop_oneof![
        1 => any::<String>(),
        4 => proptest::collection::vec(line, 0..6).prop_map(|lines| format!("[data]\ny = 'y'\nu = 'u'\n[model]\n{}", lines.concat())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_table(bytes in table(), time in any::<bool>(), sequence in any::<bool>()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.csv");
        std::fs::write(&path, bytes).unwrap();
        let asked = Columns {
            y: vec!["y".into()],
            u: vec!["u".into()],
            time: time.then(|| "t".into()),
            sequence: sequence.then(|| "s".into()),
            ..Columns::default()
        };
        if let Err(error) = read_record(&path, &asked) {
            prop_assert!(!error.to_string().contains('\n'));
        }
        if let Ok((columns, data)) = guess_columns(&path, &[], &[]) {
            let file = RunFile::parse(&starter(&columns, &data), "starter").unwrap();
            prop_assert_eq!(file.config().unwrap().data.columns(), columns);
        }
    }

    #[test]
    fn any_run_file(text in run_file(), assignment in any::<String>()) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("data.csv"), GOOD).unwrap();
        std::fs::write(folder.path().join("model.toml"), text).unwrap();
        if let Err(error) = program::fit(folder.path(), &["fit", "data.csv", "--model", "model.toml"]) {
            prop_assert!(!error.contains('\n'), "{}", error);
        }
        if let Err(error) = RunFile::new().set(&assignment) {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }
}
