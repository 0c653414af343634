//! What a program does as training: who could be donated, what waits for the backward pass, what
//! each buffer is for. Verdicts that findings print and edits act on.
//!
//! In: a [`Context`](crate::peak::Context) and the graph. Out: data, no words of advice.
//! May use: `devices`, `peak`, `dataflow`, `hlo`.

pub(crate) mod activations;
pub(crate) mod checkpoint_policy;
pub(crate) mod debugging;
pub(crate) mod donation;
pub(crate) mod forward;
pub(crate) mod origin;
pub(crate) mod origins;
pub(crate) mod weights;

pub use activations::{saved_activations, SavedActivation};
pub use donation::{donation_candidates, DonationPair};
pub use origin::Origin;
pub use origins::{origins, Certainty, OriginLabel};
