//! In: TensorCore and SparseCore use of HBM (G9). Out: its values and which side is to blame.
//!
//! ```text
//! ( "TPU TensorCore Hbm usage:" | "TC Hbm usage:" ) size
//!     "," ( "SparseCore" | "SC" ) "Hbm usage" [ ":" ] size ", exceeding available bytes:" size
//! ```

use super::cursor::Cursor;
use super::found::{base, Found};
use super::report::Kind;
use super::section::Squeezed;

/// Reads it from its first word.
pub(crate) fn parse(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let mut c = Cursor::within(&sq.text, at, end);
    c.any_lit(&["TPUTensorCoreHbmusage", "TCHbmusage"])
        .then_some(())?;
    c.lit(":");
    let tensorcore = c.size()?;
    c.lit(",");
    c.any_lit(&["SparseCoreHbmusage", "SCHbmusage"])
        .then_some(())?;
    c.lit(":");
    let sparsecore = c.size()?;
    let mut r = base(sq, at, Kind::TpuTcSc, true);
    if c.skip_past("availablebytes", 20) {
        c.lit(":");
        r.limit_bytes = c.size();
    }
    r.tensorcore_bytes = Some(tensorcore);
    r.sparsecore_bytes = Some(sparsecore);
    r.space = Some("hbm".to_string());
    r.bottleneck = Some(bottleneck(tensorcore, sparsecore, r.limit_bytes).to_string());
    Some(Found::Report(Box::new(r)))
}

/// The side that is over half of what there is; both, when neither or both are.
fn bottleneck(tensorcore: u64, sparsecore: u64, limit: Option<u64>) -> &'static str {
    let half = limit.map_or_else(|| tensorcore.max(sparsecore) / 2, |l| l / 2);
    match (tensorcore > half, sparsecore > half) {
        (true, false) => "tensorcore",
        (false, true) => "sparsecore",
        _ => "both",
    }
}
