//! Where a value goes without being computed anew: through tuples, bitcasts, calls and loops.
//!
//! In: a program's graph and one value, named by instruction and the part of its result. Out: the
//! instructions that really read it, each with the place in the program order until which it is
//! read; or, backwards, the values that it may be another name of. A value handed to a loop that
//! may read it in any iteration is read until the loop's end; one handed to an asynchronous
//! operation until that is done.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use super::graph::{runs, Graph};
use crate::hlo::{ComputationId, InstructionId, Opcode, Program};

/// Part of an instruction's result: indices into nested tuples.
pub type Path = Vec<u32>;

/// One read of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// The instruction that reads.
    pub reader: InstructionId,
    /// As which operand.
    pub operand: u32,
    /// Place in the program order until which it is read, as seen from where the value is made.
    pub until: u32,
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

/// Finds who reads part `path` of `value`. `budget` is what the caller is willing to spend in
/// all, in uses looked at; when it is used up, results are incomplete.
pub fn reads_of(
    program: &Program<'_>,
    graph: &Graph,
    value: InstructionId,
    path: &[u32],
    budget: &mut usize,
) -> Reads {
    let module = &program.module;
    let home = module.instruction(value).computation;
    let mut out = Reads {
        complete: true,
        ..Reads::default()
    };
    let mut seen: FxHashSet<(InstructionId, Path)> = FxHashSet::default();
    let mut todo = vec![(value, path.to_vec())];
    while let Some((id, path)) = todo.pop() {
        if seen.len() >= MAX_ALIASES || path.len() > MAX_DEPTH || *budget == 0 {
            out.complete = false;
            break;
        }
        if !seen.insert((id, path.clone())) {
            continue;
        }
        follow_root(program, graph, id, &path, &mut todo, &mut out);
        let mut each = |user: InstructionId, operand: u32| {
            *budget = budget.saturating_sub(1);
            if !follow_use(program, graph, user, operand, &path, &mut todo) {
                let until = read_until(program, graph, user, home);
                out.reads.push(Read {
                    reader: user,
                    operand,
                    until,
                });
            }
        };
        match path.first() {
            Some(&element) => graph
                .element_uses(program, id, element)
                .for_each(|u| each(u.user, u.operand)),
            None => graph.uses(id).iter().for_each(|u| each(u.user, u.operand)),
        }
    }
    out
}

/// What leaves a computation comes out of what runs it; a loop's also comes round again.
fn follow_root(
    program: &Program<'_>,
    graph: &Graph,
    id: InstructionId,
    path: &[u32],
    todo: &mut Vec<(InstructionId, Path)>,
    out: &mut Reads,
) {
    let module = &program.module;
    let computation = module.instruction(id).computation;
    if module.computation(computation).root != Some(id) {
        return;
    }
    if module.entry == Some(computation) {
        out.is_result = true;
    }
    let Some(caller) = graph.caller_of(computation) else {
        return;
    };
    match module.instruction(caller).opcode {
        Opcode::While if module.called(caller).first() == Some(&computation) => {
            todo.push((caller, path.to_vec()));
            for c in runs(program, caller) {
                todo.extend(graph.parameter(c, 0).map(|p| (p, path.to_vec())));
            }
        }
        Opcode::Call | Opcode::Conditional => todo.push((caller, path.to_vec())),
        _ => {}
    }
}

/// Follows a use that renames; false if it is (also) a read.
fn follow_use(
    program: &Program<'_>,
    graph: &Graph,
    user: InstructionId,
    operand: u32,
    path: &[u32],
    todo: &mut Vec<(InstructionId, Path)>,
) -> bool {
    let module = &program.module;
    let u = module.instruction(user);
    match u.opcode {
        Opcode::Tuple => {
            let mut longer = vec![operand];
            longer.extend_from_slice(path);
            todo.push((user, longer));
        }
        Opcode::GetTupleElement => {
            if let Some((&element, rest)) = path.split_first() {
                if element == u.tuple_index {
                    todo.push((user, rest.to_vec()));
                }
            }
        }
        Opcode::Bitcast | Opcode::OptBarrier | Opcode::Domain => {
            todo.push((user, path.to_vec()));
        }
        Opcode::While => {
            for c in runs(program, user) {
                todo.extend(graph.parameter(c, 0).map(|p| (p, path.to_vec())));
            }
            todo.push((user, path.to_vec()));
            // Whether its body reads it or not, a loop holds what it carries until its end.
            return false;
        }
        Opcode::Call => {
            let Some(&c) = module.called(user).first() else {
                return false;
            };
            todo.extend(graph.parameter(c, operand).map(|p| (p, path.to_vec())));
        }
        Opcode::Conditional if operand > 0 => {
            let Some(&c) = module.called(user).get(operand as usize - 1) else {
                return false;
            };
            todo.extend(graph.parameter(c, 0).map(|p| (p, path.to_vec())));
        }
        _ => return false,
    }
    true
}

