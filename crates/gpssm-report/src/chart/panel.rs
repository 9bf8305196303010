//! Marks between two axes.

use super::mark::{Frame, Mark};
use super::scale::{Scale, labels};
use super::svg::{escape, fit, number, text_width};

/// One axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it shows, with the unit.
    pub label: String,
    /// From where to where.
    pub scale: Scale,
    /// Whether numbers are written beside it.
    pub numbers: bool,
    /// Names in place of numbers: one for each unit interval from zero on.
    pub categories: Vec<String>,
    /// Ticks with their texts, in place of round numbers.
    pub ticks: Vec<(f64, String)>,
    /// Whether it shows times: figures of the same times move together on a page.
    pub is_time: bool,
    /// The ends as seconds since 1970, where they are dates.
    pub seconds: Option<(f64, f64)>,
}

/// Ticks between two values, about so many, with their texts; none for round numbers.
pub type FindTicks = dyn Fn(f64, f64, usize) -> Option<Vec<(f64, String)>> + Send + Sync;

/// How an axis of times is divided: at round numbers, or where the caller says.
#[derive(Clone, Default)]
pub struct TimeTicks {
    find: Option<std::sync::Arc<FindTicks>>,
    seconds: Option<std::sync::Arc<Seconds>>,
}

/// Seconds since 1970 of a time.
pub type Seconds = dyn Fn(f64) -> f64 + Send + Sync;

impl std::fmt::Debug for TimeTicks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.find.is_some() { "TimeTicks(given)" } else { "TimeTicks(numbers)" })
    }
}

impl TimeTicks {
    /// At the places that a function gives.
    pub fn new(find: impl Fn(f64, f64, usize) -> Option<Vec<(f64, String)>> + Send + Sync + 'static) -> Self {
        Self { find: Some(std::sync::Arc::new(find)), seconds: None }
    }

    /// The same for times that are dates.
    pub fn with_seconds(self, seconds: impl Fn(f64) -> f64 + Send + Sync + 'static) -> Self {
        Self { seconds: Some(std::sync::Arc::new(seconds)), ..self }
    }

    /// Ticks of an axis, if they are given.
    pub(crate) fn between(&self, scale: &Scale) -> Vec<(f64, String)> {
        const ABOUT: usize = 8;
        let found = self.find.as_ref().and_then(|find| find(scale.low(), scale.high(), ABOUT));
        found.filter(|ticks| ticks.len() > 1).unwrap_or_default()
    }
}

impl Axis {
    /// An axis with numbers.
    pub fn new(label: impl Into<String>, scale: Scale) -> Self {
        let (categories, ticks) = (Vec::new(), Vec::new());
        Self { label: label.into(), scale, numbers: true, categories, ticks, is_time: false, seconds: None }
    }

    /// The same with names in place of numbers.
    pub fn with_categories(self, categories: Vec<String>) -> Self {
        Self { categories, ..self }
    }

    /// The same with ticks of times.
    pub fn with_time_ticks(self, ticks: &TimeTicks) -> Self {
        let (low, high) = (self.scale.low(), self.scale.high());
        let seconds = ticks.seconds.as_ref().map(|seconds| (seconds(low), seconds(high)));
        Self { ticks: ticks.between(&self.scale), is_time: true, seconds, ..self }
    }

    /// The same without numbers: only the shape matters, or a panel below shows them.
    pub fn without_numbers(self) -> Self {
        Self { numbers: false, ..self }
    }
}

/// Marks between two axes, with a title.
#[derive(Clone, Debug)]
pub struct Panel {
    /// In bold above the panel.
    pub title: String,
    /// Below.
    pub x: Axis,
    /// At the left.
    pub y: Axis,
    /// From back to front.
    pub marks: Vec<Mark>,
}

const TICK_SIZE: f64 = 11.0;
/// Names below bars are cut to this.
const LONGEST_NAME: f64 = 150.0;

/// A panel with its ticks, before its place is known.
pub(crate) struct Prepared<'a> {
    panel: &'a Panel,
    y_ticks: Vec<(f64, String)>,
    y_unit: Option<String>,
}

impl Panel {
    /// A panel whose vertical axis covers its marks.
    pub fn new(title: impl Into<String>, x: Axis, y_label: impl Into<String>, marks: Vec<Mark>) -> Self {
        let heights = marks.iter().map(Mark::heights).flat_map(|(low, high)| [low, high]);
        let y = Axis::new(y_label, Scale::covering(heights.collect::<Vec<_>>()));
        Self { title: title.into(), x, y, marks }
    }

