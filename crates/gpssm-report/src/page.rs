//! The page: HTML around the content, one file without anything from outside.

use crate::chart::escape;
use crate::chart::style::{DARK, LIGHT};
use crate::content::{Block, Contents, Section};

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
ul.checks{list-style:none;padding:0;margin:.6rem 0}ul.checks li{padding-left:1.6rem;text-indent:-1.6rem;margin:.2rem 0}\
.mark{display:inline-block;width:1.6rem;text-indent:0;font-weight:700}.good{color:#00734f}.bad{color:#b34700}\
figure{margin:1.6rem 0;break-inside:avoid}\
svg.fig{display:block;width:100%;height:auto;max-width:780px}\
figcaption,caption{font-size:.88rem;color:#444;text-align:left;margin-top:.45rem}\
.scroll{overflow-x:auto}\
table{border-collapse:collapse;font-size:.9rem;width:100%;font-variant-numeric:tabular-nums}\
caption{caption-side:bottom;padding-top:.5rem}\
th,td{text-align:right;padding:.22rem .55rem;border-bottom:1px solid #e2e2e2}\
th:first-child,td:first-child{text-align:left;font-weight:400}th{font-weight:600;border-bottom:1.5px solid #777}\
tr.marked td{background:#fdf1e8}tr.marked td:first-child::before{content:'! ';color:#b34700;font-weight:700}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1.2rem;font-size:.92rem;margin:.8rem 0}\
dt{color:#555}dd{margin:0}\
pre{font:13px/1.45 ui-monospace,Menlo,Consolas,'Liberation Mono',monospace;background:#f5f5f5;padding:.9rem;border-radius:6px;\
white-space:pre-wrap}\
summary{cursor:pointer}";

const DARK_PAGE: &str = "\
body{color:#e3e3e3;background:#17191c}h2{border-color:#3a3d42}a{color:#7cc4ff}\
.head{background:#1e2125;border-color:#3a3d42}.warn,tr.marked td{background:#3a2617}\
figcaption,caption{color:#b5b5b5}th,td{border-color:#33363b}dt{color:#aaa}pre{background:#22252a}\
.good{color:#4ed0a5}.bad,tr.marked td:first-child::before{color:#ff9a55}";

const PRINT: &str = "\
@page{margin:16mm 14mm}\
body{max-width:none;padding:0;font-size:10.5pt}nav{display:none}h2{break-after:avoid}\
.head,.warn,tr,.lead{break-inside:avoid}a{color:inherit;text-decoration:none}\
details>*{display:block}details::details-content{content-visibility:visible;display:block;block-size:auto}.scroll{overflow:visible}";

/// The whole page.
pub fn page(contents: &Contents) -> String {
    let title = escape(&contents.title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{title}</title>\n\
         <style>{STYLE}{LIGHT}@media screen and (prefers-color-scheme:dark){{{DARK_PAGE}{DARK}}}\
         @media print{{{PRINT}}}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    headline(contents, &mut out);
    out.push_str("<nav aria-label=\"Sections\">");
    for section in &contents.sections {
        out.push_str(&format!("<a href=\"#{}\">{}</a>", section.id, escape(&section.title)));
    }
    out.push_str("</nav>\n");
    contents.sections.iter().for_each(|section| write_section(section, &mut out));
    out.push_str("</body>\n</html>\n");
    out
}

fn headline(contents: &Contents, out: &mut String) {
    out.push_str("<div class=\"head\">\n");
    if !contents.warnings.is_empty() {
        out.push_str("<div class=\"warn\">");
        for warning in &contents.warnings {
            out.push_str(&format!("<p>{}</p>", escape(warning)));
        }
        out.push_str("</div>\n");
    }
    if !contents.checks.is_empty() {
        out.push_str("<ul class=\"checks\">");
        for check in &contents.checks {
            let (class, mark) = if check.good { ("good", "✓") } else { ("bad", "!") };
            let text = escape(&check.text);
            out.push_str(&format!("<li><span class=\"mark {class}\">{mark}</span>{text}</li>"));
        }
        out.push_str("</ul>\n");
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
        Block::Details { summary, text } => {
            let (summary, text) = (escape(summary), escape(text));
            out.push_str(&format!("<details><summary>{summary}</summary><pre>{text}</pre></details>\n"));
        }
    }
}
