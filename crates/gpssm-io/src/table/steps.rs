//! Times of the rows: one unit, in order, equal steps.

use super::calendar;
use super::error::DataProblem;

/// What the times of a record count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeUnit {
    /// Rows, from 0: nothing is known about time.
    Rows,
    /// The unit of the time column or of dt, whatever it is.
    Given,
    /// Days since 1970-01-01, from dates.
    Days,
    /// Months since January 1970, from dates a month (or several) apart.
    Months,
}

/// Steps may differ by this much relative to their size: times are often rounded.
const TOLERANCE: f64 = 0.01;

/// One time, as written.
pub(super) fn parse(field: &[u8], before: Option<TimeUnit>) -> Result<(f64, TimeUnit), DataProblem> {
    let text = std::str::from_utf8(field).map_err(|_| DataProblem::Encoding)?.trim_ascii();
    let own = || text.to_owned();
    let (time, unit) = match text.parse::<f64>() {
        _ if text.is_empty() || text.eq_ignore_ascii_case("na") => return Err(DataProblem::MissingTime),
        Ok(time) if time.is_nan() => return Err(DataProblem::MissingTime),
        Ok(time) if time.is_infinite() => return Err(DataProblem::NotFinite { text: own() }),
        Ok(time) => (time, TimeUnit::Given),
        Err(_) => match calendar::days(text) {
            Some(days) => (days, TimeUnit::Days),
            None if text.replacen(',', ".", 1).parse::<f64>().is_ok() => {
                return Err(DataProblem::DecimalComma { text: own() });
            }
            None => return Err(DataProblem::BadTime { text: own() }),
        },
    };
    let name = |unit| if unit == TimeUnit::Days { "date" } else { "number" };
    match before {
        Some(before) if before != unit => {
            Err(DataProblem::MixedTimes { text: own(), found: name(unit), before: name(before) })
        }
        _ => Ok((time, unit)),
    }
}

/// Times of the rows of one sequence with equal steps, in units that make them equal, and the step; or the
/// first row that is wrong. At least two rows.
pub(super) fn check(
    times: &[f64],
    unit: TimeUnit,
) -> Result<(Vec<f64>, TimeUnit, f64), (usize, DataProblem)> {
    if let Some(i) = (1..times.len()).find(|&i| times[i] <= times[i - 1]) {
        let (time, before) = (times[i].to_string(), times[i - 1].to_string());
        let repeats = times[i] == times[i - 1];
        let problem = if repeats {
            DataProblem::TimeRepeats { time }
        } else {
            DataProblem::TimeGoesBack { time, before }
        };
        return Err((i, problem));
    }
    let irregular = match regular(times) {
        Ok(step) => return Ok((times.to_vec(), unit, step)),
        Err(irregular) => irregular,
    };
    if unit == TimeUnit::Days
        && let Ok(months) = check_months(times)
    {
        return Ok(months);
    }
    Err(irregular)
}

/// Dates with steps of equally many months.
pub(super) fn check_months(days: &[f64]) -> Result<(Vec<f64>, TimeUnit, f64), DataProblem> {
    let Some(months) = calendar::whole_months(days) else { return Err(DataProblem::NotMonths) };
    let step = regular(&months).map_err(|(_, problem)| problem)?;
    Ok((months, TimeUnit::Months, step))
}

/// The common step of increasing times.
fn regular(times: &[f64]) -> Result<f64, (usize, DataProblem)> {
    let mut steps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let middle = steps.len() / 2;
    let usual = *steps.select_nth_unstable_by(middle, f64::total_cmp).1;
    // Far from zero a difference of two times is not exact.
    let rounding = 4.0 * f64::EPSILON * times[0].abs().max(times[times.len() - 1].abs());
    for (i, pair) in times.windows(2).enumerate() {
        let step = pair[1] - pair[0];
        if (step - usual).abs() > TOLERANCE * usual + rounding {
            let multiple = (step / usual).round();
            let whole = multiple >= 2.0 && (step - multiple * usual).abs() <= TOLERANCE * multiple * usual;
            let missing_rows = whole.then(|| multiple as u64 - 1);
            return Err((i + 1, DataProblem::IrregularStep { step, usual, missing_rows }));
        }
    }
    Ok((times[times.len() - 1] - times[0]) / (times.len() - 1) as f64)
}

/// Whether two steps are the same.
pub(super) fn same_step(a: f64, b: f64) -> bool {
    (a - b).abs() <= TOLERANCE * a.abs().max(b.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_steps_with_rounded_times() {
        let times: Vec<f64> = (0..100).map(|i| (f64::from(i) / 3.0 * 1e3).round() / 1e3).collect();
        let (_, unit, step) = check(&times, TimeUnit::Given).unwrap();
        assert_eq!(unit, TimeUnit::Given);
        assert!((step - 1.0 / 3.0).abs() < 1e-4);
    }

    #[test]
    fn the_first_bad_row_is_named() {
        let problem = |times: &[f64]| check(times, TimeUnit::Given).unwrap_err();
        assert!(matches!(problem(&[0.0, 1.0, 1.0]), (2, DataProblem::TimeRepeats { .. })));
        assert!(matches!(problem(&[0.0, 2.0, 1.0]), (2, DataProblem::TimeGoesBack { .. })));
        assert!(matches!(
            problem(&[0.0, 1.0, 2.0, 5.0, 6.0]),
            (3, DataProblem::IrregularStep { missing_rows: Some(2), .. })
        ));
        assert!(matches!(
            problem(&[0.0, 1.0, 2.0, 3.4, 4.4]),
            (3, DataProblem::IrregularStep { missing_rows: None, .. })
        ));
        // A step that is nothing beside the usual one.
        assert!(matches!(
            problem(&[0.0, 1.0, 1e6]),
            (1, DataProblem::IrregularStep { missing_rows: None, .. })
        ));
    }

    #[test]
    fn a_date_a_month_is_regular() {
        let texts = ["1970-01-01", "1970-02-01", "1970-03-01", "1970-04-01"];
        let times: Vec<f64> = texts.iter().map(|text| parse(text.as_bytes(), None).unwrap().0).collect();
        assert_eq!(check(&times, TimeUnit::Days), Ok((vec![0.0, 1.0, 2.0, 3.0], TimeUnit::Months, 1.0)));
    }
}
