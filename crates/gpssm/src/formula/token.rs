//! A formula cut into words.

use super::error::FormulaError;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Number(f64),
    Name(String),
    /// An operator, bracket or comma; `**` is `^`.
    Sign(&'static str),
    /// Past the last word.
    End,
}

/// A word and the column of its first character, from 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Word {
    pub token: Token,
    pub column: usize,
}

/// Signs, the longer ones first.
const SIGNS: [(&str, &str); 17] = [
    ("**", "^"),
    ("<=", "<="),
    (">=", ">="),
    ("==", "=="),
    ("!=", "!="),
    ("+", "+"),
    ("-", "-"),
    ("*", "*"),
    ("/", "/"),
    ("^", "^"),
    ("<", "<"),
    (">", ">"),
    ("(", "("),
    (")", ")"),
    (",", ","),
    ("=", "="),
    ("!", "!"),
];

/// Characters that are read as something else by other programs, and what to write here.
const LOOK_ALIKES: [(char, &str); 14] = [
    ('\u{2212}', "-"),
    ('\u{2013}', "-"),
    ('\u{d7}', "*"),
    ('\u{b7}', "*"),
    ('\u{22c5}', "*"),
    ('\u{f7}', "/"),
    ('\u{b2}', "^2"),
    ('\u{b3}', "^3"),
    ('\u{2264}', "<="),
    ('\u{2265}', ">="),
    ('\u{2260}', "!="),
    ('\u{221a}', "sqrt(...)"),
    ('[', "("),
    (']', ")"),
];

pub(super) fn starts_name(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

pub(super) fn continues_name(c: char) -> bool {
    starts_name(c) || c.is_ascii_digit()
}

/// The words of `text`, with an end word behind the last.
pub(super) fn words(text: &str) -> Result<Vec<Word>, FormulaError> {
    let characters: Vec<char> = text.chars().collect();
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(&c) = characters.get(at) {
        let column = at + 1;
        let next = characters.get(at + 1).copied();
        let token = if c.is_whitespace() {
            at += 1;
            continue;
        } else if c.is_ascii_digit() || (c == '.' && next.is_some_and(|c| c.is_ascii_digit())) {
            let to = number_end(&characters, at);
            let word: String = characters[at..to].iter().collect();
            let value = number(&word).map_err(|message| FormulaError::new(text, column, message))?;
            if let Some(&c) = characters.get(to).filter(|c| **c == '.' || starts_name(**c)) {
                let message = if c == '.' {
                    format!("the number '{word}' cannot go on with a point")
                } else {
                    format!("'*' is missing between '{word}' and '{c}'")
                };
                return Err(FormulaError::new(text, to + 1, message));
            }
            at = to;
            Token::Number(value)
        } else if starts_name(c) {
            let length = characters[at..].iter().take_while(|c| continues_name(**c)).count();
            let name = characters[at..at + length].iter().collect();
            at += length;
            Token::Name(name)
        } else {
            let pair: String = characters[at..].iter().take(2).collect();
            let Some((written, meant)) = SIGNS.iter().find(|(written, _)| pair.starts_with(written)) else {
                return Err(FormulaError::new(text, column, unexpected(c)));
            };
            at += written.len();
            Token::Sign(meant)
        };
        words.push(Word { token, column });
    }
    words.push(Word { token: Token::End, column: characters.len() + 1 });
    Ok(words)
}

fn unexpected(c: char) -> String {
    match LOOK_ALIKES.iter().find(|(known, _)| *known == c) {
        Some((_, written)) => format!("unexpected character '{c}'; write '{written}'"),
        None if c.is_control() => format!("unexpected control character U+{:04X}", u32::from(c)),
        None => format!("unexpected character '{c}'"),
    }
}

/// One past the last character of a number that starts at `from`: digits, point, digits, exponent.
fn number_end(characters: &[char], from: usize) -> usize {
    let digits = |mut at: usize| {
        while characters.get(at).is_some_and(char::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let mut to = digits(from);
    if characters.get(to) == Some(&'.') {
        to = digits(to + 1);
    }
    if matches!(characters.get(to), Some('e' | 'E')) {
        let signed = to + 1 + usize::from(matches!(characters.get(to + 1), Some('+' | '-')));
        // Without digits it is no exponent but a name that follows.
        if characters.get(signed).is_some_and(char::is_ascii_digit) {
            to = digits(signed);
        }
    }
    to
}

fn number(word: &str) -> Result<f64, String> {
    let value: f64 = word.parse().map_err(|_| format!("'{word}' is not a number"))?;
    let mantissa = word.split(['e', 'E']).next().unwrap_or_default();
    if value.is_infinite() {
        Err("this number is too large for a 64-bit float".into())
    } else if value == 0.0 && mantissa.contains(|c| ('1'..='9').contains(&c)) {
        Err("this number is too small for a 64-bit float".into())
    } else {
        Ok(value)
    }
}
