//! BufferAssignmentProto bytes → [`BufferAssignment`].

use rustc_hash::FxHashMap;

use super::schema::{buffer_allocation, buffer_assignment, heap_simulator_trace, logical_buffer};
use super::wire::{fields, numbers, text, Value, WireError, WireResult};
use crate::error::Diagnostic;
use crate::hlo::{
    AllocationId, AllocationKind, AssignedBuffer, BufferAllocation, BufferAssignment, BufferId,
    HeapEvent, HeapEventKind, HeapTrace, HloModule, InstructionId, LogicalBuffer, MemorySpace,
};

/// Devices have about a dozen; each costs a pass over everything.
const MAX_SPACES: usize = 256;

/// Reads a buffer assignment of `module`. What refers to buffers or instructions that the file
/// does not have is kept with `None` in that place, and reported.
// Long: a table: one arm a field of the message.
pub(crate) fn decode_assignment<'a>(
    bytes: &'a [u8],
    module: &HloModule<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> WireResult<BufferAssignment<'a>> {
    let mut out = BufferAssignment::default();
    let mut names = NameLookup {
        module,
        table: None,
    };
    let mut traces: Vec<&'a [u8]> = Vec::new();
    let mut allocations: Vec<&'a [u8]> = Vec::new();
    let mut undefined = 0usize;
    for field in fields(bytes) {
        match field? {
            (buffer_assignment::LOGICAL_BUFFERS, Value::Bytes(b)) => {
                let at = out.logical_buffers.len();
                let buffer = logical_buffer(b, &mut names, &mut out.shape_indices)
                    .map_err(|e| e.within("logical_buffers", Some(at)))?;
                undefined += usize::from(buffer.instruction.is_none());
                out.logical_buffers.push(buffer);
            }
            (buffer_assignment::BUFFER_ALLOCATIONS, Value::Bytes(b)) => allocations.push(b),
            (buffer_assignment::HEAP_SIMULATOR_TRACES, Value::Bytes(b)) => traces.push(b),
            _ => {}
        }
    }
    let ids = IdTable::new(&out.logical_buffers);
    let mut unassigned = 0usize;
    for (at, b) in allocations.into_iter().enumerate() {
        unassigned +=
            allocation(b, &ids, &mut out).map_err(|e| e.within("buffer_allocations", Some(at)))?;
    }
    if out.spaces().len() > MAX_SPACES {
        return Err(WireError::new(
            "more memory spaces than any device has",
            bytes,
        ));
    }
    for (at, b) in traces.into_iter().enumerate() {
        let trace =
            heap_trace(b, &ids, &out).map_err(|e| e.within("heap_simulator_traces", Some(at)))?;
        if trace.unknown_buffers > 0 {
            diagnostics.push(Diagnostic::warning(
                "unknown_buffer",
                format!(
                    "{} events of heap simulator trace {at} name buffers that the file does not \
                     have; they are skipped",
                    trace.unknown_buffers
                ),
            ));
        }
        out.traces.push(trace);
    }
    if undefined > 0 {
        diagnostics.push(Diagnostic::warning(
            "unknown_instruction",
            format!(
                "{undefined} logical buffers name an instruction that the module does not have"
            ),
        ));
    }
    if unassigned > 0 {
        diagnostics.push(Diagnostic::warning(
            "unknown_buffer",
            format!("{unassigned} entries of allocations name buffers that the file does not have"),
        ));
    }
    Ok(out)
}

/// Instructions by name, made only for the older files that need it.
struct NameLookup<'m, 'a> {
    module: &'m HloModule<'a>,
    table: Option<FxHashMap<&'a str, InstructionId>>,
}

impl NameLookup<'_, '_> {
    fn find(&mut self, name: &str) -> Option<InstructionId> {
        let module = self.module;
        self.table
            .get_or_insert_with(|| {
                let numbered = module.instructions.iter().enumerate();
                numbered
                    .map(|(i, x)| (x.name, InstructionId(i as u32)))
                    .collect()
            })
            .get(name)
            .copied()
    }
}

/// Logical buffer ids → handles: a table where ids are dense, as they are in real files.
enum IdTable {
    Dense(Vec<u32>),
    Sparse(FxHashMap<i64, u32>),
}

impl IdTable {
    fn new(buffers: &[LogicalBuffer]) -> Self {
        let max = buffers.iter().map(|b| b.id).max().unwrap_or(0);
        let min = buffers.iter().map(|b| b.id).min().unwrap_or(0);
        let limit = (buffers.len() as i64)
            .saturating_mul(4)
            .saturating_add(1024);
        let numbered = buffers.iter().enumerate().map(|(i, b)| (b.id, i as u32));
        if min >= 0 && max < limit {
            let mut table = vec![u32::MAX; max as usize + 1];
            for (id, i) in numbered {
                if let Some(slot) = table.get_mut(id as usize) {
                    *slot = i;
                }
            }
            IdTable::Dense(table)
        } else {
            IdTable::Sparse(numbered.collect())
        }
    }

