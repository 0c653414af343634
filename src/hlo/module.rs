//! An HLO module as flat tables of borrowed text: computations, instructions, operands. What is
//! rarely needed of an instruction stays undecoded and is read on demand (see
//! [`HloInstruction::raw`] and `decode::attributes`).

use rustc_hash::FxHashMap;

use super::by_computation::ByComputation;
use super::ids::{ComputationId, InstructionId};
use super::opcode::Opcode;
use super::stack::SourceLine;
use super::stack::StackFrameIndex;

/// An HLO module. Text is borrowed from the file.
#[derive(Debug, Default)]
pub struct HloModule<'a> {
    /// Module name, `jit_train_step`.
    pub name: &'a str,
    /// Unique id that the compiler gave it.
    pub id: i64,
    /// Entry computation; `None` only in an empty or damaged module.
    pub entry: Option<ComputationId>,
    /// All computations, in file order (callees before callers).
    pub computations: Vec<HloComputation<'a>>,
    /// All instructions, computation by computation, in file order.
    pub instructions: Vec<HloInstruction<'a>>,
    pub(crate) operands: Vec<InstructionId>,
    pub(crate) called: Vec<ComputationId>,
    /// Instructions by their id on the wire, sorted.
    pub(crate) by_wire_id: Vec<(i64, InstructionId)>,
    /// What calls each computation.
    pub(crate) callers: ByComputation,
    /// Each computation's parameters, by their numbers.
    pub(crate) parameters: ByComputation,
    /// Serialized sequence of instruction ids per computation, where the module is scheduled.
    pub(crate) schedule: FxHashMap<ComputationId, &'a [u8]>,
    /// Outputs that share memory with a parameter (donation that took place).
    pub input_output_alias: Vec<InputOutputAlias>,
    /// Parameters offered for donation and left to the compiler or runtime to pair.
    pub buffer_donors: Vec<BufferDonor>,
    /// Serialized sharding of each entry parameter, in parameter order; may be empty.
    pub parameter_shardings: Vec<&'a [u8]>,
    /// Serialized sharding of the entry's result.
    pub output_sharding: Option<&'a [u8]>,
    /// Copies of the program that run on different data; at least 1.
    pub replica_count: u32,
    /// Devices that one replica is partitioned over; at least 1.
    pub num_partitions: u32,
    /// Where an instruction comes from in the user's code.
    pub stack_frames: StackFrameIndex<'a>,
    /// Module attributes, such as the mesh: key and value, sorted by key.
    pub frontend_attributes: Vec<(&'a str, &'a str)>,
}

/// One computation.
#[derive(Debug, Clone, Default)]
pub struct HloComputation<'a> {
    /// Name, `main.42`.
    pub name: &'a str,
    /// Id on the wire.
    pub wire_id: i64,
    /// Its instructions: a range of [`HloModule::instructions`].
    pub first: u32,
    /// End of that range (exclusive).
    pub end: u32,
    /// Root instruction.
    pub root: Option<InstructionId>,
    /// Whether it is the body of a fusion.
    pub is_fusion: bool,
    /// Thread it runs on; empty or `main` for the main one (SparseCore and host differ).
    pub execution_thread: &'a str,
}

impl HloComputation<'_> {
    /// Ids of its instructions, in file order.
    pub fn instructions(&self) -> impl DoubleEndedIterator<Item = InstructionId> + Clone {
        (self.first..self.end).map(InstructionId)
    }
}

/// One instruction.
#[derive(Debug, Clone, Copy)]
pub struct HloInstruction<'a> {
    /// Name, `fusion.12`.
    pub name: &'a str,
    /// What it does.
    pub opcode: Opcode,
    /// The framework's name of the operation, a path of scopes:
    /// `jit(step)/transpose(jvp(layer))/dot_general`. May be empty.
    pub op_name: &'a str,
    /// The user's file, in files that carry it here; else see [`HloModule::source_of`].
    pub source_file: &'a str,
    /// Line in that file; 0 = none.
    pub source_line: u32,
    /// 1-based frame in the module's stack frame index; 0 = none.
    pub stack_frame_id: u32,
    /// Id on the wire.
    pub wire_id: i64,
    /// Computation it belongs to.
    pub computation: ComputationId,
    /// Of a `parameter`: its number. 0 for others.
    pub parameter_number: u32,
    /// Of a `get-tuple-element`: the element. 0 for others.
    pub tuple_index: u32,
    pub(crate) operands: (u32, u32),
    pub(crate) called: (u32, u32),
    pub(crate) shape: &'a [u8],
    /// The whole serialized instruction, for what is read on demand.
    pub raw: &'a [u8],
}

/// An output that shares memory with an entry parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputOutputAlias {
    /// Part of the result tuple.
    pub output_index: Vec<i64>,
    /// Entry parameter.
    pub parameter_number: u32,
    /// Part of that parameter.
    pub parameter_index: Vec<i64>,
}

