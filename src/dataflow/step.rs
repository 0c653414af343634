//! One step of a value, per opcode: where it goes on, and where it came from, without being computed
//! anew. The only place that says what tuples, loops, calls, branches, copies and asynchronous pairs
//! do to the data that goes through them.
//!
//! In: a value. Out: the values that it is another name of, or a copy of, one step away.

use crate::hlo::{ComputationId, HloModule, InstructionId, Opcode};

/// Part of an instruction's result: indices into nested tuples.
pub type Path = Vec<i64>;

/// A value: an instruction, and the part of its result.
pub type Value = (InstructionId, Path);

/// What a value is followed through. Each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Through {
    /// What only gives it another name: tuples, bitcasts, calls, loops.
    Names,
    /// Copies: in memory of their own, in another order of dimensions, or later.
    Copies,
    /// What takes a part of it, makes it whole from the devices' parts, or changes its type; and
    /// fusions, into their bodies and out again. Backwards, along the first operand.
    Parts,
}

/// Where a use of part `path` of a value leads; `None` if it is (also) a read.
pub(crate) fn onward(
    module: &HloModule<'_>,
    user: InstructionId,
    operand: u32,
    path: &[i64],
    through: Through,
    out: &mut Vec<Value>,
) -> Option<()> {
    let u = module.instruction(user);
    let called = |at: usize| module.called(user).get(at).copied();
    let mut go_on = |to: InstructionId, path: &[i64]| out.push((to, path.to_vec()));
    match u.opcode {
        Opcode::Tuple => go_on(user, &below(operand.into(), path)),
        Opcode::GetTupleElement => {
            if let Some(rest) = within(path, u.tuple_index.into()) {
                go_on(user, rest);
            }
        }
        opcode if opcode.renames() => go_on(user, path),
        Opcode::While => {
            for &c in module.called(user).iter().rev() {
                if let Some(p) = module.parameter(c, 0) {
                    go_on(p, path);
                }
            }
            // Whether its body reads it or not, a loop holds what it carries until its end; what
            // comes out of it is what its body leaves.
            return None;
        }
        Opcode::Call => {
            let p = module.parameter(called(0)?, operand);
            p.into_iter().for_each(|p| go_on(p, path));
        }
        Opcode::Conditional if operand > 0 => {
            let p = module.parameter(called(operand as usize - 1)?, 0);
            p.into_iter().for_each(|p| go_on(p, path));
        }
        opcode if through >= Through::Copies && copies(module, user) => {
            match opcode.result_element() {
                Some(element) if opcode.is_start() => go_on(user, &[element]),
                // What is not the result is the operation's own.
                Some(element) => within(path, element)
                    .into_iter()
                    .for_each(|p| go_on(user, p)),
                None => go_on(user, path),
            }
        }
        _ => return None,
    }
    Some(())
}

/// Where part `path` of a root leaves its computation to: what leaves it comes out of what runs it;
/// a loop's also comes round again.
pub(crate) fn leaving(
    module: &HloModule<'_>,
    root: InstructionId,
    path: &[i64],
    out: &mut Vec<Value>,
) {
    let computation = module.instruction(root).computation;
    if module.computation(computation).root != Some(root) {
        return;
    }
    let Some(caller) = module.caller_of(computation) else {
        return;
    };
    match module.instruction(caller).opcode {
        Opcode::While if module.called(caller).first() == Some(&computation) => {
            out.push((caller, path.to_vec()));
            for &c in module.called(caller).iter().rev() {
                out.extend(module.parameter(c, 0).map(|p| (p, path.to_vec())));
            }
        }
        Opcode::Call | Opcode::Conditional => out.push((caller, path.to_vec())),
        _ => {}
    }
}

