//! Short forms, written out as the engine's own tables before they are read.
//!
//! | where | short | written out |
//! |---|---|---|
//! | prior | `2.0` | `{ fixed = { value = 2.0 } }` |
//! | | `"normal(0, 1)"` | `{ normal = { mean = 0, sd = 1 } }` |
//! | | `{ log_density = "-v^2", low = 0 }` | `{ log_density = { formula = "-v^2", low = 0 } }` |
//! | noise scale | a prior | `{ on = "sd", prior = ... }` |
//! | | `{ variance = prior }` | `{ on = "variance", prior = ... }` |
//! | kernel | `"se(x) + linear"` | sums and products of tables |
//! | mean, transition | `"0.5*x"` | `{ formula = "0.5*x" }` |
//! | sensor | `"poisson"` | `{ poisson = {} }` |
//! | | `{ family = "gaussian", mean = "abs(x)" }` | `{ gaussian = { mean = ... } }` |
//! | | `{ log_density = "..." }` | `{ formula = { log_density = "..." } }` |
//! | what a sensor shows | `"abs(x1)"`, `["x1", "x1*x2"]` | `{ formulas = [...] }` |
//! | noise | one prior or a list of them | `{ diagonal = [...] }` |
//! | prior over f | `"hilbert(40)"`, `"fic(30, sampled)"` | `{ hilbert = { functions = 40 } }`, ... |
//! | initial state | `[0.0, 1.0]` | `{ fixed = [0.0, 1.0] }` |
//! | symmetry | `flip = "x2"`, `orientation = "x2 raises x1"` | numbers from 0, tables |

use gpssm::sensor::family::{Descriptor, FAMILIES, find};

use super::error::Origin;
use super::kernel_text;
use super::read::ReadError;
use super::tree::{Kind, Node};
use crate::wording::one_line;

/// Writes out a short form of the type of this name; anything else comes back as it is.
pub(super) fn write_out(type_name: &str, node: Node) -> Result<Node, ReadError> {
    let origin = node.origin.clone();
    let new = Writer { origin: &origin };
    match type_name {
        "Prior" => prior(node, new),
        "ScalePrior" => Ok(scale_prior(node, new)),
        "KernelSpec" => match &node.kind {
            Kind::Text(text) => kernel_text::write_out(text, &node.origin),
            _ => Ok(node),
        },
        "FunctionSpec" => Ok(match &node.kind {
            Kind::Text(text) if !["zero", "identity"].contains(&text.as_str()) => new.one("formula", node),
            _ => node,
        }),
        "Predictor" => Ok(match &node.kind {
            Kind::Text(text) if text != "states" => new.one("formulas", new.list(vec![node])),
            Kind::Array(_) => new.one("formulas", node),
            _ => node,
        }),
        "SensorSpec" => Ok(sensor(node, new)),
        "ProcessNoiseSpec" | "SensorNoiseSpec" => Ok(noise(node, new)),
        "DynamicsSpec" => dynamics(node, new),
        "InducingSpec" => Ok(match &node.kind {
            Kind::Integer(_) => new.one("greedy", node),
            Kind::Array(_) => new.one("given", node),
            _ => node,
        }),
        "InitialSpec" => Ok(match &node.kind {
            Kind::Array(_) => new.one("fixed", node),
            _ => node,
        }),
        "Symmetry" => with_indices(node, &["flip"]),
        "Orientation" => orientation(node, new),
        _ => Ok(node),
    }
}

#[derive(Clone, Copy)]
struct Writer<'a> {
    origin: &'a Origin,
}

