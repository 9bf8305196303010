//! Text of SVG: escaped strings, short numbers, short paths.

/// Text that is safe between tags and inside attributes, whatever it was.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\t' | '\n' | '\r' => safe.push(c),
            // Neither XML nor HTML has a way to write these.
            c if c.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&c) => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// Tenths of a pixel: fine enough for print, and short. Far away is as good as infinitely far away.
fn tenths(value: f64) -> i64 {
    (value.clamp(-2e4, 2e4) * 10.0).round() as i64
}

fn push_tenths(out: &mut String, value: i64) {
    if value < 0 {
        out.push('-');
    }
    let (whole, rest) = (value.unsigned_abs() / 10, value.unsigned_abs() % 10);
    if whole > 0 || rest == 0 {
        out.push_str(&whole.to_string());
    }
    if rest > 0 {
        out.push('.');
        out.push_str(&rest.to_string());
    }
}

/// A coordinate, to a tenth of a pixel. NaN is written as zero: callers leave such points out.
pub(crate) fn number(value: f64) -> String {
    let mut text = String::new();
    push_tenths(&mut text, tenths(value));
    text
}

/// The data of a path, in relative coordinates: about half the size of absolute ones.
#[derive(Debug, Default)]
pub(crate) struct PathData {
    text: String,
    x: i64,
    y: i64,
    command: char,
}

impl PathData {
    fn push(&mut self, command: char, x: f64, y: f64) {
        let (x, y) = (tenths(x), tenths(y));
        // After "m" further pairs mean "l", and a command that does not change need not be said again.
        if command != self.command {
            self.text.push(command);
        } else if x >= self.x {
            self.text.push(' ');
        }
        push_tenths(&mut self.text, x - self.x);
        if y >= self.y {
            self.text.push(' ');
        }
        push_tenths(&mut self.text, y - self.y);
        (self.x, self.y) = (x, y);
        self.command = command;
    }

    pub(crate) fn move_to(&mut self, x: f64, y: f64) {
        // A second "m" must be said: without it the pair would be a line.
        self.command = ' ';
        self.push('m', x, y);
        self.command = 'l';
    }

    pub(crate) fn line_to(&mut self, x: f64, y: f64) {
        self.push('l', x, y);
    }

    pub(crate) fn close(&mut self) {
        self.text.push('z');
        self.command = 'z';
    }

    /// Where closing has gone back to: the start of the part that was closed.
    pub(crate) fn return_to(&mut self, x: f64, y: f64) {
        (self.x, self.y) = (tenths(x), tenths(y));
    }

    /// A rectangle from one corner to the opposite one.
    pub(crate) fn rectangle(&mut self, x0: f64, y0: f64, x1: f64, y1: f64) {
        self.move_to(x0, y0);
        self.line_to(x1, y0);
        self.line_to(x1, y1);
        self.line_to(x0, y1);
        self.close();
        self.return_to(x0, y0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn element(&self, class: &str) -> String {
        if self.is_empty() { String::new() } else { format!("<path class=\"{class}\" d=\"{}\"/>", self.text) }
    }

    pub(crate) fn filled(&self, colour: &str) -> String {
        if self.is_empty() {
            String::new()
        } else {
            format!("<path style=\"fill:{colour}\" d=\"{}\"/>", self.text)
        }
    }
}

/// Width of a text in pixels, roughly: there is no font to ask.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '.' | ',' | ';' | ':' | '\'' | '|' | '!' | ' ' | 'f' | 't' | 'I' | '('
            | ')' => 0.31,
            'm' | 'w' | 'M' | 'W' | '%' => 0.88,
            'A'..='Z' => 0.67,
            c if c as u32 > 0x2e80 => 1.0,
            _ => 0.54,
        })
        .sum();
    em * size
}

/// A text cut to a width, with an ellipsis.
pub(crate) fn fit(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if text_width(&kept, size) + size > width {
            break;
        }
    }
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let cases = [(0.0, "0"), (-0.04, "0"), (0.5, ".5"), (-0.5, "-.5"), (12.0, "12"), (-3.24, "-3.2")];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
        assert_eq!(number(f64::NAN), "0");
        assert_eq!(number(f64::INFINITY), "20000");
    }

    #[test]
    fn paths_are_relative_and_parse_back() {
        let mut path = PathData::default();
        path.move_to(1.0, 2.0);
        path.line_to(1.5, 1.0);
        path.line_to(0.0, 4.0);
        path.move_to(10.0, 10.0);
        path.line_to(10.0, 12.0);
        assert_eq!(path.text, "m1 2 .5-1-1.5 3m10 6 0 2");
        let mut boxes = PathData::default();
        boxes.rectangle(1.0, 1.0, 3.0, 2.0);
        boxes.rectangle(5.0, 1.0, 6.0, 2.0);
        assert_eq!(boxes.text, "m1 1 2 0 0 1-2 0zm4 0 1 0 0 1-1 0z");
    }

    #[test]
    fn hostile_text_is_escaped() {
        assert_eq!(escape("<b a='\"'>&\u{0}"), "&lt;b a=&#39;&quot;&#39;&gt;&amp;\u{fffd}");
    }
}
