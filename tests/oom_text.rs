//! Every sample text gives the values that stand beside it, whatever wraps it.
#![allow(clippy::unwrap_used)]

mod oom_samples;
#[path = "common/work.rs"]
mod work;

use std::path::Path;

use oom_samples::{difference, samples, wrapped};
use serde_json::json;
use work::{assert_linear, work};
use xpeak::oom::{limit_in, looks_like_oom, read, read_str};
use xpeak::triage::{next_steps, triage};

#[test]
fn every_sample_gives_its_values() {
    for (path, text, want) in samples() {
        let report = read_str(&text);
        assert_eq!(difference(&report, &want), None, "{}", path.display());
        let distinct = report.reports.iter().filter(|r| r.oom).count();
        assert!(distinct <= 1, "{}: {distinct} failures", path.display());
        assert_eq!(read(text.as_bytes()).unwrap(), report);
    }
}

#[test]
fn texts_of_real_compilers() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/programs");
    let mut seen = 0;
    for program in std::fs::read_dir(dir).unwrap() {
        let Ok(text) = std::fs::read_to_string(program.unwrap().path().join("oom.txt")) else {
            continue;
        };
        let report = read_str(&text);
        assert_eq!(report.reports.len(), 1, "{text}");
        let r = &report.reports[0];
        assert!(
            r.oom && r.used_bytes > r.limit_bytes && r.scenario.is_some(),
            "{text}"
        );
        let advice = next_steps(r);
        assert!(!advice.is_empty() && advice.len() <= 7);
        seen += 1;
    }
    assert!(seen >= 6);
}

#[test]
fn each_wrapper_keeps_the_values() {
    for (path, text, want) in samples() {
        for way in 0..16 {
            let report = read_str(&wrapped(way, &text));
            let mut want = want.clone();
            if way == 12 && want["kind"] == "warnings" {
                want.as_object_mut()
                    .unwrap()
                    .remove("donated_unusable_bytes");
            }
            assert_eq!(
                difference(&report, &want),
                None,
                "way {way}, {}",
                path.display()
            );
        }
    }
}

#[test]
fn glued_and_unnumbered() {
    let text = "Ran out of memory in memory space hbm. Used 4.00G of 3.00G hbm. Exceeded hbm capacity by \
                1.00G.Total hbm usage >= 4.00G:    reserved 18.00M     program 3.98G     arguments 0BOutput \
                size 0B; shares 0B with arguments.Program hbm requirement 3.98G:    HLO temp 3.98G (99.9% \
                utilization, 0.2% fragmentation (8.00M))  Largest program allocations in hbm:  Size: 2.00G\
                Shape: f32[32,4096,4096]{1,2,0:T(8,128)}Unpadded size: 2.00GXLA label: fusion.1Allocation \
                type: HLO temp==========Size: 1.00G     Shape: s32[8388608,1,4]{2,";
    let report = read_str(text);
    let r = &report.reports[0];
    assert_eq!(r.reserved_bytes, Some(18 << 20));
    assert_eq!(r.parameter_bytes, Some(0));
    assert_eq!(r.fragmentation_bytes, Some(8 << 20));
    assert_eq!(r.allocations.len(), 2);
    assert_eq!(r.allocations[0].label.as_deref(), Some("fusion.1"));
    assert_eq!(r.allocations[0].exact_bytes, Some(2 << 30));
    assert_eq!(
        (r.listed_bytes, r.unlisted_bytes),
        (Some(3 << 30), Some(1 << 30))
    );
}

#[test]
fn several_failures_in_one_log() {
    let all: String = samples()
        .iter()
        .filter(|s| s.2["oom"].is_null())
        .map(|s| s.1.clone() + &"other line\n".repeat(60))
        .collect();
    let report = read_str(&all);
    let kinds: Vec<&str> = report
        .reports
        .iter()
        .filter(|r| r.oom)
        .map(|r| r.kind.as_str())
        .collect();
    let want = samples().iter().filter(|s| s.2["oom"].is_null()).count();
    assert_eq!(kinds.len(), want, "{kinds:?}");
    assert!(report.reports.windows(2).all(|w| w[0].line < w[1].line));
}

