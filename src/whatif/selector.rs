//! SELECTOR: from a user's words to instructions of the program.
//!
//! In: text such as `embed`, `f32[16,2048,32000]`, `train.py:75`, `all-gather`, `donation:1`,
//! `all`. Out: the instructions meant, and which kind of match it was.

use rustc_hash::FxHashSet;

use crate::findings::{Finding, FindingKind};
use crate::hlo::{BufferId, InstructionId, Program};

/// What a selector picked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Instructions, ascending.
    pub instructions: Vec<InstructionId>,
    /// Shape that the parts of their results must have, `f32[16,2048,32000]`; `None` = any part.
    pub shape: Option<String>,
    /// What the text was taken for.
    pub by: MatchedBy,
    /// Of a finding: its buffers. An edit is then about these, and not about whatever else the
    /// instructions that define them make.
    pub buffers: Option<FxHashSet<BufferId>>,
}

/// What a selector was taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MatchedBy {
    /// Nothing matched.
    #[default]
    Nothing,
    /// `all`.
    Everything,
    /// A finding, `donation:1`.
    Finding,
    /// A shape.
    Shape,
    /// A source line, `train.py:75`.
    SourceLine,
    /// An instruction's name.
    Instruction,
    /// An opcode.
    Opcode,
    /// Names of arguments.
    Argument,
    /// Part of the operation path.
    OpPath,
}

impl MatchedBy {
    /// For notes: `arguments`, `operation path`.
    pub fn name(self) -> &'static str {
        match self {
            MatchedBy::Nothing => "nothing",
            MatchedBy::Everything => "everything",
            MatchedBy::Finding => "a finding",
            MatchedBy::Shape => "shape",
            MatchedBy::SourceLine => "source line",
            MatchedBy::Instruction => "instruction name",
            MatchedBy::Opcode => "opcode",
            MatchedBy::Argument => "argument name",
            MatchedBy::OpPath => "operation path",
        }
    }
}

/// Resolves `text`. Findings are counted per kind from 1, in the order given.
pub fn select(program: &Program<'_>, findings: &[Finding], text: &str) -> Selection {
    let module = &program.module;
    let ids = || module.ids();
    let found = |by: MatchedBy, instructions: Vec<InstructionId>| Selection {
        instructions,
        by,
        ..Selection::default()
    };
    let text = text.trim();
    if text == "all" {
        return found(MatchedBy::Everything, ids().collect());
    }
    if let Some(finding) = finding_named(findings, text) {
        return of_finding(program, finding);
    }
    if let Some(shape) = shape_text(text) {
        let has = |i: InstructionId| {
            let mut hit = false;
            module.shape(i).for_each_leaf(&mut |_, leaf| {
                hit |= plain_shape(leaf) == shape;
            });
            hit
        };
        return Selection {
            instructions: ids().filter(|&i| has(i)).collect(),
            by: MatchedBy::Shape,
            shape: Some(shape),
            buffers: None,
        };
    }
    if let Some((file, line)) = source_text(text) {
        let here = |i: InstructionId| {
            module.source_of(i).is_some_and(|s| {
                s.line == line && (s.file == file || s.file.ends_with(&format!("/{file}")))
            })
        };
        return found(MatchedBy::SourceLine, ids().filter(|&i| here(i)).collect());
    }
    let tries: [(MatchedBy, Vec<InstructionId>); 4] = [
        (
            MatchedBy::Instruction,
            ids()
                .filter(|&i| module.instruction(i).name == text)
                .collect(),
        ),
        (
            MatchedBy::Opcode,
            ids()
                .filter(|&i| module.instruction(i).opcode_name() == text)
                .collect(),
        ),
        (
            MatchedBy::Argument,
            module
                .entry_parameters()
                .iter()
                .copied()
                .filter(|&i| names_argument(module.instruction(i).op_name, text))
                .collect(),
        ),
        (
            MatchedBy::OpPath,
            ids()
                .filter(|&i| module.instruction(i).op_name.contains(text))
                .collect(),
        ),
    ];
    for (by, mut instructions) in tries {
        if !instructions.is_empty() && !text.is_empty() {
            instructions.sort_unstable();
            return found(by, instructions);
        }
    }
    Selection::default()
}

