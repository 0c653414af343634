//! Debugging code: what sends data to the host, and what nothing but that needs.
//!
//! In: a program and its graph. Out: one [`DebugSite`] per line of the user's code; and of any buffer
//! whether it is there for debugging alone. Host offload (copies to host memory) is none of it.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::dataflow::{reads_of, Graph, Through, Value};
use crate::hlo::op_name::operation;
use crate::hlo::{BufferId, InstructionId, Opcode};
use crate::peak::{long_held, Context, HeldRow};

/// What sends data to the host from one place in the user's code.
#[derive(Debug, Clone)]
pub(crate) struct DebugSite {
    /// What it is: `debug_print`, `outfeed`.
    pub(crate) what: String,
    /// The instructions, in program order; at least one.
    pub(crate) instructions: Vec<InstructionId>,
    /// The largest array that it sends, and its bytes.
    pub(crate) largest: Option<(u64, InstructionId)>,
}

/// What kind of debugging code an instruction is.
fn debugging(ctx: &Context<'_, '_>, id: InstructionId) -> Option<String> {
    let i = ctx.program.module.instruction(id);
    let op = operation(i.op_name);
    let named = matches!(
        op,
        "debug_print" | "debug_callback" | "io_callback" | "pure_callback" | "outside_call"
    );
    match i.opcode {
        Opcode::Outfeed => Some("outfeed".to_owned()),
        Opcode::Send | Opcode::Recv if named => Some(op.to_owned()),
        Opcode::Send if i.attributes().is_host_transfer => Some("send to the host".to_owned()),
        Opcode::CustomCall => {
            let target = i.custom_call_target();
            let callback = target.contains("callback") || target.contains("Callback");
            (callback || named && target.contains("python")).then(|| {
                let what = if named { op } else { target };
                what.to_owned()
            })
        }
        _ => None,
    }
}

/// Places that send data to the host, in program order.
pub(crate) fn debug_sites(ctx: &Context<'_, '_>, graph: &Graph) -> Vec<DebugSite> {
    let module = &ctx.program.module;
    let mut sites: Vec<DebugSite> = Vec::new();
    let mut by_place: FxHashMap<String, usize> = FxHashMap::default();
    for &id in graph.program_order() {
        let Some(what) = debugging(ctx, id) else {
            continue;
        };
        let place = match module.source_of(id) {
            Some(s) if !s.file.is_empty() => format!("{}:{}", s.file, s.line),
            _ => module.instruction(id).op_name.to_owned(),
        };
        let at = *by_place.entry(place).or_insert_with(|| {
            sites.push(DebugSite {
                what,
                instructions: Vec::new(),
                largest: None,
            });
            sites.len() - 1
        });
        let Some(site) = sites.get_mut(at) else {
            continue;
        };
        site.instructions.push(id);
        for &o in module.operands(id) {
            let bytes = module.shape(o).padded_bytes();
            if site.largest.is_none_or(|l| bytes > l.0) {
                site.largest = Some((bytes, o));
            }
        }
    }
    sites
}

/// What nothing but some instructions needs.
pub(crate) struct OnlyFor<'v, 'c, 'a> {
    ctx: &'v Context<'c, 'a>,
    graph: &'v Graph,
    only: FxHashSet<InstructionId>,
    /// Uses that may still be looked at.
    budget: usize,
}

/// Fusions passed through at most.
const MAX_FUSIONS: usize = 64;
/// Instructions of a fusion that are looked at.
const MAX_INSIDE: usize = 500;

impl<'v, 'c, 'a> OnlyFor<'v, 'c, 'a> {
    /// What only `sinks` need.
    pub(crate) fn new(ctx: &'v Context<'c, 'a>, graph: &'v Graph, sinks: &[InstructionId]) -> Self {
        OnlyFor {
            ctx,
            graph,
            only: needed_only_by(ctx, graph, sinks),
            budget: 100_000 + ctx.program.module.instructions.len(),
        }
    }

