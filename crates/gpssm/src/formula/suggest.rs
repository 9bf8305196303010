//! The known name that an unknown one was probably meant to be.

/// Names longer than this are not compared: nobody mistypes them.
const LONGEST: usize = 100;

/// The candidate that is most like what was written, if one is like it at all.
fn closest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if written.len() > LONGEST {
        return None;
    }
    let lower = written.to_lowercase();
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| (slips_and_likeness(&lower, &candidate.to_lowercase()), candidate))
        .filter(|((_, likeness), _)| *likeness >= 0.8)
        .min_by(|((a, alike), _), ((b, other), _)| a.cmp(b).then(other.total_cmp(alike)))
        .map(|(_, candidate)| candidate)
}

/// How many slips apart, where swapping two neighbours is one, and how much alike, from 0 to 1; one slip in three letters
/// counts as alike.
fn slips_and_likeness(a: &str, b: &str) -> (usize, f64) {
    let length = a.chars().count().max(b.chars().count());
    let slips = strsim::osa_distance(a, b);
    (slips, strsim::jaro_winkler(a, b).max(if 3 * slips <= length { 0.8 } else { 0.0 }))
}

/// `; did you mean 'cos'?` for the end of a message, or nothing if no candidate is like what was written.
///
/// ```
/// use gpssm::formula::did_you_mean;
///
/// assert_eq!(did_you_mean("drws", ["draws", "seed"]), "; did you mean 'draws'?");
/// assert_eq!(did_you_mean("zebra", ["draws", "seed"]), "");
/// ```
pub fn did_you_mean<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    closest(written, candidates).map_or_else(String::new, |meant| format!("; did you mean '{meant}'?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_alike_are_suggested_and_others_are_not() {
        let names = ["cos", "cosh", "sqrt", "x", "u", "rate", "kernel", "mean", "rq", "se"];
        for (name, meant) in [
            ("cso", Some("cos")),
            ("COS", Some("cos")),
            ("sqr", Some("sqrt")),
            ("X", Some("x")),
            ("z", None),
            ("raet", Some("rate")),
            ("velocity", None),
            ("kernal", Some("kernel")),
            ("sse", Some("se")),
            ("zebra", None),
        ] {
            assert_eq!(closest(name, names), meant, "{name}");
        }
    }
}