/// Place until which `reader` reads, as seen from computation `home`.
fn read_until(
    program: &Program<'_>,
    graph: &Graph,
    reader: InstructionId,
    home: ComputationId,
) -> u32 {
    let mut until = graph.order_of(reader).unwrap_or(u32::MAX);
    let mut stage = reader;
    for _ in 0..MAX_DEPTH {
        let opcode = program.module.instruction(stage).opcode;
        if !(opcode.is_start() || matches!(opcode, Opcode::AsyncUpdate | Opcode::Send)) {
            break;
        }
        let done = graph.uses(stage).iter().find(|u| {
            let o = program.module.instruction(u.user).opcode;
            u.operand == 0 && (o.is_done() || o == Opcode::AsyncUpdate)
        });
        let Some(done) = done else { break };
        stage = done.user;
        until = until.max(graph.order_of(stage).unwrap_or(u32::MAX));
    }
    let mut computation = program.module.instruction(reader).computation;
    for _ in 0..MAX_DEPTH {
        if computation == home {
            break;
        }
        let Some(caller) = graph.caller_of(computation) else {
            break;
        };
        if program.module.instruction(caller).opcode == Opcode::While {
            until = graph.order_of(caller).unwrap_or(u32::MAX);
        }
        computation = program.module.instruction(caller).computation;
    }
    until
}

/// Values that part `path` of `value` may be another name of, itself first, nearest first; for a
/// loop's result both what went in and what its body makes. At most `limit` of them.
pub fn names_of(
    program: &Program<'_>,
    value: InstructionId,
    path: &[u32],
    limit: usize,
) -> Vec<(InstructionId, Path)> {
    let mut seen: FxHashSet<(InstructionId, Path)> = FxHashSet::default();
    let mut out = Vec::new();
    let mut todo = VecDeque::from([(value, path.to_vec())]);
    while let Some((id, path)) = todo.pop_front() {
        if out.len() >= limit || path.len() > MAX_DEPTH || !seen.insert((id, path.clone())) {
            continue;
        }
        step_back(program, id, &path, &mut todo);
        out.push((id, path));
    }
    out
}

fn step_back(
    program: &Program<'_>,
    id: InstructionId,
    path: &[u32],
    todo: &mut VecDeque<(InstructionId, Path)>,
) {
    let module = &program.module;
    let i = module.instruction(id);
    let operand = |n: usize| module.operands(id).get(n).copied();
    let root = |c: ComputationId| module.computation(c).root;
    match i.opcode {
        Opcode::GetTupleElement => {
            let mut longer = vec![i.tuple_index];
            longer.extend_from_slice(path);
            todo.extend(operand(0).map(|o| (o, longer)));
        }
        Opcode::Tuple => {
            if let Some((&element, rest)) = path.split_first() {
                todo.extend(operand(element as usize).map(|o| (o, rest.to_vec())));
            }
        }
        Opcode::Bitcast | Opcode::OptBarrier | Opcode::Domain => {
            todo.extend(operand(0).map(|o| (o, path.to_vec())));
        }
        Opcode::While => {
            let body = module.called(id).first().copied();
            todo.extend(body.and_then(root).map(|r| (r, path.to_vec())));
            todo.extend(operand(0).map(|o| (o, path.to_vec())));
        }
        Opcode::Call | Opcode::Conditional => {
            for &c in module.called(id) {
                todo.extend(root(c).map(|r| (r, path.to_vec())));
            }
        }
        Opcode::Parameter => {
            let Some(caller) = module.caller_of(i.computation) else {
                return;
            };
            match module.instruction(caller).opcode {
                Opcode::While => todo.push_back((caller, path.to_vec())),
                Opcode::Call => todo.extend(
                    module
                        .operands(caller)
                        .get(i.parameter_number as usize)
                        .map(|&o| (o, path.to_vec())),
                ),
                Opcode::Conditional => {
                    let branch = module
                        .called(caller)
                        .iter()
                        .position(|&c| c == i.computation);
                    todo.extend(
                        branch
                            .and_then(|b| module.operands(caller).get(b + 1))
                            .map(|&o| (o, path.to_vec())),
                    );
                }
                _ => {}
            }
        }
        _ => {}
    }
}
