//! What is wrong with a formula, and where.

use std::fmt;

/// Characters of a formula that an error shows on either side of its column.
const SHOWN: usize = 40;

/// A formula that was refused. Its one-line form is
/// ``formula "a*x1 + b*cso(u)", column 10: unknown function 'cso'; did you mean 'cos'?``
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormulaError {
    text: String,
    column: usize,
    message: String,
}

impl FormulaError {
    /// `column` counts characters from 1.
    pub(crate) fn new(text: &str, column: usize, message: impl Into<String>) -> Self {
        Self { text: text.to_owned(), column, message: message.into() }
    }

    /// The whole formula.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where in the text: characters are counted from 1; one past the end if something is missing there.
    pub fn column(&self) -> usize {
        self.column
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Three lines: the formula, a caret below the column, and the message.
    ///
    /// ```
    /// let error = gpssm::formula::Formula::parse("2*cso(u)").unwrap_err();
    /// assert_eq!(error.pointed(), "2*cso(u)\n  ^\nunknown function 'cso'; did you mean 'cos'?");
    /// ```
    pub fn pointed(&self) -> String {
        let (shown, before) = self.shown();
        format!("{shown}\n{}^\n{}", " ".repeat(before), self.message)
    }

    /// The text on one line, cut around the column if it is long, and the number of characters before it.
    fn shown(&self) -> (String, usize) {
        let n = self.text.chars().count();
        let at = self.column.saturating_sub(1).min(n);
        let (mut from, mut to) = (at.saturating_sub(SHOWN), (at + SHOWN).min(n));
        if n <= 2 * SHOWN {
            (from, to) = (0, n);
        }
        let cut = |is_cut: bool| if is_cut { "..." } else { "" };
        // A line break or another control character would break the line of the message.
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let middle: String = self.text.chars().skip(from).take(to - from).map(plain).collect();
        let (left, right) = (cut(from > 0), cut(to < n));
        (format!("{left}{middle}{right}"), left.len() + at - from)
    }
}

impl fmt::Display for FormulaError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "formula \"{}\", column {}: {}", self.shown().0, self.column, self.message)
    }
}

impl std::error::Error for FormulaError {}