impl Writer<'_> {
    fn node(&self, kind: Kind) -> Node {
        Node::new(self.origin.clone(), kind)
    }

    fn table(&self, entries: Vec<(&str, Node)>) -> Node {
        let unseen = |(key, node): (&str, Node)| (key.to_owned(), Node { unseen_key: true, ..node });
        self.node(Kind::Table(entries.into_iter().map(unseen).collect()))
    }

    fn one(&self, key: &str, node: Node) -> Node {
        self.table(vec![(key, node)])
    }

    fn list(&self, items: Vec<Node>) -> Node {
        self.node(Kind::Array(items))
    }

    fn text(&self, text: &str) -> Node {
        self.node(Kind::Text(text.to_owned()))
    }

    fn index(&self, index: usize) -> Node {
        self.node(Kind::Integer(index as i128))
    }
}

/// Priors and their parameters in order.
const PRIORS: [(&str, &[&str]); 8] = [
    ("fixed", &["value"]),
    ("log_normal", &["median", "sigma"]),
    ("normal", &["mean", "sd"]),
    ("gamma", &["shape", "rate"]),
    ("inverse_gamma", &["shape", "scale"]),
    ("half_normal", &["sd"]),
    ("half_cauchy", &["scale"]),
    ("uniform", &["low", "high"]),
];

fn prior(node: Node, new: Writer) -> Result<Node, ReadError> {
    let text = match &node.kind {
        Kind::Integer(_) | Kind::Float(_) => return Ok(new.one("fixed", new.one("value", node))),
        Kind::Text(text) => text,
        Kind::Table(entries)
            if entries
                .iter()
                .any(|(key, value)| key == LOG_DENSITY && matches!(value.kind, Kind::Text(_))) =>
        {
            return Ok(log_density(node, new));
        }
        _ => return Ok(node),
    };
    let (name, arguments) = call(text).unwrap_or((text.trim(), Vec::new()));
    let Some((name, keys)) = PRIORS.iter().find(|(prior, _)| *prior == name) else {
        return Ok(new.text(name));
    };
    let numbers: Option<Vec<f64>> = arguments.iter().map(|argument| argument.parse().ok()).collect();
    match numbers {
        Some(numbers) if numbers.len() == keys.len() => {
            let entries = keys.iter().zip(numbers).map(|(key, number)| (*key, new.node(Kind::Float(number))));
            Ok(new.one(name, new.table(entries.collect())))
        }
        _ => Err(ReadError::new(format!(
            "\"{}\" is no prior: write \"{name}({})\" with numbers",
            one_line(text),
            keys.join(", ")
        ))),
    }
}

const LOG_DENSITY: &str = "log_density";

/// The formula and the ends of its support side by side.
fn log_density(node: Node, new: Writer) -> Node {
    let Kind::Table(mut entries) = node.kind else { return node };
    entries.iter_mut().filter(|(key, _)| key == LOG_DENSITY).for_each(|(key, value)| {
        *key = "formula".to_owned();
        value.unseen_key = true;
    });
    new.one(LOG_DENSITY, new.node(Kind::Table(entries)))
}

/// `name(a, b)`.
fn call(text: &str) -> Option<(&str, Vec<&str>)> {
    let (name, rest) = text.trim().split_once('(')?;
    let arguments = rest.strip_suffix(')')?;
    Some((name.trim(), arguments.split(',').map(str::trim).collect()))
}

fn scale_prior(node: Node, new: Writer) -> Node {
    match node.kind {
        Kind::Table(mut entries)
            if entries.len() == 1 && ["sd", "variance"].contains(&entries[0].0.as_str()) =>
        {
            let (on, prior) = entries.remove(0);
            new.table(vec![("on", new.text(&on)), ("prior", prior)])
        }
        Kind::Table(entries) if entries.iter().any(|(key, _)| key == "on" || key == "prior") => {
            new.node(Kind::Table(entries))
        }
        kind => new.table(vec![("on", new.text("sd")), ("prior", new.node(kind))]),
    }
}

/// Whether the keys of a family stand side by side with `family`, or without it.
fn is_family_key(key: &str) -> bool {
    let own = |family: &&Descriptor| {
        family.predictor == key || family.parameters.iter().any(|parameter| parameter.key == key)
    };
    key == "family" || FAMILIES.iter().any(own)
}