/// Whether an argument's name, `state[0]['mlp']['up']`, is meant by `text`: part of it, quotes and
/// dots alike.
fn names_argument(name: &str, text: &str) -> bool {
    let plain = |s: &str| {
        s.replace(['\'', '"'], "")
            .replace("][", ".")
            .replace('[', ".")
            .replace(']', "")
    };
    name.contains(text) || plain(name).contains(&plain(text))
}

/// The finding that `text` names, `donation:1`.
pub(crate) fn finding_named<'f>(findings: &'f [Finding], text: &str) -> Option<&'f Finding> {
    let (kind, number) = text.split_once(':')?;
    let number = number.parse::<usize>().ok()?.checked_sub(1)?;
    let kind = FindingKind::all().find(|k| k.name() == kind)?;
    findings.iter().filter(|f| f.kind == kind).nth(number)
}

fn of_finding(program: &Program<'_>, finding: &Finding) -> Selection {
    let Some(assignment) = &program.assignment else {
        return Selection::default();
    };
    let ids: FxHashSet<i64> = finding.buffer_ids.iter().copied().collect();
    let named = assignment.buffer_ids();
    let buffers: FxHashSet<BufferId> = named
        .filter(|&b| ids.contains(&assignment.buffer(b).id))
        .collect();
    let defining = buffers
        .iter()
        .filter_map(|&b| assignment.buffer(b).instruction);
    let mut instructions: Vec<InstructionId> = defining.collect();
    instructions.sort_unstable();
    instructions.dedup();
    Selection {
        instructions,
        by: MatchedBy::Finding,
        shape: None,
        buffers: Some(buffers),
    }
}

/// `f32[16,2048]` of a text that is a shape, with or without a layout.
fn shape_text(text: &str) -> Option<String> {
    let open = text.find('[')?;
    let close = text.find(']')?;
    let (element, dimensions) = (text.get(..open)?, text.get(open + 1..close)?);
    crate::hlo::ElementType::from_name(element)?;
    let ok = dimensions
        .split(',')
        .all(|d| d.trim().parse::<u64>().is_ok() || dimensions.trim().is_empty());
    let rest = text.get(close + 1..)?.trim();
    if !ok || !(rest.is_empty() || rest.starts_with('{')) {
        return None;
    }
    let dimensions: String = dimensions.chars().filter(|c| !c.is_whitespace()).collect();
    Some(format!("{element}[{dimensions}]"))
}

/// A shape without its layout, as `shape_text` writes it.
pub(crate) fn plain_shape(shape: &crate::hlo::Shape) -> String {
    let d: Vec<String> = shape.dimensions.iter().map(u64::to_string).collect();
    format!("{}[{}]", shape.element_type, d.join(","))
}

fn source_text(text: &str) -> Option<(&str, u32)> {
    let (file, line) = text.rsplit_once(':')?;
    (file.contains('.') && !file.contains('[')).then_some((file, line.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_taken_for_what_they_look_like() {
        assert_eq!(
            shape_text("f32[8, 4]{1,0:T(8,128)}").as_deref(),
            Some("f32[8,4]")
        );
        assert_eq!(shape_text("s32[]").as_deref(), Some("s32[]"));
        assert_eq!(shape_text("state[0]['mlp']"), None);
        assert_eq!(shape_text("f32]["), None);
        assert_eq!(source_text("train.py:75"), Some(("train.py", 75)));
        assert_eq!(source_text("donation:1"), None);
        assert!(names_argument("state[0]['mlp']['up']", "mlp.up"));
        assert!(names_argument("state[0]['mlp']['up']", "state[0]"));
        assert!(!names_argument("tokens", "state"));
    }
}
