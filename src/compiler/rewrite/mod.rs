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
mod checkpoint;
mod context;
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

pub(crate) use context::{Choice, Context};
pub(crate) use module::Editable;

use crate::error::{Error, Result};
use crate::whatif::Edit;

/// Kinds of edits that can be done in an unoptimised module.
pub(crate) const KINDS: [&str; 7] = [
    "no-debug",
    "drop",
    "dtype",
    "shard",
    "offload",
    "donate",
    "checkpoint",
];

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
            "checkpoint" => checkpoint::checkpoint(module, context, value),
            "drop" => outputs::drop(module, context, value),
            _ => offload::offload(module, context, value),
        };
        notes[at] = note?;
    }
    Ok(notes)
}
