//! Time stamps as they are written: ISO 8601, dates with points, slashes or names of months, and clocks alone.

use super::calendar::{civil_from_days, days_from_civil, month_length};

/// A time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Seconds since 1970-01-01; UTC where an offset is given.
    pub(super) seconds: i64,
    /// Beyond whole seconds.
    pub(super) nanoseconds: u32,
    /// How it is written.
    pub(super) form: Form,
}

/// How a time stamp is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) date: DateForm,
    pub(super) clock: Option<ClockForm>,
    pub(super) zone: Zone,
}

/// Order and marks of year, month and day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DateForm {
    /// `2024-01-31`, with this mark.
    Ymd(u8),
    /// `20240131`.
    Compact,
    /// `2024-01`.
    Ym,
    /// `31.01.2024`, with this mark.
    Dmy(u8),
    /// `01/31/2024`, with this mark.
    Mdy(u8),
    /// `31-Jan-2024`.
    Named,
    /// No date.
    None,
}

/// Parts of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockForm {
    /// `T` or a blank before it.
    pub(super) mark: u8,
    pub(super) seconds: bool,
    /// Digits after the point.
    pub(super) digits: u8,
    /// AM and PM.
    pub(super) halves: bool,
}

/// The time zone of a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zone {
    /// Not given.
    None,
    /// `Z`.
    Utc,
    /// ` UTC`.
    UtcWord,
    /// Minutes east of Greenwich.
    Offset(i64),
}

impl Zone {
    /// Seconds east of Greenwich.
    pub(super) fn shift(self) -> i64 {
        if let Self::Offset(minutes) = self { 60 * minutes } else { 0 }
    }
}

/// What comes first in dates such as 03/04/2024.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Day,
    Month,
}

/// Whether the order of day and month in this text follows from its marks.
pub(super) fn is_ambiguous(text: &str) -> bool {
    matches!(parse(text, Order::Day).or_else(|| parse(text, Order::Month)), Some(stamp)
        if matches!(stamp.form.date, DateForm::Dmy(b'/' | b'-') | DateForm::Mdy(_)))
}

/// Reads a time stamp; years have four digits.
pub(super) fn parse(text: &str, order: Order) -> Option<Stamp> {
    let text = text.trim();
    // All forms are ASCII, so that bytes can be cut.
    if !text.is_ascii() || text.len() < 4 || text.len() > 40 {
        return None;
    }
    let bytes = text.as_bytes();
    // The t of Oct ends no date.
    let is_end = |at: &usize| {
        bytes[*at] == b' '
            || bytes[*at].eq_ignore_ascii_case(&b't') && *at > 0 && bytes[at - 1].is_ascii_digit()
    };
    let (date, clock) = match (0..bytes.len()).find(is_end) {
        Some(at) if !text[..at].contains(':') => (&text[..at], Some((bytes[at], &text[at + 1..]))),
        _ if text.contains(':') => ("", Some((b' ', text))),
        _ => (text, None),
    };
    let (days, date) = if date.is_empty() { (0, DateForm::None) } else { read_date(date, order)? };
    if date == DateForm::Ym && clock.is_some() {
        return None;
    }
    let Some((mark, clock)) = clock else {
        let form = Form { date, clock: None, zone: Zone::None };
        return Some(Stamp { seconds: 86_400 * days, nanoseconds: 0, form });
    };
    let (clock, zone) = split_zone(clock)?;
    let (seconds, nanoseconds, mut clock) = read_clock(clock.trim(), date == DateForm::None)?;
    clock.mark = mark.to_ascii_uppercase();
    let form = Form { date, clock: Some(clock), zone };
    Some(Stamp { seconds: 86_400 * days + seconds - zone.shift(), nanoseconds, form })
}

