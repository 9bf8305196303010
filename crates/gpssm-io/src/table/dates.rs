//! Times for people: numbers as they are, dates as they stand in the file.

use super::calendar::{add_months, civil_from_days, days_from_civil};
use super::stamp::{self, Order, Zone};

/// Dates of a record whose times count seconds.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dates {
    /// The date from which seconds are counted, such as `2020-01-01T00:00:00`; UTC.
    pub origin: String,
    /// Time zone in which the dates are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Frequency in the words of pandas, such as `MS`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency: Option<String>,
    /// How the file writes them, in the words of `strftime`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Months from row to row, where rows are whole months apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub months: Option<u32>,
    /// Times of the rows as they were measured, where the model sees others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Vec<Vec<f64>>>,
}

/// Turns times of rows into the words of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clock {
    dates: Option<Origin>,
}

#[derive(Clone, Debug, PartialEq)]
struct Origin {
    seconds: i64,
    nanoseconds: u32,
    pattern: String,
    /// Digits after the second.
    digits: u32,
    /// Seconds east of Greenwich.
    shift: i64,
    months: Option<(i64, bool)>,
}

impl Clock {
    /// Of times that are numbers, or that count seconds from a date.
    pub fn new(dates: Option<&Dates>) -> Self {
        Self { dates: dates.and_then(Origin::new) }
    }

    /// Whether times are dates.
    pub fn has_dates(&self) -> bool {
        self.dates.is_some()
    }

    /// Whether rows are whole months apart.
    pub fn is_monthly(&self) -> bool {
        self.dates.as_ref().is_some_and(|origin| origin.months.is_some())
    }

    /// A time as the file writes it.
    pub fn text(&self, time: f64) -> String {
        match &self.dates {
            None => time.to_string(),
            Some(origin) => origin.text(time, &origin.pattern),
        }
    }

    /// Seconds since 1970 of a time; none where times are numbers.
    pub fn seconds(&self, time: f64) -> Option<f64> {
        self.dates.as_ref().map(|origin| origin.seconds as f64 + 1e-9 * f64::from(origin.nanoseconds) + time)
    }

    /// Seconds since 1970 of what a clock at the place of the record shows; the time itself where times are numbers.
    pub fn civil_seconds(&self, time: f64) -> f64 {
        let shift = self.dates.as_ref().map_or(0, |origin| origin.shift);
        self.seconds(time).unwrap_or(time) + shift as f64
    }

    /// Several of them.
    pub fn texts(&self, times: &[f64]) -> Vec<String> {
        times.iter().map(|time| self.text(*time)).collect()
    }

    /// The time `n` rows after the first of these times, which are one row apart.
    pub fn after(&self, times: &[f64], rows: f64) -> f64 {
        let first = times.first().copied().unwrap_or_default();
        let last = times.last().copied().unwrap_or_default();
        if let Some((origin, (months, is_last))) =
            self.dates.as_ref().and_then(|origin| Some((origin, origin.months?)))
        {
            return origin.add_months(first, months * rows.round() as i64, is_last);
        }
        let step = (last - first) / times.len().saturating_sub(1).max(1) as f64;
        first + rows * step
    }

    /// What an axis of dates shows: the days from first to last.
    pub fn span(&self, low: f64, high: f64) -> Option<String> {
        let origin = self.dates.as_ref()?;
        let (from, to) = (origin.text(low, "%Y-%m-%d"), origin.text(high, "%Y-%m-%d"));
        match origin.pattern.contains("%Y") {
            false => None,
            true if from == to => Some(from),
            true => Some(format!("{from} to {to}")),
        }
    }

    /// Round dates between two times, about so many, with their texts; none where times are numbers.
    pub fn ticks(&self, low: f64, high: f64, wanted: usize) -> Option<Vec<(f64, String)>> {
        self.dates.as_ref()?.ticks(low, high, wanted)
    }
}

