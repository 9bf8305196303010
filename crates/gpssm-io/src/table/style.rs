//! How numbers are written: decimal point or comma, separators of thousands.

/// Marks of the numbers of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style {
    /// Point or comma.
    decimal: char,
    /// Between groups of three digits.
    group: Option<char>,
    /// Whether anything differs from what programs write.
    plain: bool,
}

/// What stands between thousands, other than points and commas: apostrophes and blanks.
const GROUPS: [char; 6] = ['\'', '\u{2019}', ' ', '\u{a0}', '\u{2009}', '\u{202f}'];
/// One apostrophe and one blank for all.
fn kind(mark: char) -> char {
    match GROUPS.iter().position(|group| *group == mark) {
        Some(0 | 1) => '\'',
        Some(_) => ' ',
        None => mark,
    }
}

const MINUS: char = '\u{2212}';

/// What fields say about the marks.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// A comma that can only be decimal, and a field that has it.
    comma: Option<String>,
    /// A point that can only be decimal.
    point: Option<String>,
    /// A separator of thousands, without doubt.
    group: Option<char>,
    /// 1,234: either.
    unsure: Option<String>,
}

impl Style {
    /// A decimal point and nothing else.
    pub(super) const PLAIN: Self = Self { decimal: '.', group: None, plain: true };

    pub(super) fn is_plain(self) -> bool {
        self.plain
    }

    /// Whether a text that is no plain number could be one in another style.
    pub(super) fn has_marks(text: &str) -> bool {
        let digits = text.chars().any(|c| c.is_ascii_digit());
        let allowed =
            |c: char| c.is_ascii_digit() || ".,+-eEdD".contains(c) || GROUPS.contains(&c) || c == MINUS;
        let both_digits = |at: usize, c: char| {
            let next = text[at + c.len_utf8()..].chars().next();
            text[..at].chars().next_back().is_some_and(|c| c.is_ascii_digit())
                && next.is_some_and(|c| c.is_ascii_digit())
        };
        let blanks = text.char_indices().filter(|(_, c)| GROUPS.contains(c));
        digits && text.chars().all(allowed) && blanks.into_iter().all(|(at, c)| both_digits(at, c))
    }

    /// A number of this style as programs write it; none if it is not one.
    pub(super) fn plain_text(self, text: &str) -> Option<String> {
        if self.plain {
            return None;
        }
        // Beside decimal commas points can only stand between thousands.
        let group = self.group.or((self.decimal == ',').then_some('.'));
        let mut out = String::with_capacity(text.len());
        let mut since_group: Option<usize> = None;
        for c in text.chars() {
            match c {
                MINUS => out.push('-'),
                'd' | 'D' => out.push('e'),
                c if Some(kind(c)) == group => {
                    if since_group.is_some_and(|digits| digits != 3) {
                        return None;
                    }
                    since_group = Some(0);
                }
                c if c == self.decimal => {
                    if since_group.is_some_and(|digits| digits != 3) {
                        return None;
                    }
                    since_group = None;
                    out.push('.');
                }
                '.' | ',' => return None,
                c => {
                    since_group = since_group.map(|digits| digits + usize::from(c.is_ascii_digit()));
                    out.push(c);
                }
            }
        }
        since_group.is_none_or(|digits| digits == 3).then_some(out)
    }

    /// In words.
    pub(super) fn describe(self) -> Option<String> {
        let group = self.group.map(|group| match group {
            ',' => "commas between thousands",
            '.' => "points between thousands",
            '\'' => "apostrophes between thousands",
            _ => "blanks between thousands",
        });
        match (self.decimal, group) {
            (',', None) => Some("numbers have decimal commas".to_owned()),
            (',', Some(group)) => Some(format!("numbers have decimal commas and {group}")),
            (_, Some(group)) => Some(format!("numbers have {group}, which were skipped")),
            _ => None,
        }
    }
}

/// The first field of a kind is the one that is named.
fn keep(place: &mut Option<String>, text: &str) {
    place.get_or_insert_with(|| text.to_owned());
}

