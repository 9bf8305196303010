//! Numbers in a field.

use super::encoding::decode;
use super::error::DataProblem;
use super::style::Style;
use super::tally::Tally;

/// Words that stand for a missing value.
const MISSING: [&str; 19] = [
    "#n/a", "#n/a n/a", "n/a", "null", "none", "missing", "-", "--", "---", "?", "#div/0!", "#value!",
    "#num!", "#ref!", "#name?", "#null!", "n.a.", "nil", ".",
];

/// The number in a field, none for a blank one, NA or NaN. What is read in an unusual way goes to the tally.
pub(super) fn number(field: &[u8], style: Style, tally: &mut Tally) -> Result<Option<f64>, DataProblem> {
    if style.is_plain()
        && let Ok(text) = std::str::from_utf8(field)
        && let Ok(value) = text.parse::<f64>()
        && value.is_finite()
    {
        return Ok(Some(value));
    }
    unusual(decode(field).trim(), style, tally)
}

/// Whether a text is a number.
pub(super) fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

#[cold]
fn unusual(text: &str, style: Style, tally: &mut Tally) -> Result<Option<f64>, DataProblem> {
    if text.is_empty() || ["na", "nan"].iter().any(|name| text.eq_ignore_ascii_case(name)) {
        return Ok(None);
    }
    if MISSING.iter().any(|name| text.eq_ignore_ascii_case(name)) {
        tally.missing(text);
        return Ok(None);
    }
    let own = || text.to_owned();
    let plain = style.plain_text(text);
    let text = plain.as_deref().unwrap_or(text);
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Some(value)),
        // A sign before NaN.
        Ok(value) if value.is_nan() => Ok(None),
        Ok(_) => Err(DataProblem::NotFinite { text: own() }),
        Err(_) if text.contains('\0') => Err(DataProblem::NotText("a binary file")),
        Err(_) => other(text, style, tally),
    }
}

fn other(text: &str, style: Style, tally: &mut Tally) -> Result<Option<f64>, DataProblem> {
    for (word, value) in [("true", 1.0), ("false", 0.0)] {
        if text.eq_ignore_ascii_case(word) {
            tally.booleans();
            return Ok(Some(value));
        }
    }
    if style.is_plain() && Style::has_marks(text) {
        return Err(DataProblem::Marks { text: text.to_owned() });
    }
    let start = text.find(|c: char| !(c.is_ascii_digit() || ".+-".contains(c))).unwrap_or(0);
    let has_unit = start > 0 && is_number(&text[..start]);
    Err(DataProblem::NotANumber { text: text.to_owned(), has_unit })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(field: &[u8], style: Style) -> Result<Option<f64>, DataProblem> {
        number(field, style, &mut Tally::default())
    }

    #[test]
    fn numbers_blanks_and_the_rest() {
        let plain = |field: &[u8]| read(field, Style::PLAIN);
        assert_eq!(plain(b"-1.5e-3"), Ok(Some(-1.5e-3)));
        assert_eq!(plain(b"  7 "), Ok(Some(7.0)));
        assert_eq!(plain("\u{a0}7".as_bytes()), Ok(Some(7.0)));
        assert_eq!(plain(b"TRUE"), Ok(Some(1.0)));
        for missing in ["", "  ", "NA", "na", "NaN", "-nan", "#N/A", "null", "-"] {
            assert_eq!(plain(missing.as_bytes()), Ok(None), "{missing}");
        }
        for marked in ["1,5", "1,234,5", "1'000", "1 000", "\u{2212}2", "1.5D+02"] {
            assert!(matches!(plain(marked.as_bytes()), Err(DataProblem::Marks { .. })), "{marked}");
        }
        assert!(matches!(plain(b"inf"), Err(DataProblem::NotFinite { .. })));
        assert!(matches!(plain(b"1e999"), Err(DataProblem::NotFinite { .. })));
        assert!(matches!(plain(b"abc"), Err(DataProblem::NotANumber { has_unit: false, .. })));
        assert!(matches!(plain(b"12.5 bar"), Err(DataProblem::NotANumber { has_unit: true, .. })));
        assert!(matches!(plain(b"$12.50"), Err(DataProblem::NotANumber { has_unit: false, .. })));
        assert!(matches!(plain(b"\xe9"), Err(DataProblem::NotANumber { has_unit: false, .. })));
    }

    #[test]
    fn words_are_counted() {
        let mut tally = Tally::default();
        for (line, word) in [(3, "#N/A"), (4, "-"), (9, "#N/A")] {
            tally.line = line;
            number(word.as_bytes(), Style::PLAIN, &mut tally).unwrap();
        }
        assert_eq!(tally.notes(), ["'#N/A' (twice, first in line 3) and '-' (line 4) are read as missing"]);
    }
}
