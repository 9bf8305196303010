//! Rows on a grid of equal steps: which place each time stamp has, and which places have none.

use super::calendar;

/// How far a step may be from a whole number of grid steps: two stamps that are each a tenth off.
const TOLERANCE: f64 = 0.2;
/// Finer grids are found only where stamps lie on them this well, as chance would find some grid otherwise.
const FINE_TOLERANCE: f64 = 0.1;
/// A variation of steps beyond this is worth saying.
const WORTH_SAYING: f64 = 0.01;
/// Finest grid that is looked for, in parts of the usual step.
const FINEST: u32 = 1000;
/// More rows than this for each stamp are not made up.
pub(super) const MOST_ROWS: usize = 10;

/// Stamps of all sequences on one grid.
#[derive(Debug, PartialEq)]
pub(super) struct Grid {
    /// The step.
    pub(super) step: f64,
    /// Places of the rows of each sequence, from 0.
    pub(super) places: Vec<Vec<usize>>,
    /// Whole months of a step, and whether dates are the last of their months.
    pub(super) months: Option<(u32, bool)>,
    /// The largest share of a step by which a stamp is off, and its sequence and row, if it is worth saying.
    pub(super) jitter: Option<(f64, usize, usize)>,
    /// Whether the grid is finer than the usual step.
    pub(super) is_finer: bool,
}

/// Why there is none; sequence and row where it shows.
#[derive(Debug, PartialEq)]
pub(super) enum Irregular {
    /// No grid, or only one of far too many rows.
    Step { at: (usize, usize), step: f64, usual: f64, finest: Option<(f64, usize)> },
    /// A gap of very many rows.
    Gap { at: (usize, usize), rows: usize },
    /// A stamp beside the grid that was asked for.
    Off { at: (usize, usize), step: f64 },
    /// A sequence with another step.
    Other { sequence: usize, step: f64, first: f64 },
}

impl Grid {
    /// Rows of a sequence, those without a stamp included.
    pub(super) fn n_rows(&self) -> usize {
        self.places.iter().map(|places| places.last().map_or(0, |last| last + 1)).sum()
    }
}

/// The grid of increasing times. `days` gives the days of dates that all have the same clock.
pub(super) fn find(
    times: &[Vec<f64>],
    days: &dyn Fn() -> Option<Vec<Vec<i64>>>,
    asked: Option<f64>,
) -> Result<Grid, Irregular> {
    if let Some(step) = asked {
        let grid = on_grid(times, step, TOLERANCE, false).map_err(|at| Irregular::Off { at, step })?;
        return check_rows(grid, times);
    }
    let usual = usual(times.iter().flat_map(|times| differences(times)));
    check_steps(times, usual)?;
    if let Ok(grid) = on_grid(times, usual, WORTH_SAYING, true) {
        return check_rows(grid, times);
    }
    if let Some(grid) = days().and_then(|days| in_months(times, &days)) {
        return check_rows(grid, times);
    }
    let failed = match on_grid(times, usual, TOLERANCE, true) {
        Ok(grid) => return check_rows(grid, times),
        Err(at) => at,
    };
    let stamps: usize = times.iter().map(Vec::len).sum();
    for parts in 2..=FINEST {
        if let Ok(grid) = on_grid(times, usual / f64::from(parts), FINE_TOLERANCE, true) {
            let rows = grid.n_rows();
            if rows <= MOST_ROWS * stamps {
                return Ok(Grid { is_finer: true, ..grid });
            }
            return Err(step_at(times, failed, usual, Some((grid.step, rows))));
        }
    }
    Err(step_at(times, failed, usual, None))
}

fn step_at(times: &[Vec<f64>], at: (usize, usize), usual: f64, finest: Option<(f64, usize)>) -> Irregular {
    let step = times[at.0][at.1] - times[at.0][at.1 - 1];
    Irregular::Step { at, step, usual, finest }
}

fn differences(times: &[f64]) -> impl Iterator<Item = f64> + '_ {
    times.windows(2).map(|pair| pair[1] - pair[0])
}

