//! Asking a compiler, with a small one made for it: whatever it does, the answer is a typed one and no
//! process is left.
#![cfg(all(feature = "compiler", target_os = "linux"))]
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use xpeak::compiler::{
    compile, compile_all, find_compiler, unoptimised, Cache, CompileError, Compiled, Request,
    Settings, Verdict,
};

/// The fake compiler, built once.
fn fake() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fake_compiler");
        std::fs::create_dir_all(&folder).unwrap();
        let library = folder.join(format!("libtpu-{}.so", std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_compiler/plugin.rs");
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let built = Command::new(rustc)
            .args([
                "--crate-type",
                "cdylib",
                "--edition",
                "2021",
                "-A",
                "warnings",
                "-o",
            ])
            .args([&library, &source])
            .status();
        assert!(built.unwrap().success());
        library
    })
}

fn settings(cancel: &AtomicBool) -> Settings<'_> {
    let mut settings = Settings::new(find_compiler(Some(fake())).unwrap(), cancel);
    settings.program = PathBuf::from(env!("CARGO_BIN_EXE_xpeak"));
    settings.time = Duration::from_secs(60);
    settings
}

fn request(topology: &str) -> Request {
    // A module with a name and nothing else.
    let source = unoptimised(b"\x0a\x01m", None, None, (1, 4)).unwrap();
    Request::new(source.module, source.name, topology, source.build)
}

fn ask(topology: &str) -> Result<Compiled, CompileError> {
    let cancel = AtomicBool::new(false);
    compile(&request(topology), &settings(&cancel))
}

#[test]
fn a_program_that_fits_ends_before_code_generation() {
    let started = Instant::now();
    let got = ask("fits").unwrap();
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(got.verdict, Verdict::Fits);
    assert_eq!(got.device_kind, "TPU v6 lite");
    assert_eq!(got.build.as_deref(), Some("42"));
    assert_eq!(got.hlo.len(), 17);
    assert!(got.seconds > 0.04 && !got.cached);
}

#[test]
fn running_out_of_memory_is_an_answer() {
    let got = ask("memory").unwrap();
    assert!(matches!(got.verdict, Verdict::OutOfMemory { message } if message.contains("0.5G")));
}

#[test]
fn each_bad_end_is_its_own() {
    let crash = ask("crash").unwrap_err();
    let text = crash.to_string();
    assert!(
        text.contains("signal 6") && text.contains("badly wrong"),
        "{text}"
    );
    assert!(
        matches!(ask("leave").unwrap_err(), CompileError::Crashed { how, .. } if how == "exit code 7")
    );
    assert!(matches!(
        ask("flag").unwrap_err(),
        CompileError::Refused { flag: true, .. }
    ));
    assert!(matches!(
        ask("refuse").unwrap_err(),
        CompileError::Refused { flag: false, .. }
    ));
    assert!(matches!(
        ask("unknown:1").unwrap_err(),
        CompileError::Topology { .. }
    ));
    assert!(matches!(
        ask("nothing").unwrap_err(),
        CompileError::NoDump { .. }
    ));
    let cancel = AtomicBool::new(false);
    let mut wide = request("fits");
    wide.build.partitions = 8;
    let e = compile(&wide, &settings(&cancel)).unwrap_err();
    assert!(matches!(
        e,
        CompileError::DeviceCount {
            devices: 4,
            wanted: 8,
            ..
        }
    ));
}

#[test]
fn limits_and_cancelling_end_it() {
    let cancel = AtomicBool::new(false);
    let mut limited = settings(&cancel);
    limited.time = Duration::from_millis(300);
    let e = compile(&request("hang"), &limited).unwrap_err();
    assert!(matches!(e, CompileError::TimedOut { .. }));
    let mut limited = settings(&cancel);
    limited.memory_bytes = 1;
    let e = compile(&request("hang"), &limited).unwrap_err();
    assert!(matches!(e, CompileError::HostMemory { limit_bytes: 1, .. }));
    let stop = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            cancel.store(true, Ordering::Relaxed);
        });
        compile_all(
            &[request("hang"), request("hang")],
            &settings(&cancel),
            &|_, _| {},
        )
    });
    assert!(stop
        .iter()
        .all(|a| matches!(a, Err(CompileError::Interrupted))));
}

