//! Arguments that could give their memory to an output.
//!
//! In: a program and the use of one memory space. Out: every pair of an argument and an output
//! that fit each other (shape, type, layout, size, space), with whether donating would save
//! memory. It saves exactly the output's bytes if nothing of the output, and nothing else that
//! the compiler put into its memory, is written before the argument was last read. It may save if
//! the compiler could run things in another order or place. Where a loop reads the old value while
//! it writes the new one, or a reader needs both, the compiler has to keep both: what the outputs
//! shrink, the temporaries grow.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::dataflow::inplace::can_write_over;
use crate::dataflow::Graph;
use crate::dataflow::{names_of, reads_of, Path, Read, Reads, Through, Value};
use crate::hlo::{AllocationId, AllocationKind, InstructionId, Opcode, Shape};
use crate::peak::Context;

/// An argument and an output that fit each other.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DonationPair {
    /// The argument's allocation.
    pub parameter_allocation: AllocationId,
    /// The output's allocation, which donation makes superfluous.
    pub output_allocation: AllocationId,
    /// The entry parameter.
    pub parameter: InstructionId,
    /// Part of the parameter.
    pub parameter_index: Vec<i64>,
    /// Part of the entry's result.
    pub output_index: Vec<i64>,
    /// Size of either, in bytes.
    pub bytes: u64,
    /// Whether donating saves exactly `bytes` of what must fit.
    pub effective: bool,
    /// Whether donating may save up to `bytes`, given another order or place of things; true for
    /// every effective pair.
    pub may_save: bool,
    /// Bytes of a copy of the argument that the program makes before it writes the output, and
    /// that donating may save as well; 0 if there is none at the peak.
    pub copied_bytes: u64,
    /// Place in the program order until which the argument is read; `None` if it is not.
    pub read_until: Option<u32>,
    /// Why, or why not.
    pub reason: String,
}

/// A result of the program in memory of its own.
struct Output {
    allocation: AllocationId,
    index: Vec<i64>,
    /// The instruction that writes it last, and the part of its result.
    writer: (InstructionId, Path),
    /// First place in the program order at which the value itself is written.
    written: Option<u32>,
    /// First place at which anything is written to its memory.
    touched: Option<(u32, InstructionId)>,
}

struct Argument {
    allocation: AllocationId,
    parameter: InstructionId,
    index: Vec<i64>,
    reads: Reads,
}

/// Argument and output must agree in all of this.
type Class = (String, u64);

/// Names followed for one output at most.
const MAX_NAMES: usize = 200;

/// Every argument that fits an output, by parameter number. Arguments that are donated already,
/// or offered for donation, are left out.
pub fn donation_candidates(ctx: &Context<'_, '_>, graph: &Graph) -> Vec<DonationPair> {
    let mut outputs: BTreeMap<Class, Vec<Output>> = BTreeMap::new();
    for (class, output) in free_outputs(ctx, graph) {
        outputs.entry(class).or_default().push(output);
    }
    let mut arguments: BTreeMap<Class, Vec<Argument>> = BTreeMap::new();
    let mut budget = 100_000 + 20 * ctx.program.module.instructions.len();
    for (class, mut argument) in free_arguments(ctx) {
        if outputs.contains_key(&class) {
            let value = (argument.parameter, argument.index.clone());
            argument.reads = reads_of(ctx.program, graph, &value, Through::Names, &mut budget);
            arguments.entry(class).or_default().push(argument);
        }
    }
    let mut out = Vec::new();
    for (class, arguments) in &arguments {
        let outputs = outputs.get(class).map_or(&[][..], Vec::as_slice);
        pair_up(ctx, graph, class.1, arguments, outputs, &mut out);
    }
    out.sort_by_key(|p| {
        let number = ctx.program.module.instruction(p.parameter).parameter_number;
        (number, p.parameter_index.clone())
    });
    out
}

fn class_of(shape: &Shape, bytes: u64) -> Class {
    (shape.to_string(), bytes)
}

