//! Panels in rows under one legend, as one SVG.

use super::mark::{Frame, Mark};
use super::panel::{Panel, Prepared, label};
use super::scale::Scale;
use super::style::{Class, LIGHT};
use super::svg::{escape, number, text_width};

/// What an entry of the legend looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A piece of line.
    Line(Class),
    /// A filled box.
    Area(Class),
    /// A dot.
    Dot(Class),
}

/// Panels beside each other.
#[derive(Clone, Debug)]
pub struct Row {
    /// From left to right, equally wide.
    pub panels: Vec<Panel>,
    /// In pixels, axes included.
    pub height: f64,
    /// Columns that the row is divided into; more than there are panels leave room at the right.
    pub columns: usize,
}

impl Row {
    /// Panels that fill the row.
    pub fn new(panels: Vec<Panel>, height: f64) -> Self {
        Self { columns: panels.len(), panels, height }
    }
}

/// A figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What it shows, for readers who do not see it.
    pub title: String,
    /// Entries of the legend, above all panels.
    pub legend: Vec<(Key, String)>,
    /// From top to bottom.
    pub rows: Vec<Row>,
    /// In pixels.
    pub width: f64,
}

/// As wide as a page of text.
pub const WIDTH: f64 = 720.0;

impl Figure {
    /// A figure as wide as a page.
    pub fn new(title: impl Into<String>, legend: Vec<(Key, String)>, rows: Vec<Row>) -> Self {
        Self { title: title.into(), legend, rows, width: WIDTH }
    }

    /// The SVG for a page that brings the style sheet.
    pub fn svg(&self) -> String {
        self.render("", "")
    }

    /// The SVG for a file of its own.
    pub fn standalone(&self) -> String {
        self.render(" xmlns=\"http://www.w3.org/2000/svg\"", &format!("<style>{LIGHT}</style>"))
    }

    fn render(&self, namespace: &str, style: &str) -> String {
        let mut body = String::new();
        // A page has a script that wants to know what is where.
        let live = style.is_empty();
        let mut y = draw_legend(&self.legend, self.width, live, &mut body);
        let rows: Vec<Vec<Prepared>> = self
            .rows
            .iter()
            .map(|row| row.panels.iter().map(|p| p.prepare(row.height - 40.0)).collect())
            .collect();
        for (row, prepared) in self.rows.iter().zip(&rows) {
            let width = self.width / row.columns.max(1) as f64;
            for (i, panel) in prepared.iter().enumerate() {
                // Panels above each other begin at the same place.
                let rows = self.rows.iter().zip(&rows).filter(|(other, _)| other.columns == row.columns);
                let column = rows.filter_map(|(_, panels)| panels.get(i));
                let left = column.map(Prepared::left).fold(0.0, f64::max);
                body.push_str(&panel.draw((i as f64 * width, y, width, row.height), left, live));
            }
            y += row.height;
        }
        wrap(&self.title, namespace, style, self.width, y, &body)
    }
}

pub(crate) fn wrap(title: &str, namespace: &str, style: &str, width: f64, height: f64, body: &str) -> String {
    let (w, h, title) = (number(width), number(height), escape(title));
    format!(
        "<svg{namespace} class=\"fig\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" role=\"img\" \
         aria-label=\"{title}\"><title>{title}</title>{style}{body}</svg>"
    )
}

/// Draws the legend at the top and returns its height.
pub(crate) fn draw_legend(legend: &[(Key, String)], width: f64, live: bool, out: &mut String) -> f64 {
    if legend.is_empty() {
        return 0.0;
    }
    let (mut x, mut y) = (8.0, 4.0);
    for (key, text) in legend {
        let needed = 30.0 + text_width(text, 11.5) + 16.0;
        if x + needed > width && x > 8.0 {
            (x, y) = (8.0, y + 17.0);
        }
        let swatch =
            Frame { x: Scale::linear(0.0, 1.0), y: Scale::linear(0.0, 1.0), width: 22.0, height: 11.0 };
        let mark = match key {
            Key::Line(class) => Mark::Horizontal { y: 0.5, class: *class },
            Key::Area(class) => Mark::Between { low: 0.0, high: 1.0, class: *class },
            Key::Dot(class) => Mark::Points { x: vec![0.5], y: vec![0.5], class: *class },
        };
        if live {
            let (Key::Line(class) | Key::Area(class) | Key::Dot(class)) = key;
            out.push_str(&format!("<g class=\"key\" data-for=\"{}\">", class.name()));
        }
        out.push_str(&format!(
            "<g transform=\"translate({} {})\">{}</g>",
            number(x),
            number(y),
            mark.draw(&swatch)
        ));
        label(out, "", "start", x + 27.0, y + 9.5, text);
        if live {
            out.push_str("</g>");
        }
        x += needed;
    }
    y + 19.0
}