#[test]
fn repeats_are_counted() {
    let text = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 14285187448 bytes.\n";
    let report = read_str(&text.repeat(1000));
    assert_eq!(report.reports.len(), 1);
    assert_eq!(report.reports[0].count, 1000);
    let full = samples()
        .into_iter()
        .find(|s| s.0.ends_with("tpu_full_large.txt"))
        .unwrap()
        .1;
    let head = "Ran out of memory in memory space hbm. Used 34.21G of 31.25G hbm. Exceeded hbm capacity by 2.96G.\n";
    let report = read_str(&format!("{head}{full}{head}"));
    assert_eq!((report.reports.len(), report.reports[0].count), (1, 3));
    assert_eq!(report.reports[0].allocations.len(), 2);
}

#[test]
fn other_formats() {
    let one = |text: &str| {
        let report = read_str(text);
        assert_eq!(report.reports.len(), 1, "{text}");
        serde_json::to_value(&report.reports[0]).unwrap()
    };
    let cases = [
        ("Ran out of memory in memory space smem. Used 1.00M of 1.00M smem. Exceeded smem capacity by 1.7K.",
         json!({"kind": "tpu_compile_smem", "scenario": "smem", "over_bytes": 1741, "limit_bytes": 1048576})),
        ("Ran out of memory in memory space vmem. It should not be possible to run out of vmem - please file a bug against XLA.",
         json!({"kind": "tpu_compile_vmem", "scenario": "vmem", "used_bytes": null})),
        ("ValueError: Allocation (size=150) would exceed memory (size=100) :: #allocation7 [shape = 'u8[100]{0}', space=vmem, size = 0x96, tag = 'scoped memory for foo.1'] :: %foo.1",
         json!({"kind": "tpu_single_allocation", "scenario": "scoped_vmem", "space": "vmem", "instruction": "foo.1"})),
        ("INTERNAL:Failed to run pass pipeline. Hlo-Op: result.1:279:1: error: 'memref.alloca' op current allocation offset upper bound (140704 words) exceeds the legitimate user allocatable offset upper bound (131071 words) in memory space 201 when allocating 23440 words.",
         json!({"kind": "tpu_sparsecore_alloca", "space": "tile_spmem", "used_bytes": null})),
        ("E0100: RuntimeBufferAllocationFailure: Error allocating device buffer: Attempting to allocate 8.00M. That was not possible. There are 6.43M free.; (0x0x1_HBM0): while running replica 0",
         json!({"kind": "tpu_runtime_allocation", "scenario": "runtime_full", "code": "E0100", "requested_bytes": 8388608, "free_bytes": 6742344, "space": "hbm"})),
        ("Attempting to allocate 3.00M. That was not possible. There are 6.43M free. The largest contiguous region of free memory is 1.00M due to fragmentation.",
         json!({"scenario": "runtime_fragmentation", "largest_free_block_bytes": 1048576})),
        ("RESOURCE_EXHAUSTED: Attempting to reserve 29.33G at the bottom of memory. That was not",
         json!({"kind": "tpu_program_load", "reservable_bytes": null, "free_bytes": null})),
        ("Executable(jit_X) expected parameter 2482 of size 5242880 (bf16[16,1280,40]{2,1,0:T(8,128)(2,1)}) but got buffer with incompatible size 1638400 (bf16[16,1280,40]{1,2,0:T(8,128)(2,1)})",
         json!({"kind": "tpu_input_mismatch", "oom": false, "scenario": null, "program": "jit_X"})),
        ("Out of memory while trying to allocate 2.24GiB. [executable_name='jit_x'] [tf-allocator-allocation-error='']",
         json!({"kind": "gpu_allocation", "module": "jit_x", "requested_bytes": 2405181686u64})),
        ("Out of memory while trying to allocate 1.95GiB\nwith allocator GPU_0_bfc on device 0. [executable_name='jit_greater']",
         json!({"module": "jit_greater", "requested_bytes": 2093796557u64})),
        ("Failed to allocate request for 4.00GiB (4294967552B) on device ordinal 0",
         json!({"kind": "gpu_allocation", "requested_bytes": 4294967552u64})),
        ("failed to allocate 154.06GiB (165425291480 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY\nfailed to allocate 138.65GiB (148882762332 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY",
         json!({"requested_bytes": 165425291480u64, "count": 2})),
        ("Not enough memory to allocate 1024 on device 0 within provided limit.  limit=512]",
         json!({"requested_bytes": 1024, "limit_bytes": 512})),
        ("Out of memory allocating 40000000000 bytes.",
         json!({"kind": "cpu_allocation", "scenario": "host_memory", "requested_bytes": 40000000000u64})),
        ("Out of host memory while trying to allocate 5.00GiB. Please set the environment variable XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB to allocate larger host memory than the default 64 GB.",
         json!({"kind": "host_oom", "oom": false, "scenario": "host_memory"})),
        ("Ran out of memory in memory space vmem. Estimated 201.33MB exceeds 64.00MB vmem capacity.",
         json!({"kind": "look_alike", "oom": false, "scenario": null})),
        ("OOM when allocating tensor with shape[1024,8201] and type float on /job:localhost/replica:0 by allocator GPU_0_bfc",
         json!({"kind": "tensorflow_op", "oom": false})),
        ("terminate called after throwing an instance of 'std::bad_alloc'", json!({"kind": "host_oom"})),
        ("The byte size of input/output arguments (24696099900024) exceeds the base limit (27028357120). This indicates an error in the calculation!",
         json!({"kind": "warnings", "oom": false})),
        ("Using (GB) 44.6 / 95.74 (46.584500%) on TPU_0(process=0,(0,0,0,0))",
         json!({"kind": "framework_accounting", "oom": false, "used_bytes": null})),
        ("Post Compilation Analysis: Graph input size: 1.548000 GB\nGraph output size: 1.500000 GB\n",
         json!({"kind": "framework_accounting"})),
        ("W bfc_allocator.cc:501] Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.97GiB with freed_by_count=0. The caller indicates that this is not a failure, but",
         json!({"kind": "warnings", "oom": false})),
        ("RESOURCE_EXHAUSTED: TC Hbm usage: 90.00G, SC Hbm usage 1.00G, exceeding available bytes: 95.74G",
         json!({"scenario": "tc_sc_imbalance", "bottleneck": "tensorcore"})),
        ("Total hbm usage >= 12.00G:\n    reserved 1.00G\n    program 11.00G\n",
         json!({"kind": "tpu_usage", "oom": false, "total_bytes": 12884901888u64, "scenario": null})),
    ];
    for (text, want) in cases {
        let got = one(text);
        for (key, value) in want.as_object().unwrap() {
            assert_eq!(&got[key], value, "{key} of {text}");
        }
    }
}