/// An entry parameter that may be overwritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferDonor {
    /// Entry parameter.
    pub parameter_number: u32,
    /// Part of that parameter.
    pub parameter_index: Vec<i64>,
}

impl<'a> HloModule<'a> {
    /// The instruction with that handle. Handles come from this module, so it exists.
    pub fn instruction(&self, id: InstructionId) -> &HloInstruction<'a> {
        &self.instructions[id.index()]
    }

    /// Handles of all instructions, in file order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = InstructionId> + Clone + use<> {
        (0..self.instructions.len() as u32).map(InstructionId)
    }

    /// Every instruction with its handle, in file order.
    pub fn with_ids(&self) -> impl Iterator<Item = (InstructionId, &HloInstruction<'a>)> {
        let ids = (0..).map(InstructionId);
        ids.zip(&self.instructions)
    }

    /// The computation with that handle.
    pub fn computation(&self, id: ComputationId) -> &HloComputation<'a> {
        &self.computations[id.index()]
    }

    /// Operands of an instruction, in order.
    pub fn operands(&self, id: InstructionId) -> &[InstructionId] {
        let (a, b) = self.instruction(id).operands;
        self.operands
            .get(a as usize..b as usize)
            .unwrap_or_default()
    }

    /// Computations that an instruction calls, in the order it lists them (a while: body,
    /// condition).
    pub fn called(&self, id: InstructionId) -> &[ComputationId] {
        let (a, b) = self.instruction(id).called;
        self.called.get(a as usize..b as usize).unwrap_or_default()
    }

    /// Fills the tables of callers and parameters, once calls are resolved.
    pub(crate) fn index_computations(&mut self) {
        let (mut callers, mut parameters) = (Vec::new(), Vec::new());
        for (id, i) in self.with_ids() {
            callers.extend(self.called(id).iter().map(|&c| (c, id)));
            if i.opcode == Opcode::Parameter {
                parameters.push((i.computation, id));
            }
        }
        parameters.sort_by_key(|&(c, p)| (c, self.instruction(p).parameter_number, p));
        let count = self.computations.len();
        self.callers = ByComputation::new(&callers, count);
        self.parameters = ByComputation::new(&parameters, count);
    }

    /// Every call of a computation, in file order: by a while, a call or a conditional, by a
    /// fusion or a reduction. An instruction that names it twice stands there twice.
    pub fn callers(&self, computation: ComputationId) -> &[InstructionId] {
        self.callers.of(computation)
    }

    /// The instruction that runs a computation (a while, a call, a conditional, an asynchronous
    /// call); of several, the first in file order. `None` for the entry and for bodies of fusions
    /// and reductions.
    pub fn caller_of(&self, computation: ComputationId) -> Option<InstructionId> {
        let mut callers = self.callers(computation).iter().copied();
        callers.find(|&i| self.instruction(i).opcode.runs_computations())
    }

    /// What calls a computation that only one instruction calls.
    pub fn only_caller(&self, computation: ComputationId) -> Option<InstructionId> {
        match self.callers(computation) {
            &[only] => Some(only),
            _ => None,
        }
    }

    /// Parameters of a computation, by their numbers.
    pub fn parameters(&self, computation: ComputationId) -> &[InstructionId] {
        self.parameters.of(computation)
    }

    /// Parameter number `number` of a computation.
    pub fn parameter(&self, computation: ComputationId, number: u32) -> Option<InstructionId> {
        let all = self.parameters(computation);
        let number_of = |p: InstructionId| self.instruction(p).parameter_number;
        let at = all.partition_point(|&p| number_of(p) < number);
        all.get(at).copied().filter(|&p| number_of(p) == number)
    }

    /// Parameters of the entry computation, by their numbers.
    pub fn entry_parameters(&self) -> &[InstructionId] {
        self.entry.map_or(&[], |entry| self.parameters(entry))
    }

    /// Entry parameter number `number`.
    pub fn entry_parameter(&self, number: u32) -> Option<InstructionId> {
        self.parameter(self.entry?, number)
    }

    /// Root of the entry computation.
    pub fn entry_root(&self) -> Option<InstructionId> {
        self.entry.and_then(|e| self.computation(e).root)
    }

    /// Where the user's code made this instruction: the innermost frame of its stack, or the file
    /// and line that it carries itself.
    pub fn source_of(&self, id: InstructionId) -> Option<SourceLine> {
        let i = self.instruction(id);
        if !i.source_file.is_empty() {
            return Some(SourceLine {
                file: i.source_file.to_owned(),
                line: i.source_line,
            });
        }
        self.stack_frames.innermost(i.stack_frame_id)
    }

    /// The Python stack behind an instruction, innermost first: `file:line:column function`.
    pub fn stack_of(&self, id: InstructionId) -> Vec<String> {
        self.stack_frames.stack(self.instruction(id).stack_frame_id)
    }

    /// Devices that one run of the program spans: replicas × partitions.
    pub fn device_count(&self) -> u64 {
        u64::from(self.replica_count.max(1)) * u64::from(self.num_partitions.max(1))
    }
}
