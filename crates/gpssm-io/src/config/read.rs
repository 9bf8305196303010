//! Reads plain data from a tree of values, with errors that say where and suggest what was meant.
//!
//! Where the type that is asked for has a short form, `shorthand` writes it out first; that is why short
//! forms work wherever such a value stands, at any depth. One value does for a list of one.

use std::fmt;

use gpssm::formula::did_you_mean;
use serde::de::value::{MapDeserializer, StrDeserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, EnumAccess, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::error::Origin;
use super::shorthand;
use super::tree::{Kind, Node};
use crate::wording::{list, one_line};

pub(super) fn read<T: DeserializeOwned>(node: Node) -> Result<T, ReadError> {
    T::deserialize(node)
}

/// What is wrong, and the way to it from the innermost key outwards.
#[derive(Clone, Debug)]
pub(super) struct ReadError {
    pub(super) message: String,
    pub(super) origin: Origin,
    path: Vec<String>,
}

impl ReadError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), origin: Origin::Default, path: Vec::new() }
    }

    /// Where the value came from, unless something deeper inside it said so.
    pub(super) fn from(mut self, origin: &Origin) -> Self {
        if self.origin == Origin::Default {
            self.origin = origin.clone();
        }
        self
    }

    pub(super) fn below(mut self, key: impl Into<String>) -> Self {
        self.path.push(key.into());
        self
    }

    /// `model.state[2].kernel`.
    pub(super) fn key(&self) -> String {
        let mut key = String::new();
        for part in self.path.iter().rev() {
            if !key.is_empty() && !part.starts_with('[') {
                key.push('.');
            }
            key.push_str(part);
        }
        key
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.key(), self.message)
    }
}

impl std::error::Error for ReadError {}

impl de::Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let message = message.to_string();
        // The only type that is told apart by its content.
        if message.contains("untagged enum Value") {
            return Self::new("expected a number or a prior, such as { normal = { mean = 0, sd = 1 } }");
        }
        Self::new(message)
    }

    fn invalid_type(found: Unexpected, expected: &dyn Expected) -> Self {
        Self::new(format!("expected {}, found {}", describe(&expected.to_string()), found_in_words(&found)))
    }

    fn invalid_value(found: Unexpected, expected: &dyn Expected) -> Self {
        let is_count = ["u64", "u32", "usize"].contains(&expected.to_string().as_str());
        match found {
            Unexpected::Signed(1..) | Unexpected::Unsigned(_) if is_count => {
                Self::new(format!("{} is too large", found_in_words(&found)))
            }
            _ => Self::invalid_type(found, expected),
        }
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Self::new(format!("expected {}, found {length} values", describe(&expected.to_string())))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let suggestion = did_you_mean(field, expected.iter().copied());
        let keys = match suggestion.is_empty() && !expected.is_empty() {
            true => format!(" (keys here: {})", list(expected.iter().copied())),
            false => String::new(),
        };
        Self::new(format!("unknown key{suggestion}{keys}"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!(
            "unknown name '{}'{} (one of: {})",
            one_line(variant),
            did_you_mean(variant, expected.iter().copied()),
            list(expected.iter().copied())
        ))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("the key '{field}' is missing"))
    }
}

/// What serde expects, as a user would say it.
fn describe(expected: &str) -> String {
    match expected {
        "u64" | "u32" | "usize" => "a whole number, zero or more".to_owned(),
        "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" => "a text in quotes".to_owned(),
        "a tuple of size 2" => "two numbers in a list".to_owned(),
        other => other.to_owned(),
    }
}

fn found_in_words(found: &Unexpected) -> String {
    match found {
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(value) => format!("the number {value}"),
        Unexpected::Signed(value) => format!("the number {value}"),
        Unexpected::Float(value) => format!("the number {value}"),
        Unexpected::Str(text) => format!("the text \"{}\"", one_line(text)),
        Unexpected::Unit => "nothing".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a table".to_owned(),
        other => one_line(&other.to_string()),
    }
}

impl Node {
    fn mismatch(&self, expected: &str) -> ReadError {
        ReadError::new(format!("expected {expected}, found {}", self.kind.describe())).from(&self.origin)
    }

    fn into_list(self) -> Vec<Node> {
        match self.kind {
            Kind::Nothing => Vec::new(),
            Kind::Array(items) => items,
            _ => vec![self],
        }
    }
}

impl<'de> IntoDeserializer<'de, ReadError> for Node {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> de::Deserializer<'de> for Node {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let origin = self.origin.clone();
        let value = match self.kind {
            Kind::Nothing => visitor.visit_unit(),
            Kind::Text(text) => visitor.visit_string(text),
            Kind::Integer(value) => match (i64::try_from(value), u64::try_from(value)) {
                (Ok(value), _) => visitor.visit_i64(value),
                (_, Ok(value)) => visitor.visit_u64(value),
                _ => visitor.visit_i128(value),
            },
            Kind::Float(value) => visitor.visit_f64(value),
            Kind::Boolean(value) => visitor.visit_bool(value),
            Kind::Array(items) => visitor.visit_seq(Items::new(items)),
            Kind::Table(entries) => visitor.visit_map(Entries::new(entries)),
        };
        value.map_err(|error: ReadError| error.from(&origin))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.kind {
            Kind::Nothing => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let origin = self.origin.clone();
        visitor.visit_seq(Items::new(self.into_list())).map_err(|error: ReadError| error.from(&origin))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, n: usize, visitor: V) -> Result<V::Value, ReadError> {
        let length = match &self.kind {
            Kind::Array(items) => items.len(),
            _ => 1,
        };
        if length != n {
            return Err(self.mismatch(&format!("a list of {n} values")));
        }
        self.deserialize_seq(visitor)
    }

