//! Loops that carry more than they did.

use super::build;
use super::graph::Graph;
use crate::compiler::rewrite::module::Editable;
use crate::compiler::rewrite::record::Record;
use crate::hlo::decode::schema::{hlo_computation, hlo_instruction, program_shape, shape};

/// A `while` and where its computations stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loop {
    /// Where it stands: computation, and its id there.
    pub(crate) within: usize,
    pub(crate) id: u64,
    pub(crate) body: usize,
    pub(crate) condition: usize,
}

/// The loop at an instruction; `None` for other instructions, and where no tuple is carried.
pub(crate) fn loop_at(module: &Editable, within: usize, i: &Record) -> Option<Loop> {
    if i.bytes(hlo_instruction::OPCODE) != b"while" {
        return None;
    }
    let called = i.numbers(hlo_instruction::CALLED_COMPUTATION_IDS);
    let [a, b] = called[..] else {
        return None;
    };
    let (a, b) = (module.computation(a)?, module.computation(b)?);
    let gives_tuple = |at: usize| {
        let c = &module.computations[at];
        let root = c
            .root()
            .map(|r| c.instructions[r].bytes(hlo_instruction::OPCODE));
        root == Some(&b"tuple"[..])
    };
    let (body, condition) = match (gives_tuple(a), gives_tuple(b)) {
        (true, false) => (a, b),
        (false, true) => (b, a),
        _ => return None,
    };
    Some(Loop {
        within,
        id: i.number(hlo_instruction::ID),
        body,
        condition,
    })
}

impl Loop {
    /// Ids of what it starts with.
    pub(crate) fn start(&self, module: &Editable) -> Option<Vec<u64>> {
        let tuple = self.start_at(module)?;
        let tuple = &module.computations[self.within].instructions[tuple];
        Some(tuple.numbers(hlo_instruction::OPERAND_IDS))
    }

    fn start_at(&self, module: &Editable) -> Option<usize> {
        let c = &module.computations[self.within];
        let own = c.position(self.id)?;
        let operands = c.instructions[own].numbers(hlo_instruction::OPERAND_IDS);
        let at = c.position(*operands.first()?)?;
        (c.instructions[at].bytes(hlo_instruction::OPCODE) == b"tuple").then_some(at)
    }

    /// Lets the loop carry one thing more, which it starts with `start` and does not change. Its
    /// index, and the id of what the body gets.
    pub(crate) fn carry(
        &self,
        module: &mut Editable,
        start: u64,
        shape: Vec<u8>,
    ) -> Option<(usize, u64)> {
        let graph = Graph::of(&module.computations[self.body])?;
        let is_parameter = |n: &&super::graph::Node| n.opcode == crate::hlo::Opcode::Parameter;
        let parameter = graph.nodes.iter().find(is_parameter)?.id;
        let at = self.start_at(module)?;
        let mut starts = self.start(module)?;
        let index = starts.len();
        starts.push(start);
        let outer = &mut module.computations[self.within];
        let own = outer.position(self.id)?;
        outer.instructions[at].set_numbers(hlo_instruction::OPERAND_IDS, starts);
        for i in [at, own] {
            add_part(&mut outer.instructions[i], hlo_instruction::SHAPE, &shape);
        }
        for inner in [self.body, self.condition] {
            let inner = &mut module.computations[inner];
            let p = inner.parameter(0)?;
            add_part(&mut inner.instructions[p], hlo_instruction::SHAPE, &shape);
            in_program_shape(&mut inner.head, program_shape::PARAMETERS, &shape);
        }
        let body = &mut module.computations[self.body];
        in_program_shape(&mut body.head, program_shape::RESULT, &shape);
        let got = body.push(build::part(parameter, index, shape.clone()));
        let root = body.root()?;
        let root = &mut body.instructions[root];
        let mut results = root.numbers(hlo_instruction::OPERAND_IDS);
        results.push(got);
        root.set_numbers(hlo_instruction::OPERAND_IDS, results);
        add_part(root, hlo_instruction::SHAPE, &shape);
        body.sort();
        module.computations[self.within].sort();
        Some((index, got))
    }

    /// Lets the body give back something else as part `index`.
    pub(crate) fn give(&self, module: &mut Editable, index: usize, value: u64) -> Option<()> {
        let body = &mut module.computations[self.body];
        let root = body.root()?;
        let mut results = body.instructions[root].numbers(hlo_instruction::OPERAND_IDS);
        *results.get_mut(index)? = value;
        body.instructions[root].set_numbers(hlo_instruction::OPERAND_IDS, results);
        Some(())
    }
}

/// Adds a part to the tuple shape in a field.
fn add_part(record: &mut Record, field: u32, part: &[u8]) {
    let mut tuple = Record::read(record.bytes(field)).unwrap_or_default();
    let mut parts: Vec<Vec<u8>> = tuple.all(shape::TUPLE_SHAPES).map(<[u8]>::to_vec).collect();
    parts.push(part.to_vec());
    tuple.set_all(shape::TUPLE_SHAPES, parts);
    record.set_bytes(field, tuple.bytes_out());
}

fn in_program_shape(head: &mut Record, field: u32, part: &[u8]) {
    let mut program = Record::read(head.bytes(hlo_computation::PROGRAM_SHAPE)).unwrap_or_default();
    add_part(&mut program, field, part);
    head.set_bytes(hlo_computation::PROGRAM_SHAPE, program.bytes_out());
}
