//! Rows of a record as rows of a model: past values of inputs as inputs of their own, dead time, thinning.

use gpssm::{Error, Record, Sequence};
use serde::{Deserialize, Serialize};

/// How the rows of a record become the rows of a model.
///
/// One row of `every` is kept. The transition x_{t+1} = f(x_t, u_t) sees the inputs of the kept rows t + 1 - delay,
/// t - delay, ..., `input_lags` of them beside the first. Before the first row stands the first value, after the last row the
/// last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Layout {
    /// Number of past values of each input used as further inputs.
    pub input_lags: usize,
    /// Rows from an input to the first output that sees it.
    pub delay: usize,
    /// One row of so many.
    pub every: usize,
}

impl Default for Layout {
    /// Rows as they are.
    fn default() -> Self {
        Self { input_lags: 0, delay: 1, every: 1 }
    }
}

impl Layout {
    /// Whether rows are taken as they are.
    pub fn is_plain(self) -> bool {
        self == Self::default()
    }

    /// Columns that one input becomes.
    pub fn n_values(self) -> usize {
        self.input_lags + 1
    }

    /// Rows of the record that a state with `lags` past outputs and its inputs reach back over.
    pub fn memory(self, lags: usize) -> usize {
        (lags + 1).max(self.input_lags + self.delay) * self.every
    }

    /// `u`, `u[-1]`, ... for each input: how many rows before the present one.
    pub fn names(self, inputs: &[String]) -> Vec<String> {
        let name = |input: &String, back: usize| match (back + self.delay).cmp(&1) {
            std::cmp::Ordering::Less => format!("{input}[+1]"),
            std::cmp::Ordering::Equal => input.clone(),
            std::cmp::Ordering::Greater => format!("{input}[-{}]", back + self.delay - 1),
        };
        inputs.iter().flat_map(|input| (0..=self.input_lags).map(move |back| name(input, back))).collect()
    }

    /// A record as the model sees it.
    pub fn apply_to(self, record: &Record) -> Result<Record, Error> {
        Record::new(record.sequences().iter().map(|s| self.apply(s)).collect::<Result<_, _>>()?)
    }

    /// A sequence as the model sees it.
    pub fn apply(self, sequence: &Sequence) -> Result<Sequence, Error> {
        self.apply_from(sequence, 0)
    }

    /// The same, beginning with this row; before the first row of the record stands the first one.
    pub(crate) fn apply_from(self, sequence: &Sequence, first: isize) -> Result<Sequence, Error> {
        let every = self.every.max(1) as isize;
        let rows = (0..).map(|i| (first + i * every).max(0) as usize);
        let thinned = sequence.select(rows.take_while(|t| *t < sequence.n_rows()))?;
        if thinned.n_u() == 0 || (self.input_lags, self.delay) == (0, 1) {
            return Ok(thinned);
        }
        let n = thinned.n_rows();
        let y = (0..n).flat_map(|t| thinned.y(t).to_vec()).collect();
        let (mut u, n_u) = (Vec::with_capacity(n * thinned.n_u() * self.n_values()), thinned.n_u());
        for t in 0..n {
            for c in 0..n_u {
                let row = |back: usize| (t + 1).saturating_sub(self.delay + back).min(n - 1);
                u.extend((0..=self.input_lags).map(|back| thinned.u(row(back))[c]));
            }
        }
        Sequence::from_flat(y, thinned.n_y(), u, n_u * self.n_values())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(layout: Layout, rows: &[&[f64]]) -> Vec<Vec<f64>> {
        let y = vec![vec![0.0]; rows.len()];
        let sequence = Sequence::new(y, rows.iter().map(|row| row.to_vec()).collect()).unwrap();
        let seen = layout.apply(&sequence).unwrap();
        (0..seen.n_rows()).map(|t| seen.u(t).to_vec()).collect()
    }

    #[test]
    fn rows_show_the_past_of_each_input() {
        let rows: [&[f64]; 3] = [&[1.0, 10.0], &[2.0, 20.0], &[3.0, 30.0]];
        let plain = Layout { input_lags: 1, ..Layout::default() };
        assert_eq!(inputs(plain, &rows), [[1., 1., 10., 10.], [2., 1., 20., 10.], [3., 2., 30., 20.]]);
        assert_eq!(plain.names(&["a".into(), "b".into()]), ["a", "a[-1]", "b", "b[-1]"]);
        let late = Layout { delay: 2, ..Layout::default() };
        assert_eq!(inputs(late, &rows), [[1., 10.], [1., 10.], [2., 20.]]);
        assert_eq!(late.names(&["a".into()]), ["a[-1]"]);
        let at_once = Layout { input_lags: 1, delay: 0, every: 1 };
        assert_eq!(inputs(at_once, &[&[1.0], &[2.0], &[3.0]]), [[2., 1.], [3., 2.], [3., 3.]]);
        assert_eq!(at_once.names(&["a".into()]), ["a[+1]", "a"]);
        assert_eq!(inputs(plain, &[&[], &[]]), vec![Vec::<f64>::new(); 2]);
        let thinned = Layout { every: 2, ..plain };
        assert_eq!(
            inputs(thinned, &[&[1.0], &[2.0], &[3.0], &[4.0], &[5.0]]),
            [[1., 1.], [3., 1.], [5., 3.]]
        );
    }
}
