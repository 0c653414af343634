//! `--shard`: what is asked for against what the devices hold, and what follows from it.
//!
//! In: the tensors chosen and how often to split them. Out: effects, and a note; or why it cannot
//! be done.

use rustc_hash::FxHashSet;

use crate::dataflow::dimensions::NodeId;
use crate::error::{Error, Result};
use crate::findings::Finding;
use crate::hlo::{BufferId, Opcode};
use crate::whatif::effects::Effects;
use crate::whatif::split::{axis_named, divides, follow, Spread};
use crate::whatif::Base;
use crate::whatif::{Edit, Ways};

/// What to split.
pub(crate) struct Chosen<'c> {
    /// Arrays that the selector means.
    pub(crate) nodes: &'c [NodeId],
    /// Numbers of entry parameters among them.
    pub(crate) arguments: &'c FxHashSet<u32>,
    /// How often.
    pub(crate) ways: &'c Ways,
    /// The finding that the selector names: then its buffers change and nothing else, since its
    /// saving is theirs.
    pub(crate) finding: Option<&'c Finding>,
}

/// What came of it.
pub(crate) struct Sharded {
    /// Arrays chosen that are split.
    pub(crate) split: usize,
    /// In words.
    pub(crate) note: String,
    /// Whether more than the tensors chosen changes.
    pub(crate) follows: bool,
}

/// Splits.
///
/// # Errors
/// More ways than there are copies; an axis that the program does not name; nothing that divides.
pub(crate) fn shard(
    base: &Base<'_, '_>,
    effects: &mut Effects,
    edit: &Edit,
    chosen: &Chosen<'_>,
) -> Result<Sharded> {
    let axis = match chosen.ways {
        Ways::Count(_) => None,
        Ways::Axis(name) => Some(axis_named(base, name).ok_or_else(|| no_axis(base, edit, name))?),
    };
    let ways = match chosen.ways {
        Ways::Count(n) => *n,
        Ways::Axis(_) => axis.as_ref().map_or(1, |a| a.size),
    };
    let spread = Spread::new(base, axis.as_ref());
    let seeds = possible(base, edit, &spread, chosen.nodes, ways)?;
    let of_argument = |n: &NodeId| {
        let i = base.values.instruction_of(*n);
        let i = base.program.module.instruction(i);
        i.opcode == Opcode::Parameter && chosen.arguments.contains(&i.parameter_number)
    };
    let weights = seeds.nodes.iter().any(of_argument);
    let mut split = follow(base, &spread, &seeds.nodes, ways, !weights);
    if let Some(f) = chosen.finding {
        let own = nodes_of(base, f);
        split.retain(|n, _| own.contains(n));
    }
    let touched = split.len();
    let seeded = seeds.nodes.iter().filter(|n| split.contains_key(n)).count();
    for (node, (ways, seed)) in split {
        if weights {
            effects.gathered.insert(node, seed);
        }
        let w = effects.split.entry(node).or_insert(1);
        // Together no more ways than there are copies; of partial sums, than one edit alone.
        let most = spread.of(node).max(ways).max(*w);
        *w = w.saturating_mul(ways).min(most);
    }
    let mut note = format!("{seeded} arrays split {ways} ways");
    if chosen.finding.is_none() {
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
        follows: chosen.finding.is_none(),
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
    base: &Base<'_, '_>,
    edit: &Edit,
    spread: &Spread,
    nodes: &[NodeId],
    ways: u64,
) -> Result<Seeds> {
    let devices = base.program.module.device_count();
    if ways > devices {
        return Err(Error::usage(
            format!("{edit}: the program is for {}", on(devices)),
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
        return Err(Error::usage(
            format!(
                "{edit}: on {}, none holds a copy of it that another has",
                on(devices)
            ),
            "`xpeak summary` lists what several devices hold identically",
        ));
    }
    if ways > most {
        return Err(Error::usage(
            format!("{edit}: {most} of {devices} devices hold the same copy, so at most {most} ways are left"),
            "tensors that are split over some axes can only be split over the others",
        ));
    }
    if ways > 1 && !most.is_multiple_of(ways) {
        return Err(Error::usage(
            format!("{edit}: {ways} does not divide the {most} devices that hold a copy"),
            "N is a divisor of the number of copies",
        ));
    }
    if ways > 1 && out.nodes.is_empty() {
        return Err(Error::usage(
            format!("{edit}: no dimension divides evenly by {ways}"),
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

fn no_axis(base: &Base<'_, '_>, edit: &Edit, name: &str) -> Error {
    let mut axes: Vec<String> = Vec::new();
    for a in base.replication.meshes().iter().flat_map(|m| &m.axes) {
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
    Error::usage(format!("{edit}: the program has no mesh axis {name}"), hint)
}

/// Everything that the buffers of a finding, and what shares their memory, hold.
fn nodes_of(base: &Base<'_, '_>, finding: &Finding) -> FxHashSet<NodeId> {
    let ids: FxHashSet<i64> = finding.buffer_ids.iter().copied().collect();
    let slots = base.arenas.iter().flat_map(|a| &a.slots);
    let all = slots
        .map(|s| &s.names)
        .chain(base.blocks.iter().map(|b| &b.names));
    let is_of = |b: &BufferId| ids.contains(&base.assignment.buffer(*b).id);
    let found = all.filter(|names| names.iter().any(is_of));
    found
        .flatten()
        .filter_map(|&b| base.content(b).map(|(n, _)| n))
        .collect()
}
