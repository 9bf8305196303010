//! Any text as a run file: a run that could start, or one line of error.
#![no_main]

use std::sync::LazyLock;

use gpssm_io::config::RunFile;
use gpssm_io::table::{Columns, Data, read_record};
use libfuzzer_sys::{Corpus, fuzz_target};

/// A record that models are made for.
static DATA: LazyLock<Data> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("gpssm-fuzz-{}-data.csv", std::process::id()));
    std::fs::write(&path, "u,y\n1,0.1\n2,0.4\n1,0.3\n0,0.1\n1,0.2\n").expect("a file that can be written");
    let columns = Columns { y: vec!["y".into()], u: vec!["u".into()], ..Columns::default() };
    let data = read_record(&path, &columns).expect("a good record");
    std::fs::remove_file(&path).expect("the file that was written");
    data
});

fuzz_target!(|text: &str| -> Corpus {
    let file = match RunFile::parse(text, "run.toml") {
        Ok(file) => file,
        Err(error) => {
            assert!(!error.to_string().contains('\n'));
            return Corpus::Keep;
        }
    };
    let config = match file.config() {
        Ok(config) => config,
        Err(error) => {
            assert!(!error.to_string().contains('\n'));
            return Corpus::Keep;
        }
    };
    match file.resolve(&config, &DATA) {
        Err(error) => assert!(!error.to_string().contains('\n')),
        Ok(run) => {
            // What is written into a store must be read again from it, and mean the same.
            let written = run.to_toml();
            let again = RunFile::parse(&written, "written").expect("TOML");
            let config = again.config().expect("keys that are known");
            let again = again.resolve(&config, &DATA).expect("a run that can start");
            assert_eq!(again.to_toml(), written);
        }
    }
    Corpus::Keep
});