    /// Live ranges of temporaries that go with the sinks, by bytes × program points, most first.
    pub(crate) fn ranges(&mut self) -> Vec<HeldRow> {
        let mut held = long_held(self.ctx, self.ctx.usage);
        held.retain(|h| h.size_bytes > 0 && self.holds([h.name, h.buffer]));
        held
    }

    /// Whether memory that goes by any of these names is there for the sinks alone.
    fn holds(&mut self, names: [BufferId; 2]) -> bool {
        let Some(assignment) = &self.ctx.program.assignment else {
            return false;
        };
        names.into_iter().any(|buffer| {
            let value = assignment.value(buffer);
            value.is_some_and(|v| self.only.contains(&v.0) || self.is_read_by_them_alone(v))
        })
    }

    /// Whether a value is read by nothing else, or by fusions that hand it on to results which are
    /// (collectives in flight pass through the fusions that they run beside).
    fn is_read_by_them_alone(&mut self, value: Value) -> bool {
        let mut seen: FxHashSet<Value> = FxHashSet::default();
        let mut todo = vec![value];
        let mut is_sent = false;
        while let Some(value) = todo.pop() {
            if !seen.insert(value.clone()) {
                continue;
            }
            let (program, budget) = (self.ctx.program, &mut self.budget);
            let reads = reads_of(program, self.graph, &value, Through::Names, budget);
            if !reads.complete || reads.is_result || seen.len() > MAX_FUSIONS {
                return false;
            }
            for r in reads.reads {
                if self.only.contains(&r.reader) {
                    is_sent = true;
                    continue;
                }
                match self.handed_on(r.reader, r.operand) {
                    Some(results) => todo.extend(results),
                    None => return false,
                }
            }
        }
        is_sent
    }

    /// Results of a fusion that an operand reaches; `None` if it is no fusion with several results
    /// or the operand reaches none.
    fn handed_on(&self, fusion: InstructionId, operand: u32) -> Option<Vec<Value>> {
        let module = &self.ctx.program.module;
        if module.instruction(fusion).opcode != Opcode::Fusion {
            return None;
        }
        let &body = module.called(fusion).first()?;
        let root = module.computation(body).root?;
        let mut seen: FxHashSet<InstructionId> = FxHashSet::default();
        let mut todo = vec![module.parameter(body, operand)?];
        let mut out = Vec::new();
        while let Some(i) = todo.pop() {
            for u in self.graph.uses(i) {
                if u.user == root {
                    if module.instruction(root).opcode != Opcode::Tuple {
                        return None;
                    }
                    out.push((fusion, vec![u.operand.into()]));
                } else if seen.len() < MAX_INSIDE && seen.insert(u.user) {
                    todo.push(u.user);
                }
            }
        }
        (!out.is_empty() && seen.len() < MAX_INSIDE).then_some(out)
    }
}

/// Instructions that nothing but `sinks` needs.
fn needed_only_by(
    ctx: &Context<'_, '_>,
    graph: &Graph,
    sinks: &[InstructionId],
) -> FxHashSet<InstructionId> {
    let module = &ctx.program.module;
    let mut only: FxHashSet<InstructionId> = sinks.iter().copied().collect();
    let mut waiting: FxHashMap<InstructionId, usize> = FxHashMap::default();
    let mut todo: Vec<InstructionId> = sinks.to_vec();
    while let Some(id) = todo.pop() {
        for &o in module.operands(id) {
            let left = waiting.entry(o).or_insert_with(|| graph.uses(o).len());
            *left = left.saturating_sub(1);
            let i = module.instruction(o);
            // Arguments exist anyway; tokens order side effects.
            let computed = !matches!(
                i.opcode,
                Opcode::Parameter | Opcode::Constant | Opcode::AfterAll
            );
            if *left == 0 && computed && only.insert(o) {
                todo.push(o);
            }
        }
    }
    only
}
