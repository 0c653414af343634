//! A second witness to what is sharded: the same program before the compiler cut it, with global
//! shapes. An operation whose result has the same dimensions before and after was not cut.
//!
//! The two may differ for good reasons (a term of a sum has full size and is on no two devices
//! the same), so what they disagree on is reported, and figures do not change.

use std::collections::BTreeMap;

use crate::devices::replication::{DeviceClassesId, Replication};
use crate::error::Diagnostic;
use crate::hlo::{InstructionId, Opcode, Program};
use crate::units;

/// Smaller results are not compared.
const MIN_BYTES: u64 = 1 << 20;
/// Operations named in a diagnostic.
const MAX_NAMED: usize = 3;

/// What global shapes say.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Witness {
    /// Operations of the compiled program whose result has its global dimensions, in file order.
    pub whole: Vec<InstructionId>,
    /// Of those, how many the replication analysis also finds the same on all devices.
    pub agreed: usize,
    /// Where the two disagree.
    pub diagnostics: Vec<Diagnostic>,
}

/// Compares a compiled program with the same program `before` optimization. Operations are
/// matched by their framework name, where all that share it have the same dimensions.
pub fn global_shape_witness(
    before: &Program<'_>,
    after: &Program<'_>,
    replication: &Replication,
) -> Witness {
    let mut out = Witness::default();
    if replication.devices() <= 1 {
        return out;
    }
    let global = dimensions_by_name(before);
    let mut apart: Vec<(u64, InstructionId)> = Vec::new();
    let mut cut: Vec<(u64, InstructionId)> = Vec::new();
    let module = &after.module;
    for id in module.ids() {
        let i = module.instruction(id);
        if i.op_name.is_empty()
            || i.opcode == Opcode::Parameter
            || module.computation(i.computation).is_fusion
        {
            continue;
        }
        let Some(Some(dimensions)) = global.get(i.op_name) else {
            continue;
        };
        let shape = module.shape(id);
        let bytes = shape.unpadded_bytes();
        if shape.is_tuple() || bytes < MIN_BYTES || dimensions.len() != shape.dimensions.len() {
            continue;
        }
        let same_everywhere = replication.classes_of(module, id, &[]) == DeviceClassesId::ONE;
        if *dimensions == shape.dimensions {
            out.whole.push(id);
            if same_everywhere {
                out.agreed += 1;
            } else {
                apart.push((bytes, id));
            }
        } else if same_everywhere && divides(&shape.dimensions, dimensions) {
            cut.push((bytes, id));
        }
    }
    let mut report = |list: &mut Vec<(u64, InstructionId)>, code, text: &str| {
        if list.is_empty() {
            return;
        }
        list.sort_by_key(|&(bytes, i)| (std::cmp::Reverse(bytes), i));
        let named: Vec<String> = list
            .iter()
            .take(MAX_NAMED)
            .map(|&(bytes, i)| format!("{} ({})", module.instruction(i).name, units::bytes(bytes)))
            .collect();
        let message = format!("{} {text}: {}", list.len(), named.join(", "));
        out.diagnostics.push(Diagnostic::note(code, message));
    };
    report(
        &mut apart,
        "whole_but_not_equal",
        "results have their global dimensions on every device, and are not known to be the same there (terms of a sum, or parts in a larger frame)",
    );
    report(
        &mut cut,
        "cut_but_equal",
        "results are smaller than before partitioning, and yet come out the same on all devices (parts of whole data, one after another)",
    );
    out
}

/// Whether each dimension of `part` divides that of `whole`, and they are not all equal.
fn divides(part: &[u64], whole: &[u64]) -> bool {
    part.iter()
        .zip(whole)
        .all(|(&p, &w)| p > 0 && w.is_multiple_of(p))
        && part != whole
}

/// Dimensions of results by op name; `None` where a name stands for several.
fn dimensions_by_name<'p>(program: &'p Program<'_>) -> BTreeMap<&'p str, Option<Vec<u64>>> {
    let module = &program.module;
    let mut out: BTreeMap<&str, Option<Vec<u64>>> = BTreeMap::new();
    for (k, i) in module.instructions.iter().enumerate() {
        if i.op_name.is_empty()
            || matches!(
                i.opcode,
                Opcode::Parameter | Opcode::Constant | Opcode::Tuple
            )
        {
            continue;
        }
        let shape = module.shape(InstructionId(k as u32));
        if shape.is_tuple() {
            continue;
        }
        out.entry(i.op_name)
            .and_modify(|d| {
                if d.as_ref() != Some(&shape.dimensions) {
                    *d = None;
                }
            })
            .or_insert(Some(shape.dimensions));
    }
    out
}