    fn get(&self, id: i64) -> Option<BufferId> {
        match self {
            IdTable::Dense(t) => t
                .get(usize::try_from(id).ok()?)
                .copied()
                .filter(|&i| i != u32::MAX),
            IdTable::Sparse(t) => t.get(&id).copied(),
        }
        .map(BufferId)
    }
}

/// Sizes in bytes; a negative one is damage and counts as nothing.
fn size(v: u64) -> u64 {
    u64::try_from(v as i64).unwrap_or(0)
}

fn logical_buffer(
    bytes: &[u8],
    names: &mut NameLookup<'_, '_>,
    shape_indices: &mut Vec<i64>,
) -> WireResult<LogicalBuffer> {
    let from = shape_indices.len() as u32;
    let mut buffer = LogicalBuffer {
        id: 0,
        size_bytes: 0,
        instruction: None,
        space: MemorySpace(0),
        allocation: None,
        offset_bytes: 0,
        shape_index: (from, from),
    };
    for field in fields(bytes) {
        match field? {
            (logical_buffer::ID, Value::Varint(v)) => buffer.id = v as i64,
            (logical_buffer::SIZE, Value::Varint(v)) => buffer.size_bytes = size(v),
            (logical_buffer::DEFINED_AT, Value::Bytes(b)) => {
                let (mut name, mut id) = (None, None);
                for field in fields(b) {
                    match field? {
                        (logical_buffer::location::INSTRUCTION_NAME, Value::Bytes(n)) => {
                            name = Some(text(n))
                        }
                        (logical_buffer::location::SHAPE_INDEX, v) => {
                            numbers(v, |n| shape_indices.push(n as i64))?
                        }
                        (logical_buffer::location::INSTRUCTION_ID, Value::Varint(v)) => {
                            id = Some(v as i64)
                        }
                        _ => {}
                    }
                }
                buffer.instruction = id
                    .and_then(|id| names.module.find_wire_id(id))
                    .or_else(|| name.and_then(|n| names.find(n)))
                    // An id of zero is not written: it is what is left when neither is there.
                    .or_else(|| match (id, name) {
                        (None, None) => names.module.find_wire_id(0),
                        _ => None,
                    });
            }
            (logical_buffer::COLOR, Value::Varint(v)) => buffer.space = MemorySpace(v as i64),
            _ => {}
        }
    }
    buffer.shape_index = (from, shape_indices.len() as u32);
    Ok(buffer)
}

/// Adds one allocation; returns how many of its entries name unknown buffers.
// Long: a table: one arm a field of the message.
fn allocation(bytes: &[u8], ids: &IdTable, out: &mut BufferAssignment<'_>) -> WireResult<usize> {
    let this = AllocationId(out.allocations.len() as u32);
    let from = out.assigned.len() as u32;
    let (mut index, mut size_bytes, mut space) = (0, 0, MemorySpace(0));
    let (mut thread_local, mut parameter, mut live_out, mut constant) =
        (false, false, false, false);
    let mut parameter_number = 0;
    let mut parameter_index = Vec::new();
    let mut unknown = 0;
    for field in fields(bytes) {
        match field? {
            (buffer_allocation::INDEX, Value::Varint(v)) => index = v as i64,
            (buffer_allocation::SIZE, Value::Varint(v)) => size_bytes = size(v),
            (buffer_allocation::IS_THREAD_LOCAL, Value::Varint(v)) => thread_local = v != 0,
            (buffer_allocation::IS_ENTRY_COMPUTATION_PARAMETER, Value::Varint(v)) => {
                parameter = v != 0
            }
            (buffer_allocation::PARAMETER_NUMBER, Value::Varint(v)) => {
                parameter_number = u32::try_from(v).unwrap_or(u32::MAX)
            }
            (buffer_allocation::MAYBE_LIVE_OUT, Value::Varint(v)) => live_out = v != 0,
            (buffer_allocation::COLOR, Value::Varint(v)) => space = MemorySpace(v as i64),
            (buffer_allocation::ASSIGNED, Value::Bytes(b)) => {
                let (mut id, mut offset_bytes, mut bytes) = (0, 0, 0);
                for field in fields(b) {
                    match field? {
                        (buffer_allocation::assigned::LOGICAL_BUFFER_ID, Value::Varint(v)) => {
                            id = v as i64
                        }
                        (buffer_allocation::assigned::OFFSET, Value::Varint(v)) => {
                            offset_bytes = size(v)
                        }
                        (buffer_allocation::assigned::SIZE, Value::Varint(v)) => bytes = size(v),
                        _ => {}
                    }
                }
                match ids.get(id) {
                    Some(buffer) => {
                        if let Some(b) = out.logical_buffers.get_mut(buffer.index()) {
                            b.allocation = Some(this);
                            b.offset_bytes = offset_bytes;
                        }
                        out.assigned.push(AssignedBuffer {
                            buffer,
                            offset_bytes,
                            size_bytes: bytes,
                        });
                    }
                    None => unknown += 1,
                }
            }
            (buffer_allocation::PARAMETER_SHAPE_INDEX, v) => {
                numbers(v, |n| parameter_index.push(n as i64))?
            }
            (buffer_allocation::IS_CONSTANT, Value::Varint(v)) => constant = v != 0,
            _ => {}
        }
    }
    let kind = match () {
        () if thread_local => AllocationKind::ThreadLocal,
        () if constant => AllocationKind::Constant,
        () if parameter && live_out => AllocationKind::Donated,
        () if parameter => AllocationKind::Parameter,
        () if live_out => AllocationKind::Output,
        () => AllocationKind::Temporary,
    };
    if out.allocations.len() >= u32::MAX as usize / 2 {
        return Err(WireError::new(
            "more allocations than xpeak can number",
            bytes,
        ));
    }
    out.allocations.push(BufferAllocation {
        index,
        size_bytes,
        space,
        kind,
        maybe_live_out: live_out,
        parameter_number: parameter.then_some(parameter_number),
        parameter_index,
        assigned: (from, out.assigned.len() as u32),
    });
    Ok(unknown)
}

