//! HloModuleProto bytes → [`HloModule`].

use rustc_hash::FxHashMap;

use super::schema::{
    device_assignment, frontend_attributes, hlo_buffer_donor, hlo_computation,
    hlo_input_output_alias, hlo_instruction, hlo_module, hlo_schedule, map_entry, op_metadata,
    stack_frame_index,
};
use super::shape::decode_shape;
use super::wire::{fields, numbers, text, Value, WireError, WireResult};
use crate::error::Diagnostic;
use crate::hlo::{
    BufferDonor, ComputationId, HloComputation, HloInstruction, HloModule, InputOutputAlias,
    InstructionId, Opcode, Shape, StackFrameIndex,
};

/// Reads a module. References to instructions and computations that do not exist are left out
/// and reported.
pub(crate) fn decode_module<'a>(
    bytes: &'a [u8],
    diagnostics: &mut Vec<Diagnostic>,
) -> WireResult<HloModule<'a>> {
    let mut reader = Reader::default();
    let mut module = HloModule {
        replica_count: 1,
        num_partitions: 1,
        ..HloModule::default()
    };
    let mut entry_name = "";
    let mut entry_id = None;
    let mut schedules: Vec<(i64, &'a [u8])> = Vec::new();
    for field in fields(bytes) {
        match field? {
            (hlo_module::NAME, Value::Bytes(b)) => module.name = text(b),
            (hlo_module::ENTRY_COMPUTATION_NAME, Value::Bytes(b)) => entry_name = text(b),
            (hlo_module::COMPUTATIONS, Value::Bytes(b)) => {
                let index = module.computations.len();
                reader
                    .computation(b, &mut module)
                    .map_err(|e| e.within("computations", Some(index)))?;
            }
            (hlo_module::ID, Value::Varint(v)) => module.id = v as i64,
            (hlo_module::ENTRY_COMPUTATION_ID, Value::Varint(v)) => entry_id = Some(v as i64),
            (hlo_module::SCHEDULE, Value::Bytes(b)) => {
                schedules = decode_schedule(b).map_err(|e| e.within("schedule", None))?;
            }
            (hlo_module::INPUT_OUTPUT_ALIAS, Value::Bytes(b)) => {
                module.input_output_alias =
                    decode_aliases(b).map_err(|e| e.within("input_output_alias", None))?;
            }
            (hlo_module::SPMD_OUTPUT_SHARDING, Value::Bytes(b)) => module.output_sharding = Some(b),
            (hlo_module::SPMD_PARAMETERS_SHARDINGS, Value::Bytes(b)) => {
                module.parameter_shardings.push(b)
            }
            (hlo_module::DEVICE_ASSIGNMENT, Value::Bytes(b)) => {
                decode_device_assignment(b, &mut module)
                    .map_err(|e| e.within("device_assignment", None))?;
            }
            (hlo_module::STACK_FRAME_INDEX, Value::Bytes(b)) => {
                module.stack_frames =
                    decode_stack_frames(b).map_err(|e| e.within("stack_frame_index", None))?;
            }
            (hlo_module::BUFFER_DONOR, Value::Bytes(b)) => {
                module.buffer_donors =
                    decode_donors(b).map_err(|e| e.within("buffer_donor", None))?;
            }
            (hlo_module::FRONTEND_ATTRIBUTES, Value::Bytes(b)) => {
                module.frontend_attributes =
                    decode_attributes(b).map_err(|e| e.within("frontend_attributes", None))?;
            }
            _ => {}
        }
    }
    reader.resolve_calls(&mut module);
    module.index_computations();
    // Runs of sorted ids, one a computation: the stable sort merges them.
    module.by_wire_id.sort();
    let by_wire = |id: i64| reader.computations.get(&id).copied();
    module.entry = entry_id
        .and_then(by_wire)
        .or_else(|| {
            let at = module
                .computations
                .iter()
                .position(|c| c.name == entry_name)?;
            Some(ComputationId(at as u32))
        })
        .or_else(|| {
            module
                .computations
                .len()
                .checked_sub(1)
                .map(|i| ComputationId(i as u32))
        });
    module.schedule = schedules
        .into_iter()
        .filter_map(|(id, b)| Some((by_wire(id)?, b)))
        .collect();
    if reader.unresolved > 0 {
        diagnostics.push(Diagnostic::warning(
            "unknown_reference",
            format!(
                "{} references to instructions or computations that the module does not have",
                reader.unresolved
            ),
        ));
    }
    Ok(module)
}

