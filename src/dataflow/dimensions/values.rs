//! Every array in the module as a node, and how the dimensions of one follow those of another.
//!
//! In: a program. Out: [`Values`]: one node per array leaf of every instruction's result, links
//! between nodes (made by [`super::links`]), and classes of nodes that change together.

use crate::hlo::{InstructionId, Program};

/// A node: one array leaf of one instruction's result.
pub type NodeId = u32;

/// How two nodes hang together. Dimension relations hold in both directions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// One node.
    pub a: NodeId,
    /// The other.
    pub b: NodeId,
    /// Which dimensions correspond.
    pub map: DimensionMap,
    /// Element for element: splitting one splits the other.
    pub elementwise: bool,
    /// How many devices' shares of `b` make up `a`; 1 where each device has all of both.
    pub share: u64,
    /// The element type of one is the other's.
    pub same_type: bool,
}

/// Which dimensions of two nodes correspond.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DimensionMap {
    /// None.
    Unrelated,
    /// Each to the one with its number.
    Same,
    /// Pairs `(dimension of a, dimension of b)`.
    Pairs(Box<[(u8, u8)]>),
    /// Regrouped: within each group the products of both sides agree, major to minor.
    Groups(Box<[Group]>),
}

/// Dimensions of both sides of a reshape that hold the same elements, slowest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Group {
    /// Of the first node.
    pub a: Vec<Piece>,
    /// Of the second.
    pub b: Vec<Piece>,
}

/// A dimension or a factor of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The dimension.
    pub dimension: u8,
    /// Steps in this piece.
    pub size: u64,
    /// Elements of the dimension per step.
    pub stride: u64,
}

/// Nodes and links of one program.
#[derive(Debug, Default)]
pub struct Values {
    /// First node of each instruction; one more entry than instructions.
    pub(crate) first: Vec<u32>,
    /// Where each node's dimensions lie in `dimensions`; one more entry than nodes.
    pub(crate) dimension_starts: Vec<u32>,
    pub(crate) dimensions: Vec<u64>,
    pub(crate) types: Vec<u32>,
    /// Of tuple-shaped instructions: leaf offset of each element (sorted by instruction).
    pub(crate) elements: rustc_hash::FxHashMap<u32, Vec<u32>>,
    /// All links.
    pub links: Vec<Link>,
    pub(crate) adjacent_starts: Vec<u32>,
    pub(crate) adjacent: Vec<u32>,
    pub(crate) type_class: Vec<u32>,
}

impl Values {
    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Nodes of an instruction's result, in leaf order.
    pub fn nodes(&self, id: InstructionId) -> std::ops::Range<NodeId> {
        let at = |i: usize| self.first.get(i).copied().unwrap_or(0);
        at(id.index())..at(id.index() + 1)
    }

    /// Nodes of element `index` of a tuple-shaped result.
    pub fn element(&self, id: InstructionId, index: usize) -> std::ops::Range<NodeId> {
        let base = self.nodes(id);
        let Some(e) = self.elements.get(&id.0) else {
            return base.start..base.start;
        };
        match (e.get(index), e.get(index + 1)) {
            (Some(a), Some(b)) => base.start + a..base.start + b,
            _ => base.start..base.start,
        }
    }

    /// Number of elements of a tuple-shaped result; 0 for arrays.
    pub fn element_count(&self, id: InstructionId) -> usize {
        self.elements
            .get(&id.0)
            .map_or(0, |e| e.len().saturating_sub(1))
    }

    /// The node at a shape index of an instruction's result; `None` for a tuple's own table.
    pub fn node_at(
        &self,
        program: &Program<'_>,
        id: InstructionId,
        index: &[i64],
    ) -> Option<NodeId> {
        let nodes = self.nodes(id);
        match index {
            [] if self.elements.contains_key(&id.0) => None,
            [] => (nodes.end > nodes.start).then_some(nodes.start),
            [one] => {
                let e = self.element(id, usize::try_from(*one).ok()?);
                (e.end == e.start + 1).then_some(e.start)
            }
            _ => {
                let shape = program.module.shape(id);
                let (mut at, mut found) = (0, None);
                shape.for_each_leaf(&mut |i, _| {
                    if i == index {
                        found = Some(nodes.start + at);
                    }
                    at += 1;
                });
                found.filter(|n| nodes.contains(n))
            }
        }
    }

    /// The instruction that a node belongs to.
    pub fn instruction_of(&self, node: NodeId) -> InstructionId {
        InstructionId(self.first.partition_point(|&f| f <= node).saturating_sub(1) as u32)
    }

    /// Dimensions of a node.
    pub fn dimensions(&self, node: NodeId) -> &[u64] {
        let at = |i: usize| self.dimension_starts.get(i).copied().unwrap_or(0) as usize;
        self.dimensions
            .get(at(node as usize)..at(node as usize + 1))
            .unwrap_or_default()
    }

    /// Element type of a node, by number.
    pub fn element_type(&self, node: NodeId) -> u32 {
        self.types.get(node as usize).copied().unwrap_or(0)
    }

    /// Links at a node, by position in `links`.
    pub fn links_at(&self, node: NodeId) -> &[u32] {
        let at = |i: usize| self.adjacent_starts.get(i).copied().unwrap_or(0) as usize;
        self.adjacent
            .get(at(node as usize)..at(node as usize + 1))
            .unwrap_or_default()
    }

    /// Links at a node, each with the node at its other end.
    pub fn neighbours(&self, node: NodeId) -> impl Iterator<Item = (&Link, NodeId)> {
        let links = self.links_at(node).iter();
        let links = links.filter_map(|&l| self.links.get(l as usize));
        links.map(move |l| (l, if l.a == node { l.b } else { l.a }))
    }

    /// Class of nodes that have one element type.
    pub fn type_class(&self, node: NodeId) -> u32 {
        self.type_class.get(node as usize).copied().unwrap_or(node)
    }
}
