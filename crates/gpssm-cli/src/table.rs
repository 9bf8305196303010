//! Tables and numbers for people.

/// Rows of cells, aligned: the first column to the left, the others to the right.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// With these headings.
    pub fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|cell| (*cell).to_owned()).collect()] }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// As text, two spaces between columns.
    pub fn render(&self) -> String {
        let n = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |c: usize| {
            self.rows.iter().filter_map(|row| row.get(c)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..n).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (c, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[c] - cell.chars().count());
                let (before, after) = if c == 0 { ("", pad.as_str()) } else { (pad.as_str(), "") };
                let gap = if c == 0 { "" } else { "  " };
                line += &format!("{gap}{before}{cell}{after}");
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

/// A number with four digits that matter.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".into()
    } else if !(1e-3..1e5).contains(&size) {
        format!("{value:.3e}")
    } else {
        let digits = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
        format!("{value:.digits$}")
    }
}

/// A number, or a dash where there is none.
pub fn number_or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        let cases = [
            (0.0, "0"),
            (1.0, "1.000"),
            (-12.3456, "-12.35"),
            (123_456.0, "1.235e5"),
            (0.001_234_5, "0.001234"),
            (9_999.9, "10000"),
            (2e-9, "2.000e-9"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["name", "mean"]);
        table.push(vec!["q".into(), "1.5".into()]);
        assert_eq!(table.render(), "name  mean\nq      1.5\n");
    }
}
