//! Text that may not be UTF-8: spreadsheets write Windows-1252 where nothing else is asked for.

use std::borrow::Cow;

/// What Windows-1252 has between 0x80 and 0x9f; everything else is as in Latin-1.
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}',
    '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// The text of a field: UTF-8, or else Windows-1252.
pub(super) fn decode(field: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(field) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(field.iter().map(|byte| windows(*byte)).collect()),
    }
}

fn windows(byte: u8) -> char {
    match byte {
        0x80..=0x9f => WINDOWS[usize::from(byte - 0x80)],
        other => char::from(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_utf8_is_windows_1252() {
        assert_eq!(decode("T [°C]".as_bytes()), "T [°C]");
        assert_eq!(decode(b"T [\xb0C] \x80 \xb5V"), "T [°C] € µV");
    }
}
