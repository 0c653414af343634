//! Debugging code that materialises tensors or keeps them alive: callbacks, prints, transfers to
//! and from the host.
//!
//! In: the program and a space's peak. Out: one finding per line of the user's code that sends
//! large data to the host, with the buffers at the peak that nothing but that needs. Host offload
//! (copies to host memory) is none of it.

use rustc_hash::{FxHashMap, FxHashSet};

use super::bound::peak_without;
use super::evidence::{buffer_ids, buffer_line, matters, place, shortened};
use super::finding::{Detector, Finding, FindingKind, FindingSeverity, Safety, SavingKind};
use crate::dataflow::{reads_of, Graph, Through, Value};
use crate::hlo::op_name::operation;
use crate::hlo::{BufferId, InstructionId, MemorySpace, Opcode};
use crate::peak::long_held;
use crate::peak::Context;
use crate::peak::PeakBuffer;
use crate::units;

pub(crate) static DETECTOR: Detector = Detector {
    name: "debug_callback",
    intervention: Some("remove_debug_print"),
    brief: "debugging code keeps a whole tensor alive",
    text: "A jax.debug.print or another callback keeps a whole tensor alive to send it to the host, and breaks fusions. Remove it, or print a reduction.",
    detects: "`jax.debug.print`, callbacks, outfeeds, transfers to the host. One finding per source line, with what is sent.",
    how: "`send`, `outfeed`, custom calls of callbacks; then all that nothing else needs, also inside fusions that a collective passes through.",
    silent: "What is sent is small. Copies to host memory (offload) are not debugging.",
    saving: "`upper_bound`: the blocks at the peak that only the callback needs; 0 if there are none. `simulated`: what the peak falls by without them, where that is less. Other findings on the same blocks are left out.",
    every_space: false,
    find: |facts, _| debug_findings(facts, facts.graph()),
    yields_to: &[],
};

impl FindingKind {
    /// Debugging code that materialises tensors.
    pub const DEBUG_CALLBACK: FindingKind = FindingKind::new(&DETECTOR);
}

/// What sends data to the host.
struct Site {
    /// Where in the user's code, or the operation's name.
    key: String,
    what: String,
    instructions: Vec<InstructionId>,
    /// The largest array that it sends.
    largest: Option<(u64, InstructionId)>,
}