#[test]
fn answers_are_kept_and_belong_to_their_question() {
    let dir = tempfile::tempdir().unwrap();
    let cancel = AtomicBool::new(false);
    let mut settings = settings(&cancel);
    settings.cache = Some(Cache::at(dir.path()));
    let first = compile(&request("fits"), &settings).unwrap();
    let again = compile(&request("fits"), &settings).unwrap();
    assert!(!first.cached && again.cached);
    assert_eq!((first.hlo, first.seconds), (again.hlo, again.seconds));
    let other = compile(&request("memory"), &settings).unwrap();
    assert!(!other.cached);
    let mut flagged = request("fits");
    flagged.flags = vec![("x".to_owned(), xpeak::compiler::FlagValue::Int(1))];
    assert!(!compile(&flagged, &settings).unwrap().cached);
    // A failure is asked again.
    assert!(compile(&request("refuse"), &settings).is_err());
    assert!(compile(&request("refuse"), &settings).is_err());
}

#[test]
fn libraries_that_are_no_compiler_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("libtpu.so");
    std::fs::write(&text, "no library").unwrap();
    let cancel = AtomicBool::new(false);
    let mut settings = settings(&cancel);
    settings.library = find_compiler(Some(&text)).unwrap();
    let e = compile(&request("fits"), &settings).unwrap_err();
    assert!(matches!(&e, CompileError::NotACompiler { .. }), "{e}");
    assert!(e.to_string().contains("libtpu.so"), "{e}");
}

/// A command of the program with the fake compiler.
fn xpeak(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xpeak"));
    command
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("XPEAK_COMPILER", fake())
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

#[test]
fn exit_codes_and_hints() {
    let dump = "samples/lm_v6e";
    for (args, code, says) in [
        (&["compile", dump][..], 2, "--topology"),
        (
            &["compile", dump, "--topology", "fits", "--flag", "x"],
            2,
            "NAME=VALUE|for example",
        ),
        (
            &["compile", dump, "--topology", "unknown:1"],
            2,
            "topologies look like",
        ),
        (
            &["compile", dump, "--topology", "crash:", "--no-cache"],
            3,
            "left no buffer",
        ),
        (
            &["compile", "samples/mlp_h100", "--topology", "fits:"],
            3,
            "GPU",
        ),
        (
            &["compile", dump, "--topology", "v6e", "--timeout", "0"],
            2,
            "timeout",
        ),
    ] {
        let out = xpeak(args).output().unwrap();
        let err = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {err}");
        assert!(says.split('|').any(|s| err.contains(s)), "{args:?}: {err}");
        assert!(out.stdout.is_empty(), "{args:?}");
    }
    let mut none = xpeak(&["compile", dump, "--topology", "v6e:2x2"]);
    let out = none
        .env("XPEAK_COMPILER", "/nowhere/libtpu.so")
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(3));
    assert!(
        err.contains("/nowhere/libtpu.so") && err.contains("pip install libtpu"),
        "{err}"
    );
    let mut old = xpeak(&["compile", dump, "--topology", "v6e:2x2", "--no-cache"]);
    let out = old.env("FAKE_OLD", "1").output().unwrap();
    let err = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(3));
    assert!(err.contains("PJRT 0.30"), "{err}");
}

#[test]
fn no_process_outlives_its_parent() {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    for signal in ["KILL", "INT", "TERM"] {
        let _ = std::fs::remove_file(&pids);
        let mut parent = xpeak(&[
            "compile",
            "samples/lm_v6e",
            "--topology",
            "hang:",
            "--no-cache",
        ]);
        // The name is given to the compiler as it is; a colon keeps a shape from being added.
        parent.env("FAKE_PIDS", &pids).env("TMPDIR", dir.path());
        let mut parent = parent.spawn().unwrap();
        let child = wait_for(|| {
            std::fs::read_to_string(&pids)
                .ok()?
                .trim()
                .parse::<i32>()
                .ok()
        });
        let kill = ["-s", signal, &parent.id().to_string()].map(str::to_owned);
        assert!(Command::new("kill").args(kill).status().unwrap().success());
        let status = parent.wait().unwrap();
        if signal != "KILL" {
            assert_eq!(status.code(), Some(130));
            let left = std::fs::read_dir(dir.path()).unwrap().flatten();
            let left = left.filter(|e| e.file_name().to_string_lossy().contains("xpeak-compile"));
            assert_eq!(left.count(), 0, "folders");
        }
        wait_for(|| (!is_alive(child)).then_some(()));
    }
}

fn wait_for<T>(mut what: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = what() {
            return found;
        }
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "waited in vain"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A process that has ended and is waited for by nobody counts as gone.
fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|s| s.chars().next());
    state.is_some_and(|s| s != 'Z' && s != 'X')
}
