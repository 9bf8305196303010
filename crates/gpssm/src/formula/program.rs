//! A formula ready to be evaluated at many points: a list of steps over columns.
//!
//! Parts that are the same at every point (numbers, parameters and what is made of them) are worked out once a
//! call. Every other part is one step, a loop over a block of points from registers or columns into a register;
//! blocks are small enough for all registers to stay in the first-level cache. Steps use only operations that
//! are exact to the last bit on every instruction set, or the functions of the standard library.

use std::cell::RefCell;

use super::function::{Binary, Unary, select};
use super::graph::{Graph, Operation};
use super::tree::Id;
use crate::function::StateFunction;
use crate::linalg::simd::{Vectorised, dispatch};
use crate::points::Points;

/// Points in a block.
const BLOCK: usize = 128;

thread_local! {
    /// Memory for one evaluation, kept because asking for it would cost as much as a short formula does.
    static MEMORY: RefCell<Vec<f64>> = const { RefCell::new(Vec::new()) };
}

/// A formula whose names have been given a meaning.
#[derive(Clone, Debug)]
pub struct Program {
    /// What is the same at every point, operands first; operands are indices into this list.
    uniform: Vec<Operation>,
    /// What differs between points; the last step writes the result.
    steps: Vec<Step>,
    n_registers: usize,
    /// The value, if no step is needed for it.
    result: Source,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Source {
    Uniform(usize),
    Column(usize),
    Register(usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    work: Work,
    /// Register that is written; it is never one of those that are read.
    target: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Work {
    Unary(Unary, Source),
    Binary(Binary, Source, Source),
    If(Source, Source, Source),
}

impl Program {
    pub(super) fn new(graph: &Graph, root: Id) -> Self {
        let n = root + 1;
        let mut needed = vec![false; n];
        needed[root] = true;
        // The last step that reads a node.
        let mut last_use = vec![0; n];
        for id in (0..n).rev() {
            if needed[id] {
                for operand in graph.operations[id].operands() {
                    needed[operand] = true;
                    last_use[operand] = last_use[operand].max(id);
                }
            }
        }
        let mut program =
            Self { uniform: Vec::new(), steps: Vec::new(), n_registers: 0, result: Source::Uniform(0) };
        let mut sources = vec![Source::Uniform(0); n];
        let mut free = Vec::new();
        for id in (0..n).filter(|&id| needed[id]) {
            let operation = graph.operations[id];
            sources[id] = if !graph.varies[id] {
                program.push_uniform(operation, &sources)
            } else if let Operation::Column(c) = operation {
                Source::Column(c)
            } else {
                // The target is taken before the operands are given back, so that it is none of them.
                let target = free.pop().unwrap_or_else(|| {
                    program.n_registers += 1;
                    program.n_registers - 1
                });
                program.push_step(operation, &sources, target);
                let mut operands: Vec<Id> = operation.operands().collect();
                operands.sort_unstable();
                operands.dedup();
                for operand in operands {
                    if let (Source::Register(register), true) = (sources[operand], last_use[operand] == id) {
                        free.push(register);
                    }
                }
                Source::Register(target)
            };
        }
        program.result = sources[root];
        program
    }

    fn push_uniform(&mut self, operation: Operation, sources: &[Source]) -> Source {
        let place = |id: Id| match sources[id] {
            Source::Uniform(place) => place,
            // Nothing that is the same everywhere is made of columns.
            Source::Column(_) | Source::Register(_) => 0,
        };
        self.uniform.push(match operation {
            Operation::Unary(unary, a) => Operation::Unary(unary, place(a)),
            Operation::Binary(binary, a, b) => Operation::Binary(binary, place(a), place(b)),
            Operation::If(condition, a, b) => Operation::If(place(condition), place(a), place(b)),
            leaf => leaf,
        });
        Source::Uniform(self.uniform.len() - 1)
    }

    fn push_step(&mut self, operation: Operation, sources: &[Source], target: usize) {
        let work = match operation {
            Operation::Unary(unary, a) => Work::Unary(unary, sources[a]),
            Operation::Binary(binary, a, b) => Work::Binary(binary, sources[a], sources[b]),
            Operation::If(condition, a, b) => Work::If(sources[condition], sources[a], sources[b]),
            // Leaves need no step.
            Operation::Number(_) | Operation::Column(_) | Operation::Scalar(_) => return,
        };
        self.steps.push(Step { work, target });
    }

    /// Writes the value at every point of `z` into `out`.
    ///
    /// # Panics
    ///
    /// If `z` has fewer components, or `scalars` fewer numbers, than the variables that were bound, or if `out`
    /// is shorter than `z`.
    pub fn evaluate(&self, z: &Points, scalars: &[f64], out: &mut [f64]) {
        let out = &mut out[..z.len()];
        let width = out.len().min(BLOCK);
        // Uniform values first, then the registers; whatever they held is overwritten before it is read.
        let size = self.uniform.len() + self.n_registers * width;
        MEMORY.with_borrow_mut(|memory| {
            if memory.len() < size {
                memory.resize(size, 0.0);
            }
            let (uniform, registers) = memory[..size].split_at_mut(self.uniform.len());
            self.run(z, scalars, uniform, registers, out);
        });
    }

    fn run(&self, z: &Points, scalars: &[f64], uniform: &mut [f64], registers: &mut [f64], out: &mut [f64]) {
        for (k, operation) in self.uniform.iter().enumerate() {
            uniform[k] = match *operation {
                Operation::Number(bits) => f64::from_bits(bits),
                Operation::Scalar(place) => scalars[place],
                Operation::Unary(unary, a) => unary.apply(uniform[a]),
                Operation::Binary(binary, a, b) => binary.apply(uniform[a], uniform[b]),
                Operation::If(condition, a, b) => select(uniform[condition], uniform[a], uniform[b]),
                Operation::Column(_) => f64::NAN,
            };
        }
        match self.result {
            Source::Uniform(place) => out.fill(uniform[place]),
            Source::Column(c) => out.copy_from_slice(z.column(c)),
            Source::Register(_) => {
                let width = out.len().min(BLOCK);
                dispatch(Steps { program: self, z, uniform, registers, width, out });
            }
        }
    }
}

impl StateFunction for Program {
    fn evaluate(&self, z: &Points, parameters: &[f64], out: &mut [f64]) {
        Self::evaluate(self, z, parameters, out);
    }
}

/// All steps over all blocks of points.
struct Steps<'a> {
    program: &'a Program,
    z: &'a Points,
    uniform: &'a [f64],
    registers: &'a mut [f64],
    width: usize,
    out: &'a mut [f64],
}

impl Vectorised for Steps<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: pulp::Simd>(self, _: S) {
        let Some((last, steps)) = self.program.steps.split_last() else { return };
        for (block, out) in self.out.chunks_mut(self.width).enumerate() {
            let inputs = Inputs { z: self.z, from: block * self.width, uniform: self.uniform, n: out.len() };
            for step in steps {
                let (before, rest) = self.registers.split_at_mut(step.target * self.width);
                let (target, after) = rest.split_at_mut(self.width);
                let registers = Registers { before, after, width: self.width };
                work(step.work, &inputs, &registers, &mut target[..inputs.n]);
            }
            let registers = Registers { before: self.registers, after: &[], width: self.width };
            work(last.work, &inputs, &registers, out);
        }
    }
}

/// What a block of points can read besides registers.
struct Inputs<'a> {
    z: &'a Points,
    from: usize,
    uniform: &'a [f64],
    n: usize,
}

