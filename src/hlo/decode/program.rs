//! A serialized HloProto, bare HloModuleProto or HloSnapshot → [`Program`].

use super::assignment::decode_assignment;
use super::module::decode_module;
use super::schema::{hlo, hlo_snapshot};
use super::shape::decode_shape_leaf;
use super::wire::{fields, Value, WireResult};
use crate::error::{Diagnostic, Severity};
use crate::hlo::{BufferId, Program, Shape};

/// Which message a program's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HloContainer {
    /// HloProto: a module, perhaps with buffer assignment.
    Proto,
    /// HloModuleProto alone.
    Module,
    /// HloSnapshot: an HloProto in field 1.
    Snapshot,
}

/// Reads a program. If the module is whole and only its buffer assignment is damaged, the module
/// is returned without one, with an error diagnostic.
///
/// # Errors
/// Bytes that are not the given message, or are damaged within the module.
// Long: a table: one arm a field of the message.
pub fn decode_program(bytes: &[u8], container: HloContainer) -> WireResult<Program<'_>> {
    let mut diagnostics = Vec::new();
    if container == HloContainer::Module {
        let module = decode_module(bytes, &mut diagnostics)?;
        return Ok(Program {
            module,
            assignment: None,
            diagnostics,
        });
    }
    if container == HloContainer::Snapshot {
        let inner = first_message(bytes, hlo_snapshot::HLO)?;
        return decode_program(inner, HloContainer::Proto).map_err(|e| e.within("hlo", None));
    }
    let mut module_bytes = None;
    let mut assignment_bytes = None;
    let mut cut = None;
    for field in fields(bytes) {
        match field {
            Ok((hlo::HLO_MODULE, Value::Bytes(b))) => module_bytes = Some(b),
            Ok((hlo::BUFFER_ASSIGNMENT, Value::Bytes(b))) => assignment_bytes = Some(b),
            Ok(_) => {}
            // Without the module there is nothing to show; after it, what there is can be used.
            Err(e) if module_bytes.is_none() => return Err(e),
            Err(e) => cut = Some(e),
        }
    }
    let module = decode_module(module_bytes.unwrap_or_default(), &mut diagnostics)
        .map_err(|e| e.within("hlo_module", None))?;
    if let Some(e) = cut {
        diagnostics.push(Diagnostic::new(
            Severity::Error,
            "damaged_program",
            format!(
                "the program ends early, at byte {} of it ({}): its buffer assignment is lost",
                e.offset_in(bytes),
                e.cause()
            ),
        ));
        assignment_bytes = None;
    }
    let assignment = assignment_bytes.and_then(|b| {
        let result = decode_assignment(b, &module, &mut diagnostics);
        result
            .map_err(|e| {
                let e = e.within("buffer_assignment", None);
                diagnostics.push(Diagnostic::new(
                    Severity::Error,
                    "damaged_buffer_assignment",
                    format!(
                        "the buffer assignment is damaged at byte {} in {}: {}",
                        e.offset_in(bytes),
                        e.field(),
                        e.cause()
                    ),
                ));
            })
            .ok()
            // An assignment without a single allocation says nothing.
            .filter(|a| !a.allocations.is_empty())
    });
    Ok(Program {
        module,
        assignment,
        diagnostics,
    })
}

/// The bytes of the last field `number` of a message (the last one counts).
fn first_message(bytes: &[u8], number: u32) -> WireResult<&[u8]> {
    let mut out = &[][..];
    for field in fields(bytes) {
        match field? {
            (n, Value::Bytes(b)) if n == number => out = b,
            _ => {}
        }
    }
    Ok(out)
}

impl<'a> Program<'a> {
    /// Shape of what a logical buffer holds; `None` if the file does not say.
    pub fn buffer_shape(&self, id: BufferId) -> Option<Shape> {
        let assignment = self.assignment.as_ref()?;
        let instruction = assignment.buffer(id).instruction?;
        let bytes = self.module.instruction(instruction).shape;
        decode_shape_leaf(bytes, assignment.shape_index(id))
            .ok()
            .flatten()
    }
}
