//! ONNX: one step of the model as a graph of 64-bit tensors, over a batch of states and inputs.
//!
//! Inputs `x` (batch, states) and `u` (batch, inputs); outputs `mean` and `variance` of f (batch, states), and `y_mean` and
//! `y_variance` of the outputs at the same point. Names of components stand in the documentation of each tensor and in the
//! metadata of the model.

mod wire;

use gpssm::formula::{Binary, Operation, Unary};
use gpssm::posterior::SparseFunction;

use self::wire::{Message, tensor, value_info};
use crate::File;
use crate::error::ExportError;
use crate::expression::{Graph, Id};
use crate::kernel::KernelExpression;
use crate::model::{Model, Precision, State};

/// Version of the operators, and of the file format that goes with it.
const OPSET: u64 = 17;
const FORMAT: u64 = 8;

/// The model as one file.
pub fn export(model: &Model) -> Result<File, ExportError> {
    if model.options.precision == Precision::Float {
        return Err(ExportError::option("precision", "ONNX models are written in 64 bits: use double"));
    }
    let (n_x, n_u, n_y) = model.sizes();
    let d = &model.distilled;
    let mut builder = Builder::default();
    let point = match n_u {
        0 => "x".to_owned(),
        _ => builder.node("Concat", &["x", "u"], &[("axis", 1)]),
    };
    let row = |values: &[f64]| (values.to_vec(), vec![1, values.len()]);
    let shift = builder.constant(row(&[&d.x_units.shift[..], &d.u_units.shift].concat()));
    let scale = builder.constant(row(&[&d.x_units.scale[..], &d.u_units.scale].concat()));
    let moved = builder.node("Sub", &[&point, &shift], &[]);
    let z = builder.node("Div", &[&moved, &scale], &[]);
    let columns: Vec<String> = (0..n_x + n_u).map(|c| builder.column(&z, c)).collect();
    // Zero for every row of the batch: what does not depend on the point gets its shape.
    let nothing = builder.constant((vec![0.0], vec![1, 1]));
    let zeros = builder.node("Mul", &[&columns[0], &nothing], &[]);
    let (mut means, mut variances) = (Vec::new(), Vec::new());
    for state in &model.states {
        let (mean, variance) = match state {
            State::Lag(of) => (columns[*of].clone(), zeros.clone()),
            State::Sparse(f, kernel) => builder.sparse(f, kernel, &z, &columns)?,
        };
        means.push(builder.node("Add", &[&mean, &zeros], &[]));
        variances.push(builder.node("Add", &[&variance, &zeros], &[]));
    }
    let (x_shift, x_scale) =
        (builder.constant(row(&d.x_units.shift)), builder.constant(row(&d.x_units.scale)));
    let squares: Vec<f64> = d.x_units.scale.iter().map(|scale| scale * scale).collect();
    let squares = builder.constant(row(&squares));
    let mean = builder.join(&means);
    let mean = builder.node("Mul", &[&mean, &x_scale], &[]);
    builder.named("Add", &[&mean, &x_shift], "mean");
    let variance = builder.join(&variances);
    builder.named("Mul", &[&variance, &squares], "variance");
    let mut outputs = vec![("mean", n_x, &d.state_names), ("variance", n_x, &d.state_names)];
    if let Some(moments) = &model.sensor.moments {
        let columns: Vec<String> = (0..n_x + n_u).map(|c| builder.column(&point, c)).collect();
        for (roots, name) in [(&moments.mean, "y_mean"), (&moments.variance, "y_variance")] {
            let found = builder.expressions(&model.sensor.graph, roots, &columns)?;
            let found: Vec<String> =
                found.iter().map(|value| builder.node("Add", &[value, &zeros], &[])).collect();
            let all = builder.join(&found);
            builder.named("Identity", &[&all], name);
            outputs.push((name, n_y, &d.output_names));
        }
    }
    let mut graph = Message::default();
    builder.nodes.iter().for_each(|node| graph.message(1, node));
    graph.text(2, &model.options.name);
    builder.constants.iter().for_each(|constant| graph.message(5, constant));
    graph.message(11, &value_info("x", n_x, &d.state_names.join(", ")));
    if n_u > 0 {
        graph.message(11, &value_info("u", n_u, &d.input_names.join(", ")));
    }
    outputs.iter().for_each(|(name, n, names)| graph.message(12, &value_info(name, *n, &names.join(", "))));
    let mut file = Message::default();
    file.number(1, FORMAT);
    file.text(2, "gpssm");
    file.text(3, env!("CARGO_PKG_VERSION"));
    file.message(7, &graph);
    let mut opset = Message::default();
    opset.text(1, "");
    opset.number(2, OPSET);
    file.message(8, &opset);
    let range: Vec<String> = d.visited.iter().map(|(low, high)| format!("{low:?} to {high:?}")).collect();
    let facts = [
        ("states", d.state_names.join(", ")),
        ("inputs", d.input_names.join(", ")),
        ("outputs", d.output_names.join(", ")),
        ("training data", range.join(", ")),
        ("sampling time", d.rows.sampling_time.map_or("unknown".into(), |time| format!("{time:?}"))),
    ];
    for (key, value) in facts {
        let mut fact = Message::default();
        fact.text(1, key);
        fact.text(2, &value);
        file.message(14, &fact);
    }
    Ok(File { name: format!("{}.onnx", model.options.name), bytes: file.into_bytes() })
}

