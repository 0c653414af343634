//! What a user wants computed again.

use crate::hlo::Opcode;

/// What is to be computed again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'w> {
    /// Part of an operation path; `None` for everything.
    scope: Option<&'w str>,
    /// Whether results of matrix products are kept.
    dots: bool,
}

impl<'w> Wanted<'w> {
    /// `all` is every block.
    pub(crate) fn new(scope: &'w str, dots: bool) -> Wanted<'w> {
        let scope = Some(scope).filter(|s| *s != "all");
        Wanted { scope, dots }
    }

    /// Whether an operation is within the scope.
    pub(crate) fn covers(&self, op_name: &str) -> bool {
        self.scope.is_none_or(|s| op_name.contains(s))
    }

    /// Whether the result of such an operation is kept.
    pub(crate) fn keeps(&self, opcode: Opcode) -> bool {
        self.dots && opcode.is_product()
    }
}