fn read_date(text: &str, order: Order) -> Option<(i64, DateForm)> {
    if text.len() == 8 && text.bytes().all(|b| b.is_ascii_digit()) {
        let days = day(&text[..4], &text[4..6], &text[6..])?;
        return Some((days, DateForm::Compact));
    }
    let mark = *text.as_bytes().iter().find(|byte| !byte.is_ascii_digit())?;
    if ![b'-', b'/', b'.'].contains(&mark) {
        return None;
    }
    let mut parts = text.split(mark as char);
    let (a, b, c) = (parts.next()?, parts.next()?, parts.next());
    if parts.next().is_some() {
        return None;
    }
    if let (Some(month), Some(c)) = (month_of(b), c) {
        return (mark == b'-').then_some((day(c, &month.to_string(), a)?, DateForm::Named));
    }
    match (a.len(), c) {
        (4, None) if mark == b'-' && b.len() == 2 => Some((day(a, b, "01")?, DateForm::Ym)),
        // ISO has two digits each.
        (4, Some(c)) if mark != b'-' || (b.len(), c.len()) == (2, 2) => {
            Some((day(a, b, c)?, DateForm::Ymd(mark)))
        }
        (1 | 2, Some(c)) if c.len() == 4 => match order {
            Order::Month if mark != b'.' => Some((day(c, a, b)?, DateForm::Mdy(mark))),
            _ => Some((day(c, b, a)?, DateForm::Dmy(mark))),
        },
        _ => None,
    }
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The number of a month by the first letters of its English name.
fn month_of(name: &str) -> Option<usize> {
    MONTHS.iter().position(|month| month.eq_ignore_ascii_case(name)).map(|at| at + 1)
}

fn day(year: &str, month: &str, day: &str) -> Option<i64> {
    let (year, month, day) = (digits(year, 4, 4)?, digits(month, 1, 2)?, digits(day, 1, 2)?);
    let real = (1..=12).contains(&month) && (1..=month_length(year, month)).contains(&day);
    real.then(|| days_from_civil(year, month, day))
}

fn split_zone(clock: &str) -> Option<(&str, Zone)> {
    let clock = clock.trim();
    if let Some(at) = clock.len().checked_sub(4)
        && clock[at..].eq_ignore_ascii_case(" utc")
    {
        return Some((&clock[..at], Zone::UtcWord));
    }
    // The name of a zone beside its offset says nothing new.
    let clock = match clock.split_once('[') {
        Some((clock, name)) if name.ends_with(']') && clock.contains(['Z', '+', '-']) => clock,
        _ => clock,
    };
    let Some(at) = clock.find(['Z', 'z', '+', '-']) else { return Some((clock, Zone::None)) };
    let (clock, zone) = clock.split_at(at);
    if zone.eq_ignore_ascii_case("z") {
        return Some((clock, Zone::Utc));
    }
    let (hours, minutes) = match zone[1..].split_once(':') {
        Some(parts) => parts,
        None if zone.len() == 5 => zone[1..].split_at(2),
        None => (&zone[1..], "00"),
    };
    let minutes = 60 * digits(hours, 2, 2)? + digits(minutes, 2, 2)?;
    let minutes = if zone.starts_with('-') { -minutes } else { minutes };
    Some((clock, Zone::Offset(minutes)))
}

/// Seconds since midnight; a clock alone may have one digit for the hour, and count beyond a day.
fn read_clock(text: &str, alone: bool) -> Option<(i64, u32, ClockForm)> {
    let bytes = text.as_bytes();
    let half = bytes.len().checked_sub(2).map(|at| &bytes[at..]);
    let half = half.filter(|half| half.eq_ignore_ascii_case(b"am") || half.eq_ignore_ascii_case(b"pm"));
    let text = if half.is_some() { text[..text.len() - 2].trim_end() } else { text };
    let mut parts = text.split(':');
    let hour = digits(parts.next()?, 1, 2)?;
    let minute = digits(parts.next()?, 2, 2)?;
    let (mut second, mut nanoseconds, mut n_digits) = (0, 0, 0);
    let seconds = parts.next();
    if let Some(seconds) = seconds {
        let (whole, fraction) = seconds.split_once(['.', ',']).unwrap_or((seconds, "0"));
        second = digits(whole, 2, 2)?;
        digits(fraction, 1, 9)?;
        n_digits = if whole.len() == seconds.len() { 0 } else { fraction.len() as u8 };
        nanoseconds = format!("{fraction:0<9}").parse().ok()?;
    }
    let (hour, most) = match half {
        None => (hour, if alone { 99 } else { 23 }),
        Some(half) if (1..=12).contains(&hour) => {
            (hour % 12 + if half.eq_ignore_ascii_case(b"pm") { 12 } else { 0 }, 23)
        }
        Some(_) => return None,
    };
    if parts.next().is_some() || hour > most || minute > 59 || second > 60 {
        return None;
    }
    let form = ClockForm { mark: b' ', seconds: seconds.is_some(), digits: n_digits, halves: half.is_some() };
    Some((3600 * hour + 60 * minute + second, nanoseconds, form))
}

fn digits(text: &str, least: usize, most: usize) -> Option<i64> {
    let right = (least..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    right.then(|| text.parse().ok())?
}

impl Form {
    /// Both in one: a column that shows fractions or clocks in some rows only.
    pub(super) fn beside(self, other: Self) -> Self {
        let clock = match (self.clock, other.clock) {
            (Some(a), Some(b)) => {
                Some(ClockForm { seconds: a.seconds || b.seconds, digits: a.digits.max(b.digits), ..a })
            }
            (a, b) => a.or(b),
        };
        Self { clock, ..self }
    }

    /// As a format in the words of `strftime`; `%3f` are three digits of the second.
    pub(super) fn pattern(&self) -> String {
        let mut text = match self.date {
            DateForm::Ymd(mark) => format!("%Y{0}%m{0}%d", mark as char),
            DateForm::Compact => "%Y%m%d".to_owned(),
            DateForm::Ym => "%Y-%m".to_owned(),
            DateForm::Dmy(mark) => format!("%d{0}%m{0}%Y", mark as char),
            DateForm::Mdy(mark) => format!("%m{0}%d{0}%Y", mark as char),
            DateForm::Named => "%d-%b-%Y".to_owned(),
            DateForm::None => String::new(),
        };
        let Some(clock) = self.clock else { return text };
        if !text.is_empty() {
            text.push(clock.mark as char);
        }
        text += if clock.halves { "%I:%M" } else { "%H:%M" };
        text += if clock.seconds { ":%S" } else { "" };
        if clock.digits > 0 {
            text += &format!(".%{}f", clock.digits);
        }
        text += if clock.halves { " %p" } else { "" };
        text += match self.zone {
            Zone::None => "",
            Zone::Utc => "Z",
            Zone::UtcWord => " UTC",
            Zone::Offset(_) => "%:z",
        };
        text
    }
}

/// Seconds since 1970-01-01 in a zone so many seconds east of Greenwich, in this format.
pub(super) fn render(pattern: &str, seconds: i64, nanoseconds: u32, shift: i64) -> String {
    let local = seconds + shift;
    let (days, clock) = (local.div_euclid(86_400), local.rem_euclid(86_400));
    let (year, month, day) = civil_from_days(days);
    let hour = clock / 3600;
    let mut text = String::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        match rest.next() {
            Some('Y') => text += &format!("{year:04}"),
            Some('b') => text += MONTHS[month as usize - 1],
            Some('m') => text += &format!("{month:02}"),
            Some('d') => text += &format!("{day:02}"),
            Some('H') => text += &format!("{hour:02}"),
            Some('I') => text += &format!("{:02}", (hour + 11) % 12 + 1),
            Some('M') => text += &format!("{:02}", clock / 60 % 60),
            Some('S') => text += &format!("{:02}", clock % 60),
            Some('p') => text += if hour < 12 { "AM" } else { "PM" },
            Some(':') => {
                rest.next();
                let sign = if shift < 0 { '-' } else { '+' };
                let minutes = shift.abs() / 60;
                text += &format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60);
            }
            Some(digit @ '1'..='9') => {
                rest.next();
                let n = digit as usize - '0' as usize;
                text += &format!("{nanoseconds:09}")[..n];
            }
            other => text.extend(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Option<f64> {
        parse(text, Order::Day).map(|stamp| stamp.seconds as f64 + 1e-9 * f64::from(stamp.nanoseconds))
    }

    #[test]
    fn known_stamps() {
        for (text, expected) in [
            ("1970-01-01", 0.0),
            ("2000-03-01", 11_017.0 * 86_400.0),
            ("1958-03-29", -4_296.0 * 86_400.0),
            ("1970-02", 31.0 * 86_400.0),
            ("19700102", 86_400.0),
            ("1970-01-01T12:00", 43_200.0),
            ("1970-01-01 06:00:00.500", 21_600.5),
            ("1970-01-01T00:00:00+02:00", -7_200.0),
            ("1970-01-01T00:00:00-0200", 7_200.0),
            ("1970-01-02T00:00:00Z", 86_400.0),
            ("2.1.1970 1:00", 90_000.0),
            ("1/2/1970 12:30 AM", 2_680_200.0),
            ("1970/01/01 01:00:00 PM", 46_800.0),
            ("0:10", 600.0),
            ("25:00:01", 90_001.0),
            ("01-Oct-1970", 23_587_200.0),
            ("2-JAN-1970 01:00", 90_000.0),
            ("1970-01-02 00:00:00 UTC", 86_400.0),
            ("1970-01-01T02:00:00+02:00[Europe/Berlin]", 0.0),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        assert_eq!(parse("1/2/1970", Order::Month).map(|stamp| stamp.seconds), Some(86_400));
        assert!(is_ambiguous("1/2/1970") && !is_ambiguous("1.2.1970") && !is_ambiguous("1970-01-02"));
    }

    #[test]
    fn what_is_no_stamp() {
        for text in [
            "",
            "1970",
            "1970-13-01",
            "1971-02-29",
            "1970-1-1",
            "13/13/1970",
            "1970-01-01T",
            "1970-01-01T25:00",
            "1970-01-01Tx",
            "1970-01-01T00:00:00.",
            "1970-01-01T00:00+",
            "1970-01T00:00",
            "1970-01-01-01",
            "süß-ig-es",
            "31.12.70",
            "19701301",
            "13:00 PM",
            "1:2:3:4",
            "01-Foo-2024",
            "01/Jan/2024",
            "1970-01-01 00:00 CET",
            "1970-01-01T00:00[Europe/Berlin]",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn stamps_are_written_as_they_were_read() {
        for text in [
            "2024-03-05",
            "2024-03",
            "20240305",
            "2024-03-05T08:30",
            "2024-03-05 08:30:15",
            "2024-03-05T08:30:15.250Z",
            "2024-03-05T08:30:15+05:30",
            "2024-03-05T08:30:15-03:00",
            "05.03.2024 08:30",
            "05/03/2024",
            "05-Oct-2024 08:30:00",
            "2024-03-05 08:30:15 UTC",
            "05/03/2024 01:30 PM",
            "05/03/2024 12:00 AM",
            "08:30:15.5",
            "1901-12-31T23:59:59",
        ] {
            let stamp = parse(text, Order::Day).unwrap();
            let (pattern, shift) = (stamp.form.pattern(), stamp.form.zone.shift());
            assert_eq!(render(&pattern, stamp.seconds, stamp.nanoseconds, shift), text, "{pattern}");
        }
    }
}
