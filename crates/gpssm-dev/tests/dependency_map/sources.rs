//! Dependencies between the modules at the top of a crate, from the paths in its sources.

use std::collections::BTreeSet;
use std::path::Path;

use crate::Edge;

/// Names of all modules at the top, and who refers to whom, outside tests and comments.
pub fn read(folder: &Path) -> (BTreeSet<String>, Vec<Edge>) {
    let (mut names, mut edges) = (BTreeSet::new(), Vec::new());
    read_folder(folder, &[], &mut names, &mut edges);
    (names, edges)
}

/// Reads a folder that holds the children of the module `path`.
fn read_folder(folder: &Path, path: &[String], names: &mut BTreeSet<String>, edges: &mut Vec<Edge>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let tested = test_modules(folder, &entries);
    for entry in entries {
        let name = entry.file_stem().unwrap().to_str().unwrap().to_owned();
        if tested.contains(&name) {
            continue;
        }
        if entry.is_dir() {
            read_folder(&entry, &[path, &[name]].concat(), names, edges);
        } else if name != "lib" && entry.extension().is_some_and(|extension| extension == "rs") {
            let own = if name == "mod" { path.to_vec() } else { [path, &[name]].concat() };
            names.insert(own[0].clone());
            let text = std::fs::read_to_string(&entry).unwrap();
            edges.extend(references(&text, &own, &entry.display().to_string()));
        }
    }
}

/// Modules in a folder that are compiled for tests alone: declared in one of its files, or in the file beside it.
fn test_modules(folder: &Path, entries: &[std::path::PathBuf]) -> BTreeSet<String> {
    let beside = folder.with_extension("rs");
    let files = entries.iter().chain([&beside]).filter(|path| path.is_file());
    let texts = files.filter_map(|path| std::fs::read_to_string(path).ok());
    let mut found = BTreeSet::new();
    for text in texts {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for pair in lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]") {
            let name = pair[1].trim_start_matches("pub(crate) ").strip_prefix("mod ");
            found.extend(name.and_then(|name| name.strip_suffix(';')).map(String::from));
        }
    }
    found
}

/// What the text of a module refers to at the top of the crate, itself excepted.
pub fn references(text: &str, own: &[String], file: &str) -> Vec<Edge> {
    let mut edges = Vec::new();
    let code: Vec<&str> = text.lines().map(|line| if is_comment(line) { "" } else { line }).collect();
    let end = code.windows(2).position(|pair| pair[0] == "#[cfg(test)]" && pair[1].ends_with('{'));
    let code = code[..end.unwrap_or(code.len())].join("\n");
    let mut at = 0;
    while let Some((start, up, length)) = next_path(&code[at..]) {
        let line = code[..at + start].matches('\n').count() + 1;
        at += start + length;
        let base = if up == 0 { &[][..] } else { &own[..own.len().saturating_sub(up)] };
        for name in first_names(&code[at..]) {
            let to = base.first().cloned().unwrap_or(name);
            if to != own[0] {
                edges.push(Edge { from: own[0].clone(), to, place: format!("{file}:{line}") });
            }
        }
    }
    edges
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// Where the next `crate::` or chain of `super::` begins, how many levels it goes up, and its length.
fn next_path(code: &str) -> Option<(usize, usize, usize)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let starts = ["crate::", "super::"].into_iter().flat_map(|word| code.match_indices(word));
    let (start, word) = starts.filter(|(i, _)| !code[..*i].ends_with(is_word)).min()?;
    if word == "crate::" {
        return Some((start, 0, word.len()));
    }
    let up = code[start..].split("super::").skip(1).take_while(|rest| rest.is_empty()).count() + 1;
    Some((start, up, up * word.len()))
}

/// The first name of every path that begins here: `a::b` or `{a::b, c::{d, e}}`.
fn first_names(code: &str) -> Vec<String> {
    let word = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let Some(group) = code.strip_prefix('{') else { return vec![word(code)] };
    let (mut depth, mut names) = (0, vec![word(group)]);
    for (i, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(word(&group[i + 1..])),
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Every way to write a path is seen, and tests and comments are not.
#[test]
fn references_are_found() {
    let text = "use crate::points::Points;\n\
                use super::super::linalg::dot;\n\
                use super::weights::{self, draw};\n\
                use crate::{\n    error::Error,\n    record::{Record, Sequence},\n};\n\
                // crate::commented\n\
                fn f(x: &crate::kernel::Kernel) { super::own() }\n\
                #[cfg(test)]\nmod tests {\n    use crate::mcmc;\n}\n";
    let own = ["smc".to_string(), "filter".to_string()];
    let found: Vec<(String, String)> =
        references(text, &own, "f").into_iter().map(|edge| (edge.to, edge.place)).collect();
    let expected = [("points", 1), ("linalg", 2), ("error", 4), ("record", 4), ("kernel", 9)];
    assert_eq!(found, expected.map(|(to, line)| (to.to_string(), format!("f:{line}"))));
}