/// The entry with this id in a list sorted by id.
pub(crate) fn find(sorted: &[(i64, InstructionId)], wire_id: i64) -> Option<InstructionId> {
    let at = sorted.partition_point(|(id, _)| *id < wire_id);
    sorted
        .get(at)
        .filter(|(id, _)| *id == wire_id)
        .map(|(_, i)| *i)
}

#[derive(Default)]
struct Reader {
    computations: FxHashMap<i64, ComputationId>,
    /// Wire ids of called computations, parallel to `HloModule::called` until resolved.
    called: Vec<i64>,
    /// Ids within the computation being read, by id.
    local: Vec<(i64, InstructionId)>,
    /// Wire ids of operands of the computation being read.
    operand_ids: Vec<i64>,
    unresolved: usize,
}

impl Reader {
    fn computation<'a>(&mut self, bytes: &'a [u8], module: &mut HloModule<'a>) -> WireResult<()> {
        let id = ComputationId(module.computations.len() as u32);
        let first = module.instructions.len();
        let mut c = HloComputation {
            first: first as u32,
            ..HloComputation::default()
        };
        let mut root = None;
        self.local.clear();
        self.operand_ids.clear();
        for field in fields(bytes) {
            match field? {
                (hlo_computation::NAME, Value::Bytes(b)) => c.name = text(b),
                (hlo_computation::INSTRUCTIONS, Value::Bytes(b)) => {
                    let index = module.instructions.len() - first;
                    self.instruction(b, id, module)
                        .map_err(|e| e.within("instructions", Some(index)))?;
                }
                (hlo_computation::ID, Value::Varint(v)) => c.wire_id = v as i64,
                (hlo_computation::ROOT_ID, Value::Varint(v)) => root = Some(v as i64),
                (hlo_computation::IS_FUSION_COMPUTATION, Value::Varint(v)) => c.is_fusion = v != 0,
                (hlo_computation::EXECUTION_THREAD, Value::Bytes(b)) => {
                    c.execution_thread = text(b)
                }
                _ => {}
            }
        }
        c.end = module.instructions.len() as u32;
        // Compilers number instructions as they make them: mostly in order already.
        if !self.local.is_sorted() {
            self.local.sort_unstable();
        }
        self.resolve_operands(first, module);
        c.root = root
            .and_then(|r| find(&self.local, r))
            .or_else(|| (c.end > c.first).then(|| InstructionId(c.end - 1)));
        self.computations.insert(c.wire_id, id);
        module.computations.push(c);
        module.by_wire_id.extend_from_slice(&self.local);
        Ok(())
    }

    fn instruction<'a>(
        &mut self,
        bytes: &'a [u8],
        computation: ComputationId,
        module: &mut HloModule<'a>,
    ) -> WireResult<()> {
        let index = module.instructions.len();
        if index >= u32::MAX as usize / 2 {
            return Err(WireError::new(
                "more instructions than xpeak can number",
                bytes,
            ));
        }
        let operands_from = self.operand_ids.len() as u32;
        let called_from = self.called.len() as u32;
        let mut i = HloInstruction {
            name: "",
            opcode: Opcode::Unknown,
            op_name: "",
            source_file: "",
            source_line: 0,
            stack_frame_id: 0,
            wire_id: 0,
            computation,
            parameter_number: 0,
            tuple_index: 0,
            operands: (0, 0),
            called: (0, 0),
            shape: &[],
            raw: bytes,
        };
        for field in fields(bytes) {
            match field? {
                (hlo_instruction::NAME, Value::Bytes(b)) => i.name = text(b),
                (hlo_instruction::OPCODE, Value::Bytes(b)) => i.opcode = Opcode::from_name(text(b)),
                (hlo_instruction::SHAPE, Value::Bytes(b)) => i.shape = b,
                (hlo_instruction::METADATA, Value::Bytes(b)) => {
                    decode_metadata(b, &mut i).map_err(|e| e.within("metadata", None))?;
                }
                (hlo_instruction::PARAMETER_NUMBER, Value::Varint(v)) => {
                    i.parameter_number = small(v)
                }
                (hlo_instruction::TUPLE_INDEX, Value::Varint(v)) => i.tuple_index = small(v),
                (hlo_instruction::ID, Value::Varint(v)) => i.wire_id = v as i64,
                (hlo_instruction::OPERAND_IDS, v) => {
                    numbers(v, |n| self.operand_ids.push(n as i64))
                        .map_err(|e| e.within("operand_ids", None))?
                }
                (hlo_instruction::CALLED_COMPUTATION_IDS, v) => {
                    numbers(v, |n| self.called.push(n as i64))
                        .map_err(|e| e.within("called_computation_ids", None))?
                }
                _ => {}
            }
        }
        i.operands = (operands_from, self.operand_ids.len() as u32);
        i.called = (called_from, self.called.len() as u32);
        let id = InstructionId(index as u32);
        self.local.push((i.wire_id, id));
        module.instructions.push(i);
        Ok(())
    }

    /// Operand ids of the computation just read → handles. Operands are always of the same
    /// computation.
    fn resolve_operands(&mut self, first: usize, module: &mut HloModule<'_>) {
        for i in module.instructions.iter_mut().skip(first) {
            let from = module.operands.len() as u32;
            let (a, b) = i.operands;
            for id in self
                .operand_ids
                .get(a as usize..b as usize)
                .unwrap_or_default()
            {
                match find(&self.local, *id) {
                    Some(o) => module.operands.push(o),
                    None => self.unresolved += 1,
                }
            }
            i.operands = (from, module.operands.len() as u32);
        }
    }

    fn resolve_calls(&mut self, module: &mut HloModule<'_>) {
        for i in &mut module.instructions {
            let from = module.called.len() as u32;
            let (a, b) = i.called;
            for id in self.called.get(a as usize..b as usize).unwrap_or_default() {
                match self.computations.get(id) {
                    Some(&c) => module.called.push(c),
                    None => self.unresolved += 1,
                }
            }
            i.called = (from, module.called.len() as u32);
        }
    }
}

