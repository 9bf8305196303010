//! The column of times: numbers or time stamps of one kind, as seconds since the first of them.

use super::dates::Dates;
use super::encoding::decode;
use super::error::DataProblem;
use super::stamp::{self, DateForm, Form, Order, Stamp, Zone, render};
use super::style::Style;

/// What the times of a record count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeUnit {
    /// Rows, from 0: nothing is known about time.
    Rows,
    /// The unit of the time column or of dt, whatever it is.
    Given,
    /// Seconds since a date.
    Seconds,
}

/// Reads the fields of the column one by one.
#[derive(Clone, Debug)]
pub(super) struct TimeReader {
    order: Order,
    style: Style,
    kind: Option<Kind>,
    /// Line of the first stamp with another offset.
    pub(super) other_zone: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Number,
    /// Seconds since 1970 of the first stamp, and how stamps are written.
    Stamps(i64, Form),
}

impl TimeReader {
    pub(super) fn new(order: Order, style: Style) -> Self {
        Self { order, style, kind: None, other_zone: None }
    }

    /// One time.
    pub(super) fn read(&mut self, field: &[u8], line: u64) -> Result<f64, DataProblem> {
        let text = decode(field);
        let text = text.trim();
        if text.is_empty() || ["na", "nan", "#n/a"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
            return Err(DataProblem::MissingTime);
        }
        let own = || text.to_owned();
        // Eight digits that are a day count as one, unless numbers came before.
        let stamp = match self.kind {
            Some(Kind::Number) => None,
            _ => stamp::parse(text, self.order).filter(is_likely),
        };
        if let Some(stamp) = stamp {
            return self.stamp(&stamp, line, text);
        }
        let plain = self.style.plain_text(text);
        match plain.as_deref().unwrap_or(text).parse::<f64>() {
            Ok(time) if time.is_nan() => Err(DataProblem::MissingTime),
            Ok(time) if time.is_infinite() => Err(DataProblem::NotFinite { text: own() }),
            Ok(_) if matches!(self.kind, Some(Kind::Stamps(..))) => {
                Err(DataProblem::MixedTimes { text: own(), found: "number", before: "date" })
            }
            Ok(time) => {
                self.kind = Some(Kind::Number);
                Ok(time)
            }
            Err(_) if self.kind == Some(Kind::Number) && stamp::parse(text, self.order).is_some() => {
                Err(DataProblem::MixedTimes { text: own(), found: "date", before: "number" })
            }
            Err(_) if self.style.is_plain() && Style::has_marks(text) && !text.contains(['-', ' ']) => {
                Err(DataProblem::Marks { text: own() })
            }
            Err(_) => Err(DataProblem::BadTime { text: own() }),
        }
    }

    fn stamp(&mut self, stamp: &Stamp, line: u64, text: &str) -> Result<f64, DataProblem> {
        let Some(Kind::Stamps(origin, form)) = &mut self.kind else {
            self.kind = Some(Kind::Stamps(stamp.seconds, stamp.form));
            return Ok(1e-9 * f64::from(stamp.nanoseconds));
        };
        if (form.zone == Zone::None) != (stamp.form.zone == Zone::None) && stamp.form.clock.is_some() {
            return Err(DataProblem::MixedZones { text: text.to_owned() });
        }
        if form.zone.shift() != stamp.form.zone.shift() {
            self.other_zone.get_or_insert(line);
        }
        *form = form.beside(stamp.form);
        Ok((stamp.seconds - *origin) as f64 + 1e-9 * f64::from(stamp.nanoseconds))
    }

    /// What the times count.
    pub(super) fn unit(&self) -> TimeUnit {
        if matches!(self.kind, Some(Kind::Stamps(..))) { TimeUnit::Seconds } else { TimeUnit::Given }
    }

    /// Dates behind the times.
    pub(super) fn dates(&self) -> Option<Dates> {
        let Some(Kind::Stamps(origin, form)) = self.kind else { return None };
        Some(Dates {
            origin: render("%Y-%m-%dT%H:%M:%S", origin, 0, 0),
            zone: match form.zone {
                Zone::None => None,
                Zone::Utc | Zone::UtcWord => Some("UTC".to_owned()),
                Zone::Offset(minutes) => {
                    let sign = if minutes < 0 { '-' } else { '+' };
                    Some(format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60))
                }
            },
            format: Some(form.pattern()),
            ..Dates::default()
        })
    }

    /// A number of local seconds since 1970 that belongs to a time.
    pub(super) fn local(&self, time: f64) -> Option<f64> {
        let Some(Kind::Stamps(origin, form)) = self.kind else { return None };
        Some(time + (origin + form.zone.shift()) as f64)
    }

    /// Whether stamps show a clock and no zone, so that daylight saving may be in them.
    pub(super) fn is_wall_clock(&self) -> bool {
        matches!(self.kind, Some(Kind::Stamps(_, form))
            if form.zone == Zone::None && form.clock.is_some() && form.date != DateForm::None)
    }
}

/// Numbers of eight digits are days only between 1900 and 2100.
fn is_likely(stamp: &Stamp) -> bool {
    const FROM: i64 = -2_208_988_800;
    const TO: i64 = 4_133_980_800;
    stamp.form.date != DateForm::Compact || stamp.form.clock.is_some() || (FROM..TO).contains(&stamp.seconds)
}

/// Whether clocks are changed about this local time: early on a Sunday in spring or autumn.
pub(super) fn clocks_change(local: f64) -> bool {
    use super::calendar::{civil_from_days, weekday};
    let days = (local / 86_400.0).floor() as i64;
    let hour = (local - 86_400.0 * days as f64) / 3600.0;
    weekday(days) == 0 && hour <= 4.0 && [3, 4, 9, 10, 11].contains(&civil_from_days(days).1)
}