/// One finding per place in the user's code that sends large data to the host.
pub fn debug_findings(ctx: &Context<'_, '_>, graph: &Graph) -> Vec<Finding> {
    if ctx.usage.space != MemorySpace::HBM {
        return Vec::new();
    }
    let sites = find_sites(ctx, graph);
    let mut budget = 100_000 + ctx.program.module.instructions.len();
    sites
        .iter()
        .filter_map(|s| finding(ctx, graph, s, &mut budget))
        .collect()
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

fn find_sites(ctx: &Context<'_, '_>, graph: &Graph) -> Vec<Site> {
    let module = &ctx.program.module;
    let mut sites: Vec<Site> = Vec::new();
    let mut by_key: FxHashMap<String, usize> = FxHashMap::default();
    for &id in graph.program_order() {
        let Some(what) = debugging(ctx, id) else {
            continue;
        };
        let source = place(ctx, id);
        let key = if source.is_empty() {
            format!(" {}", module.instruction(id).op_name)
        } else {
            source
        };
        let at = *by_key.entry(key.clone()).or_insert_with(|| {
            sites.push(Site {
                key,
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

fn finding(
    ctx: &Context<'_, '_>,
    graph: &Graph,
    site: &Site,
    budget: &mut usize,
) -> Option<Finding> {
    let module = &ctx.program.module;
    let only = needed_only_by(ctx, graph, &site.instructions);
    let (sent_bytes, sent) = site.largest?;
    let at_peak: Vec<&PeakBuffer> = ctx
        .peak
        .buffers
        .iter()
        .filter(|b| matters(ctx, b.counted_bytes) && is_only_for(ctx, graph, b, &only, budget))
        .collect();
    let held = at_peak
        .iter()
        .fold(0u64, |s, b| s.saturating_add(b.counted_bytes));
    // Without it, the peak is where the rest is largest.
    let gone = ranges_only_for(ctx, graph, &only, budget);
    let freed = held.min(
        ctx.usage
            .peak_bytes()
            .saturating_sub(peak_without(ctx.usage, &gone, 0)),
    );
    let saving = if freed < held {
        SavingKind::Simulated
    } else {
        SavingKind::UpperBound
    };
    let bytes = held.max(sent_bytes);
    if !matters(ctx, bytes) {
        return None;
    }
    let mut evidence: Vec<String> = site
        .instructions
        .iter()
        .filter(|&&i| {
            !matches!(
                module.instruction(i).opcode,
                Opcode::Recv | Opcode::RecvDone
            )
        })
        .take(4)
        .map(|&i| {
            let x = module.instruction(i);
            format!("{} {}: {}{}", x.opcode, x.name, x.op_name, place(ctx, i))
        })
        .collect();
    evidence.push(format!(
        "sends {}: {}, {}",
        module.instruction(sent).name,
        units::bytes(sent_bytes),
        module.shape(sent)
    ));
    evidence.extend(shortened(
        at_peak
            .iter()
            .map(|b| {
                let line = format!("at the peak for this alone: {}", buffer_line(ctx, b));
                (b.counted_bytes, line)
            })
            .collect(),
    ));
    if freed < held {
        evidence.push(format!(
            "without these {} the peak is at another point, {} lower",
            units::bytes(held),
            units::bytes(freed)
        ));
    }
    Some(Finding {
        kind: FindingKind::DEBUG_CALLBACK,
        severity: FindingSeverity::of_share(bytes, ctx.usage.peak_bytes()),
        title: format!(
            "{}{} brings {} together to send it to the host",
            site.what,
            site.key,
            units::bytes(sent_bytes)
        ),
        bytes,
        saving_bytes: freed,
        saving,
        safety: Safety::Safe,
        evidence,
        action: format!(
            "Remove it{} for real runs, or send a summary computed on the device \
             (jax.debug.print(\"{{m}}\", m=jnp.abs(x).max())): a whole tensor has to be \
             materialised, gathered from all devices and kept from being fused.",
            site.key
        ),
        buffer_ids: buffer_ids(ctx, at_peak),
        links: vec![
            "https://openxla.org/xla/errors/error_1000".to_owned(),
            "https://docs.jax.dev/en/latest/debugging/print_breakpoint.html".to_owned(),
        ],
    })
}

/// Live ranges of large temporaries that only `only` needs: start, end, bytes.
fn ranges_only_for(
    ctx: &Context<'_, '_>,
    graph: &Graph,
    only: &FxHashSet<InstructionId>,
    budget: &mut usize,
) -> Vec<(u32, u32, u64)> {
    long_held(ctx, ctx.usage)
        .into_iter()
        .filter(|h| matters(ctx, h.size_bytes))
        .filter(|h| {
            let buffers = [Some(h.name), Some(h.buffer)];
            any_only_for(ctx, graph, buffers, only, budget)
        })
        .map(|h| (h.start, h.end, h.size_bytes))
        .collect()
}

/// Whether all that reads a block is in `only`.
fn is_only_for(
    ctx: &Context<'_, '_>,
    graph: &Graph,
    b: &PeakBuffer,
    only: &FxHashSet<InstructionId>,
    budget: &mut usize,
) -> bool {
    any_only_for(ctx, graph, [b.buffer, b.canonical], only, budget)
}

fn any_only_for(
    ctx: &Context<'_, '_>,
    graph: &Graph,
    buffers: [Option<BufferId>; 2],
    only: &FxHashSet<InstructionId>,
    budget: &mut usize,
) -> bool {
    let Some(assignment) = &ctx.program.assignment else {
        return false;
    };
    buffers.into_iter().flatten().any(|buffer| {
        let value = assignment.value(buffer);
        value.is_some_and(|v| only.contains(&v.0) || value_only_for(ctx, graph, v, only, budget))
    })
}

/// Fusions passed through at most.
const MAX_FUSIONS: usize = 64;

/// Whether a value is read by nothing but `only`, or by fusions that hand it on to results which
/// are (collectives in flight pass through the fusions that they run beside).
fn value_only_for(
    ctx: &Context<'_, '_>,
    graph: &Graph,
    value: Value,
    only: &FxHashSet<InstructionId>,
    budget: &mut usize,
) -> bool {
    let mut seen: FxHashSet<Value> = FxHashSet::default();
    let mut todo = vec![value];
    let mut is_sent = false;
    while let Some(value) = todo.pop() {
        if !seen.insert(value.clone()) {
            continue;
        }
        let reads = reads_of(ctx.program, graph, &value, Through::Names, budget);
        if !reads.complete || reads.is_result || seen.len() > MAX_FUSIONS {
            return false;
        }
        for r in reads.reads {
            if only.contains(&r.reader) {
                is_sent = true;
                continue;
            }
            match handed_on(ctx, graph, r.reader, r.operand) {
                Some(results) => todo.extend(results),
                None => return false,
            }
        }
    }
    is_sent
}

/// Results of a fusion that an operand reaches; `None` if it is no fusion with several results or
/// the operand reaches none.
fn handed_on(
    ctx: &Context<'_, '_>,
    graph: &Graph,
    fusion: InstructionId,
    operand: u32,
) -> Option<Vec<Value>> {
    let module = &ctx.program.module;
    if module.instruction(fusion).opcode != Opcode::Fusion {
        return None;
    }
    let &body = module.called(fusion).first()?;
    let root = module.computation(body).root?;
    let mut seen: FxHashSet<InstructionId> = FxHashSet::default();
    let mut todo = vec![module.parameter(body, operand)?];
    let mut out = Vec::new();
    while let Some(i) = todo.pop() {
        for u in graph.uses(i) {
            if u.user == root {
                if module.instruction(root).opcode != Opcode::Tuple {
                    return None;
                }
                out.push((fusion, vec![u.operand.into()]));
            } else if seen.len() < 500 && seen.insert(u.user) {
                todo.push(u.user);
            }
        }
    }
    (!out.is_empty() && seen.len() < 500).then_some(out)
}