#[derive(Default)]
struct Builder {
    nodes: Vec<Message>,
    constants: Vec<Message>,
}

impl Builder {
    fn named(&mut self, kind: &str, inputs: &[&str], output: &str) {
        self.with_attributes(kind, inputs, &[], output);
    }

    fn with_attributes(&mut self, kind: &str, inputs: &[&str], attributes: &[(&str, u64)], output: &str) {
        let mut node = Message::default();
        inputs.iter().for_each(|input| node.text(1, input));
        node.text(2, output);
        node.text(4, kind);
        for (name, value) in attributes {
            let mut attribute = Message::default();
            attribute.text(1, name);
            attribute.number(3, *value);
            // An integer.
            attribute.number(20, 2);
            node.message(5, &attribute);
        }
        self.nodes.push(node);
    }

    /// The name of the result.
    fn node(&mut self, kind: &str, inputs: &[&str], attributes: &[(&str, u64)]) -> String {
        let output = format!("t{}", self.nodes.len());
        self.with_attributes(kind, inputs, attributes, &output);
        output
    }

    fn constant(&mut self, (values, dims): (Vec<f64>, Vec<usize>)) -> String {
        let name = format!("c{}", self.constants.len());
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constants.push(tensor(&name, &dims, wire::DOUBLE, bytes));
        name
    }

    fn column(&mut self, of: &str, c: usize) -> String {
        let name = format!("c{}", self.constants.len());
        self.constants.push(tensor(&name, &[1], wire::INT64, (c as i64).to_le_bytes().to_vec()));
        self.node("Gather", &[of, &name], &[("axis", 1)])
    }

    /// Columns beside each other.
    fn join(&mut self, columns: &[String]) -> String {
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        self.node("Concat", &columns, &[("axis", 1)])
    }

    /// Mean and variance of one state, internal units.
    fn sparse(
        &mut self,
        f: &SparseFunction,
        kernel: &KernelExpression,
        z: &str,
        columns: &[String],
    ) -> Result<(String, String), ExportError> {
        let (m, n_z) = (f.n_inducing, f.n_components);
        let mut variables = columns.to_vec();
        for c in 0..n_z {
            let column = f.inducing.iter().skip(c).step_by(n_z).copied().collect();
            variables.push(self.constant((column, vec![1, m])));
        }
        let found = self.expressions(&kernel.graph, &[kernel.value, kernel.diagonal], &variables)?;
        // A kernel of one component can be the same for all inducing inputs.
        let row = self.constant((vec![0.0; m], vec![1, m]));
        let k = self.node("Add", &[&found[0], &row], &[]);
        let slopes = self.constant((f.slopes.clone(), vec![n_z, 1]));
        let coefficients = self.constant((f.coefficients.clone(), vec![m, 1]));
        let offset = self.constant((vec![f.offset], vec![1, 1]));
        let linear = self.node("MatMul", &[z, &slopes], &[]);
        let curved = self.node("MatMul", &[&k, &coefficients], &[]);
        let mean = self.node("Add", &[&linear, &curved], &[]);
        let mean = self.node("Add", &[&mean, &offset], &[]);
        let inverse = self.constant((transposed_inverse(&f.chol, m), vec![m, m]));
        let factor = self.constant((square(&f.variance_factor, m), vec![m, m]));
        let phi = self.node("MatMul", &[&k, &inverse], &[]);
        let room = self.node("MatMul", &[&phi, &factor], &[]);
        let explained = self.sum_of_squares(&phi, m);
        let known = self.sum_of_squares(&room, m);
        let own = self.node("Sub", &[&found[1], &explained], &[]);
        let zero = self.constant((vec![0.0], vec![1, 1]));
        let own = self.node("Max", &[&own, &zero], &[]);
        Ok((mean, self.node("Add", &[&own, &known], &[])))
    }