impl Evidence {
    /// Takes note of a field.
    pub(super) fn add(&mut self, text: &str) {
        let text = text.trim();
        if !Style::has_marks(text) {
            return;
        }
        let body = text.trim_start_matches(['+', '-', MINUS]);
        let body = body.split(['e', 'E', 'd', 'D']).next().unwrap_or_default();
        if let Some(group) = body.chars().find(|c| GROUPS.contains(c)) {
            self.group = Some(kind(group));
        }
        let count = |mark: char| body.matches(mark).count();
        match (body.rfind(','), body.rfind('.')) {
            (Some(comma), Some(point)) if comma > point => {
                keep(&mut self.comma, text);
                self.group = Some('.');
            }
            (Some(_), Some(_)) => {
                keep(&mut self.point, text);
                self.group = Some(',');
            }
            (Some(_), None) if count(',') > 1 => self.group = Some(','),
            (None, Some(_)) if count('.') > 1 => self.group = Some('.'),
            (Some(comma), None) => {
                let (whole, rest) = (&body[..comma], &body[comma + 1..]);
                let may_be_group =
                    rest.len() == 3 && (1..=3).contains(&whole.len()) && !whole.starts_with('0');
                if may_be_group { keep(&mut self.unsure, text) } else { keep(&mut self.comma, text) }
            }
            (None, Some(point)) => {
                let (whole, rest) = (&body[..point], &body[point + 1..]);
                let may_be_group =
                    rest.len() == 3 && (1..=3).contains(&whole.len()) && !whole.starts_with('0');
                if !may_be_group {
                    keep(&mut self.point, text);
                }
            }
            (None, None) => {}
        }
    }

    /// The style, or what stands against one. Columns are separated by semicolons where commas are decimal.
    pub(super) fn style(&self, semicolons: bool) -> Result<Style, (String, Option<String>)> {
        let style = |decimal, group| Ok(Style { decimal, group, plain: false });
        match (&self.comma, &self.point, self.group) {
            (Some(comma), Some(point), _) => Err((comma.clone(), Some(point.clone()))),
            (Some(_), None, group) => style(',', group.filter(|group| *group != ',')),
            (None, _, Some('.')) => style(',', Some('.')),
            (None, Some(_), group) => match (&self.unsure, group) {
                // Points are decimal, so that commas stand between thousands.
                (Some(_), None) => style('.', Some(',')),
                (_, group) => style('.', group),
            },
            (None, None, Some(',')) => style('.', Some(',')),
            (None, None, group) => match &self.unsure {
                Some(_) if semicolons => style(',', group),
                Some(text) => Err((text.clone(), None)),
                None => style('.', group),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &[&str]) -> Result<Vec<f64>, (String, Option<String>)> {
        let mut evidence = Evidence::default();
        fields.iter().for_each(|field| evidence.add(field));
        let style = evidence.style(false)?;
        let number =
            |field: &&str| style.plain_text(field).and_then(|text| text.parse().ok()).unwrap_or(f64::NAN);
        Ok(fields.iter().map(number).collect())
    }

    #[test]
    fn marks_follow_from_all_fields() {
        assert_eq!(read(&["1,5", "-0,25", "3"]).unwrap(), [1.5, -0.25, 3.0]);
        assert_eq!(read(&["1.234,5", "2"]).unwrap(), [1234.5, 2.0]);
        assert_eq!(read(&["1,234.5", "7,001"]).unwrap(), [1234.5, 7001.0]);
        assert_eq!(read(&["1,234,567"]).unwrap(), [1_234_567.0]);
        assert_eq!(read(&["1'234.5"]).unwrap(), [1234.5]);
        assert_eq!(read(&["1 234,5", "1\u{a0}000,0"]).unwrap(), [1234.5, 1000.0]);
        assert_eq!(read(&["\u{2212}1.5", "1.5D+02"]).unwrap(), [-1.5, 150.0]);
        assert_eq!(read(&["1,234"]), Err(("1,234".into(), None)));
        assert_eq!(read(&["1,5", "1.5"]), Err(("1,5".into(), Some("1.5".into()))));
        assert!(read(&["1,5", "1.23,5"]).unwrap()[1].is_nan());
    }
}