#[test]
fn accounting_keeps_ambiguous_units_as_text() {
    let report = read_str("AllocatorStats\n  Limit: 31.246 GiB\n  Total: 4.5 GB\n");
    let figures = &report.reports[0].accounting;
    assert_eq!(
        (figures[0].name.as_str(), figures[0].bytes),
        ("Limit", Some(33_550_137_033))
    );
    assert_eq!(
        (figures[1].text.as_str(), figures[1].bytes),
        ("4.5 GB", None)
    );
}

#[test]
fn what_only_looks_like_it_is_not_reported() {
    for text in [
        "",
        "\n\n",
        "exit code 1370",
        "we ran out of memory last year; the memory space hbm is full",
        "RESOURCE_EXHAUSTED: quota exceeded for project",
        "Attempting to allocate 5 workers",
        "Allocation (size=5) would be fine",
        "Size: 1.00G\nShape: f32[4]\n",
        "Some donated buffers were not usable: .",
    ] {
        assert_eq!(read_str(text).reports.len(), 0, "{text}");
    }
}

/// The work grows with the text, not with its square: no word repeated makes it crawl.
#[test]
fn repeated_words_do_not_crawl() {
    for word in [
        "Total hbm usage >= 1.00G:",
        "memory space vmem while allocating on stack for %a = ",
        "[SPMD] Involuntary full rematerialization. ",
        "code 137 ",
        "Ran out of memory in memory space hbm. ",
        "Ran out of memory in memory space hbm. Used 1.00G of 1.00G hbm. Size: 1.00G Shape: ",
        "Peak buffers: BufferAssignment stats: Size: 1.00G",
        "Some donated buffers were not usable: f32[1],",
        "OOM when allocating tensor with shape[1] ",
        "Allocator (a) ran out of memory trying to allocate 1.00G\nFree  at 0 of size 9 next 1\n",
        "Executable( expected parameter 1 of size but got buffer with incompatible size ",
        "Attempting to allocate 1.00G. That was not possible.\n",
        "Total memory size: 1.0 GB, ",
        "RESOURCE_EXHAUSTED: ",
    ] {
        assert_linear(128 << 10, |bytes| {
            let text = word.repeat(bytes / word.len());
            work(|| assert!(read_str(&text).reports.len() <= 200, "{word}"))
        });
    }
}

