//! Names of states, inputs and outputs, and what every name means in a formula.

use std::collections::BTreeMap;

use super::spec::Model;
use crate::error::Error;
use crate::formula::{did_you_mean, is_name, reserved};
pub use crate::identity::Names;

impl Model {
    /// Names of all states, as given or by default.
    pub fn state_names(&self) -> Vec<String> {
        given_or_default(&self.names.states, "x", self.states.len())
    }

    /// Names of all inputs.
    pub fn input_names(&self) -> Vec<String> {
        given_or_default(&self.names.inputs, "u", self.n_u)
    }

    /// Names of all outputs.
    pub fn output_names(&self) -> Vec<String> {
        given_or_default(&self.names.outputs, "y", self.n_y)
    }

    /// All of these names.
    pub fn all_names(&self) -> Names {
        Names { states: self.state_names(), inputs: self.input_names(), outputs: self.output_names() }
    }
}

fn given_or_default(given: &[String], letter: &str, n: usize) -> Vec<String> {
    match n {
        _ if !given.is_empty() => given.to_vec(),
        1 => vec![letter.to_owned()],
        _ => (1..=n).map(|i| format!("{letter}{i}")).collect(),
    }
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    State(usize),
    Input(usize),
    Output(usize),
    Parameter,
}

impl Meaning {
    fn article(self) -> &'static str {
        match self {
            Self::State(_) => "a state",
            Self::Input(_) => "an input",
            Self::Output(_) => "an output",
            Self::Parameter => "a parameter",
        }
    }
}

/// All names that a formula can use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    meanings: BTreeMap<String, Meaning>,
}

/// Names as given, their number, the letter of the default names, and what each stands for.
type Group<'a> = (&'static str, &'a [String], usize, char, fn(usize) -> Meaning);

impl Scope {
    /// Checks the names that are given and adds the default ones.
    pub(crate) fn new(model: &Model) -> Result<Self, Error> {
        let groups: [Group; 3] = [
            ("states", &model.names.states, model.states.len(), 'x', Meaning::State),
            ("inputs", &model.names.inputs, model.n_u, 'u', Meaning::Input),
            ("outputs", &model.names.outputs, model.n_y, 'y', Meaning::Output),
        ];
        let mut meanings = BTreeMap::new();
        for (group, given, n, _, meaning) in groups {
            let key = format!("names.{group}");
            if !given.is_empty() && given.len() != n {
                return Err(Error::model(key, format!("{} names for {n} {group}", given.len())));
            }
            for (i, name) in given.iter().enumerate() {
                let refuse = |message: String| Err(Error::model(format!("{key}[{i}]"), message));
                if name.trim().is_empty() {
                    return refuse("a name is empty".into());
                }
                if let Some(kind) = reserved(name) {
                    return refuse(format!("\"{name}\" is the name of a {kind} in formulas: choose another"));
                }
                if model.parameters.contains_key(name) {
                    return refuse(format!("\"{name}\" is also the name of a parameter: rename one"));
                }
                if let Some(other) = meanings.insert(name.clone(), meaning(i)) {
                    return refuse(format!("\"{name}\" is already the name of {}", other.article()));
                }
            }
        }
        let named: Vec<char> =
            groups.iter().filter(|group| !group.1.is_empty()).map(|group| group.3).collect();
        let mut defaults = BTreeMap::new();
        for (_, _, n, letter, meaning) in groups {
            defaults.extend((0..n).map(|i| (format!("{letter}{}", i + 1), meaning(i))));
            if n == 1 {
                defaults.insert(letter.to_string(), meaning(0));
            }
        }
        // A parameter can have a default name only where the user has chosen other names.
        for name in model.parameters.keys() {
            if !defaults.contains_key(name) || name.starts_with(named.as_slice()) {
                meanings.insert(name.clone(), Meaning::Parameter);
            }
        }
        for (name, meaning) in defaults {
            meanings.entry(name).or_insert(meaning);
        }
        Ok(Self { meanings })
    }

    /// Refuses parameters that a formula could not name. Models without formulas can call them as they like.
    pub(crate) fn check_parameters(&self, model: &Model) -> Result<(), Error> {
        for name in model.parameters.keys() {
            let refuse = |message: String| Err(Error::model(format!("parameters.{name}"), message));
            if let Some(kind) = reserved(name) {
                return refuse(format!("this is the name of a {kind} in formulas: choose another"));
            }
            if !is_name(name) {
                return refuse("a name in a formula has letters, digits and underscores only".into());
            }
            if let Some(meaning) = self.meanings.get(name).filter(|meaning| **meaning != Meaning::Parameter) {
                return refuse(format!(
                    "this is the name of {} in formulas: choose another",
                    meaning.article()
                ));
            }
        }
        Ok(())
    }

