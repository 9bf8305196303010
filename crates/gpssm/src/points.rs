//! Points z = (x, u), stored component by component so that loops over points vectorise.

/// A growing list of points with the same number of components.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Points {
    columns: Vec<Vec<f64>>,
    n: usize,
}

impl Points {
    /// An empty list of points with `n_components` components.
    pub fn new(n_components: usize) -> Self {
        Self { columns: vec![Vec::new(); n_components], n: 0 }
    }

    /// Points from rows of components.
    pub fn from_rows<'a>(n_components: usize, rows: impl IntoIterator<Item = &'a [f64]>) -> Self {
        let mut points = Self::new(n_components);
        for row in rows {
            points.push(row);
        }
        points
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Number of components.
    pub fn n_components(&self) -> usize {
        self.columns.len()
    }

    /// Component `c` of every point.
    pub fn column(&self, c: usize) -> &[f64] {
        &self.columns[c]
    }

    /// Component `c` of every point, to be changed.
    pub fn column_mut(&mut self, c: usize) -> &mut [f64] {
        &mut self.columns[c]
    }

    /// Appends a point.
    pub fn push(&mut self, z: &[f64]) {
        for (column, value) in self.columns.iter_mut().zip(z) {
            column.push(*value);
        }
        self.n += 1;
    }

    /// Appends the point (x, u).
    pub fn push_parts(&mut self, x: &[f64], u: &[f64]) {
        for (column, value) in self.columns.iter_mut().zip(x.iter().chain(u)) {
            column.push(*value);
        }
        self.n += 1;
    }

    /// Makes these the points (x, u) of all states `x` (row-major, `n_x` each) with one input.
    pub(crate) fn set_states(&mut self, x: &[f64], n_x: usize, u: &[f64]) {
        self.n = x.len() / n_x;
        let (states, inputs) = self.columns.split_at_mut(n_x);
        for (d, column) in states.iter_mut().enumerate() {
            column.clear();
            column.extend(x.iter().skip(d).step_by(n_x));
        }
        for (column, u) in inputs.iter_mut().zip(u) {
            column.clear();
            column.resize(self.n, *u);
        }
    }

    /// Keeps the first `n` points.
    pub fn truncate(&mut self, n: usize) {
        for column in &mut self.columns {
            column.truncate(n);
        }
        self.n = self.n.min(n);
    }

    /// Removes all points.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// The points from index `from` on.
    pub fn tail(&self, from: usize) -> Self {
        Self {
            columns: self.columns.iter().map(|column| column[from..].to_vec()).collect(),
            n: self.n - from,
        }
    }

    /// Copies point `i` into `out`.
    pub fn get(&self, i: usize, out: &mut [f64]) {
        for (column, value) in self.columns.iter().zip(out) {
            *value = column[i];
        }
    }

    /// Point `i`.
    pub fn row(&self, i: usize) -> Vec<f64> {
        self.columns.iter().map(|column| column[i]).collect()
    }
}
