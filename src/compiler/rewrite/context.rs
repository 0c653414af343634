//! What every rewriting knows, and may choose.

use crate::error::Error;
use crate::findings::Finding;
use crate::hlo::{Mesh, Program};

/// What the rewriting knows of a program.
#[derive(Debug)]
pub(crate) struct Context<'c, 'a> {
    /// The program as it was compiled.
    pub(crate) after: &'c Program<'a>,
    /// The unoptimised module, decoded.
    pub(crate) before: &'c Program<'a>,
    /// Its meshes.
    pub(crate) meshes: &'c [Mesh],
    /// Findings that selectors may name.
    pub(crate) findings: &'c [Finding],
    /// Where an edit leaves a choice.
    pub(crate) choice: Choice,
}

/// Along which dimension a tensor is split: an edit says how often, and no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Weights along their largest dimension, values along their first.
    Usual,
    /// Along this one where it can be.
    Dimension(usize),
    /// Axis by axis, each along another dimension, from the first and the last inwards.
    Spread,
}

impl Choice {
    /// Every choice, the usual one first.
    pub(crate) const ALL: [Choice; 6] = [
        Choice::Usual,
        Choice::Dimension(0),
        Choice::Dimension(1),
        Choice::Dimension(2),
        Choice::Dimension(3),
        Choice::Spread,
    ];

    /// In words, for a note.
    pub(crate) fn words(self) -> String {
        match self {
            Choice::Usual => "weights along their largest dimension, values along the first".into(),
            Choice::Dimension(d) => format!("along dimension {d}"),
            Choice::Spread => "each mesh axis along another dimension".into(),
        }
    }
}

/// An edit that matches nothing that it could be done to.
pub(crate) fn nothing(edit: &str, value: &str, what: &str) -> Error {
    Error::usage(
        format!("--{edit} {value}: {what}"),
        "selectors are argument names, shapes, operation paths, source lines, all",
    )
}
