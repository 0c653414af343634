//! `--shard`: what is asked for against what the devices hold, and what follows from it.
//!
//! In: a selector and how often to split what it means. Out: effects, and a note; or why it cannot
//! be done.

use rustc_hash::FxHashSet;

use crate::dataflow::dimensions::NodeId;
use crate::error::{Error, Result};
use crate::findings::{Finding, FindingKind, Safety};
use crate::hlo::{InstructionId, Opcode};
use crate::whatif::applying::Applying;
use crate::whatif::arguments::names_of_large;
use crate::whatif::batch;
use crate::whatif::confidence::Confidence;
use crate::whatif::edit::{assignment, Change, Edit, EditKind};
use crate::whatif::sharding_code::{sharding_code, Ways};
use crate::whatif::split::{axis_named, divides, follow, Spread};
use crate::whatif::Base;

pub(crate) static KIND: EditKind = EditKind {
    name: "shard",
    value: Some("SELECTOR=N|AXIS"),
    help: "Split tensors over N devices, or over a mesh axis",
    usage: "--shard SELECTOR=N or --shard SELECTOR=AXIS",
    safety: Safety::ChangesSpeed,
    verify: "compile again: `xpeak summary NEW_DUMP` shows the new total",
    pins: false,
    parse,
    candidates,
};

#[derive(Debug)]
struct Shard {
    selector: String,
    ways: Ways,
}

fn parse(value: &str) -> Option<Edit> {
    let (selector, ways) = assignment(value)?;
    let ways = match ways.parse::<u64>() {
        Ok(0) => return None,
        Ok(n) => Ways::Count(n),
        Err(_) => Ways::Axis(ways.to_owned()),
    };
    Some(Edit::new(Shard {
        selector: selector.to_owned(),
        ways,
    }))
}

impl Change for Shard {
    fn kind(&self) -> &'static EditKind {
        &KIND
    }

    fn value(&self) -> String {
        format!("{}={}", self.selector, self.ways)
    }

    fn shapes(&self, run: &mut Applying<'_, '_, '_>) -> Result<()> {
        let s = run.select(&self.selector)?;
        let (nodes, arguments) = (run.nodes(&s), run.parameters(&s));
        let chosen = Chosen {
            nodes: &nodes,
            arguments: &arguments,
            ways: &self.ways,
            alone: s.buffers.is_some(),
        };
        let done = shard(run, &chosen)?;
        run.retry_donation |= done.follows;
        run.note(done.split, format!("by {}, {}", s.by.name(), done.note));
        run.scenario.caveat(
            Confidence::Simulated,
            "the partitioner decides where split tensors are gathered again",
        );
        Ok(())
    }

    fn jax(&self, base: &Base<'_, '_>, findings: &[Finding]) -> String {
        sharding_code(base, findings, &self.selector, &self.ways)
    }
}

/// Arguments that every device holds whole, and tensors that findings name.
fn candidates(base: &Base<'_, '_>, findings: &[Finding]) -> Vec<Vec<Edit>> {
    let module = &base.program.module;
    let ways = u64::from(module.num_partitions);
    if ways < 2 {
        return Vec::new();
    }
    let shard = |selector: String| {
        vec![Edit::new(Shard {
            selector,
            ways: Ways::Count(ways),
        })]
    };
    let mut out = Vec::new();
    let all = names_of_large(base, |_| true);
    for name in names_of_large(base, |i| is_replicated(base, i)) {
        // A name whose arguments are partly split already is no good selector.
        let same = names_of_large(base, |i| !is_replicated(base, i));
        if all.contains(&name) && !same.contains(&name) {
            out.push(shard(name));
        }
    }
    for (kind, name) in [
        (FindingKind::UNSHARDED, "unsharded"),
        (FindingKind::REDUNDANT_COPIES, "redundant_copies"),
    ] {
        let of_kind = findings.iter().filter(|f| f.kind == kind);
        for (n, _) in of_kind
            .enumerate()
            .take(6)
            .filter(|(_, f)| is_whole(f, ways))
        {
            out.push(shard(format!("{name}:{}", n + 1)));
        }
    }
    out
}

/// Whether a finding is of tensors of which every device holds all. Those that are split over some
/// axes are left as they are: the partitioner would gather what a further split cuts apart.
fn is_whole(f: &Finding, ways: u64) -> bool {
    let (saving, bytes, ways) = (
        u128::from(f.saving_bytes),
        u128::from(f.bytes),
        u128::from(ways),
    );
    // A rounded-down byte in each of at most a million buffers.
    (saving + (1 << 20)) * ways >= bytes * (ways - 1) && bytes > 0
}

/// Whether an argument's sharding says that every device has all of it.
fn is_replicated(base: &Base<'_, '_>, i: InstructionId) -> bool {
    let partitions = u64::from(base.program.module.num_partitions);
    batch::sharding_of(base, i).is_some_and(|s| s.is_fully_replicated(partitions))
}

/// What to split.
struct Chosen<'c> {
    /// Arrays that the selector means.
    nodes: &'c [NodeId],
    /// Numbers of entry parameters among them.
    arguments: &'c FxHashSet<u32>,
    /// How often.
    ways: &'c Ways,
    /// Whether these change and nothing else: those of a finding, whose saving is theirs.
    alone: bool,
}

/// What came of it.
struct Sharded {
    /// Arrays chosen that are split.
    split: usize,
    /// In words.
    note: String,
    /// Whether more than the tensors chosen changes.
    follows: bool,
}

