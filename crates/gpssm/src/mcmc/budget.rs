//! How long a run may take.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// Time limit of the sampling of a run. A run whose time is up keeps its draws and can be resumed.
///
/// As text: `90s`, `10m`, `1h30m`, `none`, or `auto`; a number counts seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Budget {
    /// [`Budget::DEFAULT`] for a run that goes on until it is good, none for a fixed number of draws.
    #[default]
    Auto,
    /// No limit.
    None,
    /// At most so long.
    Time(Duration),
}

impl Budget {
    /// Limit of a run that goes on until it is good.
    pub const DEFAULT: Duration = Duration::from_secs(600);
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no time; write 90s, 10m, 1h30m or none");
        match text.trim() {
            "auto" => return Ok(Self::Auto),
            "none" => return Ok(Self::None),
            _ => {}
        }
        let mut rest = text.trim();
        let mut seconds = 0.0;
        let mut smallest = f64::INFINITY;
        while !rest.is_empty() {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let number: f64 = rest[..end].parse().map_err(|_| wrong())?;
            let letters = rest[end..].find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len() - end);
            let unit = match &rest[end..end + letters] {
                "" | "s" => 1.0,
                "m" | "min" => 60.0,
                "h" => 3_600.0,
                "d" => 86_400.0,
                _ => return Err(wrong()),
            };
            // From long units to short ones, each once.
            if unit >= smallest {
                return Err(wrong());
            }
            smallest = unit;
            seconds += number * unit;
            rest = &rest[end + letters..];
        }
        Self::from_seconds(seconds).ok_or_else(wrong)
    }
}

impl Budget {
    fn from_seconds(seconds: f64) -> Option<Self> {
        let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
        // Longer than any machine lives is no limit, and sums of such times overflow.
        time.filter(|time| time.as_secs() < 1 << 40).map(Self::Time)
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => formatter.write_str("auto"),
            Self::None => formatter.write_str("none"),
            Self::Time(time) => {
                let seconds = time.as_secs();
                match (seconds / 3_600, seconds % 3_600 / 60, time.as_secs_f64() % 60.0) {
                    (0, 0, s) => write!(formatter, "{s}s"),
                    (0, m, 0.0) => write!(formatter, "{m}m"),
                    (h, 0, 0.0) => write!(formatter, "{h}h"),
                    (h, m, 0.0) => write!(formatter, "{h}h{m}m"),
                    _ => write!(formatter, "{}s", time.as_secs_f64()),
                }
            }
        }
    }
}

impl Serialize for Budget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Budget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = Budget;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("a time such as \"10m\", or seconds")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Budget, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_f64<E: de::Error>(self, seconds: f64) -> Result<Budget, E> {
                let wrong = || E::invalid_value(de::Unexpected::Float(seconds), &self);
                Budget::from_seconds(seconds).ok_or_else(wrong)
            }

            fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Budget, E> {
                let wrong = || E::invalid_value(de::Unexpected::Signed(seconds), &self);
                Budget::from_seconds(seconds as f64).ok_or_else(wrong)
            }

            fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Budget, E> {
                self.visit_f64(seconds as f64)
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        for (text, seconds, written) in [
            ("90s", 90.0, "90s"),
            ("90", 90.0, "90s"),
            ("10m", 600.0, "10m"),
            ("1h30m", 5400.0, "1h30m"),
            ("1.5h", 5400.0, "1h30m"),
            ("2h", 7200.0, "2h"),
            ("0.5s", 0.5, "0.5s"),
            ("1d", 86_400.0, "24h"),
        ] {
            let budget: Budget = text.parse().unwrap();
            assert_eq!(budget, Budget::Time(Duration::from_secs_f64(seconds)), "{text}");
            assert_eq!(budget.to_string(), written);
            assert_eq!(written.parse(), Ok(budget));
        }
        assert_eq!("none".parse(), Ok(Budget::None));
        for wrong in ["", "m", "0s", "-3m", "10 m", "10x", "1m1h", "1m1m", "nan", "1e3s", "9999999999999d"] {
            assert!(wrong.parse::<Budget>().is_err(), "{wrong}");
        }
    }
}
