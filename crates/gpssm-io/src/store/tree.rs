//! Zarr v3 metadata: groups, arrays, and the root file that holds all of it.
//!
//! The root `zarr.json` carries the metadata of the whole hierarchy (consolidated metadata), so that one rename
//! commits all lengths at once. Its first attribute is a checksum of the file itself.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::codec::LEVEL;
use super::error::StoreError;

pub(super) type Attributes = Map<String, Value>;

/// Type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataType {
    Float64,
    Int64,
    Text,
}

/// Metadata of an array.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Array {
    pub data_type: DataType,
    pub shape: Vec<u64>,
    /// Shape of a chunk.
    pub chunk: Vec<u64>,
    pub dimensions: Vec<String>,
    pub attributes: Attributes,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Group(Attributes),
    Array(Array),
}

/// The hierarchy: attributes of the root, and all nodes beneath it by path.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tree {
    pub attributes: Attributes,
    pub nodes: Vec<(String, Node)>,
}

/// What a root file begins with; the checksum follows.
const HEAD: &str = r#"{"zarr_format":3,"node_type":"group","attributes":{"checksum":""#;
/// What the checksum is while it is computed.
const BLANK: &str = "00000000";

impl DataType {
    fn name(self) -> &'static str {
        match self {
            Self::Float64 => "float64",
            Self::Int64 => "int64",
            Self::Text => "string",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Float64, Self::Int64, Self::Text].into_iter().find(|kind| kind.name() == name)
    }

    /// Value of elements that are in no chunk.
    fn fill(self) -> Value {
        match self {
            Self::Float64 => json!("NaN"),
            Self::Int64 => json!(0),
            Self::Text => json!(""),
        }
    }
}

impl Array {
    /// Number of elements of a chunk, if it can be counted.
    pub(super) fn chunk_len(&self) -> Option<u64> {
        self.chunk.iter().try_fold(1u64, |product, n| product.checked_mul(*n))
    }

    fn to_json(&self) -> Value {
        let serializer = match self.data_type {
            DataType::Text => json!({"name": "vlen-utf8"}),
            _ => json!({"name": "bytes", "configuration": {"endian": "little"}}),
        };
        json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": self.shape,
            "data_type": self.data_type.name(),
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": self.chunk}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
            "fill_value": self.data_type.fill(),
            "codecs": [
                serializer,
                {"name": "zstd", "configuration": {"level": LEVEL, "checksum": false}},
                {"name": "crc32c"},
            ],
            "attributes": self.attributes,
            "dimension_names": self.dimensions,
            "storage_transformers": [],
        })
    }

    fn from_json(value: &Value) -> Option<Self> {
        let sizes = |value: &Value| value.as_array()?.iter().map(Value::as_u64).collect::<Option<Vec<_>>>();
        Some(Self {
            data_type: DataType::from_name(value.get("data_type")?.as_str()?)?,
            shape: sizes(value.get("shape")?)?,
            chunk: sizes(value.pointer("/chunk_grid/configuration/chunk_shape")?)?,
            dimensions: texts(value.get("dimension_names")?)?,
            attributes: value.get("attributes")?.as_object()?.clone(),
        })
    }
}

impl Node {
    fn to_json(&self) -> Value {
        match self {
            Self::Group(attributes) => {
                json!({"zarr_format": 3, "node_type": "group", "attributes": attributes})
            }
            Self::Array(array) => array.to_json(),
        }
    }

    fn from_json(value: &Value) -> Option<Self> {
        match value.get("node_type")?.as_str()? {
            "group" => Some(Self::Group(value.get("attributes")?.as_object()?.clone())),
            "array" => Some(Self::Array(Array::from_json(value)?)),
            _ => None,
        }
    }

    /// Content of the node's own `zarr.json`.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        self.to_json().to_string().into_bytes()
    }
}

impl Tree {
    /// The array with this path.
    pub(super) fn array(&self, path: &str) -> Option<&Array> {
        self.nodes.iter().find_map(|(at, node)| match node {
            Node::Array(array) if at == path => Some(array),
            _ => None,
        })
    }

    /// Content of the root file.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut attributes = Attributes::new();
        attributes.insert("checksum".into(), BLANK.into());
        attributes.extend(self.attributes.clone());
        let nodes: Attributes =
            self.nodes.iter().map(|(path, node)| (path.clone(), node.to_json())).collect();
        let root = json!({
            "zarr_format": 3,
            "node_type": "group",
            "attributes": attributes,
            "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": nodes},
        });
        seal(root.to_string().into_bytes())
    }

    /// The hierarchy that a root file describes. Whatever is not exactly what [`Tree::to_bytes`] would write is
    /// refused.
    pub(super) fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self, StoreError> {
        if !bytes.starts_with(HEAD.as_bytes()) {
            let message = if bytes.is_empty() { "the file is empty" } else { "no root of a gpssm run" };
            return Err(StoreError::foreign(path, message));
        }
        if seal(bytes.to_vec()) != bytes {
            return Err(StoreError::damaged(path, "the checksum does not fit"));
        }
        let tree = serde_json::from_slice(bytes).ok().and_then(|value: Value| Self::from_json(&value));
        tree.filter(|tree| tree.to_bytes() == bytes)
            .ok_or_else(|| StoreError::foreign(path, "written by another version of the format"))
    }

    fn from_json(value: &Value) -> Option<Self> {
        let mut attributes = value.get("attributes")?.as_object()?.clone();
        attributes.shift_remove("checksum")?;
        let nodes = value.pointer("/consolidated_metadata/metadata")?.as_object()?;
        let nodes = nodes.iter().map(|(path, node)| Some((path.clone(), Node::from_json(node)?)));
        Some(Self { attributes, nodes: nodes.collect::<Option<_>>()? })
    }
}

/// Puts the checksum in its place, if the file is long enough to have one.
pub(super) fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let place = HEAD.len()..HEAD.len() + BLANK.len();
    if let Some(checksum) = bytes.get_mut(place.clone()) {
        checksum.copy_from_slice(BLANK.as_bytes());
        let crc = format!("{:08x}", crc32c::crc32c(&bytes));
        bytes[place].copy_from_slice(crc.as_bytes());
    }
    bytes
}

/// A list of texts.
pub(super) fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|text| Some(text.as_str()?.to_owned())).collect()
}