fn sensor(node: Node, new: Writer) -> Node {
    match node.kind {
        Kind::Table(entries) if entries.iter().any(|(key, _)| key == "log_density") => {
            new.one("formula", new.node(Kind::Table(entries)))
        }
        Kind::Table(mut entries) if entries.iter().any(|(key, _)| is_family_key(key)) => {
            let family = entries.iter().position(|(key, _)| key == "family");
            let family = family.map(|place| entries.remove(place).1);
            let name = match family.map(|node| node.kind) {
                Some(Kind::Text(name)) => name,
                _ => "gaussian".to_owned(),
            };
            // Every family is centred on something; `mean` will do as its name.
            let center = find(&name).map_or("mean", |family| family.predictor);
            entries.iter_mut().filter(|(key, _)| key == "mean").for_each(|(key, _)| *key = center.to_owned());
            new.one(&name, new.node(Kind::Table(entries)))
        }
        kind => new.node(kind),
    }
}

fn noise(node: Node, new: Writer) -> Node {
    match &node.kind {
        Kind::Array(_) | Kind::Integer(_) | Kind::Float(_) => new.one("diagonal", node),
        Kind::Text(text) if call(text).is_some() => new.one("diagonal", node),
        Kind::Table(entries)
            if entries.iter().any(|(key, _)| {
                ["sd", "variance", "on", "prior", LOG_DENSITY].contains(&key.as_str())
                    || PRIORS.iter().any(|(prior, _)| prior == key)
            }) =>
        {
            new.one("diagonal", node)
        }
        _ => node,
    }
}

fn dynamics(node: Node, new: Writer) -> Result<Node, ReadError> {
    let Kind::Text(text) = &node.kind else { return Ok(node) };
    let (name, arguments) = call(text).unwrap_or((text.trim(), Vec::new()));
    let key = match name {
        "hilbert" => "functions",
        "fourier" => "frequencies",
        "fic" | "dtc" => "inducing",
        _ => return Ok(new.text(name)),
    };
    let size = arguments.first().and_then(|argument| argument.parse::<u32>().ok());
    let mode = match arguments.get(1..) {
        Some([]) => Some(vec![]),
        Some([mode @ ("sampled" | "collapsed")]) => Some(vec![("mode", new.text(mode))]),
        _ => None,
    };
    match (size, mode) {
        (Some(size), Some(mode)) => {
            let entries = [vec![(key, new.index(size as usize))], mode].concat();
            Ok(new.one(name, new.table(entries)))
        }
        _ => Err(ReadError::new(format!(
            "write \"{name}(n)\" with the number n of basis functions, such as \"{name}(40)\", or \"{name}(40, sampled)\" \
             with weights that are drawn in each sweep"
        ))),
    }
}

/// `x2` is state 1 from 0, `u1` input 0.
pub(super) fn index(text: &str, letter: char) -> Option<usize> {
    let digits = text.trim().strip_prefix(letter)?;
    match digits {
        "" => Some(0),
        digits => digits.parse::<usize>().ok()?.checked_sub(1),
    }
}

/// Writes out names such as `x2` in these keys of a table.
fn with_indices(mut node: Node, keys: &[&str]) -> Result<Node, ReadError> {
    let replace = |key: &str, node: &mut Node| match &node.kind {
        Kind::Text(text) => {
            let letter = if key == "input" { 'u' } else { 'x' };
            let index = index(text, letter).ok_or_else(|| {
                let message = format!("expected {letter}1, {letter}2, ..., found \"{}\"", one_line(text));
                ReadError::new(message).from(&node.origin)
            })?;
            node.kind = Kind::Integer(index as i128);
            Ok(())
        }
        _ => Ok(()),
    };
    if let Kind::Table(entries) = &mut node.kind {
        for (key, value) in entries.iter_mut().filter(|(key, _)| keys.contains(&key.as_str())) {
            match &mut value.kind {
                Kind::Array(items) => items.iter_mut().try_for_each(|item| replace(key, item)),
                _ => replace(key, value),
            }
            .map_err(|error: ReadError| error.below(key.as_str()))?;
        }
    }
    Ok(node)
}

