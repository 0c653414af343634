//! Every sample text gives the values that stand beside it, whatever wraps it.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{json, Value};
use xpeak::oom::{triage_reader, triage_str, TriageReport};

fn samples() -> Vec<(PathBuf, String, Value)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/oom_text");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "txt"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 20);
    let read = |p: &Path| std::fs::read_to_string(p).unwrap();
    paths
        .into_iter()
        .map(|p| {
            let want = serde_json::from_str(&read(&p.with_extension("json"))).unwrap();
            (p.clone(), read(&p), want)
        })
        .collect()
}

/// What the report says under a key of the sample's JSON.
fn found(key: &str, report: &Value) -> Value {
    let list = report["allocations"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let largest = list.iter().max_by_key(|a| a["size_bytes"].as_u64());
    let of_largest = |field: &str| largest.map_or(Value::Null, |a| a[field].clone());
    match key {
        "allocations" => json!(list.len()),
        "largest_bytes" => of_largest("size_bytes"),
        "largest_shape" => of_largest("shape"),
        "largest_padding_bytes" => of_largest("padding_bytes"),
        "groups" => {
            let groups = report["groups"].as_array().cloned().unwrap_or_default();
            groups
                .iter()
                .map(|g| json!({"count": g["count"], "bytes": g["bytes"]}))
                .collect()
        }
        "warnings" => {
            let warnings = report["warnings"].as_array().cloned().unwrap_or_default();
            warnings.iter().map(|w| w["kind"].clone()).collect()
        }
        _ => report[key].clone(),
    }
}

/// The first difference between what is wanted and what was read.
fn difference(report: &TriageReport, want: &Value) -> Option<String> {
    if want["kind"] == "none" {
        return (!report.reports.is_empty()).then(|| format!("invented {:?}", report.reports));
    }
    let all = serde_json::to_value(report).unwrap();
    if want["oom"].is_null() && all["reports"][0]["oom"] != true {
        return Some(format!("no failure found: {all}"));
    }
    want.as_object().unwrap().iter().find_map(|(key, value)| {
        let got = found(key, &all["reports"][0]);
        (got != *value).then(|| format!("{key}: {got} instead of {value}"))
    })
}

#[test]
fn every_sample_gives_its_values() {
    for (path, text, want) in samples() {
        let report = triage_str(&text);
        assert_eq!(difference(&report, &want), None, "{}", path.display());
        let distinct = report.reports.iter().filter(|r| r.oom).count();
        assert!(distinct <= 1, "{}: {distinct} failures", path.display());
        assert_eq!(triage_reader(text.as_bytes()).unwrap(), report);
    }
}

#[test]
fn texts_of_real_compilers() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus/programs");
    let Ok(programs) = std::fs::read_dir(dir) else {
        return;
    };
    let mut seen = 0;
    for program in programs {
        let Ok(text) = std::fs::read_to_string(program.unwrap().path().join("oom.txt")) else {
            continue;
        };
        let report = triage_str(&text);
        assert_eq!(report.reports.len(), 1, "{text}");
        let r = &report.reports[0];
        assert!(
            r.oom && r.used_bytes > r.limit_bytes && r.scenario.is_some(),
            "{text}"
        );
        assert!(!r.advice.is_empty() && r.advice.len() <= 7);
        seen += 1;
    }
    assert!(seen > 0);
}

/// Each line as `f` writes it.
fn each_line(text: &str, f: impl Fn(usize, &str) -> String) -> String {
    text.lines()
        .enumerate()
        .map(|(n, l)| f(n, l) + "\n")
        .collect()
}

/// Hard-wraps lines at a column, in the middle of words.
fn hard_wrap(text: &str, column: usize) -> String {
    each_line(text, |_, line| {
        let chars: Vec<char> = line.chars().collect();
        let pieces: Vec<String> = chars.chunks(column).map(|c| c.iter().collect()).collect();
        pieces.join("\n")
    })
}

