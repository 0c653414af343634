//! Adds to a space's report what needs the module's graph: replication, origins, findings.

use super::build::{kind_name, rank_entries};
use super::loaded::LoadedModule;
use super::loaded::SpaceAnalysis;
use super::schema::{ReplicationEntry, ReplicationRowEntry, SpaceReport, UnshardedEntry};
use crate::devices::meshes_of;
use crate::devices::{global_shape_witness, RedundantRow, ReplicationSummary};
use crate::error::{Diagnostic, Severity};
use crate::facts::Facts;
use crate::findings::all_findings;
use crate::hlo::decode::decode_program;
use crate::hlo::{AllocationKind, Mesh, Program};
use crate::peak::rank_by;

/// Fills replication, origins and findings of `report`, which is of `analysis`' space.
pub(crate) fn enrich(
    report: &mut SpaceReport,
    loaded: &LoadedModule<'_>,
    analysis: &SpaceAnalysis,
    capacity_bytes: Option<u64>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let program = &loaded.program;
    let before = before_optimizations(loaded, diagnostics);
    let meshes = loaded
        .meshes
        .get_or_init(|| meshes_in(before.as_ref()))
        .clone();
    let facts = Facts::new(analysis.context(program, capacity_bytes), meshes);
    let replication = facts.replication();
    let tied = |d: Diagnostic| d.with_path(loaded.source.path);
    diagnostics.extend(replication.diagnostics().iter().cloned().map(tied));
    if let Some(before) = &before {
        let witness = global_shape_witness(before, program, replication);
        diagnostics.extend(witness.diagnostics.into_iter().map(tied));
    }
    if let Some(summary) = facts.copies() {
        for (entry, b) in report.buffers.iter_mut().zip(&analysis.peak.buffers) {
            if let Some(r) = replication.of_buffer(&facts, b) {
                entry.devices = r.devices;
                entry.distinct_copies = Some(r.distinct_copies);
                entry.redundant_bytes = Some(r.redundant_bytes);
            }
            if b.kind == AllocationKind::Parameter || b.kind == AllocationKind::Donated {
                let number = entry.parameter_number.unwrap_or(u32::MAX);
                entry.sharding = replication
                    .parameter_sharding(number)
                    .map(ToString::to_string);
            }
        }
        report.rankings.unsharded = unsharded(summary);
        report.replication = Some(replication_entry(summary));
    }
    // Two looks at the same facts that take about as long as each other.
    let (labels, findings) = std::thread::scope(|scope| {
        let labels = scope.spawn(|| facts.origins());
        let findings = all_findings(&facts);
        (labels.join().unwrap_or_default(), findings)
    });
    for (entry, label) in report.buffers.iter_mut().zip(&labels) {
        entry.origin = Some(label.origin.name().to_owned());
        entry.origin_certainty = Some(label.certainty.name());
        entry.origin_rule = Some(label.rule.clone());
    }
    let mut at = labels.iter();
    report.rankings.by_origin = rank_entries(rank_by(&facts, |_| {
        at.next()
            .map_or_else(String::new, |l| l.origin.name().to_owned())
    }));
    report.findings = findings;
}

/// The same module before optimization, where the dump has it.
fn before_optimizations<'s>(
    loaded: &LoadedModule<'s>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Program<'s>> {
    let (path, bytes, container) = loaded.source.before_optimizations?;
    let read = decode_program(bytes, container);
    read.map_err(|e| {
        let e = crate::hlo::decode::damaged(path, bytes, &e);
        diagnostics.push(Diagnostic::new(
            Severity::Warning,
            "damaged_before_optimizations",
            e.to_string(),
        ));
    })
    .ok()
}

/// Meshes that the dump names beside a module: compiled modules no longer do.
pub fn meshes_beside<'m>(loaded: &'m LoadedModule<'_>) -> &'m [Mesh] {
    loaded.meshes.get_or_init(|| {
        let before = before_optimizations(loaded, &mut Vec::new());
        meshes_in(before.as_ref())
    })
}

fn meshes_in(before: Option<&Program<'_>>) -> Vec<Mesh> {
    before.map(|b| meshes_of(&b.module)).unwrap_or_default()
}

/// Parameters and outputs that hold one copy of data on every device.
fn unsharded(summary: &ReplicationSummary) -> Vec<UnshardedEntry> {
    let whole = |r: &&RedundantRow| {
        r.distinct_copies == 1
            && matches!(
                r.kind,
                AllocationKind::Parameter | AllocationKind::Donated | AllocationKind::Output
            )
    };
    let mut out: Vec<UnshardedEntry> = summary
        .rows
        .iter()
        .filter(whole)
        .map(|r| UnshardedEntry {
            label: r.label.clone(),
            kind: kind_name(r.kind),
            shape: r.shape.clone(),
            sharding: r.sharding.clone(),
            count: r.count,
            size_bytes: r.bytes,
            saving_bytes: r.redundant_bytes,
        })
        .collect();
    out.sort_by(|a, b| (b.size_bytes, &a.label, &a.shape).cmp(&(a.size_bytes, &b.label, &b.shape)));
    out
}

fn replication_entry(summary: &ReplicationSummary) -> ReplicationEntry {
    ReplicationEntry {
        devices: summary.devices,
        redundant_bytes: summary.redundant_bytes,
        unshardable_bytes: summary.unshardable_bytes,
        rows: summary
            .rows
            .iter()
            .map(|r| ReplicationRowEntry {
                label: r.label.clone(),
                shape: r.shape.clone(),
                place: r.where_.clone(),
                count: r.count,
                size_bytes: r.bytes,
                distinct_copies: r.distinct_copies,
                redundant_bytes: r.redundant_bytes,
                axes: r.axes.clone(),
                buffer_ids: r.buffer_ids.clone(),
            })
            .collect(),
    }
}
