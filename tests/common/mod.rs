//! Programs made in memory, and the samples.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use xpeak::facts::Facts;
use xpeak::hlo::{decode_program, HloContainer, MemorySpace};
use xpeak::memory::space_usage;
use xpeak::peak::{peak_snapshot, Context};

use std::io::Read;

use proptest::prelude::*;
use prost::Message;
use xpeak_protos::hlo;

/// Folder of the bundled samples.
pub fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

/// Every file of a sample whose name contains `part`, in order.
pub fn sample_files(part: &str) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut pending = vec![samples()];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else if path.file_name().unwrap().to_string_lossy().contains(part) {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}

/// A module of `count` instructions: a parameter and adds, all f32[n] with a tile.
pub fn module(count: i64) -> hlo::HloModuleProto {
    let shape = |n: i64| hlo::ShapeProto {
        element_type: 11,
        dimensions: vec![n],
        layout: Some(hlo::LayoutProto {
            minor_to_major: vec![0],
            tiles: vec![hlo::TileProto {
                dimensions: vec![256],
            }],
            ..Default::default()
        }),
        ..Default::default()
    };
    let instructions = (0..count.max(1))
        .map(|i| hlo::HloInstructionProto {
            name: format!("add.{i}").into_bytes(),
            opcode: if i == 0 {
                b"parameter".to_vec()
            } else {
                b"add".to_vec()
            },
            shape: Some(shape(i * 100 + 3)),
            metadata: Some(hlo::OpMetadata {
                op_name: format!("jit(f)/layer_{}/add", i % 4).into_bytes(),
                ..Default::default()
            }),
            id: i + 1,
            operand_ids: if i > 0 { vec![i, i] } else { vec![] },
            ..Default::default()
        })
        .collect();
    hlo::HloModuleProto {
        name: b"jit_f".to_vec(),
        entry_computation_name: b"main".to_vec(),
        entry_computation_id: 1,
        computations: vec![hlo::HloComputationProto {
            name: b"main".to_vec(),
            id: 1,
            root_id: count.max(1),
            instructions,
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// Any buffer assignment, sensible or not: buffers in allocations of any flags and colours, and
/// traces of any events, some of them naming buffers that do not exist.
pub fn any_program() -> impl Strategy<Value = hlo::HloProto> {
    let buffers = prop::collection::vec((0i64..1 << 40, 0i64..14, 0i64..3), 0..24);
    let allocations = prop::collection::vec(
        (
            0i64..1 << 42,
            any::<[bool; 4]>(),
            0i64..3,
            prop::collection::vec(0i64..30, 0..8),
        ),
        0..8,
    );
    let event = (0i32..4, 0i64..28, 0i64..28);
    let traces = prop::collection::vec((prop::collection::vec(event, 0..60), any::<bool>()), 0..4);
    (buffers, allocations, traces).prop_map(|(buffers, allocations, traces)| hlo::HloProto {
        hlo_module: Some(module(12)),
        buffer_assignment: Some(hlo::BufferAssignmentProto {
            logical_buffers: buffers
                .iter()
                .enumerate()
                .map(
                    |(i, &(size, instruction_id, color))| hlo::LogicalBufferProto {
                        id: i as i64,
                        size,
                        color,
                        defined_at: Some(hlo::logical_buffer_proto::Location {
                            instruction_id,
                            ..Default::default()
                        }),
                    },
                )
                .collect(),
            buffer_allocations: allocations
                .into_iter()
                .enumerate()
                .map(
                    |(i, (size, flags, color, ids))| hlo::BufferAllocationProto {
                        index: i as i64,
                        size,
                        color,
                        is_thread_local: flags[0] && flags[1],
                        is_entry_computation_parameter: flags[1],
                        maybe_live_out: flags[2],
                        is_constant: flags[3] && flags[0],
                        assigned: ids
                            .into_iter()
                            .map(|id| hlo::buffer_allocation_proto::Assigned {
                                logical_buffer_id: id,
                                offset: (id * 7919) % 100_000,
                                size: 64,
                            })
                            .collect(),
                        ..Default::default()
                    },
                )
                .collect(),
            heap_simulator_traces: traces
                .into_iter()
                .map(|(events, whole)| hlo::HeapSimulatorTrace {
                    whole_module_simulation: whole,
                    events: events
                        .into_iter()
                        .map(
                            |(kind, buffer_id, canonical)| hlo::heap_simulator_trace::Event {
                                kind,
                                buffer_id,
                                share_with_canonical_id: canonical,
                                ..Default::default()
                            },
                        )
                        .collect(),
                    ..Default::default()
                })
                .collect(),
        }),
    })
}

/// The bytes of a message.
pub fn bytes(message: &impl Message) -> Vec<u8> {
    message.encode_to_vec()
}

/// Folders of one compiled program each, by name: the samples, and the programs that only tests
/// need.
pub fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut out = folders_in(&root.join("samples"));
    out.extend(folders_in(&root.join("samples/programs")));
    out.sort();
    out
}

/// Folders right under `parent` that hold a compiled program.
pub fn folders_in(parent: &Path) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = std::fs::read_dir(parent)
        .unwrap_or_else(|e| panic!("{}: {e}", parent.display()))
        .map(|e| e.unwrap().path())
        .filter(|p| dump_of(p).is_some())
        .collect();
    out.sort();
    out
}

/// Name of a folder.
pub fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap().to_string_lossy().into_owned()
}

/// The compiled program in a folder.
pub fn dump_of(folder: &Path) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .ok()?
        .map(|e| e.unwrap().path())
        .filter(|p| {
            let name = p.to_string_lossy();
            let name = name.strip_suffix(".gz").unwrap_or(&name);
            name.ends_with("after_optimizations.hlo.pb")
        })
        .collect();
    found.sort();
    found.pop()
}

/// The bytes of the program called so, unpacked.
pub fn read(name: &str) -> Vec<u8> {
    let found = folders().into_iter().find(|f| name_of(f) == name);
    bytes_of(&found.unwrap_or_else(|| panic!("no program {name}")))
}

/// The bytes of the program in a folder, unpacked.
pub fn bytes_of(folder: &Path) -> Vec<u8> {
    let path = dump_of(folder).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    if path.extension().is_some_and(|e| e == "gz") {
        let mut out = Vec::new();
        flate2::read::GzDecoder::new(&bytes[..])
            .read_to_end(&mut out)
            .unwrap();
        return out;
    }
    bytes
}

/// What is known of a program's HBM.
pub fn look<T>(bytes: &[u8], capacity: Option<u64>, f: impl FnOnce(&Facts<'_, '_>) -> T) -> T {
    let program = decode_program(bytes, HloContainer::Proto).unwrap();
    let usage = space_usage(program.assignment.as_ref().unwrap(), MemorySpace::HBM);
    let peak = peak_snapshot(&program, &usage);
    let ctx = Context {
        program: &program,
        usage: &usage,
        peak: &peak,
        capacity_bytes: capacity,
    };
    f(&Facts::new(ctx, Vec::new()))
}
