//! A kernel in a model file: a table under its name, such as `{ matern32 = { active = ["x"], ell = [...] } }`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use serde::de::{self, DeserializeSeed, Deserializer, EnumAccess, MapAccess, VariantAccess, Visitor};
use serde::ser::{SerializeMap, SerializeStruct};
use serde::{Deserialize, Serialize, Serializer};

use super::{CHANGE_POINT, KernelSpec, PartSpec};
use crate::kernel::descriptor::KernelParameter;
use crate::kernel::{Descriptor, KERNELS};
use crate::model::prior::Prior;

/// Names of composed kernels.
const COMPOSED: [&str; 7] = ["sum", "product", "scaled", "power", CHANGE_POINT, "odd", "user"];

/// All names, for errors.
static NAMES: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| KERNELS.iter().map(|kernel| kernel.name).chain(COMPOSED).collect());

/// The keys of each kernel, in the order of the table.
static KEYS: LazyLock<Vec<Vec<&'static str>>> = LazyLock::new(|| {
    let keys = |kernel: &&Descriptor| {
        let active = kernel.has_components().then_some(ACTIVE);
        active.into_iter().chain(kernel.parameters.iter().map(|parameter| parameter.name)).collect()
    };
    KERNELS.iter().map(keys).collect()
});

const ACTIVE: &str = "active";

fn keys(kind: &Descriptor) -> &'static [&'static str] {
    let place = KERNELS.iter().position(|kernel| *kernel == kind);
    place.map_or(&[], |place| &KEYS[place])
}

impl Serialize for KernelSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Self::Part(part) => map.serialize_entry(part.kind.name, &Fields(part))?,
            Self::User(kernel) => map.serialize_entry("user", kernel)?,
            Self::Sum(parts) => map.serialize_entry("sum", parts)?,
            Self::Product(parts) => map.serialize_entry("product", parts)?,
            Self::Scaled(kernel) => map.serialize_entry("scaled", kernel)?,
            Self::Power(kernel) => map.serialize_entry("power", kernel)?,
            Self::ChangePoint(change) => map.serialize_entry(CHANGE_POINT, change)?,
            Self::Odd(kernel) => map.serialize_entry("odd", kernel)?,
        }
        map.end()
    }
}

struct Fields<'a>(&'a PartSpec);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let PartSpec { kind, active, parameters } = self.0;
        let mut table =
            serializer.serialize_struct("PartSpec", parameters.len() + usize::from(active.is_some()))?;
        if let Some(active) = active {
            table.serialize_field(ACTIVE, active)?;
        }
        for parameter in kind.parameters {
            match parameters.get(parameter.name).map(Vec::as_slice) {
                None | Some([]) => {}
                Some([prior]) if !parameter.each => table.serialize_field(parameter.name, prior)?,
                Some(priors) => table.serialize_field(parameter.name, priors)?,
            }
        }
        table.end()
    }
}

impl<'de> Deserialize<'de> for KernelSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_enum("KernelSpec", &NAMES, Whole)
    }
}

struct Whole;

impl<'de> Visitor<'de> for Whole {
    type Value = KernelSpec;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a kernel")
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<KernelSpec, A::Error> {
        let (name, content): (String, _) = data.variant()?;
        Ok(match name.as_str() {
            "sum" => KernelSpec::Sum(content.newtype_variant()?),
            "product" => KernelSpec::Product(content.newtype_variant()?),
            "scaled" => KernelSpec::Scaled(content.newtype_variant()?),
            "power" => KernelSpec::Power(content.newtype_variant()?),
            CHANGE_POINT => KernelSpec::ChangePoint(content.newtype_variant()?),
            "odd" => KernelSpec::Odd(content.newtype_variant()?),
            "user" => KernelSpec::User(content.newtype_variant()?),
            name => {
                let kind = Descriptor::named(name).ok_or_else(|| de::Error::unknown_variant(name, &NAMES))?;
                KernelSpec::Part(content.newtype_variant_seed(Table(kind))?)
            }
        })
    }
}

/// The table of one kernel.
struct Table(&'static Descriptor);

impl<'de> DeserializeSeed<'de> for Table {
    type Value = PartSpec;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<PartSpec, D::Error> {
        deserializer.deserialize_struct("PartSpec", keys(self.0), self)
    }
}

impl<'de> Visitor<'de> for Table {
    type Value = PartSpec;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the table of a {} kernel", self.0.title)
    }

    fn visit_unit<E: de::Error>(self) -> Result<PartSpec, E> {
        Ok(PartSpec { kind: self.0, active: None, parameters: BTreeMap::new() })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PartSpec, A::Error> {
        let mut part = PartSpec { kind: self.0, active: None, parameters: BTreeMap::new() };
        while let Some(key) = map.next_key_seed(Key(self.0))? {
            match key {
                None => part.active = map.next_value()?,
                Some(parameter) if parameter.each => {
                    part.parameters.insert(parameter.name.to_owned(), map.next_value()?);
                }
                Some(parameter) => {
                    let prior: Prior = map.next_value()?;
                    part.parameters.insert(parameter.name.to_owned(), vec![prior]);
                }
            }
        }
        Ok(part)
    }
}

/// A key of the table: a hyper-parameter, or none for `active`.
struct Key(&'static Descriptor);

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Option<&'static KernelParameter>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let name = String::deserialize(deserializer)?;
        if name == ACTIVE && self.0.has_components() {
            return Ok(None);
        }
        let parameter = self.0.parameters.iter().find(|parameter| parameter.name == name);
        parameter.map(Some).ok_or_else(|| de::Error::unknown_field(&name, keys(self.0)))
    }
}