fn small(v: u64) -> u32 {
    u32::try_from(v).unwrap_or(u32::MAX)
}

fn decode_metadata<'a>(bytes: &'a [u8], i: &mut HloInstruction<'a>) -> WireResult<()> {
    for field in fields(bytes) {
        match field? {
            (op_metadata::OP_NAME, Value::Bytes(b)) => i.op_name = text(b),
            (op_metadata::SOURCE_FILE, Value::Bytes(b)) => i.source_file = text(b),
            (op_metadata::SOURCE_LINE, Value::Varint(v)) => i.source_line = small(v),
            (op_metadata::STACK_FRAME_ID, Value::Varint(v)) => i.stack_frame_id = small(v),
            _ => {}
        }
    }
    Ok(())
}

/// Entries of a protobuf map with integer keys: `(key, value bytes)`.
fn decode_schedule(bytes: &[u8]) -> WireResult<Vec<(i64, &[u8])>> {
    let mut out = Vec::new();
    for field in fields(bytes) {
        if let (hlo_schedule::SEQUENCES, Value::Bytes(entry)) = field? {
            let (mut key, mut value) = (0, &[][..]);
            for field in fields(entry) {
                match field? {
                    (map_entry::KEY, Value::Varint(v)) => key = v as i64,
                    (map_entry::VALUE, Value::Bytes(b)) => value = b,
                    _ => {}
                }
            }
            out.push((key, value));
        }
    }
    Ok(out)
}

/// Instruction ids of one serialized schedule sequence, in order.
///
/// # Errors
/// Malformed bytes.
pub fn decode_sequence(bytes: &[u8]) -> WireResult<Vec<i64>> {
    let mut out = Vec::new();
    for field in fields(bytes) {
        if let (hlo_schedule::instruction_sequence::INSTRUCTION_IDS, v) = field? {
            numbers(v, |n| out.push(n as i64))?;
        }
    }
    Ok(out)
}

fn decode_aliases(bytes: &[u8]) -> WireResult<Vec<InputOutputAlias>> {
    let mut out = Vec::new();
    for field in fields(bytes) {
        let (hlo_input_output_alias::ENTRIES, Value::Bytes(entry)) = field? else {
            continue;
        };
        let mut a = InputOutputAlias {
            output_index: Vec::new(),
            parameter_number: 0,
            parameter_index: Vec::new(),
        };
        for field in fields(entry) {
            match field? {
                (hlo_input_output_alias::alias_entry::OUTPUT_SHAPE_INDEX, v) => {
                    numbers(v, |n| a.output_index.push(n as i64))?
                }
                (hlo_input_output_alias::alias_entry::PARAMETER_NUMBER, Value::Varint(v)) => {
                    a.parameter_number = small(v)
                }
                (hlo_input_output_alias::alias_entry::PARAMETER_SHAPE_INDEX, v) => {
                    numbers(v, |n| a.parameter_index.push(n as i64))?
                }
                _ => {}
            }
        }
        out.push(a);
    }
    Ok(out)
}