/// Splits.
///
/// # Errors
/// More ways than there are copies; an axis that the program does not name; nothing that divides.
fn shard(run: &mut Applying<'_, '_, '_>, chosen: &Chosen<'_>) -> Result<Sharded> {
    let base = run.base;
    let axis = match chosen.ways {
        Ways::Count(_) => None,
        Ways::Axis(name) => Some(axis_named(base, name).ok_or_else(|| no_axis(run, name))?),
    };
    let ways = match chosen.ways {
        Ways::Count(n) => *n,
        Ways::Axis(_) => axis.as_ref().map_or(1, |a| a.size),
    };
    let spread = Spread::new(base, axis.as_ref());
    let seeds = possible(run, &spread, chosen.nodes, ways)?;
    let of_argument = |n: &NodeId| {
        let i = base.values.instruction_of(*n);
        let i = base.program.module.instruction(i);
        i.opcode == Opcode::Parameter && chosen.arguments.contains(&i.parameter_number)
    };
    let weights = seeds.nodes.iter().any(of_argument);
    let mut split = follow(base, &spread, &seeds.nodes, ways, !weights);
    if chosen.alone {
        split.retain(|n, _| chosen.nodes.binary_search(n).is_ok());
    }
    let touched = split.len();
    let seeded = seeds.nodes.iter().filter(|n| split.contains_key(n)).count();
    for (node, (ways, seed)) in split {
        if weights {
            run.effects.gathered.insert(node, seed);
        }
        let w = run.effects.split.entry(node).or_insert(1);
        // Together no more ways than there are copies; of partial sums, than one edit alone.
        let most = spread.of(node).max(ways).max(*w);
        *w = w.saturating_mul(ways).min(most);
    }
    let mut note = format!("{seeded} arrays split {ways} ways");
    if !chosen.alone {
        note.push_str(&format!(
            ", with {touched} arrays that follow element by element"
        ));
    }
    if seeds.fewer > 0 {
        note.push_str(&format!(
            "; {} hold fewer copies and are split less",
            seeds.fewer
        ));
    }
    if seeds.own > 0 {
        note.push_str(&format!(
            "; {} differ on every device already and stay as they are",
            seeds.own
        ));
    }
    if seeds.uneven > 0 {
        note.push_str(&format!(
            "; {} have no dimension that divides evenly and stay whole",
            seeds.uneven
        ));
    }
    Ok(Sharded {
        split: seeded,
        note,
        follows: !chosen.alone,
    })
}

/// What of a choice can be split.
#[derive(Default)]
struct Seeds {
    nodes: Vec<NodeId>,
    /// Of `nodes`, those with fewer copies than ways.
    fewer: usize,
    /// Left out: every device holds something else.
    own: usize,
    /// Left out: nothing divides.
    uneven: usize,
}

fn possible(
    run: &Applying<'_, '_, '_>,
    spread: &Spread,
    nodes: &[NodeId],
    ways: u64,
) -> Result<Seeds> {
    let base = run.base;
    let devices = base.program.module.device_count();
    if ways > devices {
        return Err(run.refuse(
            format!("the program is for {}", on(devices)),
            "N is at most the number of devices that hold the same copy",
        ));
    }
    let mut out = Seeds::default();
    let mut most = 1;
    for &n in nodes {
        let dimensions = base.values.dimensions(n);
        if dimensions.iter().all(|&d| d <= 1) {
            continue;
        }
        let copies = spread.of(n);
        most = copies.max(most);
        if copies < 2 {
            out.own += 1;
        } else if !copies.is_multiple_of(ways.min(copies).max(1))
            || !divides(dimensions, ways.min(copies))
        {
            out.uneven += 1;
        } else {
            out.fewer += usize::from(copies < ways);
            out.nodes.push(n);
        }
    }
    if ways > 1 && most < 2 {
        return Err(run.refuse(
            format!(
                "on {}, none holds a copy of it that another has",
                on(devices)
            ),
            "`xpeak summary` lists what several devices hold identically",
        ));
    }
    if ways > most {
        return Err(run.refuse(
            format!(
                "{most} of {devices} devices hold the same copy, so at most {most} ways are left"
            ),
            "tensors that are split over some axes can only be split over the others",
        ));
    }
    if ways > 1 && !most.is_multiple_of(ways) {
        return Err(run.refuse(
            format!("{ways} does not divide the {most} devices that hold a copy"),
            "N is a divisor of the number of copies",
        ));
    }
    if ways > 1 && out.nodes.is_empty() {
        return Err(run.refuse(
            format!("no dimension divides evenly by {ways}"),
            "pad a dimension to a multiple of N first",
        ));
    }
    Ok(out)
}

fn on(devices: u64) -> String {
    match devices {
        1 => "1 device".to_owned(),
        n => format!("{n} devices"),
    }
}

fn no_axis(run: &Applying<'_, '_, '_>, name: &str) -> Error {
    let mut axes: Vec<String> = Vec::new();
    for a in run.base.replication.meshes().iter().flat_map(|m| &m.axes) {
        let text = format!("{}={}", a.name, a.size);
        if !axes.contains(&text) {
            axes.push(text);
        }
    }
    let hint = match axes.is_empty() {
        true => {
            "the program names no axes: --shard SELECTOR=N gives the number of parts".to_owned()
        }
        false => format!("its axes: {}", axes.join(", ")),
    };
    run.refuse(format!("the program has no mesh axis {name}"), hint)
}
