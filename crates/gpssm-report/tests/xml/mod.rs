//! A strict little reader of XML, and of the HTML that the report writes.

pub struct Element {
    pub name: String,
    pub attributes: Vec<(String, String)>,
}

pub struct Document {
    pub elements: Vec<Element>,
    pub text: String,
}

fn check_text(text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let end = rest[at..].find(';').unwrap_or_else(|| panic!("bare & in {:?}", &rest[at..]));
        let entity = &rest[at + 1..at + end];
        let known = ["amp", "lt", "gt", "quot", "#39"].contains(&entity);
        assert!(known, "unknown entity {entity}");
        rest = &rest[at + end..];
    }
    let allowed = |c: char| !c.is_control() || matches!(c, '\n' | '\t' | '\r');
    assert!(text.chars().all(allowed), "control character");
}

fn attributes(tag: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut rest = tag.trim();
    while !rest.is_empty() {
        let (name, after) =
            rest.split_once("=\"").unwrap_or_else(|| panic!("attribute without value: {rest}"));
        let (value, after) = after.split_once('"').unwrap_or_else(|| panic!("open quote: {rest}"));
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "-:".contains(c)), "name {name}");
        assert!(!value.contains('<'), "< in attribute {name}");
        assert!(found.iter().all(|(other, _)| other != name), "{name} twice");
        check_text(value);
        found.push((name.to_owned(), value.to_owned()));
        assert!(after.is_empty() || after.starts_with(' '), "no space after {name}");
        rest = after.trim_start();
    }
    found
}

/// Panics at the first thing that is not well-formed.
pub fn parse(source: &str) -> Document {
    let mut rest = source.strip_prefix("<!DOCTYPE html>").unwrap_or(source);
    let mut open: Vec<String> = Vec::new();
    let mut document = Document { elements: Vec::new(), text: String::new() };
    while let Some(at) = rest.find('<') {
        check_text(&rest[..at]);
        document.text.push_str(&rest[..at]);
        let end = rest[at..].find('>').unwrap_or_else(|| panic!("open tag"));
        let tag = &rest[at + 1..at + end];
        rest = &rest[at + end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closing tag");
            continue;
        }
        let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, list) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "tag {name}");
        document.elements.push(Element { name: name.to_owned(), attributes: attributes(list) });
        if !closed && name != "meta" {
            open.push(name.to_owned());
        }
    }
    assert!(rest.trim().is_empty() && open.is_empty(), "left over: {open:?}");
    document
}