/// Ways in which logs and pastes wrap text; what needs whole lines is not wrapped hard.
fn wrapped(way: usize, text: &str) -> String {
    let by_line = text.contains("bfc_allocator") || text.contains("UserWarning");
    let prefixed = text.contains("] ");
    match way {
        0 => text.replace('\n', "\r\n"),
        1 => each_line(text, |_, l| format!("> {l}")),
        2 => each_line(text, |n, l| {
            format!(
                "I0320 03:59:{:02}.777634     888 train.cc:2167] {l}",
                n % 60
            )
        }),
        3 => each_line(text, |_, l| {
            format!("\u{1b}[36m(Worker pid=4, ip=10.0.0.1)\u{1b}[0m {l}")
        }),
        4 => each_line(text, |_, l| {
            format!("(EngineCore_DP0 pid=10) ERROR 06-03 07:41:11 [core.py:1184] {l}")
        }),
        5 => each_line(text, |_, l| format!("2024-05-06T07:08:09.123456Z {l}")),
        6 => each_line(text, |_, l| format!("worker-0  | {l}")),
        7 if !by_line => hard_wrap(text, 200),
        8 if !by_line && !prefixed => hard_wrap(text, 61),
        9 => text
            .replace(". Size:", "\\. Size:")
            .replace("Used ", "**Used** "),
        10 if !by_line => each_line(text, |_, l| l.trim().to_string()),
        11 => format!(
            "{}{text}{}",
            "step 7 loss 2.1\n".repeat(3000),
            "done 1\n".repeat(500)
        ),
        12 => format!("{text}\n{text}"),
        13 => each_line(text, |_, l| format!("    {l}   ")),
        14 => each_line(text, |_, l| {
            format!("2025-08-02 23:46:25.965629: E external/xla/a.cc:34] {l}")
        }),
        15 => text
            .replace("\"", "&quot;")
            .replace("<no-hlo", "&lt;no-hlo"),
        _ => text.to_string(),
    }
}