fn orientation(node: Node, new: Writer) -> Result<Node, ReadError> {
    let text = match node.kind {
        Kind::Text(text) => text,
        Kind::Table(entries) => {
            let inside = |(key, value): (String, Node)| {
                let value = with_indices(value, &["state", "input", "from", "to"]);
                Ok((key.clone(), value.map_err(|error| error.below(key))?))
            };
            let entries = entries.into_iter().map(inside).collect::<Result<_, ReadError>>()?;
            return Ok(new.node(Kind::Table(entries)));
        }
        kind => return Ok(new.node(kind)),
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let written = match words[..] {
        ["mean", "of", state] => {
            index(state, 'x').map(|state| new.one("positive_mean", new.one("state", new.index(state))))
        }
        [from, "raises", to] => match (index(from, 'u'), index(from, 'x'), index(to, 'x')) {
            (Some(input), _, Some(state)) => Some(new.one(
                "input_raises_state",
                new.table(vec![("input", new.index(input)), ("state", new.index(state))]),
            )),
            (_, Some(from), Some(to)) => Some(new.one(
                "state_raises_state",
                new.table(vec![("from", new.index(from)), ("to", new.index(to))]),
            )),
            _ => None,
        },
        _ => None,
    };
    written.ok_or_else(|| {
        let examples = "\"u1 raises x1\", \"x2 raises x1\" or \"mean of x1\"";
        ReadError::new(format!("\"{}\" is no orientation: write {examples}", one_line(&text)))
    })
}

#[cfg(test)]
mod tests {
    use gpssm::Prior;
    use gpssm::model::{
        DynamicsSpec, FunctionSpec, InducingSpec, InitialSpec, LogDensity, Mode, Orientation, Predictor,
        ProcessNoiseSpec, ScalePrior, SensorNoiseSpec, SensorSpec, Symmetry, Value,
    };
    use serde::de::DeserializeOwned;

    use crate::config::read::read;
    use crate::config::tree::{Kind, RunFile};

    /// The value of `v = <text>`.
    fn value<T: DeserializeOwned>(text: &str) -> Result<T, String> {
        let file = RunFile::parse(&format!("v = {text}"), "t").map_err(|error| error.to_string())?;
        let Kind::Table(mut entries) = file.root.kind else { panic!("no table") };
        read(entries.remove(0).1).map_err(|error| error.to_string())
    }

    #[test]
    fn priors() {
        assert_eq!(value("2"), Ok(Prior::Fixed { value: 2.0 }));
        assert_eq!(value("'normal(0, 1e-1)'"), Ok(Prior::Normal { mean: 0.0, sd: 0.1 }));
        assert_eq!(value("{ half_normal = { sd = 2 } }"), Ok(Prior::HalfNormal { sd: 2.0 }));
        let density = Prior::from(LogDensity::formula("-v^2", Some(0.0), None));
        assert_eq!(value("{ log_density = '-v^2', low = 0 }"), Ok(density.clone()));
        assert_eq!(value("{ log_density = { formula = '-v^2', low = 0 } }"), Ok(density.clone()));
        assert_eq!(
            value("{ log_density = '-v^2', low = 0 }"),
            Ok(SensorNoiseSpec::Diagonal(vec![ScalePrior::on_sd(density.clone())]))
        );
        assert_eq!(
            value("{ variance = { log_density = '-v^2', low = 0 } }"),
            Ok(ScalePrior::on_variance(density))
        );
        for (text, fragment) in [
            ("'normal(0)'", "write \"normal(mean, sd)\" with numbers"),
            ("'normal'", "write \"normal(mean, sd)\""),
            ("'norml(0, 1)'", "unknown name 'norml'; did you mean 'normal'?"),
            ("{ normal = { mean = 0 } }", "normal: the key 'sd' is missing"),
            ("{ normal = { mean = 0, sd = 1, sdd = 2 } }", "normal.sdd: unknown key; did you mean 'sd'?"),
            ("{ normal = { mean = 'a', sd = 1 } }", "normal.mean: expected a number, found the text \"a\""),
            ("true", "expected one of fixed, log_normal"),
            ("{ log_density = '-v^2', lo = 0 }", "lo: unknown key; did you mean 'low'?"),
            ("{ normal = {}, gamma = {} }", "found 2"),
        ] {
            let error = value::<Prior>(text).unwrap_err();
            assert!(error.contains(fragment), "{text}: {error}");
        }
    }

    #[test]
    fn scales_and_noise() {
        let sd = ScalePrior::on_sd(Prior::LogNormal { median: 1.0, sigma: 0.5 });
        let variance = ScalePrior::on_variance(Prior::InverseGamma { shape: 2.0, scale: 1.0 });
        assert_eq!(value("'log_normal(1, 0.5)'"), Ok(sd.clone()));
        assert_eq!(value("{ sd = 'log_normal(1, 0.5)' }"), Ok(sd.clone()));
        assert_eq!(value("{ variance = 'inverse_gamma(2, 1)' }"), Ok(variance.clone()));
        assert_eq!(
            value("{ on = 'variance', prior = { inverse_gamma = { shape = 2, scale = 1 } } }"),
            Ok(variance.clone())
        );
        let fixed = ScalePrior::on_sd(Prior::Fixed { value: 0.1 });
        assert_eq!(value("0.1"), Ok(ProcessNoiseSpec::Diagonal(vec![fixed.clone()])));
        assert_eq!(
            value("[0.1, { variance = 'inverse_gamma(2, 1)' }]"),
            Ok(SensorNoiseSpec::Diagonal(vec![fixed, variance]))
        );
        assert_eq!(value("'log_normal(1, 0.5)'"), Ok(SensorNoiseSpec::Diagonal(vec![sd])));
        assert_eq!(value("'full'"), Ok(ProcessNoiseSpec::Full(None)));
        assert_eq!(value("'diagonal'"), Ok(ProcessNoiseSpec::Diagonal(vec![])));
        assert!(value::<ProcessNoiseSpec>("'ful'").unwrap_err().contains("did you mean 'full'?"));
    }

    #[test]
    fn functions_and_sensors() {
        assert_eq!(value("'zero'"), Ok(FunctionSpec::Zero));
        assert_eq!(value("'0.5*x'"), Ok(FunctionSpec::Formula("0.5*x".into())));
        let linear = FunctionSpec::Linear {
            a: vec![Value::Known(1.0), Value::Learned(Prior::Normal { mean: 0.0, sd: 1.0 })],
            b: vec![],
            offset: Value::Known(0.0),
        };
        assert_eq!(value("{ linear = { a = [1, { normal = { mean = 0, sd = 1 } }] } }"), Ok(linear));
        assert!(
            value::<FunctionSpec>("{ linear = { a = [1, 'x'] } }")
                .unwrap_err()
                .contains("linear.a[2]: expected a number or a prior")
        );
        assert_eq!(value("'poisson'"), Ok(SensorSpec::Poisson { log_rate: Predictor::States }));
        let formulas = |texts: &[&str]| Predictor::Formulas(texts.iter().map(|t| (*t).to_owned()).collect());
        let absolute =
            SensorSpec::Gaussian { mean: formulas(&["abs(x)"]), noise: SensorNoiseSpec::default() };
        assert_eq!(value("{ mean = 'abs(x)' }"), Ok(absolute.clone()));
        assert_eq!(value("{ family = 'gaussian', mean = ['abs(x)'] }"), Ok(absolute.clone()));
        assert_eq!(value("{ gaussian = { mean = { formulas = ['abs(x)'] } } }"), Ok(absolute));
        assert_eq!(
            value("{ family = 'poisson', mean = '1 + x' }"),
            Ok(SensorSpec::Poisson { log_rate: formulas(&["1 + x"]) })
        );
        assert_eq!(
            value("{ log_density = '-(y - x)^2' }"),
            Ok(SensorSpec::Formula { log_density: "-(y - x)^2".into(), support: None })
        );
        for (text, fragment) in [
            ("'posson'", "unknown name 'posson'; did you mean 'poisson'?"),
            ("{ family = 'posson', mean = 'x' }", "did you mean 'poisson'?"),
            ("{ family = 'poisson', noise = 1 }", "noise: unknown key (keys here: log_rate)"),
            ("{ mean = 'x', nois = 1 }", "nois: unknown key; did you mean 'noise'?"),
        ] {
            let error = value::<SensorSpec>(text).unwrap_err();
            assert!(error.contains(fragment), "{text}: {error}");
        }
    }

    #[test]
    fn the_rest() {
        let mode = Mode::Collapsed;
        assert_eq!(value("'exact'"), Ok(DynamicsSpec::Exact));
        assert_eq!(
            value("'hilbert(40)'"),
            Ok(DynamicsSpec::Hilbert { functions: 40, half_width: vec![], mode })
        );
        assert_eq!(value("'fic(30)'"), Ok(DynamicsSpec::Fic { inducing: InducingSpec::Greedy(30), mode }));
        assert_eq!(value("'fic(30, collapsed)'"), value("'fic(30)'") as Result<DynamicsSpec, _>);
        let mode = Mode::Sampled;
        assert_eq!(
            value("'hilbert(40, sampled)'"),
            Ok(DynamicsSpec::Hilbert { functions: 40, half_width: vec![], mode })
        );
        for wrong in ["'hilbert(40, drawn)'", "'hilbert(sampled)'", "'hilbert(40, sampled, 2)'"] {
            assert!(value::<DynamicsSpec>(wrong).unwrap_err().contains("write \"hilbert(n)\""), "{wrong}");
        }
        assert!(value::<DynamicsSpec>("'hilbert'").unwrap_err().contains("write \"hilbert(n)\""));
        assert!(value::<DynamicsSpec>("'exakt'").unwrap_err().contains("did you mean 'exact'?"));
        assert_eq!(value("[0.0, 1]"), Ok(InitialSpec::Fixed(vec![0.0, 1.0])));
        let symmetry = |flip: &[usize], orientation| Symmetry {
            flip: flip.to_vec(),
            flip_parameters: vec![],
            orientation,
        };
        let raises = Orientation::InputRaisesState { input: 0, state: 1 };
        assert_eq!(value("{ flip = 'x2', orientation = 'u1 raises x2' }"), Ok(symmetry(&[1], raises)));
        assert_eq!(
            value("{ flip = [1], orientation = { input_raises_state = { input = 'u1', state = 1 } } }"),
            Ok(symmetry(&[1], raises))
        );
        assert_eq!(
            value("{ flip = ['x1', 'x2'], orientation = 'mean of x1' }"),
            Ok(symmetry(&[0, 1], Orientation::PositiveMean { state: 0 }))
        );
        assert_eq!(value("'x3 raises x1'"), Ok(Orientation::StateRaisesState { from: 2, to: 0 }));
        assert!(
            value::<Symmetry>("{ flip = 'y1', orientation = 'mean of x1' }")
                .unwrap_err()
                .contains("flip: expected x1, x2, ..., found \"y1\"")
        );
        assert!(value::<Orientation>("'up'").unwrap_err().contains("\"up\" is no orientation"));
    }
}
