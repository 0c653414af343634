//! The flattened program order against the compiler's own heap simulator traces.
#![allow(clippy::unwrap_used)]

#[path = "common/build.rs"]
mod build;
mod common;

use xpeak::dataflow::{reads_of, Graph, ProgramPoints, Through};
use xpeak::hlo::{decode_program, HloContainer};
use xpeak::hlo::{HeapEventKind, MemorySpace};
use xpeak::memory::space_usage;
use xpeak::peak::peak_snapshot;

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

/// Computations that call each other in a circle are followed once.
#[test]
fn calls_in_a_circle_end() {
    let bytes = build::Build::default()
        .computation("a", &[("x", "parameter.0", &[]), ("y", "negate", &["x"])])
        .computation(
            "main",
            &[("p", "parameter.0", &[]), ("call", "call", &["p", "@a"])],
        )
        .circle("y", "main")
        .argument("p", 0)
        .bytes();
    let program = decode_program(&bytes, HloContainer::Proto).unwrap();
    let graph = Graph::new(&program);
    let names: Vec<&str> = graph
        .program_order()
        .iter()
        .map(|&i| program.module.instruction(i).name)
        .collect();
    assert_eq!(names, ["p", "x", "y", "call"]);
    let p = graph.program_order()[0];
    assert_eq!(graph.uses(p).len(), 1);
    let mut budget = 1000;
    let (value, through) = ((p, Vec::new()), Through::Names);
    let reads = reads_of(&program, &graph, &value, through, &mut budget);
    assert_eq!(reads.reads.len(), 0, "a call of itself reads nothing");
}

/// A loop's condition and body come before it, each once, whatever their order in the file.
#[test]
fn a_loop_comes_after_its_condition_and_body() {
    let bytes = build::Build::default()
        .computation(
            "c",
            &[
                ("tuple.c", "parameter.0", &[]),
                ("less", "compare", &["tuple.c"]),
            ],
        )
        .computation(
            "b",
            &[
                ("tuple.b", "parameter.0", &[]),
                ("step", "tuple", &["tuple.b", "tuple.b"]),
            ],
        )
        .computation(
            "main",
            &[
                ("p", "parameter.0", &[]),
                ("in", "tuple", &["p", "p"]),
                ("loop", "while", &["in", "@b", "@c"]),
                ("out", "get-tuple-element.1", &["loop"]),
            ],
        )
        .bytes();
    let program = decode_program(&bytes, HloContainer::Proto).unwrap();
    let graph = Graph::new(&program);
    let names: Vec<&str> = graph
        .program_order()
        .iter()
        .map(|&i| program.module.instruction(i).name)
        .collect();
    assert_eq!(
        names,
        ["p", "in", "tuple.c", "less", "tuple.b", "step", "loop", "out"]
    );
}