/// All registers but the one that is written.
struct Registers<'a> {
    before: &'a [f64],
    after: &'a [f64],
    width: usize,
}

enum Operand<'a> {
    Same(f64),
    Each(&'a [f64]),
}

impl Operand<'_> {
    #[inline(always)]
    fn at(&self, i: usize) -> f64 {
        match self {
            Self::Same(value) => *value,
            Self::Each(values) => values[i],
        }
    }
}

#[inline(always)]
fn read<'a>(source: Source, inputs: &Inputs<'a>, registers: &Registers<'a>) -> Operand<'a> {
    match source {
        Source::Uniform(place) => Operand::Same(inputs.uniform[place]),
        Source::Column(c) => Operand::Each(&inputs.z.column(c)[inputs.from..inputs.from + inputs.n]),
        Source::Register(register) => {
            let start = register * registers.width;
            let (part, start) = match start.checked_sub(registers.before.len()) {
                None => (registers.before, start),
                // The written register lies between the two parts.
                Some(start) => (registers.after, start - registers.width),
            };
            Operand::Each(&part[start..start + inputs.n])
        }
    }
}

#[inline(always)]
fn map(a: &Operand, out: &mut [f64], f: impl Fn(f64) -> f64) {
    match a {
        Operand::Same(a) => out.fill(f(*a)),
        Operand::Each(a) => out.iter_mut().zip(*a).for_each(|(out, a)| *out = f(*a)),
    }
}

