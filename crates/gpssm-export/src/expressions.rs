//! A model as data for builders in other languages: expressions as lists of operations, numbers beside them.

use gpssm::formula::{Binary, Operation, Unary};
use serde_json::{Value, json};

use crate::expression::Graph;
use crate::model::{Model, State};

/// Everything of a model but its filter, as JSON. An operation is a list of its name and its operands: numbers of earlier
/// operations, `number` with its value, `variable` with its index, `power` with operand and exponent.
pub fn expressions(model: &Model) -> String {
    let d = &model.distilled;
    let states: Vec<Value> = model
        .states
        .iter()
        .map(|state| match state {
            State::Lag(of) => json!({ "lag": of }),
            State::Sparse(f, kernel) => json!({
                "offset": f.offset,
                "slopes": f.slopes,
                "inducing": f.inducing,
                "coefficients": f.coefficients,
                "chol": f.chol,
                "factor": f.variance_factor,
                "operations": operations(&kernel.graph),
                "kernel": kernel.value,
                "prior": kernel.diagonal,
            }),
        })
        .collect();
    let outputs = model.sensor.moments.as_ref().map(|moments| {
        json!({ "operations": operations(&model.sensor.graph), "mean": moments.mean, "variance": moments.variance })
    });
    let (shift, scale) = (
        [&d.x_units.shift[..], &d.u_units.shift].concat(),
        [&d.x_units.scale[..], &d.u_units.scale].concat(),
    );
    let all = json!({
        "n_x": d.n_x,
        "n_u": d.n_u,
        "n_y": d.n_y,
        "state_names": d.state_names,
        "input_names": d.input_names,
        "output_names": d.output_names,
        "shift": shift,
        "scale": scale,
        "states": states,
        "outputs": outputs,
        "scenarios": d.scenarios.iter().map(|scenario| &scenario.coefficients).collect::<Vec<_>>(),
    });
    all.to_string()
}

fn operations(graph: &Graph) -> Vec<Value> {
    graph.operations().iter().map(|operation| value(*operation)).collect()
}

fn value(operation: Operation) -> Value {
    match operation {
        Operation::Number(bits) => {
            let number = f64::from_bits(bits);
            // JSON has no infinity.
            if number.is_finite() { json!(["number", number]) } else { json!(["number", number.to_string()]) }
        }
        Operation::Column(c) | Operation::Scalar(c) => json!(["variable", c]),
        Operation::Unary(Unary::Power(n), a) => json!(["power", a, n]),
        Operation::Unary(unary, a) => json!([unary_name(unary), a]),
        Operation::Binary(binary, a, b) => json!([binary_name(binary), a, b]),
        Operation::If(condition, a, b) => json!(["if", condition, a, b]),
    }
}

fn unary_name(unary: Unary) -> &'static str {
    match unary {
        Unary::Negate => "negate",
        Unary::Power(_) => "power",
        Unary::Exp => "exp",
        Unary::Log => "log",
        Unary::Log10 => "log10",
        Unary::Log1p => "log1p",
        Unary::Expm1 => "expm1",
        Unary::Sqrt => "sqrt",
        Unary::Abs => "abs",
        Unary::Sign => "sign",
        Unary::Floor => "floor",
        Unary::Ceil => "ceil",
        Unary::Sin => "sin",
        Unary::Cos => "cos",
        Unary::Tan => "tan",
        Unary::Asin => "asin",
        Unary::Acos => "acos",
        Unary::Atan => "atan",
        Unary::Sinh => "sinh",
        Unary::Cosh => "cosh",
        Unary::Tanh => "tanh",
        Unary::Lgamma => "lgamma",
        Unary::Erf => "erf",
        Unary::Erfc => "erfc",
        Unary::Logistic => "logistic",
        Unary::Softplus => "softplus",
    }
}

fn binary_name(binary: Binary) -> &'static str {
    match binary {
        Binary::Add => "add",
        Binary::Subtract => "subtract",
        Binary::Multiply => "multiply",
        Binary::Divide => "divide",
        Binary::Power => "pow",
        Binary::Atan2 => "atan2",
        Binary::Min => "min",
        Binary::Max => "max",
        Binary::Less => "less",
        Binary::LessOrEqual => "less_or_equal",
        Binary::Greater => "greater",
        Binary::GreaterOrEqual => "greater_or_equal",
        Binary::Equal => "equal",
        Binary::NotEqual => "not_equal",
    }
}
