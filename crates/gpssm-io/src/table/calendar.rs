//! Dates as numbers of days, and back: the Gregorian calendar.

/// Number of days of a month.
pub(super) fn month_length(year: i64, month: i64) -> i64 {
    let next = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days_from_civil(next.0, next.1, 1) - days_from_civil(year, month, 1)
}

/// Days since 1970-01-01. Years are counted from March, so that the leap day comes last.
pub(super) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// Year, month and day of a number of days since 1970-01-01.
pub(super) fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let mut year = 1970 + days.div_euclid(365);
    // A year has a little more than 365 days.
    while days_from_civil(year, 1, 1) > days {
        year -= 1;
    }
    while days_from_civil(year + 1, 1, 1) <= days {
        year += 1;
    }
    let mut month = 1;
    while month < 12 && days_from_civil(year, month + 1, 1) <= days {
        month += 1;
    }
    (year, month, days - days_from_civil(year, month, 1) + 1)
}

/// Day of the week, 0 for Sunday.
pub(super) fn weekday(days: i64) -> i64 {
    (days + 4).rem_euclid(7)
}

/// The same day so many months later; the last day of the month where there is no such day, or where `last` says so.
pub(super) fn add_months(days: i64, months: i64, last: bool) -> i64 {
    let (year, month, day) = civil_from_days(days);
    let (year, month) = from_months(12 * year + month - 1 + months);
    let length = month_length(year, month);
    days_from_civil(year, month, if last { length } else { day.min(length) })
}

fn from_months(months: i64) -> (i64, i64) {
    (months.div_euclid(12), months.rem_euclid(12) + 1)
}

/// Months of dates that fall on the same day (or on the last day) of their months, and whether it is the last; none if
/// they do not.
pub(super) fn whole_months(days: &[i64]) -> Option<(Vec<i64>, bool)> {
    let dates: Vec<(i64, i64, i64)> = days.iter().map(|day| civil_from_days(*day)).collect();
    let same_day = dates.iter().all(|date| date.2 == dates[0].2);
    let last_day = dates.iter().all(|&(year, month, day)| day == month_length(year, month));
    (same_day || last_day).then(|| {
        let months = dates.iter().map(|(year, month, _)| 12 * (year - 1970) + month - 1);
        (months.collect(), last_day && !same_day)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_eight_centuries_comes_back() {
        let mut expected = (1600, 1, 1);
        for day in days_from_civil(1600, 1, 1)..days_from_civil(2400, 1, 1) {
            let (year, month, d) = civil_from_days(day);
            assert_eq!((year, month, d), expected);
            assert_eq!(days_from_civil(year, month, d), day);
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + i64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            expected = match (month, d == length) {
                (12, true) => (year + 1, 1, 1),
                (_, true) => (year, month + 1, 1),
                (_, false) => (year, month, d + 1),
            };
        }
        assert_eq!(weekday(days_from_civil(2024, 3, 31)), 0);
        assert_eq!(weekday(days_from_civil(1969, 12, 31)), 3);
    }

    #[test]
    fn months_are_steps_of_their_own() {
        let days = |dates: &[(i64, i64, i64)]| -> Vec<i64> {
            dates.iter().map(|&(year, month, day)| days_from_civil(year, month, day)).collect()
        };
        let middle = days(&[(1970, 1, 15), (1970, 2, 15), (1970, 3, 15)]);
        assert_eq!(whole_months(&middle), Some((vec![0, 1, 2], false)));
        let ends = days(&[(1971, 1, 31), (1971, 2, 28), (1971, 3, 31)]);
        assert_eq!(whole_months(&ends), Some((vec![12, 13, 14], true)));
        assert_eq!(whole_months(&days(&[(1970, 1, 15), (1970, 2, 16)])), None);
        assert_eq!(add_months(ends[1], 1, true), ends[2]);
        assert_eq!(add_months(middle[0], -1, false), days_from_civil(1969, 12, 15));
        assert_eq!(add_months(ends[0], 1, false), ends[1]);
    }
}
