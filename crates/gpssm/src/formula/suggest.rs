//! The known name that an unknown one was probably meant to be.

/// The candidate closest to `name`, if one is close: at most one edit in three characters, where swapping two
/// neighbours is one edit. A difference in case alone always counts as close.
pub(crate) fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let distance = |candidate: &str| strsim::osa_distance(&lower, &candidate.to_lowercase());
    let allowed = name.chars().count().div_ceil(3);
    candidates
        .into_iter()
        .map(|candidate| (distance(candidate), candidate))
        // One edit makes any one-letter name of any other: that is no hint.
        .filter(|(edits, candidate)| {
            *edits == 0 || (*edits <= allowed && *edits < name.chars().count().min(candidate.chars().count()))
        })
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// `; did you mean 'cos'?`, or nothing.
pub(crate) fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    closest(name, candidates).map_or_else(String::new, |meant| format!("; did you mean '{meant}'?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_names_are_suggested_and_distant_ones_are_not() {
        let names = ["cos", "cosh", "sqrt", "x", "u", "rate"];
        for (name, meant) in
            [("cso", Some("cos")), ("COS", Some("cos")), ("sqr", Some("sqrt")), ("X", Some("x")), ("z", None)]
        {
            assert_eq!(closest(name, names), meant, "{name}");
        }
        assert_eq!(closest("velocity", names), None);
        assert_eq!(closest("raet", names), Some("rate"));
    }
}