#[test]
fn each_wrapper_keeps_the_values() {
    for (path, text, want) in samples() {
        for way in 0..16 {
            let report = triage_str(&wrapped(way, &text));
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
    let report = triage_str(text);
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
    let report = triage_str(&all);
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
    let report = triage_str(&text.repeat(1000));
    assert_eq!(report.reports.len(), 1);
    assert_eq!(report.reports[0].count, 1000);
    let full = samples()
        .into_iter()
        .find(|s| s.0.ends_with("tpu_full_large.txt"))
        .unwrap()
        .1;
    let head = "Ran out of memory in memory space hbm. Used 34.21G of 31.25G hbm. Exceeded hbm capacity by 2.96G.\n";
    let report = triage_str(&format!("{head}{full}{head}"));
    assert_eq!((report.reports.len(), report.reports[0].count), (1, 3));
    assert_eq!(report.reports[0].allocations.len(), 2);
}

#[test]
fn other_formats() {
    let one = |text: &str| {
        let report = triage_str(text);
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
    let report = triage_str("AllocatorStats\n  Limit: 31.246 GiB\n  Total: 4.5 GB\n");
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
        assert_eq!(triage_str(text).reports.len(), 0, "{text}");
    }
}

/// The work grows with the text, not with its square: no word repeated makes it crawl.
#[test]
fn repeated_words_do_not_crawl() {
    let start = std::time::Instant::now();
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
        let text = word.repeat((2 << 20) / word.len());
        assert!(triage_str(&text).reports.len() <= 200, "{word}");
    }
    let seconds = start.elapsed().as_secs();
    assert!(seconds < 120, "{seconds} s");
}

#[test]
fn screens_fit() {
    for (path, text, _) in samples() {
        let report = triage_str(&text);
        let screen = xpeak::oom::text::render(&report);
        let columns = screen.lines().map(|l| l.chars().count()).max().unwrap_or(0);
        assert!(columns <= 80, "{}: {columns} columns", path.display());
        assert!(
            screen.lines().count() <= 60,
            "{}:\n{screen}",
            path.display()
        );
        let page = xpeak::oom::markdown::render(&report);
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
        let report = triage_str(&sample.1);
        let all = report.reports[0]
            .advice
            .iter()
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

fn fragment() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "Ran out of memory in memory space ",
        "hbm. ",
        "Used ",
        "9.99G ",
        "of ",
        "Exceeded ",
        "RESOURCE_EXHAUSTED: ",
        "Allocation (size=",
        "18446744073709551616",
        ") would exceed memory (size=",
        "Size: ",
        "1. ",
        "Shape: ",
        "f32[",
        "4,",
        "]{",
        "1,0:T(8,128)",
        "}",
        "\n",
        "Operator: op_name=\"",
        "Attempting to allocate ",
        ". That was not possible",
        "BufferAssignment stats:",
        "Peak buffers:",
        "Allocator (",
        "ran out of memory trying to allocate ",
        "Chunks of size ",
        "InUse at 0 of size 9 next",
        "Free  at 0 of size 99999999999999999999 next",
        "donated buffers were not usable:",
        "ShapedArray(",
        "XLA::TPU program HBM usage: ",
        "Total hbm usage >= ",
        "E1000:",
        "\u{1b}[",
        "**",
        "> ",
        "\\",
        "\0",
        "é",
        "while allocating on stack for %",
        "Executable(",
        "but got buffer with incompatible size ",
        "[repeated 9x across cluster]",
        "(W pid=1) ",
        "I0101 ",
        "a.cc:1] ",
        "[36m",
        "&lt;",
    ]);
    let junk = "\\PC{0,12}";
    prop::collection::vec(
        prop_oneof![4 => words.prop_map(String::from), 1 => junk],
        0..60,
    )
    .prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn any_text_is_survived(text in fragment()) {
        let report = triage_str(&text);
        xpeak::oom::text::render(&report);
        xpeak::oom::markdown::render(&report);
        prop_assert!(serde_json::to_string(&report).is_ok());
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(triage_reader(bytes.as_slice()).unwrap().reports.is_empty());
    }

    #[test]
    fn words_of_other_logs_invent_nothing(words in prop::collection::vec("[a-z]{1,9}|[0-9.]{1,6}[GMK]?|memory|out|of|ran|hbm|exceeded|Used|Error:", 0..200)) {
        prop_assert!(triage_str(&words.join(" ")).reports.is_empty());
    }

    #[test]
    fn cut_anywhere(which in 0usize..20, part in 0.0f64..1.0) {
        let all = samples();
        let (_, text, want) = &all[which % all.len()];
        let mut cut = (text.len() as f64 * part) as usize;
        while !text.is_char_boundary(cut) { cut -= 1; }
        let report = triage_str(&text[..cut]);
        if want["oom"] == false {
            prop_assert!(!report.has_oom());
        }
        // Whatever is left of a failure's numbers, they are not others'.
        for r in report.reports.iter().filter(|r| r.oom) {
            let limit = want["limit_bytes"].as_u64();
            // A bare integer cut at the very end of the text cannot be told from a whole one.
            let bare = want["kind"] == "gpu_bfc";
            prop_assert!(bare || r.limit_bytes.zip(limit).is_none_or(|(a, b)| a == b));
            let used = want["used_bytes"].as_u64();
            prop_assert!(r.used_bytes.zip(used).is_none_or(|(a, b)| a == b));
            let asked = want["requested_bytes"].as_u64();
            prop_assert!(bare || r.requested_bytes.zip(asked).is_none_or(|(a, b)| a == b));
        }
    }

    #[test]
    fn wrappers_on_wrappers(which in 0usize..20, ways in prop::collection::vec(0usize..7, 0..3), last in 7usize..16) {
        let all = samples();
        let (path, text, want) = &all[which % all.len()];
        let mut text = wrapped(if last == 12 { 11 } else { last }, text);
        for way in ways {
            text = wrapped(way, &text);
        }
        prop_assert_eq!(difference(&triage_str(&text), want), None, "{}: {}", path.display(), text);
    }
}