    fn sum_of_squares(&mut self, row: &str, m: usize) -> String {
        let square = self.node("Mul", &[row, row], &[]);
        let ones = self.constant((vec![1.0; m], vec![m, 1]));
        self.node("MatMul", &[&square, &ones], &[])
    }

    fn expressions(
        &mut self,
        graph: &Graph,
        roots: &[Id],
        variables: &[String],
    ) -> Result<Vec<String>, ExportError> {
        let needed = graph.needed(roots);
        let mut names = vec![String::new(); graph.operations().len()];
        for (id, operation) in graph.operations().iter().enumerate().filter(|(id, _)| needed[*id]) {
            names[id] = match *operation {
                Operation::Number(bits) => self.constant((vec![f64::from_bits(bits)], vec![1, 1])),
                Operation::Column(c) | Operation::Scalar(c) => variables[c].clone(),
                Operation::Unary(unary, a) => self.unary(unary, &names[a].clone())?,
                Operation::Binary(binary, a, b) => {
                    self.binary(binary, &names[a].clone(), &names[b].clone())?
                }
                Operation::If(condition, a, b) => {
                    let condition = self.node("Cast", &[&names[condition].clone()], &[("to", wire::BOOL)]);
                    let (a, b) = (names[a].clone(), names[b].clone());
                    self.node("Where", &[&condition, &a, &b], &[])
                }
            };
        }
        Ok(roots.iter().map(|&root| names[root].clone()).collect())
    }

    fn number(&mut self, value: f64) -> String {
        self.constant((vec![value], vec![1, 1]))
    }

    /// An operator that runtimes have in 32 bits alone.
    fn narrow(&mut self, kind: &str, a: &str) -> String {
        let narrow = self.node("Cast", &[a], &[("to", wire::FLOAT)]);
        let value = self.node(kind, &[&narrow], &[]);
        self.node("Cast", &[&value], &[("to", wire::DOUBLE)])
    }

