//! Whether 03/04/2024 is in March or in April: what all dates of the column say together.

use std::path::Path;

use super::Columns;
use super::error::{Blame, DataError, DataProblem};
use super::grid;
use super::open::Table;
use super::read::Places;
use super::stamp::{self, Order};

/// The order in which all dates are dates; of two, the one in which they are in order and equally spaced.
pub(super) fn find_order(path: &Path, columns: &Columns) -> Result<Order, DataError> {
    let mut table = Table::open(path, &columns.names())?;
    let header = table.header.clone();
    let blame = Blame { file: &header.file };
    let places = Places::find(&header, columns).map_err(|problem| blame.file(problem))?;
    let Some(place) = places.time else { return Ok(Order::Day) };
    let (from, to) = columns.rows.unwrap_or((1, usize::MAX));
    let mut times: [Option<Vec<f64>>; 2] = [Some(Vec::new()), Some(Vec::new())];
    let mut first = None;
    let mut n = 0;
    while let Some(row) = table.next()? {
        n += 1;
        let Some(text) = row.get(place).and_then(|field| std::str::from_utf8(field).ok()) else { continue };
        if !(from..=to).contains(&n) || !stamp::is_ambiguous(text) {
            continue;
        }
        first.get_or_insert_with(|| (row.line, text.to_owned()));
        for (times, order) in times.iter_mut().zip([Order::Day, Order::Month]) {
            match stamp::parse(text, order) {
                Some(stamp) => times.iter_mut().for_each(|times| times.push(stamp.seconds as f64)),
                None => *times = None,
            }
        }
    }
    let [day, month] = times;
    match (&day, &month) {
        (Some(_), None) => return Ok(Order::Day),
        (None, Some(_)) => return Ok(Order::Month),
        // The first date that is none will be named.
        (None, None) => return Ok(Order::Day),
        (Some(_), Some(_)) => {}
    }
    let regular = |times: Option<Vec<f64>>| {
        let times = times.unwrap_or_default();
        times.len() > 2
            && times.windows(2).all(|pair| pair[1] > pair[0])
            && grid::find(std::slice::from_ref(&times), &|| Some(vec![days(&times)]), None)
                .is_ok_and(|grid| !grid.is_finer && grid.jitter.is_none())
    };
    match (regular(day), regular(month)) {
        (true, false) => Ok(Order::Day),
        (false, true) => Ok(Order::Month),
        _ => {
            let (line, text) = first.unwrap_or_default();
            let column = columns.time.as_deref().unwrap_or_default();
            Err(blame.cell(line, column, DataProblem::DayOrMonth { text }))
        }
    }
}

fn days(times: &[f64]) -> Vec<i64> {
    times.iter().map(|time| (time / 86_400.0).floor() as i64).collect()
}
