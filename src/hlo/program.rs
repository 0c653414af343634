//! One compiled program: module, buffer assignment, and what was wrong with the file.

use super::buffer::BufferAssignment;
use super::module::HloModule;
use crate::error::Diagnostic;

/// One compiled (or only traced) program.
#[derive(Debug, Default)]
pub struct Program<'a> {
    /// The module.
    pub module: HloModule<'a>,
    /// Where everything lies in memory; `None` in files written before buffer assignment.
    pub assignment: Option<BufferAssignment<'a>>,
    /// What was wrong with the file.
    pub diagnostics: Vec<Diagnostic>,
}