fn decode_donors(bytes: &[u8]) -> WireResult<Vec<BufferDonor>> {
    let mut out = Vec::new();
    for field in fields(bytes) {
        let (hlo_buffer_donor::ENTRIES, Value::Bytes(entry)) = field? else {
            continue;
        };
        let mut d = BufferDonor {
            parameter_number: 0,
            parameter_index: Vec::new(),
        };
        for field in fields(entry) {
            match field? {
                (hlo_buffer_donor::buffer_donor_entry::PARAMETER_NUMBER, Value::Varint(v)) => {
                    d.parameter_number = small(v)
                }
                (hlo_buffer_donor::buffer_donor_entry::PARAMETER_SHAPE_INDEX, v) => {
                    numbers(v, |n| d.parameter_index.push(n as i64))?
                }
                _ => {}
            }
        }
        out.push(d);
    }
    Ok(out)
}

fn decode_device_assignment(bytes: &[u8], module: &mut HloModule<'_>) -> WireResult<()> {
    for field in fields(bytes) {
        match field? {
            (device_assignment::REPLICA_COUNT, Value::Varint(v)) => {
                module.replica_count = small(v).max(1)
            }
            (device_assignment::COMPUTATION_COUNT, Value::Varint(v)) => {
                module.num_partitions = small(v).max(1)
            }
            _ => {}
        }
    }
    Ok(())
}

/// Reads a FrontendAttributes message: key and value, sorted by key.
pub(crate) fn decode_attributes(bytes: &[u8]) -> WireResult<Vec<(&str, &str)>> {
    let mut out = Vec::new();
    for field in fields(bytes) {
        let (frontend_attributes::MAP, Value::Bytes(entry)) = field? else {
            continue;
        };
        let (mut key, mut value) = ("", "");
        for field in fields(entry) {
            match field? {
                (map_entry::KEY, Value::Bytes(b)) => key = text(b),
                (map_entry::VALUE, Value::Bytes(b)) => value = text(b),
                _ => {}
            }
        }
        out.push((key, value));
    }
    out.sort_unstable();
    Ok(out)
}

fn decode_stack_frames(bytes: &[u8]) -> WireResult<StackFrameIndex<'_>> {
    let mut index = StackFrameIndex::default();
    for field in fields(bytes) {
        match field? {
            (stack_frame_index::FILE_NAMES, Value::Bytes(b)) => index.files.push(text(b)),
            (stack_frame_index::FUNCTION_NAMES, Value::Bytes(b)) => index.functions.push(text(b)),
            (stack_frame_index::FILE_LOCATIONS, Value::Bytes(b)) => {
                let n = four_numbers(b)?;
                index.locations.push((n[0], n[1], n[2], n[3]));
            }
            (stack_frame_index::STACK_FRAMES, Value::Bytes(b)) => {
                let n = four_numbers(b)?;
                index.frames.push((n[0], n[1]));
            }
            _ => {}
        }
    }
    Ok(index)
}

/// Varint fields 1 to 4 of a message.
fn four_numbers(bytes: &[u8]) -> WireResult<[u32; 4]> {
    let mut out = [0; 4];
    for field in fields(bytes) {
        if let (n @ 1..=4, Value::Varint(v)) = field? {
            if let Some(slot) = out.get_mut(n as usize - 1) {
                *slot = small(v);
            }
        }
    }
    Ok(out)
}

impl HloModule<'_> {
    /// Shape of an instruction's result; an empty shape if its bytes are damaged.
    pub fn shape(&self, id: InstructionId) -> Shape {
        decode_shape(self.instruction(id).shape).unwrap_or_default()
    }

    /// The instruction with this id on the wire.
    pub fn find_wire_id(&self, wire_id: i64) -> Option<InstructionId> {
        find(&self.by_wire_id, wire_id)
    }

    /// Instructions of a computation in scheduled order, or in file order where the module
    /// carries no schedule for it (or one that does not fit).
    pub fn sequence(&self, computation: ComputationId) -> Vec<InstructionId> {
        let c = self.computation(computation);
        let scheduled = self.schedule.get(&computation).and_then(|bytes| {
            let ids = decode_sequence(bytes).ok()?;
            let found: Vec<_> = ids
                .iter()
                .filter_map(|&id| self.find_wire_id(id))
                .filter(|i| (c.first..c.end).contains(&i.0))
                .collect();
            (found.len() == c.instructions().count()).then_some(found)
        });
        scheduled.unwrap_or_else(|| c.instructions().collect())
    }
}
