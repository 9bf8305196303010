//! What marks look like. Colours follow Okabe and Ito's palette, which colour-blind readers can tell apart;
//! kinds of marks also differ in dashes, width or shade, so that a black-and-white print can be read.

/// What a mark stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The middle of a posterior.
    Median,
    /// The inner band.
    Inner,
    /// The outer band.
    Outer,
    /// What was measured.
    Data,
    /// What is known to be true.
    Truth,
    /// A mean function.
    Mean,
    /// One draw.
    Sample,
    /// Draws as points.
    SamplePoint,
    /// A prior.
    Prior,
    /// A line to compare with.
    Reference,
    /// A band to compare with.
    Expected,
    /// Where there were no data.
    Beyond,
    /// Places of data along an axis.
    Rug,
    /// Bars.
    Bar,
    /// A second set of bars.
    OtherBar,
    /// One of several equal things: chains, methods.
    Series(usize),
}

/// Number of series that look different.
pub const N_SERIES: usize = 8;

impl Class {
    /// Its name in the style sheet.
    pub fn name(self) -> &'static str {
        const SERIES: [&str; N_SERIES] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];
        match self {
            Self::Median => "md",
            Self::Inner => "in",
            Self::Outer => "ou",
            Self::Data => "da",
            Self::Truth => "tr",
            Self::Mean => "mf",
            Self::Sample => "sa",
            Self::SamplePoint => "sp",
            Self::Prior => "pr",
            Self::Reference => "re",
            Self::Expected => "ex",
            Self::Beyond => "be",
            Self::Rug => "ru",
            Self::Bar => "ba",
            Self::OtherBar => "ob",
            Self::Series(i) => SERIES[i % N_SERIES],
        }
    }
}

/// Rules for a light background; all that a stand-alone figure needs.
pub const LIGHT: &str = "\
svg.fig text{font:11px 'Helvetica Neue',Helvetica,Arial,'Liberation Sans',sans-serif;fill:#333}\
svg.fig text.ti{font-size:12px;font-weight:600;fill:#111}\
svg.fig text.la{font-size:11.5px;fill:#222}\
svg.fig path,svg.fig line{fill:none;stroke-linejoin:round}\
svg.fig .ax{stroke:#444;stroke-width:1}\
svg.fig .gr{stroke:#e4e4e4;stroke-width:.8}\
svg.fig .md{stroke:#0072b2;stroke-width:1.5}\
svg.fig .in{fill:#0072b2;fill-opacity:.36;stroke:none}\
svg.fig .ou{fill:#0072b2;fill-opacity:.17;stroke:none}\
svg.fig .da{stroke:#111;stroke-width:3.2;stroke-linecap:round}\
svg.fig .tr{stroke:#111;stroke-width:1.3}\
svg.fig .mf{stroke:#009e73;stroke-width:1.6;stroke-dasharray:6 3.5}\
svg.fig .sa{stroke:#d55e00;stroke-width:.8;stroke-opacity:.5}\
svg.fig .sp{stroke:#d55e00;stroke-width:2.6;stroke-linecap:round;stroke-opacity:.55}\
svg.fig .pr{stroke:#777;stroke-width:1.4;stroke-dasharray:2 2.5}\
svg.fig .re{stroke:#666;stroke-width:1;stroke-dasharray:5 3}\
svg.fig .ex{fill:#888;fill-opacity:.2;stroke:none}\
svg.fig .be{fill:#d8c9a8;fill-opacity:.32;stroke:none}\
svg.fig .ru{stroke:#111;stroke-width:.8;stroke-opacity:.5}\
svg.fig .ba{fill:#0072b2;fill-opacity:.62;stroke:#0072b2;stroke-width:.6}\
svg.fig .ob{fill:#e69f00;fill-opacity:.62;stroke:#a87400;stroke-width:.6}\
svg.fig .fa{fill:#fff;fill-opacity:.62;stroke:none}\
svg.fig .co{stroke:#111;stroke-width:.7;stroke-opacity:.55}\
svg.fig .wi{fill:#fff;fill-opacity:.55;stroke-width:.7;stroke-dasharray:none}\
svg.fig .c0,svg.fig .c1,svg.fig .c2,svg.fig .c3,svg.fig .c4,svg.fig .c5,svg.fig .c6,svg.fig .c7{stroke-width:1.1;stroke-opacity:.85}\
svg.fig .c0{stroke:#0072b2}svg.fig .c1{stroke:#d55e00}svg.fig .c2{stroke:#009e73}svg.fig .c3{stroke:#cc79a7}\
svg.fig .c4{stroke:#e69f00}svg.fig .c5{stroke:#56b4e9}svg.fig .c6{stroke:#6b4c2f}svg.fig .c7{stroke:#666}";

/// What changes on a dark background.
pub const DARK: &str = "\
svg.fig text{fill:#c8c8c8}svg.fig text.ti{fill:#f2f2f2}svg.fig text.la{fill:#ddd}\
svg.fig .ax{stroke:#aaa}svg.fig .gr{stroke:#34373b}\
svg.fig .md{stroke:#6cc0f5}svg.fig .in{fill:#56b4e9;fill-opacity:.5}svg.fig .ou{fill:#56b4e9;fill-opacity:.28}\
svg.fig .da,svg.fig .tr,svg.fig .ru{stroke:#f0f0f0}\
svg.fig .mf{stroke:#2ec79c}svg.fig .sa,svg.fig .sp{stroke:#ff8a3d}\
svg.fig .pr{stroke:#aaa}svg.fig .re{stroke:#aaa}svg.fig .be{fill:#8a7a55;fill-opacity:.28}\
svg.fig .ba{fill:#56b4e9;stroke:#56b4e9}svg.fig .ob{stroke:#e69f00}\
svg.fig .fa{fill:#17191c}svg.fig .co{stroke:#000}\
svg.fig .c0{stroke:#6cc0f5}svg.fig .c1{stroke:#ff8a3d}svg.fig .c2{stroke:#2ec79c}svg.fig .c3{stroke:#e79cc5}\
svg.fig .c6{stroke:#c29a74}svg.fig .c7{stroke:#bbb}";

/// Light to dark, steadily, so that a print in grey shows the same order.
const ANCHORS: [[f64; 3]; 6] = [
    [251.0, 247.0, 229.0],
    [199.0, 226.0, 196.0],
    [127.0, 194.0, 187.0],
    [58.0, 145.0, 177.0],
    [33.0, 88.0, 145.0],
    [20.0, 32.0, 84.0],
];

/// A colour for a number between 0 and 1.
pub fn shade(fraction: f64) -> String {
    let last = ANCHORS.len() - 1;
    let at = if fraction.is_nan() { 0.0 } else { fraction.clamp(0.0, 1.0) * last as f64 };
    let i = (at as usize).min(last - 1);
    let mix = |c: usize| {
        let (from, to) = (ANCHORS[i][c], ANCHORS[i + 1][c]);
        (from + (to - from) * (at - i as f64)).round() as u8
    };
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_darken_steadily() {
        let luminance = |colour: &str| {
            let part = |i: usize| f64::from(u8::from_str_radix(&colour[i..i + 2], 16).unwrap());
            0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
        };
        let shades: Vec<f64> = (0..=40).map(|i| luminance(&shade(f64::from(i) / 40.0))).collect();
        assert!(shades.windows(2).all(|pair| pair[0] > pair[1]));
        assert_eq!(shade(f64::NAN), shade(0.0));
    }
}
