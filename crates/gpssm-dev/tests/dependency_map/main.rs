//! The tables of ARCHITECTURE.md say who depends on whom, and the sources keep to them.
//!
//! Checked for the modules of `crates/gpssm` (paths in the sources outside tests) and for the crates (their manifests):
//! every dependency is listed, every listed one is used, and each points to a row above. `disagreements_are_named` plants
//! each kind of disagreement in a small table. Code below an inline test module is not read: test modules come last.

mod manifests;
mod sources;
mod table;

use std::collections::BTreeSet;
use std::path::PathBuf;

use table::Table;

/// That `from` needs `to`, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    from: String,
    to: String,
    place: String,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Everything that table and reality disagree on.
fn disagreements(table: &Table, names: &BTreeSet<String>, edges: &[Edge]) -> Vec<String> {
    let mut wrong = table.upward_entries();
    wrong.extend(names.iter().filter(|name| !table.has(name)).map(|name| format!("{name} has no row")));
    let unknown = table.names().filter(|name| !names.contains(*name));
    wrong.extend(unknown.map(|name| format!("{name} has a row but does not exist")));
    let unlisted = edges.iter().filter(|edge| !table.allows(&edge.from, &edge.to));
    wrong.extend(unlisted.map(|Edge { from, to, place }| format!("{place}: {from} -> {to} is not listed")));
    let unused = table.entries().filter(|(from, to)| {
        !edges.iter().any(|edge| (edge.from.as_str(), edge.to.as_str()) == (*from, *to))
    });
    wrong.extend(unused.map(|(from, to)| format!("{from} -> {to} is listed but not used")));
    wrong
}

fn assert_agree(heading: &str, names: &BTreeSet<String>, edges: &[Edge]) {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let table = Table::parse(&text, heading).unwrap_or_else(|| panic!("no table \"{heading}\""));
    let wrong = disagreements(&table, names, edges);
    assert!(wrong.is_empty(), "ARCHITECTURE.md, table \"{heading}\":\n{}", wrong.join("\n"));
}

#[test]
fn modules_keep_to_the_map() {
    let (names, edges) = sources::read(&root().join("crates/gpssm/src"));
    assert!(edges.len() > 100, "only {} references found", edges.len());
    assert_agree("module of `crates/gpssm`", &names, &edges);
}

#[test]
fn crates_keep_to_the_map() {
    let (names, edges) = manifests::read(&root().join("crates"));
    assert_agree("crate", &names, &edges);
}

/// Every kind of disagreement is named.
#[test]
fn disagreements_are_named() {
    let text = "| module | what | depends on |\n|---|---|---|\n| `a`, `b` | low | |\n| `c` | | a, b |\n| `d` | | c |";
    let table = Table::parse(text, "module").unwrap();
    let edge = |from: &str, to: &str| Edge { from: from.into(), to: to.into(), place: "f.rs:1".into() };
    let names: BTreeSet<String> = ["a", "b", "c", "d"].map(String::from).into();
    let good = [edge("c", "a"), edge("c", "b"), edge("d", "c")];
    assert_eq!(disagreements(&table, &names, &good), Vec::<String>::new());
    let skips = [&good[..], &[edge("d", "a"), edge("a", "d")]].concat();
    assert_eq!(
        disagreements(&table, &names, &skips),
        ["f.rs:1: d -> a is not listed", "f.rs:1: a -> d is not listed"]
    );
    assert_eq!(disagreements(&table, &names, &good[1..]), ["c -> a is listed but not used"]);
    let more: BTreeSet<String> = ["a", "b", "c", "e"].map(String::from).into();
    let found = disagreements(&table, &more, &good);
    assert_eq!(found, ["e has no row", "d has a row but does not exist"]);
    let upside_down = "| module | what | depends on |\n|---|---|---|\n| `c` | | a |\n| `a` | | |";
    let table = Table::parse(upside_down, "module").unwrap();
    let names: BTreeSet<String> = ["a", "c"].map(String::from).into();
    assert_eq!(disagreements(&table, &names, &good[..1]), ["c -> a points down the table"]);
}