    /// Counts may be written 1e4.
    fn deserialize_u64<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, ReadError> {
        if let Kind::Float(value) = self.kind
            && value.fract() == 0.0
            && value.abs() < 1e15
        {
            self.kind = Kind::Integer(value as i128);
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.kind {
            Kind::Table(_) => self.deserialize_any(visitor),
            Kind::Nothing => visitor.visit_map(Entries::new(Vec::new())),
            _ => Err(self.mismatch("a table")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let origin = self.origin.clone();
        let node = shorthand::write_out(name, self).map_err(|error| error.from(&origin))?;
        match node.kind {
            Kind::Table(_) | Kind::Nothing => node.deserialize_map(visitor),
            _ => Err(node.mismatch(&format!("a table with keys {}", list(fields.iter().copied())))),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let origin = self.origin.clone();
        let node = shorthand::write_out(name, self).map_err(|error| error.from(&origin))?;
        let (variant, content) = match node.kind {
            Kind::Text(text) => (text, Node::new(origin.clone(), Kind::Nothing)),
            Kind::Table(mut entries) if entries.len() == 1 => match entries.pop() {
                Some(entry) => entry,
                None => return Err(ReadError::new("expected a name")),
            },
            Kind::Table(entries) => {
                let known = |key: &str| variants.contains(&key);
                let message = match entries.iter().find(|(key, _)| !known(key)) {
                    Some((key, node)) => {
                        let error = <ReadError as de::Error>::unknown_variant(key, variants);
                        return Err(error.from(&node.origin).below(key.clone()));
                    }
                    None => {
                        format!("expected one of {}, found {}", list(variants.iter().copied()), entries.len())
                    }
                };
                return Err(ReadError::new(message).from(&origin));
            }
            _ => return Err(node.mismatch(&format!("one of {}", list(variants.iter().copied())))),
        };
        visitor.visit_enum(Variant { name: variant, content }).map_err(|error: ReadError| error.from(&origin))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        tuple_struct identifier
    }
}

struct Items {
    items: std::iter::Enumerate<std::vec::IntoIter<Node>>,
    single: bool,
}

impl Items {
    fn new(items: Vec<Node>) -> Self {
        Self { single: items.len() == 1, items: items.into_iter().enumerate() }
    }
}

impl<'de> SeqAccess<'de> for Items {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        let Some((i, node)) = self.items.next() else { return Ok(None) };
        let origin = node.origin.clone();
        let value = seed.deserialize(node).map_err(|error| error.from(&origin));
        // A single value may stand without brackets.
        let value =
            if self.single { value } else { value.map_err(|error| error.below(format!("[{}]", i + 1))) };
        value.map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Entries {
    entries: std::vec::IntoIter<(String, Node)>,
    next: Option<(String, Node)>,
}

impl Entries {
    fn new(entries: Vec<(String, Node)>) -> Self {
        Self { entries: entries.into_iter(), next: None }
    }
}

impl<'de> MapAccess<'de> for Entries {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        let Some((key, node)) = self.entries.next() else { return Ok(None) };
        let name: StrDeserializer<'_, ReadError> = key.as_str().into_deserializer();
        let value = seed.deserialize(name).map_err(|error| error.from(&node.origin).below(key.clone()))?;
        self.next = Some((key, node));
        Ok(Some(value))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let Some((key, node)) = self.next.take() else { return Err(ReadError::new("a value without a key")) };
        let (origin, unseen) = (node.origin.clone(), node.unseen_key);
        let value = seed.deserialize(node).map_err(|error| error.from(&origin));
        if unseen { value } else { value.map_err(|error| error.below(key)) }
    }
}

struct Variant {
    name: String,
    content: Node,
}

/// The content of a variant whose name is known, for errors.
struct Content {
    name: String,
    node: Node,
}

impl Content {
    /// Whether the user wrote the name as a key.
    fn named(&self) -> bool {
        !self.node.unseen_key && !matches!(self.node.kind, Kind::Nothing)
    }
}

impl<'de> EnumAccess<'de> for Variant {
    type Error = ReadError;
    type Variant = Content;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Content), ReadError> {
        let name: StrDeserializer<'_, ReadError> = self.name.as_str().into_deserializer();
        let variant = seed.deserialize(name).map_err(|error| error.from(&self.content.origin))?;
        Ok((variant, Content { name: self.name, node: self.content }))
    }
}

impl<'de> VariantAccess<'de> for Content {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        match &self.node.kind {
            Kind::Nothing => Ok(()),
            Kind::Table(entries) if entries.is_empty() => Ok(()),
            other => {
                let message = format!("'{}' takes nothing, found {}", self.name, other.describe());
                Err(ReadError::new(message).from(&self.node.origin))
            }
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ReadError> {
        let named = self.named();
        let value = seed.deserialize(self.node);
        if named { value.map_err(|error| error.below(self.name)) } else { value }
    }

    fn tuple_variant<V: Visitor<'de>>(self, n: usize, visitor: V) -> Result<V::Value, ReadError> {
        de::Deserializer::deserialize_tuple(self.node, n, visitor).map_err(|error| error.below(self.name))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let named = self.named();
        let value = match self.node.kind {
            Kind::Table(_) => de::Deserializer::deserialize_any(self.node, visitor),
            Kind::Nothing => visitor.visit_map(MapDeserializer::new(std::iter::empty::<(String, Node)>())),
            _ => Err(self.node.mismatch(&format!("a table with keys {}", list(fields.iter().copied())))),
        };
        if named { value.map_err(|error| error.below(self.name)) } else { value }
    }
}
