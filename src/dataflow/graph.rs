//! The module's graph: who uses what, and in which order the program runs.
//!
//! In: a program. Out: users of every instruction, and the flattened program order of the
//! compiler's live-range analysis: computations that a call, conditional or while runs come right
//! before the instruction that runs them (of a while: condition, then body), each computation
//! once; bodies of fusions and of reductions have no place in it. A loop's body runs many times,
//! so "later in the order" means "later in time" only outside of a common loop.

use crate::hlo::{BufferAssignment, ComputationId, HeapEventKind, InstructionId, Opcode, Program};
use crate::memory::ArenaUsage;

/// Users and program order of one module.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// Where each instruction's uses start in `uses`; one more entry than instructions.
    starts: Vec<u32>,
    uses: Vec<Use>,
    /// Place of each instruction in the program order; `NOT_RUN` if it has none.
    order: Vec<u32>,
    flat: Vec<InstructionId>,
}

/// One use of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    /// The instruction that takes it.
    pub user: InstructionId,
    /// As which operand.
    pub operand: u32,
}

const NOT_RUN: u32 = u32::MAX;

impl Graph {
    /// Builds the graph. Linear in the module; calls that form a cycle are followed once.
    pub fn new(program: &Program<'_>) -> Self {
        let mut graph = Graph::default();
        graph.collect_uses(program);
        graph.flatten(program);
        graph
    }

    fn collect_uses(&mut self, program: &Program<'_>) {
        let module = &program.module;
        let count = module.instructions.len();
        let mut starts = vec![0u32; count + 1];
        for i in module.ids() {
            for o in module.operands(i) {
                if let Some(n) = starts.get_mut(o.index() + 1) {
                    *n += 1;
                }
            }
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let empty = Use {
            user: InstructionId(0),
            operand: 0,
        };
        self.uses = vec![empty; starts.last().copied().unwrap_or(0) as usize];
        for user in module.ids() {
            for (operand, o) in module.operands(user).iter().enumerate() {
                let Some(at) = next.get_mut(o.index()) else {
                    continue;
                };
                if let Some(slot) = self.uses.get_mut(*at as usize) {
                    *slot = Use {
                        user,
                        operand: operand as u32,
                    };
                }
                *at += 1;
            }
        }
        // Of a tuple, by element: so that one element's uses are found without the others.
        for pair in starts.windows(2) {
            let &[from, to] = pair else { continue };
            if let Some(uses) = self.uses.get_mut(from as usize..to as usize) {
                if uses.iter().any(|u| element_of(program, u).is_some()) {
                    uses.sort_unstable_by_key(|u| (element_of(program, u).unwrap_or(u32::MAX), *u));
                }
            }
        }
        self.starts = starts;
    }

    fn flatten(&mut self, program: &Program<'_>) {
        let module = &program.module;
        self.order = vec![NOT_RUN; module.instructions.len()];
        let Some(entry) = module.entry else { return };
        let mut seen = vec![false; module.computations.len()];
        let mut stack: Vec<Frame> = Vec::new();
        enter(program, entry, &mut seen, &mut stack);
        while let Some(frame) = stack.last_mut() {
            if let Some(called) = frame.pending.pop() {
                enter(program, called, &mut seen, &mut stack);
                continue;
            }
            if frame.entered {
                // What it runs is placed: now the instruction itself.
                if let Some(&i) = frame.sequence.get(frame.at) {
                    if let Some(slot) = self.order.get_mut(i.index()) {
                        *slot = self.flat.len() as u32;
                        self.flat.push(i);
                    }
                }
                frame.at += 1;
                frame.entered = false;
                continue;
            }
            match frame.sequence.get(frame.at) {
                Some(&i) => {
                    frame.pending = runs(program, i);
                    frame.pending.reverse();
                    frame.entered = true;
                }
                None => drop(stack.pop()),
            }
        }
    }

    /// Uses of element `element` of an instruction's tuple: the get-tuple-elements that take it,
    /// and every use of the whole tuple.
    pub fn element_uses(
        &self,
        program: &Program<'_>,
        id: InstructionId,
        element: u32,
    ) -> impl Iterator<Item = Use> + '_ {
        let uses = self.uses(id);
        let key = |u: &Use| element_of(program, u).unwrap_or(u32::MAX);
        let from = uses.partition_point(|u| key(u) < element);
        let len = uses.get(from..).unwrap_or_default();
        let len = len.partition_point(|u| key(u) <= element);
        let whole = uses.partition_point(|u| key(u) < u32::MAX).max(from + len);
        let part = |a: usize, b: usize| uses.get(a..b).unwrap_or_default().iter().copied();
        part(from, from + len).chain(part(whole, uses.len()))
    }

    /// Uses of an instruction's result: of a tuple by element, then by user.
    pub fn uses(&self, id: InstructionId) -> &[Use] {
        let bound = |i: usize| self.starts.get(i).copied().unwrap_or(0) as usize;
        self.uses
            .get(bound(id.index())..bound(id.index() + 1))
            .unwrap_or_default()
    }