/// Steps of an axis, in seconds, with the format of their labels.
const STEPS: [(i64, &str); 21] = [
    (1, "%H:%M:%S"),
    (2, "%H:%M:%S"),
    (5, "%H:%M:%S"),
    (10, "%H:%M:%S"),
    (15, "%H:%M:%S"),
    (30, "%H:%M:%S"),
    (60, "%H:%M"),
    (120, "%H:%M"),
    (300, "%H:%M"),
    (600, "%H:%M"),
    (900, "%H:%M"),
    (1_800, "%H:%M"),
    (3_600, "%H:%M"),
    (7_200, "%H:%M"),
    (10_800, "%H:%M"),
    (21_600, "%H:%M"),
    (43_200, "%H:%M"),
    (86_400, "%m-%d"),
    (172_800, "%m-%d"),
    (604_800, "%m-%d"),
    (1_209_600, "%m-%d"),
];
const MONTH_STEPS: [i64; 11] = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1_200];
const MONTH_SECONDS: f64 = 2_629_746.0;

impl Origin {
    fn new(dates: &Dates) -> Option<Self> {
        let origin = stamp::parse(&dates.origin, Order::Day)?;
        let zone = dates.zone.as_deref().unwrap_or_default();
        // An offset; zones with a name are shown in UTC.
        let offset = stamp::parse(&format!("1970-01-01T00:00{zone}"), Order::Day);
        let offset = offset.filter(|_| zone.starts_with(['+', '-'])).map(|stamp| stamp.form.zone);
        let suffix = match (zone, offset) {
            ("", _) => "",
            (_, Some(_)) => "%:z",
            _ => "Z",
        };
        let pattern = dates.format.clone().unwrap_or_else(|| format!("%Y-%m-%dT%H:%M:%S{suffix}"));
        let digits = pattern.find('f').and_then(|at| pattern[..at].chars().last()?.to_digit(10)).unwrap_or(0);
        let is_last = dates.frequency.as_deref().is_some_and(|frequency| frequency.ends_with("ME"));
        Some(Self {
            seconds: origin.seconds,
            nanoseconds: origin.nanoseconds,
            pattern,
            digits,
            shift: offset.map_or(0, Zone::shift),
            months: dates.months.map(|months| (i64::from(months), is_last)),
        })
    }

    /// Seconds since 1970-01-01 and nanoseconds, rounded to what the format shows.
    fn split(&self, time: f64) -> (i64, u32) {
        const LARGEST: f64 = 1e14;
        let time = if time.is_finite() { time.clamp(-LARGEST, LARGEST) } else { 0.0 };
        let unit = 10f64.powi(self.digits as i32);
        let fraction = (time - time.floor()) + 1e-9 * f64::from(self.nanoseconds);
        let rounded = (fraction * unit).round() / unit;
        let whole = rounded.floor();
        let nanoseconds = ((rounded - whole) * 1e9).round() as u32;
        (self.seconds + time.floor() as i64 + whole as i64, nanoseconds)
    }

    fn text(&self, time: f64, pattern: &str) -> String {
        let (seconds, nanoseconds) = self.split(time);
        stamp::render(pattern, seconds, nanoseconds, self.shift)
    }

    fn add_months(&self, time: f64, months: i64, is_last: bool) -> f64 {
        let local = time + (self.seconds + self.shift) as f64;
        let days = (local / 86_400.0).floor() as i64;
        let moved = add_months(days, months, is_last);
        time + 86_400.0 * (moved - days) as f64
    }