#[test]
fn screens_fit() {
    for (path, text, _) in samples() {
        let report = triage(read_str(&text));
        let document = xpeak::render::documents::triage(&report, None);
        let screen = xpeak::render::render_terminal(&document, 80, Default::default());
        let columns = screen.lines().map(|l| l.chars().count()).max().unwrap_or(0);
        assert!(columns <= 80, "{}: {columns} columns", path.display());
        assert!(
            screen.lines().count() <= 60,
            "{}:\n{screen}",
            path.display()
        );
        let page = xpeak::render::render_markdown(&document);
        assert!(page.ends_with('\n'));
        if std::env::var_os("SHOW").is_some() {
            println!("===== {}\n{screen}", path.display());
        }
    }
}

#[test]
fn advice_is_specific() {
    let steps = |name: &str| {
        let sample = samples().into_iter().find(|s| s.0.ends_with(name)).unwrap();
        let report = read_str(&sample.1);
        let all = next_steps(&report.reports[0])
            .into_iter()
            .map(|s| format!("{}|{}\n", s.title, s.detail));
        all.collect::<String>()
    };
    let text = steps("tpu_full_large.txt");
    assert!(
        text.contains("/home/u/model/net.py:212") && text.contains("20.00 GiB"),
        "{text}"
    );
    let text = steps("tpu_e1000_short.txt");
    assert!(
        text.contains("\"xla_dump_hlo_as_proto\": True") && text.contains("--with DIR"),
        "{text}"
    );
    let text = steps("tpu_full_prefixed_padding.txt");
    assert!(
        text.contains("23.25 GiB of its 24.00 GiB are tile padding"),
        "{text}"
    );
    let text = steps("tpu_e1001_scoped_vmem.txt");
    assert!(
        text.contains("flash_attention.3") && text.contains("37 MiB"),
        "{text}"
    );
    let text = steps("gpu_bfc.txt");
    assert!(
        text.starts_with("Memory is full by 18.23 GiB") && text.contains("cuda_malloc_async"),
        "{text}"
    );
}

#[test]
fn heads_of_texts_are_told_apart() {
    for (path, text, want) in samples() {
        let oom = want["kind"] != "none" && want["oom"].is_null();
        assert_eq!(looks_like_oom(text.as_bytes()), oom, "{}", path.display());
        let late = "step 7 loss 2.1\n".repeat(80_000) + &text;
        assert!(!looks_like_oom(late.as_bytes()), "{}", path.display());
    }
    assert!(!looks_like_oom(b""));
    assert!(!looks_like_oom(&[0xff; 4096]));
}

#[test]
fn limits_of_compile_time_failures() {
    let of = |name: &str| {
        let sample = samples().into_iter().find(|s| s.0.ends_with(name)).unwrap();
        limit_in(&sample.1)
    };
    // 15.75G as printed.
    assert_eq!(of("tpu_full_aggregate.txt"), Some(16_911_433_728));
    for other in [
        "tpu_fast_exit.txt",
        "tpu_e1001_scoped_vmem.txt",
        "gpu_bfc.txt",
        "tpu_runtime_fragmented.txt",
        "no_oom.txt",
    ] {
        assert_eq!(of(other), None, "{other}");
    }
}
