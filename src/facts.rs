//! Everything that is derived from a program and one of its memory spaces: each thing once, when it
//! is first asked for.
//!
//! In: a [`Context`] and the meshes that name the program's axes. Out: [`Facts`], which findings,
//! reports and origins go by.

use std::ops::Deref;
use std::sync::OnceLock;

use crate::dataflow::Graph;
use crate::devices::{replication_summary, Replication, ReplicationSummary};
use crate::hlo::Mesh;
use crate::peak::{buffer_groups, padding_rows, BufferGroup, Context, PaddingRow};
use crate::training::{
    donation_candidates, origins, saved_activations, DonationPair, OriginLabel, SavedActivation,
};

/// What is known of a program and one of its memory spaces.
#[derive(Debug)]
pub struct Facts<'c, 'a> {
    context: Context<'c, 'a>,
    meshes: Vec<Mesh>,
    graph: OnceLock<Graph>,
    replication: OnceLock<Replication>,
    copies: OnceLock<Option<ReplicationSummary>>,
    donations: OnceLock<Vec<DonationPair>>,
    saved: OnceLock<Vec<SavedActivation>>,
    groups: OnceLock<Vec<BufferGroup>>,
    padding: OnceLock<Vec<PaddingRow>>,
}

impl<'c, 'a> Facts<'c, 'a> {
    /// Of a context; `meshes` name the axes of its devices, as the dump from before optimization
    /// does, and may be empty.
    pub fn new(context: Context<'c, 'a>, meshes: Vec<Mesh>) -> Self {
        Facts {
            context,
            meshes,
            graph: OnceLock::new(),
            replication: OnceLock::new(),
            copies: OnceLock::new(),
            donations: OnceLock::new(),
            saved: OnceLock::new(),
            groups: OnceLock::new(),
            padding: OnceLock::new(),
        }
    }

    /// Users and program order.
    pub fn graph(&self) -> &Graph {
        self.graph.get_or_init(|| Graph::new(self.program))
    }

    /// Which devices hold the same data.
    pub fn replication(&self) -> &Replication {
        self.replication
            .get_or_init(|| Replication::new(self.program, &self.meshes))
    }

    /// What of the peak several devices hold identically; `None` for a program of one device.
    pub fn copies(&self) -> Option<&ReplicationSummary> {
        let summary = || {
            let r = self.replication();
            (r.devices() > 1).then(|| replication_summary(self, r))
        };
        self.copies.get_or_init(summary).as_ref()
    }

    /// Every argument that fits an output, and whether donating it would save memory.
    pub fn donations(&self) -> &[DonationPair] {
        self.donations
            .get_or_init(|| donation_candidates(self, self.graph()))
    }

    /// Forward results at the peak that wait for the backward pass.
    pub fn saved_activations(&self) -> &[SavedActivation] {
        self.saved
            .get_or_init(|| saved_activations(self, self.graph()))
    }

    /// What each block at the peak is for, in the order of the peak's list.
    pub fn origins(&self) -> Vec<OriginLabel> {
        origins(
            self,
            self.graph(),
            self.saved_activations(),
            self.donations(),
        )
    }

    /// Buffers at the peak, repeats folded.
    pub fn groups(&self) -> &[BufferGroup] {
        self.groups.get_or_init(|| buffer_groups(self))
    }

    /// Padding at the peak by buffer.
    pub fn padding(&self) -> &[PaddingRow] {
        self.padding.get_or_init(|| padding_rows(self))
    }
}

impl<'c, 'a> Deref for Facts<'c, 'a> {
    type Target = Context<'c, 'a>;

    fn deref(&self) -> &Context<'c, 'a> {
        &self.context
    }
}
