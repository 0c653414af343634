//! What splitting costs: where a split tensor goes into a matrix product it is gathered for the
//! moment, and a product that makes one comes out whole before it is split.
//!
//! In: effects with split classes. Out: short-lived items added to the scenario.

use rustc_hash::FxHashMap;

use super::base::Base;
use super::effects::Effects;
use super::scenario::Scenario;
use crate::model::{InstructionId, Program};

/// Adds the gathered tensors.
pub(super) fn transients(base: &Base<'_, '_>, effects: &Effects, scenario: &mut Scenario) {
    let module = &base.program.module;
    let mut gathered: FxHashMap<(u32, u32), u64> = FxHashMap::default();
    for i in (0..module.instructions.len() as u32).map(InstructionId) {
        if !matches!(module.instruction(i).opcode, "dot" | "convolution") {
            continue;
        }
        let Some(point) = base.point(i) else { continue };
        let results = std::iter::once((i, false));
        let operands = module.operands(i).iter().map(|&o| (o, true));
        for (part, _) in results.chain(operands) {
            let Some(node) = base.values.nodes(part).next() else {
                continue;
            };
            let class = base.values.split_class(node);
            if !effects.split.contains_key(&class) {
                continue;
            }
            let shape = module.shape(part);
            let whole = effects.shape(base, node, &shape, true, false).padded_bytes();
            let most = gathered.entry((point, class)).or_default();
            *most = whole.max(*most);
        }
    }
    let mut gathered: Vec<((u32, u32), u64)> = gathered.into_iter().collect();
    gathered.sort_unstable();
    let count = base.points.point_count();
    for ((point, _), size) in gathered {
        let end = point.saturating_add(1).min(count);
        scenario.add("gathered for a product".to_owned(), size, point, end);
    }
}

/// Size of a mesh axis by its name, from the module's attributes (`xla.sdy.meshes`).
pub(super) fn axis_size(program: &Program<'_>, axis: &str) -> Option<u64> {
    program
        .module
        .frontend_attributes
        .iter()
        .find_map(|(_, text)| axis_in(text, axis))
}

/// `"tp"=4` in the text of a mesh, with or without escaped quotes.
fn axis_in(text: &str, axis: &str) -> Option<u64> {
    let plain: String = text.chars().filter(|c| !matches!(c, '"' | '\\' | ' ')).collect();
    let wanted = format!("{axis}=");
    plain.match_indices(&wanted).find_map(|(at, _)| {
        let before = plain.get(..at)?.chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            return None;
        }
        let digits: String = plain
            .get(at + wanted.len()..)?
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        digits.parse().ok().filter(|&n| n > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mesh_axes_are_read_from_text() {
        let text = r#"{mesh = #sdy.mesh<[\"fsdp\"=2, \"tp\"=4]>}"#;
        assert_eq!(axis_in(text, "tp"), Some(4));
        assert_eq!(axis_in(text, "fsdp"), Some(2));
        assert_eq!(axis_in(text, "p"), None);
        assert_eq!(axis_in(text, "data"), None);
        assert_eq!(axis_in("tp=", "tp"), None);
    }
}
