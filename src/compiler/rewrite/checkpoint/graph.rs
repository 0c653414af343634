//! A computation to look at: instructions as nodes with their operands and users by position.

use rustc_hash::FxHashMap;

use crate::compiler::rewrite::module::Computation;
use crate::compiler::rewrite::record::Record;
use crate::hlo::decode::schema::{hlo_computation, hlo_instruction, op_metadata, shape};
use crate::hlo::{ElementType, Opcode};

/// An instruction.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) id: u64,
    pub(crate) opcode: Opcode,
    /// Positions of what it uses.
    pub(crate) operands: Vec<usize>,
    /// Positions of what uses it, ascending, each once.
    pub(crate) users: Vec<usize>,
    pub(crate) element: ElementType,
    pub(crate) dimensions: Vec<u64>,
    pub(crate) op_name: String,
    /// Of a parameter its number, of a part of a tuple its index.
    pub(crate) number: usize,
}

/// A computation.
#[derive(Debug, Clone)]
pub(crate) struct Graph {
    /// In an order in which operands come first.
    pub(crate) nodes: Vec<Node>,
    pub(crate) root: usize,
    positions: FxHashMap<u64, usize>,
}

impl Graph {
    /// Reads a computation; `None` where operands are missing or stand behind their users.
    pub(crate) fn of(computation: &Computation) -> Option<Graph> {
        let mut positions = FxHashMap::default();
        let mut nodes: Vec<Node> = Vec::with_capacity(computation.instructions.len());
        for (at, i) in computation.instructions.iter().enumerate() {
            let operands = i.numbers(hlo_instruction::OPERAND_IDS).into_iter();
            let operands = operands.map(|o| positions.get(&o).copied());
            let operands: Vec<usize> = operands.collect::<Option<_>>()?;
            for &o in &operands {
                if nodes[o].users.last() != Some(&at) {
                    nodes[o].users.push(at);
                }
            }
            let node = Node::read(i, operands);
            positions.insert(node.id, at);
            nodes.push(node);
        }
        let root = computation.head.number(hlo_computation::ROOT_ID);
        Some(Graph {
            root: *positions.get(&root)?,
            nodes,
            positions,
        })
    }

    /// Where the instruction with that id stands.
    pub(crate) fn position(&self, id: u64) -> Option<usize> {
        self.positions.get(&id).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Parts of the only parameter's tuple that are taken, by position, with their index: what a
    /// loop's body gets.
    pub(crate) fn carried(&self) -> Vec<(usize, usize)> {
        let of_parameter = |n: &Node| {
            let from = n.operands.first().map(|&o| self.nodes[o].opcode);
            n.opcode == Opcode::GetTupleElement && from == Some(Opcode::Parameter)
        };
        let nodes = self.nodes.iter().enumerate();
        let parts = nodes.filter(|(_, n)| of_parameter(n));
        parts.map(|(at, n)| (at, n.number)).collect()
    }

    /// What the root gives back as part `index` of its tuple.
    pub(crate) fn returned(&self, index: usize) -> Option<usize> {
        let root = &self.nodes[self.root];
        let is_tuple = root.opcode == Opcode::Tuple;
        root.operands.get(index).copied().filter(|_| is_tuple)
    }
}

impl Node {
    fn read(i: &Record, operands: Vec<usize>) -> Node {
        let opcode = Opcode::from_name(i.text(hlo_instruction::OPCODE));
        let shape_of = Record::read(i.bytes(hlo_instruction::SHAPE)).unwrap_or_default();
        let metadata = Record::read(i.bytes(hlo_instruction::METADATA)).unwrap_or_default();
        let number = match opcode {
            Opcode::Parameter => i.number(hlo_instruction::PARAMETER_NUMBER),
            _ => i.number(hlo_instruction::TUPLE_INDEX),
        };
        Node {
            id: i.number(hlo_instruction::ID),
            opcode,
            operands,
            users: Vec::new(),
            element: ElementType(shape_of.number(shape::ELEMENT_TYPE) as u32),
            dimensions: shape_of.numbers(shape::DIMENSIONS),
            op_name: metadata.text(op_metadata::OP_NAME).to_owned(),
            number: usize::try_from(number).unwrap_or(usize::MAX),
        }
    }

    /// Elements of an array.
    pub(crate) fn element_count(&self) -> u64 {
        let d = self.dimensions.iter();
        d.fold(1, |n, &d| n.saturating_mul(d))
    }

    /// Whether it holds numbers that gradients flow through, or a tuple that may.
    pub(crate) fn may_flow(&self) -> bool {
        self.element.is_float() || self.element == ElementType::TUPLE
    }
}
