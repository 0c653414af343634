//! A decoded program and the analyses of one memory space, gathered so that a report and charts
//! can be made of them.

use std::sync::OnceLock;

use crate::hlo::{MemorySpace, Mesh, Program};
use crate::memory::{space_usage, SpaceUsage};
use crate::peak::{
    buffer_groups, padding_rows, peak_snapshot, scope_tree, BufferGroup, Context, PaddingRow,
    PeakSnapshot, ScopeNode,
};
use crate::source::ProgramSource;

/// Analyses of one memory space.
#[derive(Debug)]
pub struct SpaceAnalysis {
    /// Replayed use.
    pub usage: SpaceUsage,
    /// Who is alive at the peak.
    pub peak: PeakSnapshot,
    /// Repeats folded.
    pub groups: Vec<BufferGroup>,
    /// Padding by buffer.
    pub padding: Vec<PaddingRow>,
    /// By operation path.
    pub tree: ScopeNode,
}

impl SpaceAnalysis {
    /// Analyses `space`; `None` for a program without buffer assignment or without that space.
    pub fn new(program: &Program<'_>, space: MemorySpace) -> Option<SpaceAnalysis> {
        let assignment = program.assignment.as_ref()?;
        if !assignment.spaces().contains(&space) {
            return None;
        }
        let usage = space_usage(assignment, space);
        let peak = peak_snapshot(program, &usage);
        let ctx = Context {
            program,
            usage: &usage,
            peak: &peak,
            capacity_bytes: None,
        };
        let (groups, padding, tree) = (buffer_groups(&ctx), padding_rows(&ctx), scope_tree(&ctx));
        Some(SpaceAnalysis {
            usage,
            peak,
            groups,
            padding,
            tree,
        })
    }

    /// The context that further analyses take.
    pub fn context<'c, 'a>(
        &'c self,
        program: &'c Program<'a>,
        capacity_bytes: Option<u64>,
    ) -> Context<'c, 'a> {
        Context {
            program,
            usage: &self.usage,
            peak: &self.peak,
            capacity_bytes,
        }
    }
}

/// A program that has been decoded, and the analysis of the chosen space.
#[derive(Debug)]
#[non_exhaustive]
pub struct LoadedModule<'s> {
    /// Where it is from.
    pub source: ProgramSource<'s>,
    /// The program.
    pub program: Program<'s>,
    /// The chosen space; `None` without buffer assignment or without that space.
    pub analysis: Option<SpaceAnalysis>,
    /// Meshes that name its axes, once they were looked for.
    pub(crate) meshes: OnceLock<Vec<Mesh>>,
}

impl LoadedModule<'_> {
    /// Peak of the chosen space; 0 where it is unknown.
    pub fn peak_bytes(&self) -> u64 {
        self.analysis.as_ref().map_or(0, |a| a.usage.peak_bytes())
    }
}
