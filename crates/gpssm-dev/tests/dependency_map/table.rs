//! A table of names and what each may depend on.

/// Rows in order: names, and what all of them may depend on.
pub struct Table(Vec<(Vec<String>, Vec<String>)>);

/// Names separated by commas, with or without backticks.
fn list(cell: &str) -> Vec<String> {
    let names = cell.split(',').map(|name| name.trim().trim_matches('`').to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

impl Table {
    /// The table whose first column has this heading; the last column lists dependencies.
    pub fn parse(text: &str, heading: &str) -> Option<Self> {
        let mut lines = text.lines().map(cells);
        lines.find(|cells| cells.as_ref().is_some_and(|cells| cells[0] == heading))?;
        let rows = lines.skip(1).map_while(|cells| cells);
        Some(Self(rows.map(|cells| (list(cells[0]), list(cells[cells.len() - 1]))).collect()))
    }

    fn row(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|(names, _)| names.iter().any(|other| other == name))
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|(names, _)| names.iter().map(String::as_str))
    }

    /// Whether a name has a row.
    pub fn has(&self, name: &str) -> bool {
        self.row(name).is_some()
    }

    /// Every listed dependency.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|(names, to)| {
            names.iter().flat_map(move |from| to.iter().map(move |to| (from.as_str(), to.as_str())))
        })
    }

    /// Whether a dependency is listed.
    pub fn allows(&self, from: &str, to: &str) -> bool {
        self.entries().any(|entry| entry == (from, to))
    }

    /// Listed dependencies on a row that is not above.
    pub fn upward_entries(&self) -> Vec<String> {
        let wrong =
            self.entries().filter(|(from, to)| self.row(to).is_none_or(|to| Some(to) >= self.row(from)));
        wrong.map(|(from, to)| format!("{from} -> {to} points down the table")).collect()
    }
}