/// Values that part `path` of `id` may be another name of, one step back, nearest first; of a loop's
/// result what its body makes, then what went in.
pub(crate) fn back(
    module: &HloModule<'_>,
    (id, path): &Value,
    through: Through,
    out: &mut impl Extend<Value>,
) {
    let i = module.instruction(*id);
    let operand = |n: usize| module.operands(*id).get(n).copied();
    let root = |c: ComputationId| module.computation(c).root;
    match i.opcode {
        Opcode::GetTupleElement => {
            let longer = below(i.tuple_index.into(), path);
            out.extend(operand(0).map(|o| (o, longer)));
        }
        Opcode::Tuple => {
            if let Some((&element, rest)) = path.split_first() {
                let at = usize::try_from(element).ok().and_then(operand);
                out.extend(at.map(|o| (o, rest.to_vec())));
            }
        }
        opcode if opcode.renames() => out.extend(operand(0).map(|o| (o, path.clone()))),
        Opcode::While => {
            let body = module.called(*id).first().copied();
            let made = body.and_then(root);
            out.extend(
                made.into_iter()
                    .chain(operand(0))
                    .map(|v| (v, path.clone())),
            );
        }
        Opcode::Call | Opcode::Conditional => {
            let roots = module.called(*id).iter().filter_map(|&c| root(c));
            out.extend(roots.map(|r| (r, path.clone())));
        }
        Opcode::Parameter => {
            let crosses = through >= Through::Parts || module.caller_of(i.computation).is_some();
            let passed = passed_to(module, *id).filter(|_| crosses);
            out.extend(passed.map(|v| (v, path.clone())));
        }
        Opcode::Fusion if through >= Through::Parts => {
            let body = module.called(*id).first().copied();
            out.extend(body.and_then(root).map(|r| (r, path.clone())));
        }
        Opcode::AsyncStart if through >= Through::Parts => {
            let body = module.called(*id).first().copied();
            let rest = within(path, 1);
            let made = body.and_then(root).zip(rest);
            out.extend(made.map(|(r, rest)| (r, rest.to_vec())));
        }
        opcode
            if through >= Through::Copies && opcode.moves()
                || through >= Through::Parts && opcode.takes_apart() =>
        {
            let from = match opcode.result_element() {
                Some(element) if opcode.is_done() => below(element, path),
                Some(_) => Path::new(),
                None => path.clone(),
            };
            out.extend(operand(0).map(|o| (o, from)));
        }
        _ => {}
    }
}

/// What a parameter gets from what runs its computation, or from the only fusion that it is in: of a
/// loop the loop itself, which stands for what went in and what comes round.
pub(crate) fn passed_to(module: &HloModule<'_>, parameter: InstructionId) -> Option<InstructionId> {
    let i = module.instruction(parameter);
    let (running, only) = (
        module.caller_of(i.computation),
        module.only_caller(i.computation),
    );
    let caller = running.or(only)?;
    let operand = |n: usize| module.operands(caller).get(n).copied();
    match module.instruction(caller).opcode {
        Opcode::While => Some(caller),
        Opcode::Conditional => {
            let mut branches = module.called(caller).iter();
            operand(1 + branches.position(|&c| c == i.computation)?)
        }
        Opcode::Call | Opcode::Fusion | Opcode::AsyncStart => operand(i.parameter_number as usize),
        _ => None,
    }
}

/// Whether what goes in comes out elsewhere: all of it, or a slice that is fetched, or slices put
/// together again.
fn copies(module: &HloModule<'_>, id: InstructionId) -> bool {
    let i = module.instruction(id);
    match i.opcode {
        Opcode::SliceStart | Opcode::SliceDone | Opcode::AsyncUpdate | Opcode::AsyncDone => true,
        Opcode::AsyncStart => {
            let body = module.called(id).first();
            let root = body.and_then(|&c| module.computation(c).root);
            root.map(|r| module.instruction(r).opcode)
                .is_some_and(|o| o.moves() || matches!(o, Opcode::Slice | Opcode::DynamicSlice))
        }
        Opcode::CustomCall => i.joins_slices(),
        opcode => opcode.moves(),
    }
}

/// `path` of an element, as seen from the tuple.
fn below(element: i64, path: &[i64]) -> Path {
    let mut longer = Vec::with_capacity(path.len() + 1);
    longer.push(element);
    longer.extend_from_slice(path);
    longer
}

/// What is left of a path into a tuple within one of its elements. A path to the tuple itself is
/// about its table, which no element is.
fn within(path: &[i64], element: i64) -> Option<&[i64]> {
    let (&first, rest) = path.split_first()?;
    (first == element).then_some(rest)
}