fn heap_trace<'a>(
    bytes: &'a [u8],
    ids: &IdTable,
    assignment: &BufferAssignment<'_>,
) -> WireResult<HeapTrace<'a>> {
    let mut trace = HeapTrace::default();
    for field in fields(bytes) {
        match field? {
            (heap_simulator_trace::EVENTS, Value::Bytes(b)) => {
                let at = trace.events.len();
                let event = heap_event(b, ids).map_err(|e| e.within("events", Some(at)))?;
                let unknown = event.buffer.is_none()
                    || event.kind == HeapEventKind::ShareWith { canonical: None };
                trace.unknown_buffers += u32::from(unknown);
                trace.events.push(event);
            }
            (heap_simulator_trace::WHOLE_MODULE_SIMULATION, Value::Varint(v)) => {
                trace.whole_module = v != 0
            }
            _ => {}
        }
    }
    trace.allocation = trace
        .events
        .iter()
        .filter_map(|e| assignment.buffer(e.buffer?).allocation)
        .next();
    Ok(trace)
}

fn heap_event<'a>(bytes: &'a [u8], ids: &IdTable) -> WireResult<HeapEvent<'a>> {
    let (mut kind, mut buffer, mut canonical, mut instruction_name) = (0, 0, 0, "");
    for field in fields(bytes) {
        match field? {
            (heap_simulator_trace::event::KIND, Value::Varint(v)) => kind = v,
            (heap_simulator_trace::event::BUFFER_ID, Value::Varint(v)) => buffer = v as i64,
            (heap_simulator_trace::event::INSTRUCTION_NAME, Value::Bytes(b)) => {
                instruction_name = text(b)
            }
            (heap_simulator_trace::event::SHARE_WITH_CANONICAL_ID, Value::Varint(v)) => {
                canonical = v as i64
            }
            _ => {}
        }
    }
    Ok(HeapEvent {
        kind: match kind {
            0 => HeapEventKind::Alloc,
            1 => HeapEventKind::Free,
            _ => HeapEventKind::ShareWith {
                canonical: ids.get(canonical),
            },
        },
        buffer: ids.get(buffer),
        instruction_name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_spaces_than_any_device_has_are_damage() {
        // Allocations with nothing but field 8, the colour.
        let bytes = |spaces: u8| -> Vec<u8> {
            (0..spaces)
                .flat_map(|s| [0x1a, 3, 0x40, 0x80 | (s & 0x7f), 1 + (s >> 7)])
                .collect()
        };
        let read = |b: &[u8]| {
            let module = HloModule::default();
            decode_assignment(b, &module, &mut Vec::new()).map(|a| a.spaces().len())
        };
        assert_eq!(read(&bytes(200)).unwrap(), 200);
        let mut many = bytes(255);
        many.extend([0x1a, 3, 0x40, 0x80, 0x40, 0x1a, 3, 0x40, 0x80, 0x41]);
        let e = read(&many).unwrap_err();
        assert!(e.cause().contains("memory spaces"), "{}", e.cause());
    }
}
