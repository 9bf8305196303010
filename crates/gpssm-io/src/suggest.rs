//! "Did you mean ...?"

/// The candidate that is most like what was written, if one is like it at all.
pub(crate) fn closest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A bound on the work for hostile names: nobody mistypes a key of this length.
    if written.len() > 100 {
        return None;
    }
    let lower = written.to_lowercase();
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= 100)
        .map(|candidate| (likeness(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// From 0 to 1; one slip in three letters counts as like.
fn likeness(a: &str, b: &str) -> f64 {
    let length = a.chars().count().max(b.chars().count());
    let slip = 3 * strsim::osa_distance(a, b) <= length;
    strsim::jaro_winkler(a, b).max(if slip { 0.8 } else { 0.0 })
}

/// `; did you mean 'kernel'?`, or nothing.
pub(crate) fn did_you_mean<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    closest(written, candidates).map_or(String::new(), |name| format!("; did you mean '{name}'?"))
}

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
    fn names_that_are_alike_are_suggested_and_others_are_not() {
        assert_eq!(closest("kernal", ["kernel", "mean"]), Some("kernel"));
        assert_eq!(closest("Y", ["u", "y"]), Some("y"));
        assert_eq!(closest("sse", ["rq", "se"]), Some("se"));
        assert_eq!(closest("y", ["u", "t"]), None);
        assert_eq!(closest("zebra", ["kernel", "mean"]), None);
        assert_eq!(did_you_mean("drws", ["draws", "seed"]), "; did you mean 'draws'?");
    }

    #[test]
    fn text_from_files_stays_on_one_line() {
        assert_eq!(one_line("a\nb\u{1b}[31m"), "a b [31m");
        assert_eq!(one_line(&"x".repeat(100)).len(), 63);
    }
}
