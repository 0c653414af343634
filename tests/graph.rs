//! The flattened program order against the compiler's own heap simulator traces.

mod common;

use xpeak::analysis::{peak_snapshot, space_usage, Graph, ProgramPoints};
use xpeak::decode::{decode_program, HloContainer};
use xpeak::model::{HeapEventKind, MemorySpace};

/// Buffers are allocated in program order, but for uninitialised ones, which come at their first
/// use.
#[test]
fn allocations_of_every_trace_come_in_program_order() {
    let (mut checked, mut errors) = (0, Vec::new());
    for folder in common::folders() {
        let bytes = common::bytes_of(&folder);
        let program = decode_program(&bytes, HloContainer::Proto).unwrap();
        let graph = Graph::new(&program);
        let Some(assignment) = program.assignment.as_ref() else {
            continue;
        };
        for trace in assignment.traces.iter().filter(|t| t.whole_module) {
            let mut last = 0;
            for e in trace
                .events
                .iter()
                .filter(|e| e.kind != HeapEventKind::Free)
            {
                let Some(i) = e.buffer.and_then(|b| assignment.buffer(b).instruction) else {
                    continue;
                };
                let instruction = program.module.instruction(i);
                if instruction.custom_call_target() == "AllocateBuffer" {
                    continue;
                }
                match graph.order_of(i) {
                    Some(o) if o >= last => last = o,
                    other => errors.push(format!(
                        "{}: {} at {other:?}, after {last}",
                        common::name_of(&folder),
                        instruction.name
                    )),
                }
                checked += 1;
            }
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    assert!(checked > 100, "{checked}");
}

/// The point of the instruction that is said to be at the peak is the peak's.
#[test]
fn the_peaks_instruction_has_the_peaks_point() {
    let mut checked = 0;
    for folder in common::folders() {
        let bytes = common::bytes_of(&folder);
        let program = decode_program(&bytes, HloContainer::Proto).unwrap();
        let graph = Graph::new(&program);
        let assignment = program.assignment.as_ref().unwrap();
        let usage = space_usage(assignment, MemorySpace::HBM);
        let points = ProgramPoints::new(&program, &graph, usage.main_arena());
        let peak = peak_snapshot(&program, &usage);
        let Some(at) = peak.instruction else { continue };
        if program.module.instruction(at).custom_call_target() == "AllocateBuffer" {
            continue;
        }
        let point = points.point_of(&graph, at).unwrap();
        // An instruction with several results has several events.
        assert!(
            point >= peak.point && point < peak.point + 16,
            "{}: {point}, peak at {}",
            common::name_of(&folder),
            peak.point
        );
        assert!(points.order_at(point) <= graph.order_of(at).unwrap());
        checked += 1;
    }
    assert!(checked > 3, "{checked}");
}
