//! Names and text from files as they may stand in messages.

/// A list of names that stays readable however many there are.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const MOST: usize = 12;
    let names: Vec<&str> = names.into_iter().collect();
    let shown = names.iter().take(MOST).map(|name| one_line(name)).collect::<Vec<_>>().join(", ");
    match names.len() {
        n if n > MOST => format!("{shown}, ... ({n} in all)"),
        _ => shown,
    }
}

/// Text from a file as it may stand in a message: one line, not too long.
pub(crate) fn one_line(text: &str) -> String {
    const MOST: usize = 60;
    let mut shown: String = text.chars().take(MOST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().count() > MOST {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_files_stays_on_one_line() {
        assert_eq!(one_line("a\nb\u{1b}[31m"), "a b [31m");
        assert_eq!(one_line(&"x".repeat(100)).len(), 63);
    }
}
