//! The run file as a tree of values that know where they come from, and options that override it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::RunConfig;
use super::error::{ConfigError, Origin};
use super::read;
use crate::wording::one_line;

/// A value and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) origin: Origin,
    /// Whether its key is part of a short form written out, which the user has not seen.
    pub(super) unseen_key: bool,
    pub(super) kind: Kind,
}

impl Node {
    pub(super) fn new(origin: Origin, kind: Kind) -> Self {
        Self { origin, unseen_key: false, kind }
    }
}

/// A TOML value, or what a name alone stands for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// The content of a name without content.
    Nothing,
    Text(String),
    Integer(i128),
    Float(f64),
    Boolean(bool),
    Array(Vec<Node>),
    Table(Vec<(String, Node)>),
}

/// The longest run file: room for some ten thousand inducing inputs.
const LONGEST: usize = 4 << 20;

/// A run file, overridden by options.
#[derive(Clone, Debug)]
pub struct RunFile {
    pub(super) root: Node,
    pub(super) file: Option<String>,
    folder: PathBuf,
}

impl Default for RunFile {
    fn default() -> Self {
        let root = Node::new(Origin::Default, Kind::Table(Vec::new()));
        Self { root, file: None, folder: PathBuf::new() }
    }
}

impl RunFile {
    /// No file: everything comes from options and defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a run file.
    pub fn open(path: &Path) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let fail = |message: String| ConfigError {
            file: Some(file.clone()),
            key: String::new(),
            origin: Origin::Default,
            message,
        };
        let length = std::fs::metadata(path).map_err(|error| fail(refusal(&error)))?;
        if length.is_dir() {
            return Err(fail("this is a folder, not a run file".to_owned()));
        }
        if length.len() > LONGEST as u64 {
            return Err(fail(too_long()));
        }
        let bytes = std::fs::read(path).map_err(|error| fail(refusal(&error)))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| fail("the text is not UTF-8: save the file with the encoding UTF-8".to_owned()))?;
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        Ok(Self { folder, ..Self::parse(&text, &file)? })
    }

    /// Parses a run file; `file` is its name in messages.
    pub fn parse(text: &str, file: &str) -> Result<Self, ConfigError> {
        let fail = |origin, message| ConfigError {
            file: Some(file.to_owned()),
            key: String::new(),
            origin,
            message,
        };
        if text.len() > LONGEST {
            return Err(fail(Origin::Default, too_long()));
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = Lines::new(text);
        let table = DeTable::parse(text).map_err(|error| {
            let origin = error.span().map_or(Origin::Default, |span| lines.origin(span.start));
            fail(origin, format!("not valid TOML: {}", error.message()))
        })?;
        let origin = lines.origin(0);
        let root = Node::new(origin, table_kind(table.into_inner(), &|at| lines.origin(at)));
        Ok(Self { root, file: Some(file.to_owned()), folder: PathBuf::new() })
    }

    /// Overrides one value: `sampler.draws=200`, `model.kernel=se + linear`. What is no TOML value is a text.
    pub fn set(&mut self, assignment: &str) -> Result<(), ConfigError> {
        let option = format!("--set {}", one_line(assignment));
        let origin = Origin::Option(Arc::from(option.as_str()));
        let fail = |key: &str, message: String| ConfigError {
            file: self.file.clone(),
            key: key.to_owned(),
            origin: origin.clone(),
            message,
        };
        let Some((key, value)) = assignment.split_once('=') else {
            return Err(fail("", "write key=value, such as sampler.draws=200".to_owned()));
        };
        let (key, value) = (key.trim(), value.trim());
        if value.len() > LONGEST {
            return Err(fail(key, too_long()));
        }
        let node = match DeValue::parse(value) {
            Ok(parsed) => value_node(parsed, &|_| origin.clone()),
            Err(error) if value.starts_with(['[', '{', '"', '\'']) => {
                return Err(fail(key, format!("not a valid TOML value: {}", error.message())));
            }
            Err(_) => Node::new(origin.clone(), Kind::Text(value.to_owned())),
        };
        self.insert(key, node, &origin)
    }

    /// Sets a value on behalf of an option, such as `--draws`, that errors will name.
    pub fn put(&mut self, key: &str, value: impl Into<toml::Value>, option: &str) -> Result<(), ConfigError> {
        let origin = Origin::Option(Arc::from(option));
        let node = plain_node(value.into(), &origin);
        self.insert(key, node, &origin)
    }

    fn insert(&mut self, key: &str, node: Node, origin: &Origin) -> Result<(), ConfigError> {
        let file = self.file.clone();
        let fail =
            move |message: String| ConfigError { file, key: key.to_owned(), origin: origin.clone(), message };
        let Some(steps) = steps(key) else {
            return Err(fail("this is no key: write section.key, such as sampler.draws".to_owned()));
        };
        let mut at = &mut self.root;
        for step in steps {
            at = match (step, &mut at.kind) {
                (Step::Index(i), Kind::Array(items)) => {
                    let n = items.len();
                    match items.get_mut(i) {
                        Some(item) => item,
                        None => return Err(fail(format!("there is no entry [{}], only {n}", i + 1))),
                    }
                }
                (Step::Key(name), Kind::Table(entries)) => {
                    let place = entries.iter().position(|(key, _)| key == name).unwrap_or_else(|| {
                        let table = Node::new(origin.clone(), Kind::Table(Vec::new()));
                        entries.push((name.to_owned(), table));
                        entries.len() - 1
                    });
                    &mut entries[place].1
                }
                (Step::Key(name), other) => {
                    let message = format!("'{name}' cannot be set inside {}", other.describe());
                    return Err(fail(message));
                }
                (Step::Index(i), other) => {
                    return Err(fail(format!("there is no entry [{}] in {}", i + 1, other.describe())));
                }
            };
        }
        *at = node;
        Ok(())
    }

    /// Forgets what the file says under a key; what options say stays.
    pub(super) fn forget_in_file(&mut self, section: &str, key: &str) {
        if let Kind::Table(sections) = &mut self.root.kind
            && let Some((_, node)) = sections.iter_mut().find(|(name, _)| name == section)
            && let Kind::Table(entries) = &mut node.kind
        {
            entries.retain(|(name, node)| name != key || matches!(node.origin, Origin::Option(_)));
        }
    }

    /// Checks all keys and values as far as that is possible without the data.
    pub fn config(&self) -> Result<RunConfig, ConfigError> {
        let mut config: RunConfig = read::read(self.root.clone())
            .map_err(|error| self.error(error.key(), error.origin, error.message))?;
        // A point estimate is one draw of one chain, unless something else is asked for, which is then refused.
        if config.sampler.point && !self.is_given("sampler.ess") {
            config.sampler.draws.get_or_insert(1);
        }
        if config.sampler.point && !self.is_given("sampler.chains") {
            config.sampler.chains = 1;
        }
        Ok(config)
    }

    /// The data file: the one given on the command line, else that of the run file, relative to it.
    pub fn data_path(&self, config: &RunConfig, given: Option<&Path>) -> Result<PathBuf, ConfigError> {
        match (given, &config.data.file) {
            (Some(path), _) => Ok(path.to_owned()),
            (None, Some(file)) => Ok(self.folder.join(file)),
            (None, None) => {
                let message = "no data: write file = \"data.csv\", or name the file on the command line";
                Err(self.error("data.file".to_owned(), self.origin("data.file"), message.to_owned()))
            }
        }
    }

    pub(super) fn error(&self, key: String, origin: Origin, message: String) -> ConfigError {
        ConfigError { file: self.file.clone(), key, origin, message }
    }

    /// Whether a key such as `sampler.draws` was set, in the file or by an option.
    pub fn is_given(&self, key: &str) -> bool {
        let mut at = &self.root;
        for step in steps(key).unwrap_or_default() {
            let (Step::Key(name), Kind::Table(entries)) = (step, &at.kind) else { return false };
            match entries.iter().find(|(key, _)| key == name) {
                Some((_, node)) => at = node,
                None => return false,
            }
        }
        true
    }

    /// Where the value of a key comes from, or that of the nearest key above it that is there.
    pub(super) fn origin(&self, key: &str) -> Origin {
        let mut at = &self.root;
        let mut origin = Origin::Default;
        for step in steps(key).unwrap_or_default() {
            let next = match (step, &at.kind) {
                (Step::Key(name), Kind::Table(entries)) => {
                    entries.iter().find(|(key, _)| key == name).map(|(_, node)| node)
                }
                (Step::Index(i), Kind::Array(items)) => items.get(i),
                _ => None,
            };
            match next {
                Some(node) => at = node,
                None => break,
            }
            origin = at.origin.clone();
        }
        origin
    }
}