/// Arguments in memory of their own, by parameter number; their reads are not looked up yet.
fn free_arguments(ctx: &Context<'_, '_>) -> Vec<(Class, Argument)> {
    let module = &ctx.program.module;
    let Some(assignment) = &ctx.program.assignment else {
        return Vec::new();
    };
    let taken: std::collections::BTreeSet<(u32, &[i64])> = module
        .input_output_alias
        .iter()
        .map(|a| (a.parameter_number, a.parameter_index.as_slice()))
        .chain(
            module
                .buffer_donors
                .iter()
                .map(|d| (d.parameter_number, d.parameter_index.as_slice())),
        )
        .collect();
    let mut shapes: FxHashMap<InstructionId, Shape> = FxHashMap::default();
    let mut out = Vec::new();
    for id in assignment.allocation_ids() {
        let a = assignment.allocation(id);
        let Some(number) = a.parameter_number else {
            continue;
        };
        let offered = taken.contains(&(number, a.parameter_index.as_slice()));
        if a.kind != AllocationKind::Parameter || a.space != ctx.usage.space || offered {
            continue;
        }
        let Some(parameter) = module.entry_parameter(number) else {
            continue;
        };
        let shape = shapes
            .entry(parameter)
            .or_insert_with(|| module.shape(parameter));
        let Some(leaf) = shape.leaf(&a.parameter_index).filter(|s| !s.is_tuple()) else {
            continue;
        };
        out.push((
            class_of(leaf, a.size_bytes),
            Argument {
                allocation: id,
                parameter,
                index: a.parameter_index.clone(),
                reads: Reads::default(),
            },
        ));
    }
    out.sort_by(|(_, a), (_, b)| {
        let number = |x: &Argument| module.instruction(x.parameter).parameter_number;
        (number(a), &a.index).cmp(&(number(b), &b.index))
    });
    out
}

/// Outputs in memory of their own, in the order of the result tuple.
fn free_outputs(ctx: &Context<'_, '_>, graph: &Graph) -> Vec<(Class, Output)> {
    let module = &ctx.program.module;
    let (Some(assignment), Some(root)) = (&ctx.program.assignment, module.entry_root()) else {
        return Vec::new();
    };
    // What is placed in outputs' memory, by the value that it is.
    let mut placed: FxHashMap<Value, AllocationId> = FxHashMap::default();
    for id in assignment.allocation_ids() {
        let a = assignment.allocation(id);
        if a.kind != AllocationKind::Output || a.space != ctx.usage.space {
            continue;
        }
        for b in assignment.assigned(id) {
            placed.extend(assignment.value(b.buffer).map(|v| (v, id)));
        }
    }
    let aliased: std::collections::BTreeSet<&[i64]> = module
        .input_output_alias
        .iter()
        .map(|a| a.output_index.as_slice())
        .collect();
    let mut leaves: Vec<(Vec<i64>, Shape)> = Vec::new();
    module
        .shape(root)
        .for_each_leaf(&mut |index, shape| leaves.push((index.to_vec(), shape.clone())));
    let mut used = std::collections::BTreeSet::new();
    let mut out = Vec::new();
    for (index, shape) in leaves {
        if aliased.contains(index.as_slice()) {
            continue;
        }
        let names = names_of(
            ctx.program,
            &(root, index.clone()),
            Through::Names,
            MAX_NAMES,
        );
        let Some(&allocation) = names.iter().find_map(|n| placed.get(n)) else {
            continue;
        };
        if !used.insert(allocation) {
            continue;
        }
        let mut ours = names
            .iter()
            .filter(|n| placed.get(*n) == Some(&allocation))
            .peekable();
        let Some(writer) = ours.peek().map(|&n| n.clone()) else {
            continue;
        };
        let written = ours.filter_map(|n| graph.order_of(n.0)).min();
        let touched = assignment
            .assigned(allocation)
            .iter()
            .filter_map(|b| assignment.buffer(b.buffer).instruction)
            .filter_map(|i| Some((graph.order_of(i)?, i)))
            .min();
        let bytes = assignment.allocation(allocation).size_bytes;
        out.push((
            class_of(&shape, bytes),
            Output {
                allocation,
                index,
                writer,
                written,
                touched,
            },
        ));
    }
    out
}