    /// Instructions in program order.
    pub fn program_order(&self) -> &[InstructionId] {
        &self.flat
    }

    /// An instruction's place in the program order; `None` inside fusions, reductions and
    /// computations that nothing runs.
    pub fn order_of(&self, id: InstructionId) -> Option<u32> {
        self.order
            .get(id.index())
            .copied()
            .filter(|&o| o != NOT_RUN)
    }
}

/// The element that a use takes out of a tuple.
fn element_of(program: &Program<'_>, u: &Use) -> Option<u32> {
    let user = program.module.instruction(u.user);
    (user.opcode == Opcode::GetTupleElement).then_some(user.tuple_index)
}

struct Frame {
    sequence: Vec<InstructionId>,
    at: usize,
    /// Computations that the instruction at `at` runs and that are not placed yet, last first.
    pending: Vec<ComputationId>,
    /// Whether `pending` was filled for the instruction at `at`.
    entered: bool,
}

fn enter(
    program: &Program<'_>,
    computation: ComputationId,
    seen: &mut [bool],
    stack: &mut Vec<Frame>,
) {
    match seen.get_mut(computation.index()) {
        Some(seen) if !*seen => *seen = true,
        _ => return,
    }
    stack.push(Frame {
        sequence: program.module.sequence(computation),
        at: 0,
        pending: Vec::new(),
        entered: false,
    });
}

/// Computations that an instruction runs as part of the program, in order.
pub fn runs(program: &Program<'_>, id: InstructionId) -> Vec<ComputationId> {
    let called = program.module.called(id);
    match program.module.instruction(id).opcode {
        Opcode::Call | Opcode::Conditional => called.to_vec(),
        // An asynchronous call that takes its operands later runs when it has them.
        Opcode::AsyncStart if !program.module.operands(id).is_empty() => called.to_vec(),
        Opcode::AsyncUpdate => match program.module.operands(id).first() {
            Some(&start) if program.module.operands(start).is_empty() => {
                program.module.called(start).to_vec()
            }
            _ => Vec::new(),
        },
        Opcode::While => called.iter().rev().copied().collect(),
        _ => Vec::new(),
    }
}

/// Program order against program points of a space's main arena: the points are events of the
/// heap simulator, and a buffer is allocated at the instruction that defines it.
#[derive(Debug, Clone, Default)]
pub struct ProgramPoints {
    /// Point by place in the program order.
    points: Vec<u32>,
    point_count: u32,
}

impl ProgramPoints {
    /// Maps the program order to the points of `arena`. Without a trace, nothing has a point.
    pub fn new(program: &Program<'_>, graph: &Graph, arena: Option<&ArenaUsage>) -> Self {
        let (Some(assignment), Some(arena)) = (&program.assignment, arena) else {
            return ProgramPoints::default();
        };
        if arena.heap_bytes.is_empty() {
            return ProgramPoints::default();
        }
        let mut points: Vec<Option<u32>> = vec![None; graph.flat.len()];
        let mut shift = 0u32;
        // A buffer whose event comes later than those of instructions after it (the compiler moves
        // the allocation of an uninitialised buffer to its first use) marks no place.
        let mut reached = 0;
        for &t in &arena.traces {
            let events = assignment.traces.get(t).map_or(&[][..], |t| &t.events);
            for (at, event) in events.iter().enumerate() {
                let defined = match event.kind {
                    HeapEventKind::Free => None,
                    _ => defining(program, assignment, event),
                };
                let Some(order) = defined.and_then(|i| graph.order_of(i)) else {
                    continue;
                };
                if order >= reached {
                    reached = order;
                    if let Some(slot) = points.get_mut(order as usize) {
                        *slot = Some(shift.saturating_add(at as u32));
                    }
                }
            }
            shift = shift.saturating_add(events.len() as u32);
        }
        // Instructions without an event stand at the last event before them.
        let mut last = 0;
        let points = points
            .into_iter()
            .map(|p| {
                last = last.max(p.unwrap_or(0));
                last
            })
            .collect();
        ProgramPoints {
            points,
            point_count: arena.heap_bytes.len() as u32,
        }
    }

    /// The program point at which an instruction's results have just become live. Never falls
    /// along the program order.
    pub fn point_of(&self, graph: &Graph, id: InstructionId) -> Option<u32> {
        self.points.get(graph.order_of(id)? as usize).copied()
    }

    /// Place in the program order of the first instruction at or after a point; the number of
    /// instructions if there is none.
    pub fn order_at(&self, point: u32) -> u32 {
        self.points.partition_point(|&p| p < point) as u32
    }

    /// Number of points; 0 without a trace.
    pub fn point_count(&self) -> u32 {
        self.point_count
    }
}

/// The instruction whose event it is, where the file's two ways to say so agree.
fn defining(
    program: &Program<'_>,
    assignment: &BufferAssignment<'_>,
    event: &crate::hlo::HeapEvent<'_>,
) -> Option<InstructionId> {
    let i = assignment.buffer(event.buffer?).instruction?;
    (program.module.instruction(i).name == event.instruction_name).then_some(i)
}