fn refusal(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => format!("cannot be read: {error}"),
    }
}

fn too_long() -> String {
    format!("longer than {LONGEST} bytes: this is not a run file")
}

enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// `model.state[2].kernel`; entries count from 1.
fn steps(key: &str) -> Option<Vec<Step<'_>>> {
    let mut steps = Vec::new();
    for part in key.split('.') {
        let (name, indices) = match part.find('[') {
            Some(at) => (&part[..at], &part[at..]),
            None => (part, ""),
        };
        let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(plain) {
            return None;
        }
        steps.push(Step::Key(name));
        for index in indices.split_terminator(']') {
            let index: usize = index.strip_prefix('[')?.parse().ok()?;
            steps.push(Step::Index(index.checked_sub(1)?));
        }
        if !(indices.is_empty() || indices.ends_with(']')) {
            return None;
        }
    }
    // The file itself is not nested deeper.
    (steps.len() <= 80).then_some(steps)
}

impl Kind {
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Nothing => "nothing".to_owned(),
            Self::Text(text) => format!("the text \"{}\"", one_line(text)),
            Self::Integer(value) => format!("the number {value}"),
            Self::Float(value) => format!("the number {value}"),
            Self::Boolean(value) => format!("{value}"),
            Self::Array(_) => "a list".to_owned(),
            Self::Table(_) => "a table".to_owned(),
        }
    }
}

