//! Past values of inputs as inputs of their own, and dead time.

use super::{Columns, DataProblem};

/// More past values than this are a mistake.
const MOST: usize = 1000;

/// Which values of an input a row shows to the transition x_{t+1} = f(x_t, u_t): those of rows t + 1 - delay,
/// t - delay, ..., `lags` of them beside the first. Before the first row stands the first value, after the last row the
/// last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Past values beside the first.
    pub lags: usize,
    /// Rows from an input to the first output that sees it.
    pub delay: usize,
}

impl Columns {
    /// Which values of each input a row shows.
    pub fn window(&self) -> Window {
        Window { lags: self.input_lags.unwrap_or(0), delay: self.delay.unwrap_or(1) }
    }
}

impl Window {
    /// Columns that one input becomes.
    pub fn n_values(self) -> usize {
        self.lags + 1
    }

    /// `u`, `u[-1]`, ... for each input: how many rows before the present one.
    pub fn names(self, inputs: &[String]) -> Vec<String> {
        let name = |input: &String, back: usize| match (back + self.delay).cmp(&1) {
            std::cmp::Ordering::Less => format!("{input}[+1]"),
            std::cmp::Ordering::Equal => input.clone(),
            std::cmp::Ordering::Greater => format!("{input}[-{}]", back + self.delay - 1),
        };
        inputs.iter().flat_map(|input| (0..=self.lags).map(move |back| name(input, back))).collect()
    }

    /// Rows of inputs, row-major, with all values of the first input first.
    pub fn with_past(self, u: Vec<f64>, n_u: usize) -> Vec<f64> {
        if n_u == 0 || (self.lags == 0 && self.delay == 1) {
            return u;
        }
        let n_rows = u.len() / n_u;
        let mut spread = Vec::with_capacity(u.len() * self.n_values());
        for t in 0..n_rows {
            for c in 0..n_u {
                for back in 0..=self.lags {
                    let row = (t + 1).saturating_sub(self.delay + back).min(n_rows - 1);
                    spread.push(u[row * n_u + c]);
                }
            }
        }
        spread
    }

    /// The same for rows one by one.
    pub fn with_past_rows(self, rows: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
        let n_u = rows.first().map_or(0, Vec::len);
        if n_u == 0 {
            return rows;
        }
        let flat = self.with_past(rows.concat(), n_u);
        flat.chunks_exact(n_u * self.n_values()).map(<[f64]>::to_vec).collect()
    }
}

/// What is wrong with the lags that are asked for.
pub(super) fn refused(columns: &Columns) -> Option<DataProblem> {
    let asked = columns.input_lags.unwrap_or(0) > 0 || columns.delay.is_some_and(|delay| delay != 1);
    // Inputs alone may be read as outputs, see the commands on new inputs.
    if asked && columns.u.is_empty() {
        return Some(DataProblem::NoInputsToLag);
    }
    let most = columns.input_lags.unwrap_or(0).max(columns.delay.unwrap_or(0));
    (most > MOST).then_some(DataProblem::TooManyLags { asked: most, most: MOST })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_show_the_past_of_each_input() {
        let u = vec![1.0, 10.0, 2.0, 20.0, 3.0, 30.0];
        let plain = Window { lags: 1, delay: 1 };
        assert_eq!(plain.with_past(u.clone(), 2), [1., 1., 10., 10., 2., 1., 20., 10., 3., 2., 30., 20.]);
        assert_eq!(plain.names(&["a".into(), "b".into()]), ["a", "a[-1]", "b", "b[-1]"]);
        let late = Window { lags: 0, delay: 2 };
        assert_eq!(late.with_past(u.clone(), 2), [1., 10., 1., 10., 2., 20.]);
        assert_eq!(late.names(&["a".into()]), ["a[-1]"]);
        let at_once = Window { lags: 1, delay: 0 };
        assert_eq!(at_once.with_past(vec![1.0, 2.0, 3.0], 1), [2., 1., 3., 2., 3., 3.]);
        assert_eq!(at_once.names(&["a".into()]), ["a[+1]", "a"]);
        assert_eq!(at_once.with_past_rows(vec![vec![1.0], vec![2.0]]), [[2.0, 1.0], [2.0, 2.0]]);
        assert_eq!(plain.with_past_rows(vec![Vec::new(); 2]), vec![Vec::<f64>::new(); 2]);
    }
}
