//! The page: HTML around the content, one file without anything from outside; and its figures as files of their own.

use crate::chart::escape;
use crate::chart::style::{DARK, LIGHT};
use crate::content::{Block, Contents, Lights, Section};

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;color:#1a1a1a;background:#fff;\
max-width:780px;margin:0 auto;padding:1.5rem 1.2rem 4rem;overflow-wrap:anywhere}\
h1{font-size:1.7rem;line-height:1.25;margin:.5rem 0 1rem}\
h2{font-size:1.25rem;margin:2.6rem 0 .8rem;padding-bottom:.25rem;border-bottom:1px solid #d5d5d5}\
nav{font-size:.92rem;margin:1.2rem 0}nav a{margin-right:1.1rem;white-space:nowrap}\
a{color:#00588a}\
.head{border:1px solid #d5d5d5;border-radius:6px;padding:.3rem 1.1rem .8rem;background:#fafafa}\
.head p{margin:.6rem 0}\
.warn{border-left:4px solid #d55e00;background:#fdf1e8;padding:.5rem 1rem;margin:.8rem 0}\
.warn p{margin:.3rem 0}\
.verdict{font-size:1.08rem;font-weight:600}\
ul.lights{list-style:none;padding:0;margin:.8rem 0}ul.lights li{border-left:6px solid #888;padding:.1rem 0 .1rem .8rem;margin:.7rem 0}\
ul.lights .good{border-color:#00734f}ul.lights .fair{border-color:#c98a00}ul.lights .bad{border-color:#b31b00}\
ul.lights li{color:inherit;font-weight:400}.state{font-size:.8rem;border:1px solid currentColor;border-radius:3px;padding:0 .35rem}\
.next{font-family:ui-monospace,Menlo,Consolas,'Liberation Mono',monospace;font-size:.85rem}\
ul.checks{list-style:none;padding:0;margin:.6rem 0}ul.checks li{padding-left:1.6rem;text-indent:-1.6rem;margin:.2rem 0}\
.mark{display:inline-block;width:1.6rem;text-indent:0;font-weight:700}.good{color:#00734f}.bad{color:#b34700}\
figure{margin:1.6rem 0;break-inside:avoid}\
svg.fig{display:block;width:100%;height:auto;max-width:780px}\
figcaption,caption{font-size:.88rem;color:#444;text-align:left;margin-top:.45rem}\
.scroll{overflow-x:auto}\
table{border-collapse:collapse;font-size:.9rem;width:100%;font-variant-numeric:tabular-nums}\
caption{caption-side:bottom;padding-top:.5rem}\
th,td{text-align:right;padding:.22rem .55rem;border-bottom:1px solid #e2e2e2}\
th:first-child,td:first-child{text-align:left;font-weight:400}th{font-weight:600;overflow-wrap:normal;border-bottom:1.5px solid #777}\
tr.marked td{background:#fdf1e8}tr.marked td:first-child::before{content:'! ';color:#b34700;font-weight:700}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1.2rem;font-size:.92rem;margin:.8rem 0}\
dt{color:#555}dd{margin:0}\
pre{font:13px/1.45 ui-monospace,Menlo,Consolas,'Liberation Mono',monospace;background:#f5f5f5;padding:.9rem;border-radius:6px;\
white-space:pre-wrap}\
summary{cursor:pointer}.slide{display:none}.slide.shown{display:block}.slider{display:none}";

const DARK_PAGE: &str = "\
body{color:#e3e3e3;background:#17191c}h2{border-color:#3a3d42}a{color:#7cc4ff}\
.head{background:#1e2125;border-color:#3a3d42}.warn,tr.marked td{background:#3a2617}\
figcaption,caption{color:#b5b5b5}th,td{border-color:#33363b}dt{color:#aaa}pre{background:#22252a}\
.good{color:#4ed0a5}.bad,tr.marked td:first-child::before{color:#ff9a55}";

/// Rules of what the script adds.
const LIVE: &str = "\
.live .slider{display:block;font-size:.9rem}.slider input{width:60%;vertical-align:middle;margin:0 .6rem}\
.live figure{position:relative}.tools{position:absolute;right:0;top:-1.5rem;opacity:.25}figure:hover>.tools,.tools:focus-within{opacity:1}\
.tools button{font:13px/1.3 system-ui,sans-serif;color:inherit;background:none;border:1px solid #999;border-radius:4px;\
padding:.05rem .5rem;margin-left:.3rem;cursor:pointer}\
.live svg.fig svg path{vector-effect:non-scaling-stroke}.live svg.fig svg[data-x]{cursor:crosshair}\
.live g.key[role]{cursor:pointer}g.key[aria-pressed=false]{opacity:.3}\
svg.fig rect.pick{fill:#0072b2;fill-opacity:.15;stroke:none}svg.fig line.cross{stroke:#888;stroke-width:1;vector-effect:non-scaling-stroke;pointer-events:none}\
.tip{display:none;position:fixed;pointer-events:none;font:12px/1.4 system-ui,sans-serif;background:#fffe;color:#111;\
border:1px solid #999;border-radius:4px;padding:.2rem .5rem;white-space:nowrap}";

/// Zoom, pan, values under the pointer; the page is complete without it.
const SCRIPT: &str = include_str!("page.js");

const PRINT: &str = "\
@page{margin:16mm 14mm}\
body{max-width:none;padding:0;font-size:10.5pt}nav,.tools,.tip,.live .slider{display:none}h2{break-after:avoid}\
.head,.warn,tr,.lead{break-inside:avoid}a{color:inherit;text-decoration:none}\
details>*{display:block}details::details-content{content-visibility:visible;display:block;block-size:auto}.scroll{overflow:visible}";

/// The whole page.
pub fn page(contents: &Contents) -> String {
    let title = escape(&contents.title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{title}</title>\n\
         <style>{STYLE}{LIGHT}{LIVE}@media screen and (prefers-color-scheme:dark){{{DARK_PAGE}{DARK}}}\
         @media print{{{PRINT}}}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    headline(contents, &mut out);
    out.push_str("<nav aria-label=\"Sections\">");
    for section in &contents.sections {
        out.push_str(&format!("<a href=\"#{}\">{}</a>", section.id, escape(&section.title)));
    }
    out.push_str("</nav>\n");
    contents.sections.iter().for_each(|section| write_section(section, &mut out));
    out.push_str(&format!("<script>{SCRIPT}</script>\n</body>\n</html>\n"));
    out
}

/// The figures of a page, each as an SVG file of its own: the file's name and its text.
pub fn figure_files(contents: &Contents) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for section in &contents.sections {
        let named = figures(&section.blocks)
            .into_iter()
            .enumerate()
            .map(|(i, svg)| (format!("{}-{}.svg", section.id, i + 1), alone(svg)));
        files.extend(named);
    }
    files
}

/// Figures of blocks, those that are folded included; of slides the first one.
fn figures(blocks: &[Block]) -> Vec<&String> {
    let mut found = Vec::new();
    for block in blocks {
        match block {
            Block::Figure { svg, .. } => found.push(svg),
            Block::Slides { svgs, first, .. } => found.extend(svgs.get(*first)),
            Block::Folded { blocks, .. } => found.extend(figures(blocks)),
            _ => {}
        }
    }
    found
}

/// A figure of a page with the style sheet that the page has, and its light background.
fn alone(svg: &str) -> String {
    let svg = svg.replacen("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"", 1);
    svg.replacen("</title>", &format!("</title><style>svg.fig{{background:#fff}}{LIGHT}</style>"), 1)
}

fn headline(contents: &Contents, out: &mut String) {
    out.push_str("<div class=\"head\">\n");
    if let Some(lights) = &contents.lights {
        verdict(lights, out);
    }
    if !contents.warnings.is_empty() {
        out.push_str("<div class=\"warn\">");
        for warning in &contents.warnings {
            out.push_str(&format!("<p>{}</p>", escape(warning)));
        }
        out.push_str("</div>\n");
    }
    if !contents.checks.is_empty() {
        let good = contents.checks.iter().filter(|check| check.good).count();
        let summary = format!("{good} of {} checks passed", contents.checks.len());
        out.push_str(&format!(
            "<details{}><summary>{summary}</summary><ul class=\"checks\">",
            if contents.lights.is_none() { " open" } else { "" }
        ));
        for check in &contents.checks {
            let (class, mark) = if check.good { ("good", "✓") } else { ("bad", "!") };
            let text = escape(&check.text);
            out.push_str(&format!("<li><span class=\"mark {class}\">{mark}</span>{text}</li>"));
        }
        out.push_str("</ul></details>\n");
    }
    for sentence in &contents.summary {
        out.push_str(&format!("<p>{}</p>\n", escape(sentence)));
    }
    if !contents.facts.is_empty() {
        out.push_str("<dl>");
        for (name, value) in &contents.facts {
            out.push_str(&format!("<dt>{}</dt><dd>{}</dd>", escape(name), escape(value)));
        }
        out.push_str("</dl>\n");
    }
    out.push_str("</div>\n");
}

/// The verdict stands first: a paragraph, three lights, and scores on demand.
fn verdict(lights: &Lights, out: &mut String) {
    out.push_str(&format!("<p class=\"verdict\">{}</p>\n<ul class=\"lights\">", escape(&lights.paragraph)));
    for light in &lights.lights {
        let (question, finding, next) =
            (escape(&light.question), escape(&light.finding), escape(&light.next));
        out.push_str(&format!(
            "<li class=\"{0}\"><strong>{question}</strong> <span class=\"state\">{0}</span><div>{finding}</div>",
            light.state
        ));
        if !(light.state == "good" && light.next == "Nothing.") {
            out.push_str(&format!("<div class=\"next\">Next: {next}</div>"));
        }
        out.push_str("</li>");
    }
    out.push_str("</ul>\n");
    let (header, rows, caption) = &lights.scores;
    if !rows.is_empty() {
        let rows = rows.iter().map(|row| (false, row.clone())).collect();
        write_block(&Block::Table { header: header.clone(), rows, caption: caption.clone() }, out);
    }
}

fn write_section(section: &Section, out: &mut String) {
    out.push_str(&format!("<section id=\"{}\">\n", section.id));
    let heading = format!("<h2>{}</h2>\n", escape(&section.title));
    // The heading stays with what follows it when the page is broken.
    let (first, rest) = section.blocks.split_at(usize::from(!section.blocks.is_empty()));
    out.push_str("<div class=\"lead\">");
    out.push_str(&heading);
    first.iter().for_each(|block| write_block(block, out));
    out.push_str("</div>\n");
    rest.iter().for_each(|block| write_block(block, out));
    out.push_str("</section>\n");
}

fn write_block(block: &Block, out: &mut String) {
    match block {
        Block::Text(text) => out.push_str(&format!("<p>{}</p>\n", escape(text))),
        Block::Figure { svg, caption } => {
            out.push_str("<figure>");
            out.push_str(svg);
            if !caption.is_empty() {
                out.push_str(&format!("<figcaption>{}</figcaption>", escape(caption)));
            }
            out.push_str("</figure>\n");
        }
        Block::Table { header, rows, caption } => {
            let cells = |cells: &[String], tag: &str| -> String {
                cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect()
            };
            out.push_str(&format!("<div class=\"scroll\"><table><caption>{}</caption>", escape(caption)));
            out.push_str(&format!("<thead><tr>{}</tr></thead><tbody>\n", cells(header, "th")));
            for (marked, row) in rows {
                let class = if *marked { " class=\"marked\"" } else { "" };
                out.push_str(&format!("<tr{class}>{}</tr>\n", cells(row, "td")));
            }
            out.push_str("</tbody></table></div>\n");
        }
        Block::Slides { name, labels, svgs, first, caption } => {
            out.push_str(&format!("<figure class=\"slides\" data-name=\"{}\">", escape(name)));
            for (i, (svg, label)) in svgs.iter().zip(labels).enumerate() {
                let shown = if i == *first { " shown" } else { "" };
                out.push_str(&format!(
                    "<div class=\"slide{shown}\" data-label=\"{}\">{svg}</div>",
                    escape(label)
                ));
            }
            out.push_str(&format!("<figcaption>{}</figcaption></figure>\n", escape(caption)));
        }
        Block::Folded { summary, blocks } => {
            out.push_str(&format!("<details class=\"more\"><summary>{}</summary>\n", escape(summary)));
            blocks.iter().for_each(|block| write_block(block, out));
            out.push_str("</details>\n");
        }
        Block::Details { summary, text } => {
            let (summary, text) = (escape(summary), escape(text));
            out.push_str(&format!("<details><summary>{summary}</summary><pre>{text}</pre></details>\n"));
        }
    }
}