/// Lines of a text by offset.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        Self(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect())
    }

    fn origin(&self, offset: usize) -> Origin {
        Origin::Line(self.0.partition_point(|&end| end < offset) + 1)
    }
}

fn table_kind(table: DeTable<'_>, origin: &dyn Fn(usize) -> Origin) -> Kind {
    let entry = |(key, value): (Spanned<std::borrow::Cow<'_, str>>, Spanned<DeValue<'_>>)| {
        let at = key.span().start;
        let mut node = value_node(value, origin);
        // The line of the key, also where the value starts on another one.
        node.origin = origin(at);
        (key.into_inner().into_owned(), node)
    };
    Kind::Table(table.into_iter().map(entry).collect())
}

fn value_node(value: Spanned<DeValue<'_>>, origin: &dyn Fn(usize) -> Origin) -> Node {
    let at = value.span().start;
    let kind = match value.into_inner() {
        DeValue::String(text) => Kind::Text(text.into_owned()),
        DeValue::Integer(digits) => i128::from_str_radix(digits.as_str(), digits.radix())
            .map_or_else(|_| Kind::Text(digits.to_string()), Kind::Integer),
        DeValue::Float(digits) => {
            digits.as_str().parse().map_or_else(|_| Kind::Text(digits.to_string()), Kind::Float)
        }
        DeValue::Boolean(value) => Kind::Boolean(value),
        DeValue::Datetime(value) => Kind::Text(value.to_string()),
        DeValue::Array(items) => {
            Kind::Array(items.into_iter().map(|item| value_node(item, origin)).collect())
        }
        DeValue::Table(table) => table_kind(table, origin),
    };
    Node::new(origin(at), kind)
}

fn plain_node(value: toml::Value, origin: &Origin) -> Node {
    let kind = match value {
        toml::Value::String(text) => Kind::Text(text),
        toml::Value::Integer(value) => Kind::Integer(value.into()),
        toml::Value::Float(value) => Kind::Float(value),
        toml::Value::Boolean(value) => Kind::Boolean(value),
        toml::Value::Datetime(value) => Kind::Text(value.to_string()),
        toml::Value::Array(items) => {
            Kind::Array(items.into_iter().map(|item| plain_node(item, origin)).collect())
        }
        toml::Value::Table(table) => {
            Kind::Table(table.into_iter().map(|(key, value)| (key, plain_node(value, origin))).collect())
        }
    };
    Node::new(origin.clone(), kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_know_their_lines() {
        let file =
            RunFile::parse("[model]\nstates = 2\n\n[[model.state]]\nkernel = 'se'\n", "m.toml").unwrap();
        assert_eq!(file.origin("model.states"), Origin::Line(2));
        assert_eq!(file.origin("model.state[1].kernel"), Origin::Line(5));
        assert_eq!(file.origin("model.state[1].mean"), Origin::Line(4));
        assert_eq!(file.origin("sampler.draws"), Origin::Default);
    }

    #[test]
    fn options_override_and_say_so() {
        let mut file =
            RunFile::parse("[sampler]\ndraws = 100\n[[model.state]]\nkernel = 'se'", "m.toml").unwrap();
        file.set("sampler.draws=200").unwrap();
        file.set("model.state[1].kernel = se + linear").unwrap();
        file.put("data.y", vec!["a", "b"], "--y a,b").unwrap();
        let text = |file: &RunFile, key: &str| match file.origin(key) {
            Origin::Option(option) => option.to_string(),
            other => format!("{other:?}"),
        };
        assert_eq!(text(&file, "sampler.draws"), "--set sampler.draws=200");
        assert_eq!(text(&file, "data.y"), "--y a,b");
        for (assignment, fragment) in [
            ("draws", "write key=value"),
            ("=3", "this is no key"),
            ("a..b=3", "this is no key"),
            ("model.state[0].kernel=se", "this is no key"),
            ("model.state[2].kernel=se", "there is no entry [2], only 1"),
            ("sampler.draws.more=3", "'more' cannot be set inside the number 200"),
            ("model.symmetries=[1", "not a valid TOML value"),
        ] {
            let error = file.set(assignment).unwrap_err().to_string();
            assert!(error.contains(fragment) && error.starts_with("--set"), "{error}");
        }
    }

    #[test]
    fn hostile_files_end_in_errors() {
        let nested = |open: &str, close: &str, n: usize| format!("a = {}{}", open.repeat(n), close.repeat(n));
        for text in [
            nested("[", "]", 100_000),
            nested("{a=", "}", 100_000),
            format!("{} = 1", vec!["a"; 50_000].join(".")),
            format!("[{}]", vec!["a"; 50_000].join(".")),
            "a".repeat(LONGEST + 1),
            "\u{0}".to_owned(),
        ] {
            assert!(RunFile::parse(&text, "m.toml").is_err());
        }
        assert!(RunFile::new().set(&format!("{}=1", vec!["a"; 50_000].join("."))).is_err());
    }
}
