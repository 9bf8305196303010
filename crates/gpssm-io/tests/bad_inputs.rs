//! Every bad input ends in one line that names file, row, column or key.

mod corpus;
mod program;

use corpus::CASES;
use program::fit;

#[test]
fn every_bad_input_gets_its_one_line() {
    let mut wrong = Vec::new();
    for case in CASES {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in case.files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        match fit(folder.path(), case.args) {
            Ok(_) => wrong.push(format!("{}: accepted", case.name)),
            Err(error) => {
                let text = error.replace(&format!("{}/", folder.path().display()), "");
                for part in case.expected.iter().filter(|part| !text.contains(**part)) {
                    wrong.push(format!("{}: no \"{part}\" in: {text}", case.name));
                }
                if text.contains('\n') {
                    wrong.push(format!("{}: more than one line: {text}", case.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
}

#[test]
fn names_of_cases_are_unique() {
    for (i, case) in CASES.iter().enumerate() {
        assert!(CASES[..i].iter().all(|other| other.name != case.name), "{}", case.name);
    }
    assert!(CASES.len() >= 60);
}
