//! Where a value goes without being computed anew: through tuples, bitcasts, calls and loops, and
//! where it is asked for through copies.
//!
//! In: a program's graph and one value, named by instruction and the part of its result. Out: the
//! instructions that really read it, each with the place in the program order until which it is
//! read; or, backwards, the values that it may be another name of. A value handed to a loop that
//! may read it in any iteration is read until the loop's end; one handed to an asynchronous
//! operation until that is done.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use super::graph::Graph;
use super::step::{back, leaving, onward, Through, Value};
use crate::hlo::{ComputationId, InstructionId, Opcode, Program};

/// One read of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// The instruction that reads.
    pub reader: InstructionId,
    /// As which operand.
    pub operand: u32,
    /// Place in the program order until which it is read, as seen from where the value is made.
    pub until: u32,
    /// The innermost loop around the reader that the value is not made in.
    pub inside: Option<InstructionId>,
}

/// All reads of a value.
#[derive(Debug, Clone, Default)]
pub struct Reads {
    /// Real reads, in the order found.
    pub reads: Vec<Read>,
    /// Whether the value is a result of the program.
    pub is_result: bool,
    /// Whether everything was followed; false when the search hit its limit.
    pub complete: bool,
}

impl Reads {
    /// The last read in program order (of equals, the last found).
    pub fn last(&self) -> Option<Read> {
        self.reads.iter().copied().max_by_key(|r| r.until)
    }
}

/// Aliases followed for one value at most.
const MAX_ALIASES: usize = 10_000;
/// Nesting of tuples, calls and loops followed at most.
const MAX_DEPTH: usize = 64;

/// Finds who reads `value`. `budget` is what the caller is willing to spend in all, in uses looked
/// at; when it is used up, results are incomplete.
pub fn reads_of(
    program: &Program<'_>,
    graph: &Graph,
    value: &Value,
    through: Through,
    budget: &mut usize,
) -> Reads {
    let module = &program.module;
    let home = module.instruction(value.0).computation;
    let mut out = Reads {
        complete: true,
        ..Reads::default()
    };
    let mut seen: FxHashSet<Value> = FxHashSet::default();
    let mut todo = vec![value.clone()];
    while let Some(value) = todo.pop() {
        let (id, path) = (value.0, &value.1);
        if seen.len() >= MAX_ALIASES || path.len() > MAX_DEPTH || *budget == 0 {
            out.complete = false;
            break;
        }
        if seen.contains(&value) {
            continue;
        }
        out.is_result |= module.entry_root() == Some(id);
        leaving(module, id, path, &mut todo);
        let mut each = |user: InstructionId, operand: u32| {
            *budget = budget.saturating_sub(1);
            if onward(module, user, operand, path, through, &mut todo).is_none() {
                let (until, inside) = read_until(program, graph, user, home);
                out.reads.push(Read {
                    reader: user,
                    operand,
                    until,
                    inside,
                });
            }
        };
        match path.first().map(|&e| u32::try_from(e).unwrap_or(u32::MAX)) {
            Some(element) => graph
                .element_uses(program, id, element)
                .for_each(|u| each(u.user, u.operand)),
            None => graph.uses(id).iter().for_each(|u| each(u.user, u.operand)),
        }
        seen.insert(value);
    }
    out
}

/// Place until which `reader` reads, as seen from computation `home`; and the innermost loop on the
/// way there.
fn read_until(
    program: &Program<'_>,
    graph: &Graph,
    reader: InstructionId,
    home: ComputationId,
) -> (u32, Option<InstructionId>) {
    let module = &program.module;
    let mut until = graph.order_of(reader).unwrap_or(u32::MAX);
    let mut stage = reader;
    for _ in 0..MAX_DEPTH {
        let opcode = module.instruction(stage).opcode;
        if !(opcode.is_start() || matches!(opcode, Opcode::AsyncUpdate | Opcode::Send)) {
            break;
        }
        let done = graph.uses(stage).iter().find(|u| {
            let o = module.instruction(u.user).opcode;
            u.operand == 0 && (o.is_done() || o == Opcode::AsyncUpdate)
        });
        let Some(done) = done else { break };
        stage = done.user;
        until = until.max(graph.order_of(stage).unwrap_or(u32::MAX));
    }
    let mut inside = None;
    let mut computation = module.instruction(reader).computation;
    for _ in 0..MAX_DEPTH {
        let caller = module
            .caller_of(computation)
            .filter(|_| computation != home);
        let Some(caller) = caller else {
            break;
        };
        if module.instruction(caller).opcode == Opcode::While {
            until = graph.order_of(caller).unwrap_or(u32::MAX);
            inside = inside.or(Some(caller));
        }
        computation = module.instruction(caller).computation;
    }
    (until, inside)
}

/// Values that `value` may be another name (or a copy) of, itself first, nearest first; for a loop's
/// result both what went in and what its body makes. At most `limit` of them.
pub fn names_of(
    program: &Program<'_>,
    value: &Value,
    through: Through,
    limit: usize,
) -> Vec<Value> {
    let mut seen: FxHashSet<Value> = FxHashSet::default();
    let mut out = Vec::new();
    let mut todo = VecDeque::from([value.clone()]);
    while let Some(value) = todo.pop_front() {
        let too_far = out.len() >= limit || value.1.len() > MAX_DEPTH;
        if too_far || !seen.insert(value.clone()) {
            continue;
        }
        back(&program.module, &value, through, &mut todo);
        out.push(value);
    }
    out
}

/// What `value` is another name (or a copy) of for certain: followed back as long as there is one
/// way, so neither into loops nor into branches.
pub fn source_of(program: &Program<'_>, value: &Value, through: Through) -> Value {
    let mut at = value.clone();
    for _ in 0..MAX_DEPTH {
        let mut before: Vec<Value> = Vec::new();
        back(&program.module, &at, through, &mut before);
        match before.pop() {
            Some(only) if before.is_empty() => at = only,
            _ => break,
        }
    }
    at
}
