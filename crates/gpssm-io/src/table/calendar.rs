//! Dates and times as numbers.

/// Days since 1970-01-01 (UTC where an offset is given) of `2024-01-31`, `2024-01`, `2024-01-31 12:30`,
/// `2024-01-31T12:30:15.5Z` or `...+02:00`.
pub(super) fn days(text: &str) -> Option<f64> {
    let text = text.trim_ascii();
    // All forms are ASCII, so that bytes can be cut.
    if !text.is_ascii() || text.len() < 7 || text.len() > 40 {
        return None;
    }
    let (date, clock) = match text.find(['T', ' ', 't']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let year = digits(parts.next()?, 4)?;
    let month = digits(parts.next()?, 2)?;
    let day = match parts.next() {
        Some(day) => digits(day, 2)?,
        None if clock.is_none() => 1,
        None => return None,
    };
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=month_length(year, month)).contains(&day)
    {
        return None;
    }
    let fraction = match clock {
        Some(clock) => seconds(clock)? / 86_400.0,
        None => 0.0,
    };
    Some(days_from_civil(year, month, day) as f64 + fraction)
}

/// Seconds since midnight UTC.
fn seconds(clock: &str) -> Option<f64> {
    let (clock, offset) = match clock.find(['Z', 'z', '+', '-']) {
        Some(at) => (&clock[..at], &clock[at..]),
        None => (clock, ""),
    };
    let mut parts = clock.split(':');
    let hour = digits(parts.next()?, 2)?;
    let minute = digits(parts.next()?, 2)?;
    let second = match parts.next() {
        Some(text) => {
            let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
            let all_digits = !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit());
            digits(whole, 2)? as f64 + all_digits.then(|| format!("0.{fraction}").parse::<f64>().ok())??
        }
        None => 0.0,
    };
    if parts.next().is_some() || hour > 23 || minute > 59 || second >= 61.0 {
        return None;
    }
    let shift = match offset.as_bytes().first() {
        None => 0,
        Some(b'Z' | b'z') if offset.len() == 1 => 0,
        Some(sign @ (b'+' | b'-')) => {
            let (hours, minutes) = match offset[1..].split_once(':') {
                Some(parts) => parts,
                None if offset.len() == 5 => offset[1..].split_at(2),
                None => (&offset[1..], "00"),
            };
            let minutes = 60 * digits(hours, 2)? + digits(minutes, 2)?;
            if *sign == b'+' { minutes } else { -minutes }
        }
        _ => return None,
    };
    Some((3600 * hour + 60 * minute - 60 * shift) as f64 + second)
}

fn digits(text: &str, n: usize) -> Option<i64> {
    (text.len() == n && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

fn month_length(year: i64, month: i64) -> i64 {
    let next = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days_from_civil(next.0, next.1, 1) - days_from_civil(year, month, 1)
}

/// Days since 1970-01-01 in the Gregorian calendar. Years are counted from March, so that the leap day
/// comes last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// Year, month and day of a number of days since 1970-01-01.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
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

/// Months since January 1970 of dates that fall on the same day (or on the last day) of their months; none
/// if they do not.
pub(super) fn whole_months(days: &[f64]) -> Option<Vec<f64>> {
    let dates: Vec<(i64, i64, i64)> = days.iter().map(|d| civil_from_days(d.floor() as i64)).collect();
    let clock = |d: &f64| d - d.floor();
    let same_clock = days.iter().all(|d| (clock(d) - clock(&days[0])).abs() < 1e-6);
    let same_day = dates.iter().all(|date| date.2 == dates[0].2);
    let last_day = dates.iter().all(|&(year, month, day)| day == month_length(year, month));
    (same_clock && (same_day || last_day))
        .then(|| dates.iter().map(|(year, month, _)| (12 * (year - 1970) + month - 1) as f64).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates() {
        assert_eq!(days("1970-01-01"), Some(0.0));
        assert_eq!(days("2000-03-01"), Some(11_017.0));
        assert_eq!(days("1958-03-29"), Some(-4_296.0));
        assert_eq!(days("1970-02"), Some(31.0));
        assert_eq!(days("1970-01-01T12:00"), Some(0.5));
        assert_eq!(days("1970-01-01 06:00:00.000"), Some(0.25));
        assert_eq!(days("1970-01-01T00:00:00+02:00"), Some(-2.0 / 24.0));
        assert_eq!(days("1970-01-01T00:00:00-0200"), Some(2.0 / 24.0));
        assert_eq!(days("1970-01-02T00:00:00Z"), Some(1.0));
    }

    #[test]
    fn what_is_no_date() {
        for text in [
            "",
            "1970",
            "1970-13-01",
            "1971-02-29",
            "1970-1-1",
            "01/02/1970",
            "1970-01-01T",
            "1970-01-01T25:00",
            "1970-01-01Tx",
            "1970-01-01T00:00:00.",
            "1970-01-01T00:00+",
            "1970-01T00:00",
            "1970-01-01-01",
            "süß-ig-es",
        ] {
            assert_eq!(days(text), None, "{text}");
        }
    }

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
    }

    #[test]
    fn months_are_steps_of_their_own() {
        let dates = |texts: &[&str]| texts.iter().map(|text| days(text).unwrap()).collect::<Vec<_>>();
        assert_eq!(
            whole_months(&dates(&["1970-01-15", "1970-02-15", "1970-03-15"])),
            Some(vec![0.0, 1.0, 2.0])
        );
        assert_eq!(
            whole_months(&dates(&["1971-01-31", "1971-02-28", "1971-03-31"])),
            Some(vec![12.0, 13.0, 14.0])
        );
        assert_eq!(whole_months(&dates(&["1970-01-15", "1970-02-16"])), None);
    }
}