    /// What a name in a formula stands for; outputs are known in the log density of a sensor only.
    pub(crate) fn meaning(&self, name: &str, outputs: bool) -> Result<Meaning, String> {
        let visible = |meaning: &Meaning| outputs || !matches!(meaning, Meaning::Output(_));
        match self.meanings.get(name) {
            Some(meaning) if visible(meaning) => Ok(*meaning),
            Some(_) => {
                Err(format!("'{name}' is an output: only the log density of a sensor can use outputs"))
            }
            None => {
                let known = self.meanings.iter().filter(|(name, meaning)| visible(meaning) && is_name(name));
                // One of several is asked for without its number.
                let first = format!("{name}1");
                let hint = match self.meanings.get(&first) {
                    Some(_) => format!("; did you mean '{first}'?"),
                    None => did_you_mean(name, known.map(|(name, _)| name.as_str())),
                };
                let kinds = if outputs { "an output, a state, an input" } else { "a state, an input" };
                Err(format!("unknown name '{name}': it is not {kinds} or one of the parameters{hint}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::prior::Prior;

    fn model(states: &[&str], inputs: &[&str], parameters: &[&str]) -> Model {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        Model {
            names: Names { states: owned(states), inputs: owned(inputs), outputs: Vec::new() },
            parameters: parameters.iter().map(|p| ((*p).into(), Prior::Fixed { value: 1.0 })).collect(),
            ..Model::observed(states.len().max(1), inputs.len().max(1))
        }
    }

    #[test]
    fn default_names_hold_unless_another_name_takes_them() {
        let meaning = |model: &Model, name: &str| Scope::new(model).unwrap().meaning(name, true).ok();
        let plain = model(&[], &[], &["a"]);
        for name in ["x", "x1"] {
            assert_eq!(meaning(&plain, name), Some(Meaning::State(0)));
        }
        assert_eq!(meaning(&plain, "u1"), Some(Meaning::Input(0)));
        assert_eq!(meaning(&plain, "y"), Some(Meaning::Output(0)));
        assert_eq!(meaning(&plain, "a"), Some(Meaning::Parameter));
        assert_eq!(meaning(&plain, "x2"), None);
        let swapped = model(&["x2", "speed (m/s)", "u"], &[], &["x3"]);
        assert_eq!(meaning(&swapped, "x1"), Some(Meaning::State(0)));
        assert_eq!(meaning(&swapped, "x2"), Some(Meaning::State(0)));
        assert_eq!(meaning(&swapped, "x3"), Some(Meaning::Parameter));
        assert_eq!(meaning(&swapped, "u"), Some(Meaning::State(2)));
        assert_eq!(meaning(&swapped, "u1"), Some(Meaning::Input(0)));
        assert_eq!(meaning(&swapped, "x"), None);
    }

    #[test]
    fn clashes_are_refused_by_name() {
        let refused = |model: Model| {
            let result = Scope::new(&model).and_then(|scope| scope.check_parameters(&model));
            result.unwrap_err().to_string()
        };
        for (model, message) in [
            (model(&["a", "a"], &[], &[]), "names.states[1]: \"a\" is already the name of a state"),
            (model(&["a"], &["a"], &[]), "names.inputs[0]: \"a\" is already the name of a state"),
            (
                model(&["exp"], &[], &[]),
                "names.states[0]: \"exp\" is the name of a function in formulas: choose another",
            ),
            (
                model(&["e"], &[], &[]),
                "names.states[0]: \"e\" is the name of a constant in formulas: choose another",
            ),
            (
                model(&["a"], &[], &["a"]),
                "names.states[0]: \"a\" is also the name of a parameter: rename one",
            ),
            (model(&[" "], &[], &[]), "names.states[0]: a name is empty"),
            (
                model(&[], &[], &["x"]),
                "parameters.x: this is the name of a state in formulas: choose another",
            ),
            (
                model(&[], &[], &["pi"]),
                "parameters.pi: this is the name of a constant in formulas: choose another",
            ),
            (
                model(&[], &[], &["my rate"]),
                "parameters.my rate: a name in a formula has letters, digits and underscores only",
            ),
        ] {
            assert_eq!(refused(model), format!("model: {message}"));
        }
        let two = Model { n_y: 1, ..model(&["a", "b"], &[], &[]) };
        let wrong =
            Model { names: Names { outputs: vec!["p".into(), "q".into()], ..Names::default() }, ..two };
        assert_eq!(refused(wrong), "model: names.outputs: 2 names for 1 outputs");
    }
}
