//! Scalar expressions of numbered variables, equal parts once, with derivatives. Kernels and sensors are built of them, and every
//! format of an export is written from them.

use std::collections::HashMap;
use std::f64::consts::{FRAC_2_SQRT_PI, LN_10};

use gpssm::formula::{Binary, Operation, Unary, select};

/// Index of an expression.
pub type Id = usize;

/// Expressions; each is made of earlier ones. Variables are [`Operation::Column`].
#[derive(Clone, Debug, Default)]
pub struct Graph {
    operations: Vec<Operation>,
    known: HashMap<Operation, Id>,
}

impl Graph {
    fn push(&mut self, operation: Operation) -> Id {
        if let Some(&id) = self.known.get(&operation) {
            return id;
        }
        self.operations.push(operation);
        self.known.insert(operation, self.operations.len() - 1);
        self.operations.len() - 1
    }

    /// All expressions in order.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// A number.
    pub fn number(&mut self, value: f64) -> Id {
        // One zero is enough.
        let value = if value == 0.0 { 0.0 } else { value };
        self.push(Operation::Number(value.to_bits()))
    }

    /// A variable.
    pub fn variable(&mut self, index: usize) -> Id {
        self.push(Operation::Column(index))
    }

    /// The value of an expression that is a number.
    pub fn value(&self, id: Id) -> Option<f64> {
        match self.operations[id] {
            Operation::Number(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    /// A function of one expression.
    pub fn unary(&mut self, unary: Unary, a: Id) -> Id {
        match (unary, self.operations[a]) {
            (_, Operation::Number(bits)) => self.number(unary.apply(f64::from_bits(bits))),
            (Unary::Negate, Operation::Unary(Unary::Negate, inner)) => inner,
            (Unary::Power(0), _) => self.number(1.0),
            (Unary::Power(1), _) => a,
            _ => self.push(Operation::Unary(unary, a)),
        }
    }

    /// A function of two expressions.
    pub fn binary(&mut self, binary: Binary, a: Id, b: Id) -> Id {
        let (left, right) = (self.value(a), self.value(b));
        match (binary, left, right) {
            (_, Some(left), Some(right)) => self.number(binary.apply(left, right)),
            (Binary::Add, Some(0.0), _) => b,
            (Binary::Add | Binary::Subtract, _, Some(0.0)) => a,
            (Binary::Subtract, Some(0.0), _) => self.unary(Unary::Negate, b),
            (Binary::Subtract, ..) if a == b => self.number(0.0),
            (Binary::Multiply, Some(1.0), _) => b,
            (Binary::Multiply | Binary::Divide, _, Some(1.0)) => a,
            (Binary::Multiply, Some(0.0), _) | (Binary::Multiply, _, Some(0.0)) => self.number(0.0),
            (Binary::Divide, Some(0.0), _) => self.number(0.0),
            (Binary::Multiply, Some(-1.0), _) => self.unary(Unary::Negate, b),
            (Binary::Multiply, _, Some(-1.0)) => self.unary(Unary::Negate, a),
            (Binary::Add | Binary::Multiply, ..) => self.push(Operation::Binary(binary, a.min(b), a.max(b))),
            _ => self.push(Operation::Binary(binary, a, b)),
        }
    }

    /// a where the condition is not zero, otherwise b.
    pub fn choice(&mut self, condition: Id, a: Id, b: Id) -> Id {
        match self.value(condition) {
            Some(value) if !value.is_nan() => {
                if value != 0.0 {
                    a
                } else {
                    b
                }
            }
            _ if a == b => a,
            _ => self.push(Operation::If(condition, a, b)),
        }
    }

    /// a + b.
    pub fn add(&mut self, a: Id, b: Id) -> Id {
        self.binary(Binary::Add, a, b)
    }

    /// a - b.
    pub fn subtract(&mut self, a: Id, b: Id) -> Id {
        self.binary(Binary::Subtract, a, b)
    }

    /// a b.
    pub fn multiply(&mut self, a: Id, b: Id) -> Id {
        self.binary(Binary::Multiply, a, b)
    }

    /// a / b.
    pub fn divide(&mut self, a: Id, b: Id) -> Id {
        self.binary(Binary::Divide, a, b)
    }

    /// factor a.
    pub fn scale(&mut self, factor: f64, a: Id) -> Id {
        let factor = self.number(factor);
        self.multiply(factor, a)
    }

    /// a + number.
    pub fn shift(&mut self, a: Id, number: f64) -> Id {
        let number = self.number(number);
        self.add(a, number)
    }

    /// a^2.
    pub fn square(&mut self, a: Id) -> Id {
        self.unary(Unary::Power(2), a)
    }

    /// Sum of all.
    pub fn sum(&mut self, terms: impl IntoIterator<Item = Id>) -> Id {
        let zero = self.number(0.0);
        terms.into_iter().fold(zero, |sum, term| self.add(sum, term))
    }

    /// Takes over the parts of a formula; its columns and scalars become the expressions that are given for them.
    pub fn insert(
        &mut self,
        operations: &[Operation],
        mut column: impl FnMut(&mut Self, usize) -> Id,
        mut scalar: impl FnMut(&mut Self, usize) -> Id,
    ) -> Id {
        let mut ids: Vec<Id> = Vec::with_capacity(operations.len());
        for operation in operations {
            let id = match *operation {
                Operation::Number(bits) => self.number(f64::from_bits(bits)),
                Operation::Column(c) => column(self, c),
                Operation::Scalar(k) => scalar(self, k),
                Operation::Unary(unary, a) => self.unary(unary, ids[a]),
                Operation::Binary(binary, a, b) => self.binary(binary, ids[a], ids[b]),
                Operation::If(condition, a, b) => self.choice(ids[condition], ids[a], ids[b]),
            };
            ids.push(id);
        }
        ids.last().copied().unwrap_or_else(|| self.number(0.0))
    }

    /// d of / d variable; the name of a function that has no derivative here.
    pub fn derivative(&mut self, of: Id, variable: usize) -> Result<Id, &'static str> {
        let zero = self.number(0.0);
        let mut slopes = vec![zero; of + 1];
        for id in 0..=of {
            slopes[id] = match self.operations[id] {
                Operation::Column(c) if c == variable => self.number(1.0),
                Operation::Number(_) | Operation::Column(_) | Operation::Scalar(_) => zero,
                Operation::Unary(_, a) if slopes[a] == zero => zero,
                Operation::Unary(unary, a) => {
                    let outer = self.unary_slope(unary, a, id)?;
                    self.multiply(outer, slopes[a])
                }
                Operation::Binary(_, a, b) if slopes[a] == zero && slopes[b] == zero => zero,
                Operation::Binary(binary, a, b) => {
                    self.binary_slope(binary, (a, slopes[a]), (b, slopes[b]), id)
                }
                Operation::If(condition, a, b) => self.choice(condition, slopes[a], slopes[b]),
            };
        }
        Ok(slopes[of])
    }

    fn unary_slope(&mut self, unary: Unary, a: Id, own: Id) -> Result<Id, &'static str> {
        Ok(match unary {
            Unary::Negate => self.number(-1.0),
            Unary::Power(n) => {
                let power = self.unary(Unary::Power(n - 1), a);
                self.scale(f64::from(n), power)
            }
            Unary::Exp => own,
            Unary::Log => self.unary(Unary::Power(-1), a),
            Unary::Log10 => {
                let inverse = self.unary(Unary::Power(-1), a);
                self.scale(1.0 / LN_10, inverse)
            }
            Unary::Log1p => {
                let sum = self.shift(a, 1.0);
                self.unary(Unary::Power(-1), sum)
            }
            Unary::Expm1 => self.shift(own, 1.0),
            Unary::Sqrt => {
                let half = self.number(0.5);
                self.divide(half, own)
            }
            Unary::Abs => self.unary(Unary::Sign, a),
            Unary::Sign | Unary::Floor | Unary::Ceil => self.number(0.0),
            Unary::Sin => self.unary(Unary::Cos, a),
            Unary::Cos => {
                let sine = self.unary(Unary::Sin, a);
                self.unary(Unary::Negate, sine)
            }
            Unary::Tan => {
                let square = self.square(own);
                self.shift(square, 1.0)
            }
            Unary::Asin | Unary::Acos => {
                let square = self.square(a);
                let one = self.number(1.0);
                let left = self.subtract(one, square);
                let root = self.unary(Unary::Sqrt, left);
                let sign = self.number(if unary == Unary::Asin { 1.0 } else { -1.0 });
                self.divide(sign, root)
            }
            Unary::Atan => {
                let square = self.square(a);
                let sum = self.shift(square, 1.0);
                self.unary(Unary::Power(-1), sum)
            }
            Unary::Sinh => self.unary(Unary::Cosh, a),
            Unary::Cosh => self.unary(Unary::Sinh, a),
            Unary::Tanh | Unary::Logistic => {
                let one = self.number(1.0);
                let left = if unary == Unary::Tanh { self.square(own) } else { own };
                let rest = self.subtract(one, left);
                if unary == Unary::Tanh { rest } else { self.multiply(own, rest) }
            }
            Unary::Erf | Unary::Erfc => {
                let square = self.square(a);
                let negative = self.unary(Unary::Negate, square);
                let bell = self.unary(Unary::Exp, negative);
                self.scale(if unary == Unary::Erf { FRAC_2_SQRT_PI } else { -FRAC_2_SQRT_PI }, bell)
            }
            Unary::Softplus => self.unary(Unary::Logistic, a),
            Unary::Lgamma => return Err("lgamma"),
        })
    }

    fn binary_slope(&mut self, binary: Binary, (a, da): (Id, Id), (b, db): (Id, Id), own: Id) -> Id {
        match binary {
            Binary::Add => self.add(da, db),
            Binary::Subtract => self.subtract(da, db),
            Binary::Multiply => {
                let (left, right) = (self.multiply(da, b), self.multiply(a, db));
                self.add(left, right)
            }
            Binary::Divide => {
                let product = self.multiply(own, db);
                let above = self.subtract(da, product);
                self.divide(above, b)
            }
            Binary::Power => {
                let less = self.shift(b, -1.0);
                let power = self.binary(Binary::Power, a, less);
                let (outer, log) = (self.multiply(b, power), self.unary(Unary::Log, a));
                let (left, right) = (self.multiply(outer, da), self.multiply(log, db));
                let right = self.multiply(own, right);
                self.add(left, right)
            }
            Binary::Atan2 => {
                let (left, right) = (self.multiply(b, da), self.multiply(a, db));
                let above = self.subtract(left, right);
                let (one, two) = (self.square(a), self.square(b));
                let below = self.add(one, two);
                self.divide(above, below)
            }
            Binary::Min | Binary::Max => {
                let less = self.binary(Binary::Less, a, b);
                if binary == Binary::Min { self.choice(less, da, db) } else { self.choice(less, db, da) }
            }
            Binary::Less
            | Binary::LessOrEqual
            | Binary::Greater
            | Binary::GreaterOrEqual
            | Binary::Equal
            | Binary::NotEqual => self.number(0.0),
        }
    }

    /// Which expressions are needed for these.
    pub fn needed(&self, roots: &[Id]) -> Vec<bool> {
        let mut needed = vec![false; self.operations.len()];
        roots.iter().for_each(|&root| needed[root] = true);
        for id in (0..needed.len()).rev().filter(|&id| id < self.operations.len()) {
            if needed[id] {
                self.operations[id].operands().for_each(|operand| needed[operand] = true);
            }
        }
        needed
    }

    /// Which expressions change with a variable that `is_free` names.
    pub fn depends(&self, is_free: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut depends = vec![false; self.operations.len()];
        for (id, operation) in self.operations.iter().enumerate() {
            depends[id] = match operation {
                Operation::Column(c) => is_free(*c),
                other => other.operands().any(|operand| depends[operand]),
            };
        }
        depends
    }

    /// Values of expressions at values of the variables.
    pub fn evaluate(&self, roots: &[Id], variables: &[f64]) -> Vec<f64> {
        let (needed, mut values) = (self.needed(roots), vec![f64::NAN; self.operations.len()]);
        for (id, operation) in self.operations.iter().enumerate().filter(|(id, _)| needed[*id]) {
            values[id] = match *operation {
                Operation::Number(bits) => f64::from_bits(bits),
                Operation::Column(c) => variables[c],
                Operation::Scalar(_) => f64::NAN,
                Operation::Unary(unary, a) => unary.apply(values[a]),
                Operation::Binary(binary, a, b) => binary.apply(values[a], values[b]),
                Operation::If(condition, a, b) => select(values[condition], values[a], values[b]),
            };
        }
        roots.iter().map(|&root| values[root]).collect()
    }
}

/// What an expression costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Additions, subtractions, multiplications, comparisons.
    pub simple: u64,
    /// Divisions and square roots.
    pub divisions: u64,
    /// Calls of exp, log, sin and other functions.
    pub calls: u64,
}

