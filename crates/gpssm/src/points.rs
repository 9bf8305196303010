//! Points z = (x, u), stored component by component so that loops over points vectorise.

/// A growing list of points with the same number of components.
#[derive(Clone, Debug, Default)]
pub struct Points {
    columns: Vec<Vec<f64>>,
    n: usize,
    exponentials: Vec<Exponentials>,
}

impl PartialEq for Points {
    fn eq(&self, other: &Self) -> bool {
        self.n == other.n && self.columns == other.columns
    }
}

/// exp(s) and exp(-s) of every point, s = rate * component. With them exp(-|s - s'|) = min(exp(s) exp(-s'),
/// exp(-s) exp(s')) costs no exponential for a pair of points.
#[derive(Clone, Debug)]
pub(crate) struct Exponentials {
    component: usize,
    rate: f64,
    pub rising: Vec<f64>,
    pub falling: Vec<f64>,
    within: bool,
}

impl Exponentials {
    /// Largest |s|: a product of two of them is then right to 1e-14 of itself.
    const LARGEST: f64 = 40.0;

    /// exp(s) and exp(-s) of one value; none if it is too large.
    pub(crate) fn of(value: f64, rate: f64) -> Option<(f64, f64)> {
        let s = rate * value;
        (s.abs() <= Self::LARGEST).then(|| (s.exp(), (-s).exp()))
    }

    fn push(&mut self, value: f64) {
        let pair = Self::of(value, self.rate);
        self.within &= pair.is_some();
        let (rising, falling) = pair.unwrap_or((1.0, 1.0));
        self.rising.push(rising);
        self.falling.push(falling);
    }
}

impl Points {
    /// An empty list of points with `n_components` components.
    pub fn new(n_components: usize) -> Self {
        Self { columns: vec![Vec::new(); n_components], n: 0, exponentials: Vec::new() }
    }

    /// Points from rows of components.
    pub fn from_rows<'a>(n_components: usize, rows: impl IntoIterator<Item = &'a [f64]>) -> Self {
        let mut points = Self::new(n_components);
        for row in rows {
            points.push(row);
        }
        points
    }

    /// Points from columns of components, all of the same length.
    pub(crate) fn from_columns(columns: Vec<Vec<f64>>) -> Self {
        Self { n: columns.first().map_or(0, Vec::len), columns, exponentials: Vec::new() }
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
        self.exponentials.clear();
        &mut self.columns[c]
    }

    /// Appends a point.
    pub fn push(&mut self, z: &[f64]) {
        self.push_parts(z, &[]);
    }

    /// Appends the point (x, u).
    pub fn push_parts(&mut self, x: &[f64], u: &[f64]) {
        for (column, value) in self.columns.iter_mut().zip(x.iter().chain(u)) {
            column.push(*value);
        }
        for exponentials in &mut self.exponentials {
            exponentials.push(self.columns[exponentials.component][self.n]);
        }
        self.n += 1;
    }

    /// Adds all of another list.
    pub(crate) fn append(&mut self, other: &Self) {
        let mut row = vec![0.0; other.n_components()];
        for i in 0..other.len() {
            other.get(i, &mut row);
            self.push(&row);
        }
    }

    /// Keeps the exponentials of these (component, rate) from now on, in place of those kept so far.
    pub(crate) fn keep_exponentials(&mut self, wanted: &[(usize, f64)]) {
        self.exponentials.clear();
        for &(component, rate) in wanted {
            let (rising, falling) = (Vec::with_capacity(self.n), Vec::with_capacity(self.n));
            let mut exponentials = Exponentials { component, rate, rising, falling, within: true };
            self.columns[component].iter().for_each(|value| exponentials.push(*value));
            self.exponentials.push(exponentials);
        }
    }

    /// The exponentials of a component, if they are kept and no point is too far out.
    pub(crate) fn exponentials(&self, component: usize, rate: f64) -> Option<&Exponentials> {
        self.exponentials.iter().find(|e| e.component == component && e.rate == rate && e.within)
    }

    /// Makes these the points (x, u) of all states `x` (row-major, `n_x` each) with one input.
    pub(crate) fn set_states(&mut self, x: &[f64], n_x: usize, u: &[f64]) {
        self.exponentials.clear();
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

    /// Makes these `n` points with one input; their `n_x` states, by component, are left to be written.
    pub(crate) fn reset(&mut self, n: usize, n_x: usize, u: &[f64]) -> &mut [Vec<f64>] {
        self.exponentials.clear();
        self.n = n;
        let (states, inputs) = self.columns.split_at_mut(n_x);
        states.iter_mut().for_each(|column| column.resize(n, 0.0));
        for (column, u) in inputs.iter_mut().zip(u) {
            column.clear();
            column.resize(n, *u);
        }
        states
    }

    /// Keeps the first `n` points.
    pub fn truncate(&mut self, n: usize) {
        for column in &mut self.columns {
            column.truncate(n);
        }
        for exponentials in &mut self.exponentials {
            exponentials.rising.truncate(n);
            exponentials.falling.truncate(n);
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
            exponentials: Vec::new(),
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