/// The median, the lower of two.
fn usual(steps: impl Iterator<Item = f64>) -> f64 {
    let mut steps: Vec<f64> = steps.collect();
    let middle = (steps.len() - 1) / 2;
    *steps.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// Refuses sequences that are regular by themselves, but not with the step of the others.
fn check_steps(times: &[Vec<f64>], usual_of_all: f64) -> Result<(), Irregular> {
    let own = |times: &Vec<f64>| {
        let usual = usual(differences(times));
        (times.len() > 2 && differences(times).all(|step| (step - usual).abs() <= WORTH_SAYING * usual))
            .then_some(usual)
    };
    let first = times.first().and_then(own).unwrap_or(usual_of_all);
    for (sequence, times) in times.iter().enumerate() {
        if let Some(step) = own(times).filter(|step| (step - first).abs() > TOLERANCE * step.max(first)) {
            return Err(Irregular::Other { sequence, step, first });
        }
    }
    Ok(())
}

/// Places on a grid of this step, or the first stamp that is not on it. The step itself is improved if it may be.
fn on_grid(times: &[Vec<f64>], step: f64, tolerance: f64, refine: bool) -> Result<Grid, (usize, usize)> {
    let step = if refine { refined(times, step) } else { step };
    let mut jitter: Option<(f64, usize, usize)> = None;
    let mut places = Vec::with_capacity(times.len());
    for (s, times) in times.iter().enumerate() {
        // Far from zero a difference of two times is not exact.
        let rounding = 4.0 * f64::EPSILON * times.iter().fold(0.0f64, |size, time| size.max(time.abs()));
        let mut place = 0usize;
        let mut own = Vec::with_capacity(times.len());
        own.push(0);
        for (i, difference) in differences(times).enumerate() {
            let multiple = (difference / step).round().max(1.0);
            // The step is not known exactly, which shows over long gaps.
            let allowed = (tolerance + (1e-3 * (multiple - 1.0)).min(0.05)) * step + rounding;
            let off = (difference - multiple * step).abs();
            if off > allowed || multiple > 1e15 {
                return Err((s, i + 1));
            }
            let share = off / step;
            if multiple == 1.0
                && off > WORTH_SAYING * step + rounding
                && jitter.is_none_or(|worst| share > worst.0)
            {
                jitter = Some((share, s, i + 1));
            }
            place = place.saturating_add(multiple as usize);
            own.push(place);
        }
        places.push(own);
    }
    Ok(Grid { step, places, months: None, jitter, is_finer: false })
}

/// The mean of the steps that are short multiples of this one.
fn refined(times: &[Vec<f64>], step: f64) -> f64 {
    let (mut total, mut n) = (0.0, 0.0);
    for difference in times.iter().flat_map(|times| differences(times)) {
        let multiple = (difference / step).round();
        if (1.0..20.0).contains(&multiple) && (difference - multiple * step).abs() <= TOLERANCE * step {
            total += difference;
            n += multiple;
        }
    }
    if n > 0.0 { total / n } else { step }
}

/// Dates on the same day of their months.
fn in_months(times: &[Vec<f64>], days: &[Vec<i64>]) -> Option<Grid> {
    let all: Vec<(Vec<i64>, bool)> =
        days.iter().map(|days| calendar::whole_months(days)).collect::<Option<_>>()?;
    let steps = all.iter().flat_map(|(months, _)| months.windows(2).map(|pair| (pair[1] - pair[0]) as f64));
    let usual = usual(steps).round() as i64;
    if usual < 1 {
        return None;
    }
    let places: Option<Vec<Vec<usize>>> = all
        .iter()
        .map(|(months, _)| {
            let place = |month: &i64| {
                let since = month - months[0];
                (since % usual == 0).then_some((since / usual) as usize)
            };
            months.iter().map(place).collect()
        })
        .collect();
    let is_last = all.iter().any(|(_, is_last)| *is_last);
    let places = places?;
    let (rows, spans): (usize, f64) =
        places.iter().zip(times).fold((0, 0.0), |(rows, span), (places, times)| {
            (rows + places.last().copied().unwrap_or(0), span + times[times.len() - 1] - times[0])
        });
    let step = spans / rows.max(1) as f64;
    Some(Grid { step, places, months: Some((usual as u32, is_last)), jitter: None, is_finer: false })
}

/// Refuses to make up far more rows than there are.
fn check_rows(grid: Grid, times: &[Vec<f64>]) -> Result<Grid, Irregular> {
    let stamps: usize = times.iter().map(Vec::len).sum();
    if grid.n_rows() <= MOST_ROWS * stamps.max(10) {
        return Ok(grid);
    }
    let gap = |s: usize, i: usize| grid.places[s][i] - grid.places[s][i - 1] - 1;
    let all = grid.places.iter().enumerate().flat_map(|(s, places)| (1..places.len()).map(move |i| (s, i)));
    let at = all.max_by_key(|&(s, i)| gap(s, i)).unwrap_or((0, 1));
    Err(Irregular::Gap { at, rows: gap(at.0, at.1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(times: &[f64]) -> Result<Grid, Irregular> {
        find(&[times.to_vec()], &|| None, None)
    }

    #[test]
    fn rounded_times_are_regular() {
        let times: Vec<f64> = (0..100).map(|i| (f64::from(i) / 3.0 * 1e3).round() / 1e3).collect();
        let grid = one(&times).unwrap();
        assert!((grid.step - 1.0 / 3.0).abs() < 1e-4 && grid.jitter.is_none() && grid.n_rows() == 100);
    }

    #[test]
    fn jitter_is_tolerated_and_told() {
        let times: Vec<f64> = (0..200).map(|i| f64::from(i) + 0.04 * (2.7 * f64::from(i)).sin()).collect();
        let grid = one(&times).unwrap();
        assert_eq!(grid.places[0], (0..200).collect::<Vec<_>>());
        assert!((grid.step - 1.0).abs() < 1e-3);
        assert!(grid.jitter.is_some_and(|(share, ..)| share > 0.05 && share < 0.085));
        // The same with rows left out.
        let some: Vec<f64> = times.iter().enumerate().filter(|(i, _)| i % 7 != 3).map(|(_, t)| *t).collect();
        let grid = one(&some).unwrap();
        assert_eq!(grid.places[0], (0..200).filter(|i| i % 7 != 3).collect::<Vec<_>>());
    }

    #[test]
    fn gaps_are_rows() {
        let grid = one(&[0.0, 1.0, 2.0, 5.0, 6.0]).unwrap();
        assert_eq!(grid.places, [[0, 1, 2, 5, 6]]);
        assert!(!grid.is_finer);
        let far = one(&[0.0, 1.0, 2.0, 5e6, 5e6 + 1.0]);
        assert_eq!(far, Err(Irregular::Gap { at: (0, 3), rows: 4_999_997 }));
    }

    #[test]
    fn irregular_stamps_lie_on_a_finer_grid() {
        let grid = one(&[0.0, 3.0, 5.0, 8.0, 10.0, 13.0, 16.0]).unwrap();
        assert_eq!(grid.places, [[0, 3, 5, 8, 10, 13, 16]]);
        assert!((grid.step - 1.0).abs() < 1e-12 && grid.is_finer);
        let primes = [0.0, 1.0, 2.0, 3.4142, 4.4142, 6.1462, 7.1];
        assert!(matches!(one(&primes), Err(Irregular::Step { at: (0, 3), .. })), "{:?}", one(&primes));
        let coarse = find(&[primes.to_vec()], &|| None, Some(0.1)).unwrap_err();
        assert_eq!(coarse, Irregular::Off { at: (0, 5), step: 0.1 });
        assert_eq!(find(&[vec![0.0, 3.0, 5.0]], &|| None, Some(0.5)).unwrap().places, [[0, 6, 10]]);
    }

    #[test]
    fn months_are_equal_steps() {
        let days = vec![0, 31, 59, 120];
        let times: Vec<f64> = days.iter().map(|day| 86_400.0 * *day as f64).collect();
        let grid = find(&[times], &|| Some(vec![days.clone()]), None).unwrap();
        assert_eq!((grid.places, grid.months), (vec![vec![0, 1, 2, 4]], Some((1, false))));
    }

    #[test]
    fn sequences_share_the_step() {
        let (a, b) = (vec![0.0, 1.0, 2.0, 3.0], vec![0.0, 2.0, 4.0]);
        assert_eq!(
            find(&[a, b], &|| None, None),
            Err(Irregular::Other { sequence: 1, step: 2.0, first: 1.0 })
        );
    }
}