    fn unary(&mut self, unary: Unary, a: &str) -> Result<String, ExportError> {
        Ok(match unary {
            Unary::Negate => self.node("Neg", &[a], &[]),
            Unary::Power(n) => {
                let exponent = self.number(f64::from(n));
                self.node("Pow", &[a, &exponent], &[])
            }
            Unary::Exp => self.node("Exp", &[a], &[]),
            Unary::Log => self.node("Log", &[a], &[]),
            Unary::Log10 => {
                let (log, ten) = (self.node("Log", &[a], &[]), self.number(std::f64::consts::LN_10));
                self.node("Div", &[&log, &ten], &[])
            }
            Unary::Log1p => {
                let one = self.number(1.0);
                let sum = self.node("Add", &[a, &one], &[]);
                self.node("Log", &[&sum], &[])
            }
            Unary::Expm1 => {
                let (exponential, one) = (self.node("Exp", &[a], &[]), self.number(1.0));
                self.node("Sub", &[&exponential, &one], &[])
            }
            Unary::Sqrt => self.node("Sqrt", &[a], &[]),
            Unary::Abs => self.node("Abs", &[a], &[]),
            Unary::Sign => self.node("Sign", &[a], &[]),
            Unary::Floor => self.node("Floor", &[a], &[]),
            Unary::Ceil => self.node("Ceil", &[a], &[]),
            Unary::Sin => self.node("Sin", &[a], &[]),
            Unary::Cos => {
                // A quarter of a turn on: in 64 bits there is the sine alone.
                let quarter = self.number(std::f64::consts::FRAC_PI_2);
                let moved = self.node("Add", &[a, &quarter], &[]);
                self.node("Sin", &[&moved], &[])
            }
            Unary::Tanh => self.node("Tanh", &[a], &[]),
            Unary::Sinh | Unary::Cosh => {
                let negative = self.node("Neg", &[a], &[]);
                let (up, down) = (self.node("Exp", &[a], &[]), self.node("Exp", &[&negative], &[]));
                let both = self.node(if unary == Unary::Sinh { "Sub" } else { "Add" }, &[&up, &down], &[]);
                let half = self.number(0.5);
                self.node("Mul", &[&both, &half], &[])
            }
            Unary::Tan => self.narrow("Tan", a),
            Unary::Asin => self.narrow("Asin", a),
            Unary::Acos => self.narrow("Acos", a),
            Unary::Atan => self.narrow("Atan", a),
            Unary::Erf => self.narrow("Erf", a),
            Unary::Erfc => {
                let (erf, one) = (self.narrow("Erf", a), self.number(1.0));
                self.node("Sub", &[&one, &erf], &[])
            }
            Unary::Logistic => self.node("Sigmoid", &[a], &[]),
            Unary::Softplus => {
                let (size, zero) = (self.node("Abs", &[a], &[]), self.number(0.0));
                let negative = self.node("Neg", &[&size], &[]);
                let exponential = self.node("Exp", &[&negative], &[]);
                let log = self.unary(Unary::Log1p, &exponential)?;
                let positive = self.node("Max", &[a, &zero], &[]);
                self.node("Add", &[&positive, &log], &[])
            }
            Unary::Lgamma => return Err(no_operator("lgamma")),
        })
    }

    fn binary(&mut self, binary: Binary, a: &str, b: &str) -> Result<String, ExportError> {
        let plain = match binary {
            Binary::Add => "Add",
            Binary::Subtract => "Sub",
            Binary::Multiply => "Mul",
            Binary::Divide => "Div",
            Binary::Power => "Pow",
            Binary::Min => "Min",
            Binary::Max => "Max",
            Binary::Atan2 => return Err(no_operator("atan2")),
            Binary::NotEqual => {
                let (equal, one) = (self.binary(Binary::Equal, a, b)?, self.number(1.0));
                return Ok(self.node("Sub", &[&one, &equal], &[]));
            }
            comparison => {
                let kind = match comparison {
                    Binary::Less => "Less",
                    Binary::LessOrEqual => "LessOrEqual",
                    Binary::Greater => "Greater",
                    Binary::GreaterOrEqual => "GreaterOrEqual",
                    _ => "Equal",
                };
                let holds = self.node(kind, &[a, b], &[]);
                return Ok(self.node("Cast", &[&holds], &[("to", wire::DOUBLE)]));
            }
        };
        Ok(self.node(plain, &[a, b], &[]))
    }
}

fn no_operator(name: &str) -> ExportError {
    ExportError::refused(
        format!("{name} in the sensor"),
        "ONNX has no operator for it; write the sensor without it",
    )
}

/// A packed lower triangle by rows as a full matrix.
fn square(packed: &[f64], m: usize) -> Vec<f64> {
    let mut full = vec![0.0; m * m];
    for i in 0..m {
        full[i * m..=i * m + i].copy_from_slice(&packed[i * (i + 1) / 2..][..=i]);
    }
    full
}

/// L^{-T} of a packed lower triangle: phi = k L^{-T} for rows k.
fn transposed_inverse(packed: &[f64], m: usize) -> Vec<f64> {
    let mut found = vec![0.0; m * m];
    for j in 0..m {
        for i in j..m {
            let row = &packed[i * (i + 1) / 2..];
            let sum: f64 = (j..i).map(|k| row[k] * found[j * m + k]).sum();
            found[j * m + i] = (f64::from(i == j) - sum) / row[i];
        }
    }
    found
}
