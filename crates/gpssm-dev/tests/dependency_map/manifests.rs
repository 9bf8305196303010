//! Dependencies between the crates of the workspace, from their manifests; those of tests do not count.

use std::collections::BTreeSet;
use std::path::Path;

use crate::Edge;

/// Names of all crates, and who depends on whom.
pub fn read(folder: &Path) -> (BTreeSet<String>, Vec<Edge>) {
    let (mut names, mut edges) = (BTreeSet::new(), Vec::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path().join("Cargo.toml");
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let from = path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        let mut section = "";
        for (line, text) in text.lines().enumerate() {
            if text.starts_with('[') {
                section = text.trim();
            }
            let to = text.split([' ', '=', '.']).next().unwrap_or("");
            if section == "[dependencies]" && (to == "gpssm" || to.starts_with("gpssm-")) {
                let place = format!("crates/{from}/Cargo.toml:{}", line + 1);
                edges.push(Edge { from: from.clone(), to: to.into(), place });
            }
        }
        names.insert(from);
    }
    (names, edges)
}