/// Pairs arguments with outputs of the same class.
fn pair_up(
    ctx: &Context<'_, '_>,
    graph: &Graph,
    bytes: u64,
    arguments: &[Argument],
    outputs: &[Output],
    out: &mut Vec<DonationPair>,
) {
    let mut of_argument: Vec<Option<usize>> = vec![None; arguments.len()];
    let mut taken = vec![false; outputs.len()];
    // A state that goes in and comes out has as many parts on both sides, in the same order, and
    // that is how they are paired. Where the numbers differ, look for what updates what.
    if arguments.len() != outputs.len() {
        pair_updates(ctx, graph, arguments, outputs, &mut of_argument, &mut taken);
    }
    let mut free = (0..outputs.len()).filter(|&o| taken.get(o) == Some(&false));
    for slot in of_argument.iter_mut().filter(|s| s.is_none()) {
        *slot = free.next();
    }
    for (a, o) in of_argument.into_iter().enumerate() {
        let Some((argument, output)) = arguments.get(a).zip(o.and_then(|o| outputs.get(o))) else {
            continue;
        };
        let (effective, may_save, reason) = judge(ctx, graph, argument, output);
        out.push(DonationPair {
            parameter_allocation: argument.allocation,
            output_allocation: output.allocation,
            parameter: argument.parameter,
            parameter_index: argument.index.clone(),
            output_index: output.index.clone(),
            bytes,
            effective,
            may_save,
            copied_bytes: if may_save {
                copied_bytes(ctx, argument)
            } else {
                0
            },
            read_until: argument.reads.last().map(|r| r.until),
            reason,
        });
    }
}

/// Pairs each output with an argument that it is an update of: its writer reads that argument
/// last and can write over it.
fn pair_updates(
    ctx: &Context<'_, '_>,
    graph: &Graph,
    arguments: &[Argument],
    outputs: &[Output],
    of_argument: &mut [Option<usize>],
    taken: &mut [bool],
) {
    let mut by_reader: FxHashMap<InstructionId, Vec<usize>> = FxHashMap::default();
    for (a, argument) in arguments.iter().enumerate() {
        if let Some(last) = argument.reads.last() {
            by_reader.entry(last.reader).or_default().push(a);
        }
    }
    for (o, output) in outputs.iter().enumerate() {
        let Some(waiting) = by_reader.get_mut(&output.writer.0) else {
            continue;
        };
        let fits = |&a: &usize| {
            arguments
                .get(a)
                .is_some_and(|a| in_place(ctx, graph, a, output))
        };
        // A fusion has few operands: looking at the first ones is enough.
        if let Some(at) = waiting.iter().take(16).position(fits) {
            let a = waiting.remove(at);
            if let (Some(slot), Some(taken)) = (of_argument.get_mut(a), taken.get_mut(o)) {
                *slot = Some(o);
                *taken = true;
            }
        }
    }
}

/// Whether the output's writer can write it over the argument, being the last to read that.
fn in_place(ctx: &Context<'_, '_>, graph: &Graph, argument: &Argument, output: &Output) -> bool {
    let (writer, path) = &output.writer;
    let operands: Vec<u32> = argument
        .reads
        .reads
        .iter()
        .filter(|r| r.reader == *writer)
        .map(|r| r.operand)
        .collect();
    !operands.is_empty() && can_write_over(ctx.program, graph, *writer, &operands, path)
}

/// Late readers and instructions behind one that are looked at.
const MAX_LATE_READERS: usize = 16;
const MAX_BEHIND: usize = 2000;

/// Why an argument has to be read after the output began to be written, in whatever order the
/// program runs: in a common loop, or because the reader needs the output.
fn unavoidable(
    ctx: &Context<'_, '_>,
    graph: &Graph,
    argument: &Argument,
    output: &Output,
    written: u32,
) -> Option<String> {
    let module = &ctx.program.module;
    let name = |i: InstructionId| module.instruction(i).name;
    let late = argument.reads.reads.iter().filter(|r| r.until > written);
    let begins = output.touched.map_or(output.writer.0, |t| t.1);
    for r in late.take(MAX_LATE_READERS) {
        let end = graph.program_order().get(r.until as usize).copied();
        if end.is_some_and(|e| module.instruction(e).opcode == Opcode::While) {
            return Some(format!(
                "a loop reads the argument ({}) in every iteration, after {} began to write the \
                 output",
                name(r.reader),
                name(begins)
            ));
        }
        if depends_on(ctx, graph, r.reader, output.writer.0) {
            return Some(format!(
                "{} reads the argument and needs the output that {} writes",
                name(r.reader),
                name(output.writer.0)
            ));
        }
    }
    None
}