    fn ticks(&self, low: f64, high: f64, wanted: usize) -> Option<Vec<(f64, String)>> {
        let wanted = wanted.clamp(2, 12) as f64;
        let base = (self.seconds + self.shift) as f64;
        let width = high - low;
        if !(width.is_finite() && width > 3.0) {
            return None;
        }
        if let Some((step, pattern)) = STEPS.iter().find(|(step, _)| width / *step as f64 <= wanted) {
            let step = *step as f64;
            let (first, last) = (((low + base) / step).ceil() as i64, ((high + base) / step).floor() as i64);
            let tick = |k: i64| {
                let time = k as f64 * step - base;
                let midnight = (k as f64 * step).rem_euclid(86_400.0) == 0.0 && self.pattern.contains("%Y");
                (time, self.text(time, if midnight { "%m-%d" } else { pattern }))
            };
            return Some((first..=last).map(tick).collect());
        }
        let step = MONTH_STEPS.iter().find(|step| width / (**step as f64 * MONTH_SECONDS) <= wanted)?;
        let (year, month, _) = civil_from_days(((low + base) / 86_400.0).floor() as i64);
        let first = 12 * year + month - 1;
        let ticks = (0..2_000).map(|k| first.div_euclid(*step) * step + k * step).map(|months| {
            let days = days_from_civil(months.div_euclid(12), months.rem_euclid(12) + 1, 1);
            86_400.0 * days as f64 - base
        });
        let inside = ticks.skip_while(|time| *time < low).take_while(|time| *time <= high);
        let pattern = if *step < 12 { "%Y-%m" } else { "%Y" };
        Some(inside.map(|time| (time, self.text(time, pattern))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(origin: &str, zone: Option<&str>, format: Option<&str>) -> Clock {
        let own = |text: Option<&str>| text.map(str::to_owned);
        let dates = Dates { origin: origin.into(), zone: own(zone), format: own(format), ..Dates::default() };
        Clock::new(Some(&dates))
    }

    #[test]
    fn times_are_shown_as_they_were_given() {
        assert_eq!(Clock::default().text(0.1), "0.1");
        let summer = clock("2024-06-01T10:00:00", Some("+02:00"), Some("%d.%m.%Y %H:%M"));
        assert_eq!(summer.text(60.0), "01.06.2024 12:01");
        assert_eq!(clock("2024-06-01T10:00:00", Some("+02:00"), None).text(0.0), "2024-06-01T12:00:00+02:00");
        assert_eq!(
            clock("2024-06-01T10:00:00", Some("Europe/Vienna"), None).text(0.0),
            "2024-06-01T10:00:00Z"
        );
        let fine = clock("2024-06-01T10:00:00", None, Some("%Y-%m-%dT%H:%M:%S.%3f"));
        assert_eq!(fine.text(0.1 + 0.2), "2024-06-01T10:00:00.300");
        assert_eq!(fine.text(59.9999), "2024-06-01T10:01:00.000");
    }

    #[test]
    fn rows_after_the_end_follow_the_calendar() {
        let dates = Dates {
            origin: "2023-11-30T00:00:00".into(),
            frequency: Some("ME".into()),
            months: Some(1),
            format: Some("%Y-%m-%d".into()),
            ..Dates::default()
        };
        let clock = Clock::new(Some(&dates));
        let text = |rows: f64| clock.text(clock.after(&[0.0, 86_400.0 * 31.0], rows));
        assert_eq!([text(0.0), text(1.0), text(3.0)], ["2023-11-30", "2023-12-31", "2024-02-29"]);
        assert_eq!(Clock::default().after(&[1.0, 1.5, 2.0], 3.0), 2.5);
    }

    #[test]
    fn ticks_fall_on_round_dates() {
        let clock = clock("2024-02-28T22:10:00", None, None);
        let texts = |seconds: f64| -> Vec<String> {
            clock.ticks(0.0, seconds, 6).unwrap().into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(
            texts(60.0),
            ["22:10:00", "22:10:10", "22:10:20", "22:10:30", "22:10:40", "22:10:50", "22:11:00"]
        );
        assert_eq!(texts(4.0 * 3600.0), ["23:00", "02-29", "01:00", "02:00"]);
        assert_eq!(texts(3.0 * 86_400.0), ["02-29", "12:00", "03-01", "12:00", "03-02", "12:00"]);
        assert_eq!(texts(150.0 * 86_400.0), ["2024-03", "2024-04", "2024-05", "2024-06", "2024-07"]);
        assert_eq!(texts(1e9), ["2030", "2040", "2050"]);
        assert_eq!(clock.span(0.0, 86_400.0).as_deref(), Some("2024-02-28 to 2024-02-29"));
    }
}
