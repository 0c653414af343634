//! Changes to an unoptimised module, one file each: what a user's edit would have made of the
//! program before the compiler saw it.
//!
//! In: a module's bytes, edits of `whatif`, the program as it was compiled. Out: other bytes, and
//! what was done in words. May use: `whatif`'s edits and selectors.
//!
//! They work on records of fields ([`record`]): a message is a list of fields, and what an edit does
//! not touch, known to xpeak or not, goes back as it came. A model of HLO's own would have to know
//! every field of every version, or lose some.

mod arguments;
mod debug;
mod donate;
mod dtype;
mod module;
mod offload;
mod outputs;
mod record;
mod shape;
mod shard;
mod split;

pub(crate) use module::Editable;

use crate::error::{Error, Result};
use crate::findings::Finding;
use crate::hlo::{Mesh, Program};
use crate::whatif::Edit;

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

/// Kinds of edits that can be done in an unoptimised module.
pub(crate) const KINDS: [&str; 6] = ["no-debug", "drop", "dtype", "shard", "offload", "donate"];

/// Does the edits, in the order in which they make sense together; a note for each, in the order
/// given.
///
/// # Errors
/// An edit that matches nothing, or that only simulation can answer.
pub(crate) fn rewrite(
    module: &mut Editable,
    context: &Context<'_, '_>,
    edits: &[Edit],
) -> Result<Vec<String>> {
    let place = |e: &Edit| KINDS.iter().position(|k| *k == e.kind().name);
    let mut order: Vec<(usize, usize)> = Vec::new();
    for (at, edit) in edits.iter().enumerate() {
        let Some(place) = place(edit) else {
            return Err(Error::usage(
                format!(
                    "--{}: the compiler cannot be asked about this one yet",
                    edit.kind().name
                ),
                format!("with --compile: --{}", KINDS.join(", --")),
            ));
        };
        order.push((place, at));
    }
    order.sort_unstable();
    let mut notes = vec![String::new(); edits.len()];
    for (_, at) in order {
        let edit = &edits[at];
        let value = edit.to_string();
        let value = value.split_once(' ').map_or("", |(_, v)| v);
        let note = match edit.kind().name {
            "donate" => donate::donate(module, context, value),
            "shard" => shard::shard(module, context, value),
            "dtype" => dtype::dtype(module, context, value),
            "no-debug" => debug::remove(module),
            "drop" => outputs::drop(module, context, value),
            _ => offload::offload(module, context, value),
        };
        notes[at] = note?;
    }
    Ok(notes)
}

/// An edit that matches nothing that it could be done to.
pub(crate) fn nothing(edit: &str, value: &str, what: &str) -> Error {
    Error::usage(
        format!("--{edit} {value}: {what}"),
        "selectors are argument names, shapes, operation paths, source lines, all",
    )
}
