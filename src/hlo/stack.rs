//! The stack-frame index: from an instruction's frame number to the Python stack behind it.

/// A place in the user's code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[non_exhaustive]
pub struct SourceLine {
    /// File as recorded by the framework.
    pub file: String,
    /// 1-based line; 0 if unknown.
    pub line: u32,
}

/// Tables of frames, as stored. Every id is 1-based; 0 means none.
#[derive(Debug, Clone, Default)]
pub struct StackFrameIndex<'a> {
    /// File names.
    pub files: Vec<&'a str>,
    /// Function names.
    pub functions: Vec<&'a str>,
    /// `(file id, function id, line, column)`.
    pub locations: Vec<(u32, u32, u32, u32)>,
    /// `(location id, parent frame id)`.
    pub frames: Vec<(u32, u32)>,
}

/// Stacks deeper than this are cut: malformed parents can form a cycle.
const MAX_DEPTH: usize = 256;

impl<'a> StackFrameIndex<'a> {
    fn location(&self, frame: u32) -> Option<(&'a str, &'a str, u32, u32)> {
        let (location, _) = *one_based(&self.frames, frame)?;
        let (file, function, line, column) = *one_based(&self.locations, location)?;
        Some((
            one_based(&self.files, file).copied().unwrap_or_default(),
            one_based(&self.functions, function)
                .copied()
                .unwrap_or_default(),
            line,
            column,
        ))
    }

    /// File and line of a frame.
    pub fn innermost(&self, frame: u32) -> Option<SourceLine> {
        let (file, _, line, _) = self.location(frame)?;
        (!file.is_empty()).then(|| SourceLine {
            file: file.to_owned(),
            line,
        })
    }

    /// The stack from `frame` outwards, one line a frame.
    pub fn stack(&self, frame: u32) -> Vec<String> {
        let mut out = Vec::new();
        let mut at = frame;
        while out.len() < MAX_DEPTH {
            let Some((file, function, line, column)) = self.location(at) else {
                break;
            };
            out.push(format!("{file}:{line}:{column} {function}"));
            match one_based(&self.frames, at) {
                Some(&(_, parent)) if parent != at => at = parent,
                _ => break,
            }
        }
        out
    }
}

fn one_based<T>(table: &[T], id: u32) -> Option<&T> {
    table.get((id as usize).checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> StackFrameIndex<'static> {
        StackFrameIndex {
            files: vec!["train.py"],
            functions: vec!["step", "main"],
            locations: vec![(1, 1, 10, 4), (1, 2, 20, 0)],
            frames: vec![(1, 2), (2, 0)],
        }
    }

    #[test]
    fn a_stack_reads_innermost_first() {
        assert_eq!(
            index().stack(1),
            ["train.py:10:4 step", "train.py:20:0 main"]
        );
        assert_eq!(index().innermost(1).map(|s| s.line), Some(10));
        assert!(index().stack(0).is_empty() && index().stack(99).is_empty());
    }

    #[test]
    fn a_cycle_ends() {
        let mut i = index();
        i.frames = vec![(1, 2), (2, 1)];
        assert_eq!(i.stack(1).len(), MAX_DEPTH);
    }
}
