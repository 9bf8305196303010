//! Parameters as arrays with named dimensions. The first two tests were seen failing with an array for each state.

use super::super::parameters::ParameterArray;
use super::super::tree::Tree;
use super::super::{Description, StoreError, StoredRun};
use super::*;
use crate::config::RunFile;
use crate::table::Data;

/// A model of two outputs `level`, `flow` and the inputs `u`, `rain`.
fn run(model: &str) -> Problem {
    let record = problem(2).record().clone();
    let rows = |t: usize| ((0.3 * t as f64).sin(), (0.7 * t as f64).cos());
    let sequences = record.sequences().iter().map(|sequence| {
        let y = (0..sequence.n_rows()).map(|t| sequence.y(t).to_vec()).collect();
        Sequence::new(y, (0..sequence.n_rows()).map(|t| vec![rows(t).0, rows(t).1]).collect()).unwrap()
    });
    let record = Record::new(sequences.collect()).unwrap();
    let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
    let data = Data::from_record(record, names(["level", "flow"]), names(["u", "rain"]), "m");
    let text = format!("[data]\ny = ['level', 'flow']\nu = ['u', 'rain']\n[model]\n{model}");
    let file = RunFile::parse(&text, "m").unwrap();
    file.resolve(&file.config().unwrap(), &data).unwrap().problem
}

/// `name(dimension: label | label; ...)` of all arrays; every entry of theta is in one of them.
fn arrays(problem: &Problem, learned: bool) -> Vec<String> {
    let table = problem.table();
    let all = ParameterArray::all(table, learned);
    let mut places: Vec<usize> = all.iter().flat_map(|array| array.places.clone()).collect();
    places.sort_unstable();
    assert!(places.into_iter().eq((0..table.len()).filter(|&k| table.is_fixed(k) != learned)));
    let text = |array: &ParameterArray| {
        let dims = array.dims.iter().map(|dim| format!("{}: {}", dim.name, dim.labels.join(" | ")));
        format!("{}({})", array.name, dims.collect::<Vec<_>>().join("; "))
    };
    all.iter().map(text).collect()
}

#[test]
fn dimensions_carry_the_names_of_the_user() {
    let all = "component: x1 | x2 | u | rain";
    assert_eq!(
        arrays(&run(""), true),
        [
            "se_sigma_f(state: x1 | x2)".to_owned(),
            format!("se_ell(state: x1 | x2; {all})"),
            format!("linear_sigma(state: x1 | x2; {all})"),
            "process_sd(state: x1 | x2)".to_owned(),
            "sensor_sd(output: level | flow)".to_owned(),
        ]
    );
}

#[test]
fn parts_of_some_states_have_dimensions_of_their_own() {
    let found = arrays(&run("lags = 1\nkernel = 'se(u)'"), true);
    assert_eq!(found[1], "se_ell(moving_state: x1 | x2; se_ell_component: u | rain)");
    assert_eq!(found[2], "process_sd(moving_state: x1 | x2)");
    let text = "[[model.state]]\nname = 'h'\nkernel = 'se(h) + linear'\n[[model.state]]\nname = 'q'\nkernel = 'se(h, rain)'";
    let found = arrays(&run(text), true);
    assert_eq!(found[0], "se_sigma_f(state: h | q)");
    assert_eq!(found[1], "se_ell(se_ell_entry: h, h | q, h | q, rain)");
    assert_eq!(found[2], "linear_sigma(linear_sigma_state: h; component: h | q | u | rain)");
}

#[test]
fn known_entries_are_apart_and_factors_are_triangles() {
    let text = "process_noise = [0.25, 'half_normal(1)']\nsensor = { noise = 'full' }";
    let problem = run(text);
    let found = arrays(&problem, true);
    assert!(found.contains(&"process_sd(process_sd_state: x2)".to_owned()), "{found:?}");
    assert!(
        found.contains(&"sensor_chol(sensor_chol_entry: level, level | flow, level | flow, flow)".to_owned()),
        "{found:?}"
    );
    assert_eq!(arrays(&problem, false), ["process_sd(process_sd_state: x1)"]);
}

/// Seen failing with names kept that begin with two underscores.
#[test]
fn names_that_cannot_be_folders_get_one_that_can() {
    let given = ["a", "flow (m3/s)", "flow (m3_s)", "x", "__h", "..", ""];
    let mut names: Vec<String> = Vec::new();
    for (i, given) in given.into_iter().enumerate() {
        names.push(super::super::parameters::unique(given, i, &names));
    }
    assert_eq!(names, ["a", "flow (m3_s)", "flow (m3_s)_", "x_", "p__h", "parameter_5", "parameter_6"]);
}

#[test]
fn another_layout_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let (problem, settings) = (problem(1), settings(1, 1, 2));
    unbroken(&path, &problem, &settings);
    let root = path.join("zarr.json");
    let mut tree = Tree::from_bytes(&root, &fs::read(&root).unwrap()).unwrap();
    tree.attributes.insert("format".into(), "gpssm run, version 1".into());
    fs::write(&root, tree.to_bytes()).unwrap();
    let resumed = Store::resume(&path, &Description::new(&problem, &settings)).err();
    for error in [StoredRun::open(&path).err(), resumed] {
        let Some(error @ StoreError::NotAStore { .. }) = error else { panic!("{error:?}") };
        let text = error.to_string();
        assert!(text.contains("version 1") && text.contains("version 2") && !text.contains('\n'), "{text}");
    }
}