impl std::ops::Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            simple: self.simple + other.simple,
            divisions: self.divisions + other.divisions,
            calls: self.calls + other.calls,
        }
    }
}

impl std::ops::Mul<u64> for Cost {
    type Output = Self;

    fn mul(self, n: u64) -> Self {
        Self { simple: self.simple * n, divisions: self.divisions * n, calls: self.calls * n }
    }
}

impl std::iter::Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), |sum, cost| sum + cost)
    }
}

impl Cost {
    /// So many additions and multiplications.
    pub fn simple(simple: usize) -> Self {
        Self { simple: simple as u64, ..Self::default() }
    }

    /// Of one operation.
    pub fn of(operation: Operation) -> Self {
        let (simple, divisions, calls) = match operation {
            Operation::Number(_) | Operation::Column(_) | Operation::Scalar(_) => (0, 0, 0),
            Operation::Unary(unary, _) => match unary {
                Unary::Negate | Unary::Abs | Unary::Sign | Unary::Floor | Unary::Ceil => (1, 0, 0),
                Unary::Power(n) => (u64::from(2 * n.unsigned_abs().max(1).ilog2()), u64::from(n < 0), 0),
                Unary::Sqrt => (0, 1, 0),
                Unary::Logistic => (2, 1, 1),
                Unary::Softplus => (3, 0, 2),
                _ => (0, 0, 1),
            },
            Operation::Binary(binary, ..) => match binary {
                Binary::Divide => (0, 1, 0),
                Binary::Power | Binary::Atan2 => (0, 0, 1),
                _ => (1, 0, 0),
            },
            Operation::If(..) => (1, 0, 0),
        };
        Self { simple, divisions, calls }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpssm::formula::{Formula, Variable};

    fn graph_of(text: &str) -> (Graph, Id) {
        let formula = Formula::parse(text).unwrap();
        let parts = formula
            .operations(|name| Ok(if name == "x" { Variable::Column(0) } else { Variable::Column(1) }));
        let mut graph = Graph::default();
        let root = graph.insert(&parts.unwrap(), |graph, c| graph.variable(c), |graph, _| graph.number(0.0));
        (graph, root)
    }

    /// Every function with a derivative, against central differences.
    #[test]
    fn derivatives_agree_with_differences() {
        let texts = [
            "exp(x*u)",
            "log(x + u)",
            "log10(x*u)",
            "log1p(x*u)",
            "expm1(x*u)",
            "sqrt(x*u)",
            "abs(x - 2*u)",
            "sign(x)*x",
            "floor(x)*u*x",
            "ceil(x)*u*x",
            "sin(x*u)",
            "cos(x*u)",
            "tan(0.3*x*u)",
            "asin(0.3*x*u)",
            "acos(0.3*x*u)",
            "atan(x*u)",
            "sinh(x*u)",
            "cosh(x*u)",
            "tanh(x*u)",
            "erf(x*u)",
            "erfc(x*u)",
            "logistic(x*u)",
            "softplus(x*u)",
            "x^3 - u^-2*x",
            "x^u",
            "x^0.5/u",
            "u^x",
            "2^x",
            "atan2(x, u)",
            "min(x, u)*x",
            "max(x, u)*x",
            "if(x > u, x*u, x^2)",
            "(x < u)*x",
            "x - -u + 0*x",
            "(x >= u) + (x <= u) + (x == u) + (x != u) + (x > u) + x",
        ];
        for text in texts {
            let (mut graph, root) = graph_of(text);
            for (x, u) in [(0.7, 1.3), (1.4, 0.6)] {
                for c in 0..2 {
                    let slope = graph.derivative(root, c).unwrap();
                    let found = graph.evaluate(&[slope], &[x, u])[0];
                    let at = |h: f64| {
                        let mut z = [x, u];
                        z[c] += h;
                        graph.evaluate(&[root], &z)[0]
                    };
                    let difference = (at(1e-5) - at(-1e-5)) / 2e-5;
                    assert!((found - difference).abs() < 1e-8, "{text} {c}: {found} {difference}");
                }
            }
        }
        let (mut graph, root) = graph_of("lgamma(x)");
        assert_eq!(graph.derivative(root, 0), Err("lgamma"));
        assert_eq!(graph.derivative(root, 1), Ok(graph.number(0.0)));
    }
}
