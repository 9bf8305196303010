//! Numbers in a field.

use super::error::DataProblem;

/// The number in a field, none for a blank one, NA or NaN.
pub(super) fn number(field: &[u8]) -> Result<Option<f64>, DataProblem> {
    let text = std::str::from_utf8(field).map_err(|_| DataProblem::Encoding)?;
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Some(value)),
        _ => unusual(text.trim_ascii()),
    }
}

/// Whether a text is a number.
pub(super) fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

#[cold]
fn unusual(text: &str) -> Result<Option<f64>, DataProblem> {
    if text.is_empty() || ["na", "nan"].iter().any(|name| text.eq_ignore_ascii_case(name)) {
        return Ok(None);
    }
    let own = || text.to_owned();
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Some(value)),
        // A sign before NaN.
        Ok(value) if value.is_nan() => Ok(None),
        Ok(_) => Err(DataProblem::NotFinite { text: own() }),
        Err(_) if text.matches(',').count() == 1 && text.replace(',', ".").parse::<f64>().is_ok() => {
            Err(DataProblem::DecimalComma { text: own() })
        }
        Err(_) if text.contains('\0') => Err(DataProblem::NotText("a binary file")),
        Err(_) => Err(DataProblem::NotANumber { text: own() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_blanks_and_the_rest() {
        assert_eq!(number(b"-1.5e-3"), Ok(Some(-1.5e-3)));
        assert_eq!(number(b"  7 "), Ok(Some(7.0)));
        for missing in ["", "  ", "NA", "na", "NaN", "-nan"] {
            assert_eq!(number(missing.as_bytes()), Ok(None), "{missing}");
        }
        assert!(matches!(number(b"1,5"), Err(DataProblem::DecimalComma { .. })));
        assert!(matches!(number(b"1,234,5"), Err(DataProblem::NotANumber { .. })));
        assert!(matches!(number(b"inf"), Err(DataProblem::NotFinite { .. })));
        assert!(matches!(number(b"1e999"), Err(DataProblem::NotFinite { .. })));
        assert!(matches!(number(b"abc"), Err(DataProblem::NotANumber { .. })));
        assert!(matches!(number(b"\xe9"), Err(DataProblem::Encoding)));
    }
}