/// Whether `later` needs a result of `earlier`, as far as can be seen nearby.
fn depends_on(
    ctx: &Context<'_, '_>,
    graph: &Graph,
    later: InstructionId,
    earlier: InstructionId,
) -> bool {
    let from = graph.order_of(earlier);
    let mut seen = rustc_hash::FxHashSet::default();
    let mut todo = vec![later];
    while let Some(i) = todo.pop() {
        if i == earlier {
            return true;
        }
        if graph.order_of(i) >= from && seen.len() < MAX_BEHIND && seen.insert(i) {
            todo.extend_from_slice(ctx.program.module.operands(i));
        }
    }
    false
}

/// Bytes at the peak of a copy that is the argument's last reader: donated, the argument could be
/// used in its place.
fn copied_bytes(ctx: &Context<'_, '_>, argument: &Argument) -> u64 {
    let module = &ctx.program.module;
    let Some(last) = argument.reads.last() else {
        return 0;
    };
    if module.instruction(last.reader).opcode != Opcode::Copy {
        return 0;
    }
    let Some(assignment) = &ctx.program.assignment else {
        return 0;
    };
    let whole = assignment.allocation(argument.allocation).size_bytes;
    let is_copy = |b: &&crate::peak::PeakBuffer| {
        let made_by = |id: crate::hlo::BufferId| assignment.buffer(id).instruction;
        let ours = [b.canonical, b.buffer].into_iter().flatten();
        b.kind == AllocationKind::Temporary
            && b.size_bytes >= whole
            && ours.filter_map(made_by).any(|i| i == last.reader)
    };
    let at_peak = ctx.peak.buffers.iter().find(is_copy);
    at_peak.map_or(0, |b| b.counted_bytes)
}

/// (saves exactly, may save, why).
fn judge(
    ctx: &Context<'_, '_>,
    graph: &Graph,
    argument: &Argument,
    output: &Output,
) -> (bool, bool, String) {
    let module = &ctx.program.module;
    let name = |i: InstructionId| module.instruction(i).name;
    let no = |reason: String| (false, false, reason);
    if !argument.reads.complete {
        return no("where the argument is read could not be followed to the end".to_owned());
    }
    if argument.reads.is_result {
        return no("the argument is itself a result of the program".to_owned());
    }
    let (Some(written), Some((touched, toucher))) = (output.written, output.touched) else {
        return no("where the output is written is not in the file".to_owned());
    };
    let Some(Read { reader, until, .. }) = argument.reads.last() else {
        return (true, true, "the argument is never read".to_owned());
    };
    let writer = output.writer.0;
    let over = until == written
        && reader == writer
        && graph.order_of(writer) == Some(written)
        && in_place(ctx, graph, argument, output);
    if until == written && !over {
        return no(format!(
            "{} reads the argument all over while it writes the output",
            name(reader)
        ));
    }
    if until > written {
        if let Some(why) = unavoidable(ctx, graph, argument, output, written) {
            return no(why);
        }
        let reason = format!(
            "{} still reads the argument after {} wrote the output: it saves if the compiler can \
             run them the other way round",
            name(reader),
            name(writer)
        );
        return (false, true, reason);
    }
    if touched < until || (touched == until && !over) {
        return (
            false,
            true,
            format!(
                "the output's memory holds {} before the argument is last read by {}; that needs \
                 a place of its own then",
                name(toucher),
                name(reader)
            ),
        );
    }
    let reason = if over {
        format!(
            "{} reads it last and can write the output over it",
            name(reader)
        )
    } else {
        format!(
            "last read by {}, before {} writes the output",
            name(reader),
            name(writer)
        )
    };
    (true, true, reason)
}