#[inline(always)]
fn map2(a: &Operand, b: &Operand, out: &mut [f64], f: impl Fn(f64, f64) -> f64) {
    match (a, b) {
        (Operand::Same(a), Operand::Same(b)) => out.fill(f(*a, *b)),
        (Operand::Each(a), Operand::Same(b)) => {
            let b = *b;
            out.iter_mut().zip(*a).for_each(|(out, a)| *out = f(*a, b));
        }
        (Operand::Same(a), Operand::Each(b)) => {
            let a = *a;
            out.iter_mut().zip(*b).for_each(|(out, b)| *out = f(a, *b));
        }
        (Operand::Each(a), Operand::Each(b)) => {
            out.iter_mut().zip(*a).zip(*b).for_each(|((out, a), b)| *out = f(*a, *b));
        }
    }
}

/// A loop of its own for each operation, so that nothing is decided within the loops.
macro_rules! unary_loops {
    ($operation:expr, $a:expr, $out:expr, [$($variant:ident)*]) => {
        match $operation {
            $(Unary::$variant => map($a, $out, |x| Unary::$variant.apply(x)),)*
            Unary::Power(2) => map($a, $out, |x| Unary::Power(2).apply(x)),
            Unary::Power(3) => map($a, $out, |x| Unary::Power(3).apply(x)),
            Unary::Power(4) => map($a, $out, |x| Unary::Power(4).apply(x)),
            Unary::Power(n) => map($a, $out, |x| Unary::Power(n).apply(x)),
        }
    };
}

macro_rules! binary_loops {
    ($operation:expr, $a:expr, $b:expr, $out:expr, [$($variant:ident)*]) => {
        match $operation {
            $(Binary::$variant => map2($a, $b, $out, |a, b| Binary::$variant.apply(a, b)),)*
        }
    };
}

/// One step over one block.
#[inline(always)]
fn work(work: Work, inputs: &Inputs, registers: &Registers, out: &mut [f64]) {
    match work {
        Work::Unary(unary, a) => {
            let a = read(a, inputs, registers);
            unary_loops!(unary, &a, out, [
                Negate Exp Log Log10 Log1p Expm1 Sqrt Abs Sign Floor Ceil Sin Cos Tan Asin Acos Atan Sinh Cosh
                Tanh Lgamma Erf Erfc Logistic Softplus
            ]);
        }
        Work::Binary(binary, a, b) => {
            let (a, b) = (read(a, inputs, registers), read(b, inputs, registers));
            binary_loops!(binary, &a, &b, out, [
                Add Subtract Multiply Divide Power Atan2 Min Max Less LessOrEqual Greater GreaterOrEqual Equal
                NotEqual
            ]);
        }
        Work::If(condition, a, b) => {
            let condition = read(condition, inputs, registers);
            let (a, b) = (read(a, inputs, registers), read(b, inputs, registers));
            for (i, out) in out.iter_mut().enumerate() {
                *out = select(condition.at(i), a.at(i), b.at(i));
            }
        }
    }
}