    /// The same with a vertical axis from zero to a little above its marks.
    pub fn from_zero(self) -> Self {
        let scale = Scale::linear(0.0, self.y.scale.high());
        self.with_y(scale)
    }

    /// The same with another vertical axis.
    pub fn with_y(mut self, scale: Scale) -> Self {
        self.y.scale = scale;
        self
    }

    pub(crate) fn prepare(&self, height: f64) -> Prepared<'_> {
        let ticks = if self.y.numbers { self.y.scale.ticks((height / 32.0) as usize) } else { Vec::new() };
        let (texts, y_unit) = if ticks.is_empty() { (Vec::new(), None) } else { labels(&ticks) };
        Prepared { panel: self, y_ticks: ticks.into_iter().zip(texts).collect(), y_unit }
    }
}

impl Prepared<'_> {
    /// Room for numbers and label at the left.
    pub(crate) fn left(&self) -> f64 {
        let widest = self.y_ticks.iter().map(|(_, text)| text_width(text, TICK_SIZE)).fold(0.0, f64::max);
        let label = if self.panel.y.label.is_empty() { 0.0 } else { 17.0 };
        widest + label + if self.y_ticks.is_empty() { 4.0 } else { 10.0 }
    }

    /// Room for the title above.
    pub(crate) fn top(&self) -> f64 {
        if self.panel.title.is_empty() && self.y_unit.is_none() { 8.0 } else { 20.0 }
    }

    /// Room for numbers and label below.
    pub(crate) fn bottom(&self) -> f64 {
        if !self.panel.x.categories.is_empty() {
            let names = self.panel.x.categories.iter().map(|name| text_width(name, TICK_SIZE));
            return 12.0 + 0.72 * names.fold(0.0, f64::max).min(LONGEST_NAME);
        }
        let numbers = if self.panel.x.numbers { 19.0 } else { 6.0 };
        numbers + if self.panel.x.label.is_empty() { 0.0 } else { 18.0 }
    }

    /// Draws into the rectangle (x, y, width, height), axes included; `left` is the room for numbers.
    /// On a page the panel says what its axes show.
    pub(crate) fn draw(&self, (x, y, width, height): (f64, f64, f64, f64), left: f64, live: bool) -> String {
        let panel = self.panel;
        let heat =
            panel.marks.iter().find_map(|mark| if let Mark::Heat(heat) = mark { Some(heat) } else { None });
        let (top, bottom, right) = (self.top(), self.bottom(), if heat.is_some() { 62.0 } else { 10.0 });
        let (x0, y0) = (x + left, y + top);
        let (w, h) = ((width - left - right).max(10.0), (height - top - bottom).max(10.0));
        let frame = Frame { x: panel.x.scale, y: panel.y.scale, width: w, height: h };
        let mut out = String::new();
        // Axes are redrawn when a part of the panel is shown; maps and bars of names are not.
        let live = live && heat.is_none() && panel.x.categories.is_empty();
        let group = |out: &mut String, text: &str| {
            if live {
                out.push_str(text)
            }
        };
        group(&mut out, "<g class=\"ya\">");
        for (tick, text) in &self.y_ticks {
            let (_, at) = frame.at(panel.x.scale.low(), *tick);
            let at = y0 + at;
            line(&mut out, "gr", (x0, at), (x0 + w, at));
            label(&mut out, "", "end", x0 - 6.0, at + 3.8, text);
        }
        group(&mut out, "</g>");
        out.push_str(&format!(
            "<svg x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}>",
            number(x0),
            number(y0),
            number(w),
            number(h),
            if live { self.scales() } else { String::new() }
        ));
        panel.marks.iter().for_each(|mark| out.push_str(&mark.draw(&frame)));
        out.push_str("</svg>");
        line(&mut out, "ax", (x0, y0 + h), (x0 + w, y0 + h));
        line(&mut out, "ax", (x0, y0), (x0, y0 + h));
        group(&mut out, "<g class=\"xa\">");
        self.horizontal_ticks(&mut out, (x0, y0 + h), w);
        group(&mut out, "</g>");
        self.horizontal_label(&mut out, (x0, y0 + h), w);
        if let Some(heat) = heat {
            out.push_str(&heat.bar(x0 + w + 9.0, y0, h));
        }
        if let Some(unit) = &self.y_unit {
            let at = if panel.title.is_empty() { x0 } else { x + width - right };
            let anchor = if panel.title.is_empty() { "start" } else { "end" };
            label(&mut out, "", anchor, at, y0 - 6.0, unit);
        }
        if !panel.title.is_empty() {
            let title = fit(&panel.title, 12.5, w);
            label(&mut out, "ti", "start", x0, y0 - 7.0, &title);
        }
        if !panel.y.label.is_empty() {
            let (at, middle) = (number(x + 11.0), number(y0 + h / 2.0));
            let text = escape(&fit(&panel.y.label, 12.0, h + 20.0));
            out.push_str(&format!(
                "<text class=\"la\" text-anchor=\"middle\" transform=\"translate({at} {middle})rotate(-90)\">{text}</text>"
            ));
        }
        out
    }

    /// What the axes show, for the script of a page.
    fn scales(&self) -> String {
        let (x, y) = (&self.panel.x, &self.panel.y.scale);
        let mut text =
            format!(" data-x=\"{} {}\" data-y=\"{} {}\"", x.scale.low(), x.scale.high(), y.low(), y.high());
        let log =
            [(x.scale, "x"), (*y, "y")].map(|(scale, name)| if scale.is_log() { name } else { "" }).concat();
        if !log.is_empty() {
            text += &format!(" data-log=\"{log}\"");
        }
        if x.is_time {
            text += " data-time=\"\"";
        }
        if let Some((from, to)) = x.seconds {
            text += &format!(" data-s=\"{from} {to}\"");
        }
        text
    }

    fn horizontal_ticks(&self, out: &mut String, (x0, y0): (f64, f64), w: f64) {
        let axis = &self.panel.x;
        if !axis.categories.is_empty() {
            for (i, name) in axis.categories.iter().enumerate() {
                let at = x0 + w * axis.scale.fraction(i as f64 + 0.5);
                let name = escape(&fit(name, TICK_SIZE, LONGEST_NAME));
                out.push_str(&format!(
                    "<text text-anchor=\"end\" transform=\"translate({} {})rotate(-45)\">{name}</text>",
                    number(at + 4.0),
                    number(y0 + 11.0)
                ));
            }
            return;
        }
        let (ticks, texts, unit) = if axis.ticks.is_empty() {
            let ticks = axis.scale.ticks((w / 75.0) as usize);
            let (texts, unit) = labels(&ticks);
            (ticks, texts, unit)
        } else {
            let (ticks, texts) = axis.ticks.iter().cloned().unzip();
            (ticks, texts, None)
        };
        let mut written_to = f64::NEG_INFINITY;
        for (tick, text) in ticks.iter().zip(&texts) {
            let at = x0 + w * axis.scale.fraction(*tick);
            line(out, "ax", (at, y0), (at, y0 + 4.0));
            // A number that would touch the one before it is left out.
            let half = 0.5 * text_width(text, TICK_SIZE);
            if axis.numbers && at - half > written_to + 5.0 {
                label(out, "", "middle", at, y0 + 16.0, text);
                written_to = at + half;
            }
        }
        if let Some(unit) = unit.filter(|_| axis.numbers) {
            label(out, "", "end", x0 + w, y0 + if axis.label.is_empty() { 29.0 } else { 31.0 }, &unit);
        }
    }

    fn horizontal_label(&self, out: &mut String, (x0, y0): (f64, f64), w: f64) {
        let axis = &self.panel.x;
        if !axis.label.is_empty() && axis.categories.is_empty() {
            let down = if axis.numbers { 32.0 } else { 18.0 };
            label(out, "la", "middle", x0 + w / 2.0, y0 + down, &fit(&axis.label, 12.0, w + 30.0));
        }
    }
}

pub(crate) fn line(out: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(number);
    out.push_str(&format!("<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"));
}

pub(crate) fn label(out: &mut String, class: &str, anchor: &str, x: f64, y: f64, text: &str) {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let anchor = if anchor == "start" { String::new() } else { format!(" text-anchor=\"{anchor}\"") };
    let (x, y, text) = (number(x), number(y), escape(text));
    out.push_str(&format!("<text{class}{anchor} x=\"{x}\" y=\"{y}\">{text}</text>"));
}
