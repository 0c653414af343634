//! Programs compiled, one or several at once: from the cache, or by a child each.
//!
//! In: [`Request`]s and [`Settings`]. Out: [`Compiled`], the compiler's own answer.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use super::cache::{key, Cache, Entry};
use super::error::CompileError;
use super::find::CompilerLibrary;
use super::job::{file, read_json, write_json, Job, TopologyAnswer, Verdict};
use super::options::{compile_options, BuildOptions, FlagValue};
use super::process::{available_bytes, run, Limits};

/// A compile is taken to need this much memory when several are to run at once.
const USUAL_BYTES: u64 = 3 << 30;
/// Changes when what is kept in a cache, or how a program is compiled, changes.
const FORM: &[u8] = b"1";

/// A program to compile.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Request {
    /// The unoptimised module, a serialised HloModuleProto.
    pub module: Vec<u8>,
    /// Its name, as the dump's files have it.
    pub name: String,
    /// Devices, `v6e:2x2`.
    pub topology: String,
    /// How it is partitioned.
    pub build: BuildOptions,
    /// Flags and their values.
    pub flags: Vec<(String, FlagValue)>,
}

impl Request {
    /// A program for a topology, with no flag set.
    pub fn new(
        module: Vec<u8>,
        name: impl Into<String>,
        topology: impl Into<String>,
        build: BuildOptions,
    ) -> Request {
        Request {
            module,
            name: name.into(),
            topology: topology.into(),
            build,
            flags: Vec::new(),
        }
    }

    /// The same with these flags set.
    pub fn with_flags(mut self, flags: Vec<(String, FlagValue)>) -> Request {
        self.flags = flags;
        self
    }
}

/// With what and within which limits.
#[derive(Debug)]
#[non_exhaustive]
pub struct Settings<'c> {
    /// The compiler.
    pub library: CompilerLibrary,
    /// Answers given before.
    pub cache: Option<Cache>,
    /// Until the buffer assignment of one program. Default ten minutes.
    pub time: Duration,
    /// Of this machine, for one compile. Default nine tenths of what is free.
    pub memory_bytes: u64,
    /// Compiles at once. Default by processors and memory.
    pub at_once: usize,
    /// The program that [`child_main`](super::child_main) is the first thing of. Default this one.
    pub program: PathBuf,
    /// Keeps each dump whole in this folder.
    pub keep_dump: Option<PathBuf>,
    /// Ends all compiles when it is set.
    pub cancel: &'c AtomicBool,
}

impl<'c> Settings<'c> {
    /// The defaults for a compiler, without a cache.
    pub fn new(library: CompilerLibrary, cancel: &'c AtomicBool) -> Settings<'c> {
        let free = available_bytes().unwrap_or(u64::MAX);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let by_memory = usize::try_from(free / USUAL_BYTES).unwrap_or(usize::MAX);
        Settings {
            library,
            cache: None,
            time: Duration::from_secs(600),
            memory_bytes: free / 10 * 9,
            at_once: processors.min(by_memory).max(1),
            program: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("xpeak")),
            keep_dump: None,
            cancel,
        }
    }
}

/// The compiler's answer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Compiled {
    /// The optimised module with its buffer assignment: a serialised HloProto.
    pub hlo: Vec<u8>,
    /// Its file's name in the dump.
    pub file_name: String,
    /// Whether it fits.
    pub verdict: Verdict,
    /// What the compile took until the assignment was there (when it was made, if it was cached).
    pub seconds: f64,
    /// Whether it was made before.
    pub cached: bool,
    /// Name of the devices, `TPU v6 lite`.
    pub device_kind: String,
    /// Topology asked for.
    pub topology: String,
    /// How the compiler calls itself: package and version where known, else its own words.
    pub compiler: String,
    /// The compiler's build, `1014260217`: dumps carry it in their names as `cl_1014260217`.
    pub build: Option<String>,
}

/// Compiles one program.
///
/// # Errors
/// Everything but running out of device memory, which is an answer.
pub fn compile(request: &Request, settings: &Settings<'_>) -> Result<Compiled, CompileError> {
    let options = compile_options(&request.build, &request.flags);
    let library = identity(&settings.library.path);
    let key = key(&[
        FORM,
        &library,
        request.topology.as_bytes(),
        &options,
        &request.module,
    ]);
    let cache = settings.cache.as_ref();
    if let Some((entry, hlo)) = cache
        .filter(|_| settings.keep_dump.is_none())
        .and_then(|c| c.get(&key))
    {
        return Ok(compiled(request, settings, entry, hlo, true));
    }
    let folder = Folder::new()?;
    let written = fill(&folder.0, request, settings);
    written.map_err(|source| CompileError::Files {
        what: "write into",
        path: folder.0.clone(),
        source,
    })?;
    let limits = Limits {
        time: settings.time,
        memory_bytes: settings.memory_bytes,
        cancel: settings.cancel,
    };
    let finished = run(&settings.program, &folder.0, &request.name, &limits);
    if let Some(to) = &settings.keep_dump {
        keep(&folder.0, to).map_err(|source| CompileError::Files {
            what: "write into",
            path: to.clone(),
            source,
        })?;
    }
    let finished = finished?;
    let known: Option<TopologyAnswer> = read_json(&folder.0.join(file::TOPOLOGY));
    let known = known.unwrap_or(TopologyAnswer {
        device_kind: String::new(),
        platform_version: String::new(),
        interface: (0, 0),
    });
    let entry = Entry {
        verdict: finished.verdict,
        file_name: name_of(&finished.assigned),
        seconds: finished.took.as_secs_f64(),
        device_kind: known.device_kind,
        platform_version: known.platform_version,
    };
    if let Some(cache) = cache {
        cache.put(&key, &entry, &finished.bytes);
    }
    Ok(compiled(request, settings, entry, finished.bytes, false))
}

/// Compiles programs, several at once; answers in the order of the requests. `done` is told of each
/// as it comes.
pub fn compile_all(
    requests: &[Request],
    settings: &Settings<'_>,
    done: &(dyn Fn(usize, &Result<Compiled, CompileError>) + Sync),
) -> Vec<Result<Compiled, CompileError>> {
    let next = AtomicUsize::new(0);
    let answers: Vec<Mutex<Option<Result<Compiled, CompileError>>>> =
        requests.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..settings.at_once.clamp(1, requests.len().max(1)) {
            scope.spawn(|| loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let (Some(request), Some(place)) = (requests.get(at), answers.get(at)) else {
                    return;
                };
                let answer = match settings.cancel.load(Ordering::Relaxed) {
                    true => Err(CompileError::Interrupted),
                    false => compile(request, settings),
                };
                done(at, &answer);
                if let Ok(mut place) = place.lock() {
                    *place = Some(answer);
                }
            });
        }
    });
    let answers = answers.into_iter();
    answers
        .map(|a| {
            let answer = a.into_inner().unwrap_or(None);
            answer.unwrap_or(Err(CompileError::Interrupted))
        })
        .collect()
}

fn compiled(
    request: &Request,
    settings: &Settings<'_>,
    entry: Entry,
    hlo: Vec<u8>,
    cached: bool,
) -> Compiled {
    let version = &settings.library.version;
    let own = entry.platform_version.lines().next().unwrap_or_default();
    Compiled {
        hlo,
        file_name: entry.file_name,
        verdict: entry.verdict,
        seconds: entry.seconds,
        cached,
        device_kind: entry.device_kind,
        topology: request.topology.clone(),
        compiler: version.clone().unwrap_or_else(|| own.to_owned()),
        build: build_in(&entry.platform_version, "cl/").map(str::to_owned),
    }
}

/// The number after `mark`: of a compiler's own words (`cl/`), of a dump's file name (`cl_`).
pub(crate) fn build_in<'t>(text: &'t str, mark: &str) -> Option<&'t str> {
    let (_, after) = text.split_once(mark)?;
    let end = after.find(|c: char| !c.is_ascii_digit());
    let number = &after[..end.unwrap_or(after.len())];
    (!number.is_empty()).then_some(number)
}

fn fill(folder: &Path, request: &Request, settings: &Settings<'_>) -> std::io::Result<()> {
    let dump = folder.join(file::DUMP);
    std::fs::create_dir(&dump)?;
    let mut flags = request.flags.clone();
    let to = dump.to_string_lossy().into_owned();
    flags.push(("xla_dump_to".to_owned(), FlagValue::Text(to)));
    flags.push(("xla_dump_hlo_as_proto".to_owned(), FlagValue::Bool(true)));
    std::fs::write(folder.join(file::MODULE), &request.module)?;
    let options = compile_options(&request.build, &flags);
    std::fs::write(folder.join(file::OPTIONS), options)?;
    let library = &settings.library.path;
    let job = Job {
        library: library.canonicalize().unwrap_or_else(|_| library.clone()),
        topology: request.topology.clone(),
        devices: (request.build.replicas as usize)
            .saturating_mul(request.build.partitions as usize),
    };
    write_json(&folder.join(file::JOB), &job)
}

/// A job's folder, gone with its owner.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder, CompileError> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let base = std::env::temp_dir();
        sweep(&base);
        let at = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("{FOLDER}{}-{at}", std::process::id()));
        let make = || {
            let mut builder = std::fs::DirBuilder::new();
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(&path)
        };
        make().map_err(|source| CompileError::Files {
            what: "make",
            path: path.clone(),
            source,
        })?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const FOLDER: &str = "xpeak-compile-";

/// Removes the folders of processes that were killed.
fn sweep(base: &Path) {
    let Ok(entries) = std::fs::read_dir(base) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some((pid, _)) = name.strip_prefix(FOLDER).and_then(|r| r.split_once('-')) else {
            continue;
        };
        let pid = pid.parse().ok().and_then(rustix::process::Pid::from_raw);
        let gone = |p| rustix::process::test_kill_process(p) == Err(rustix::io::Errno::SRCH);
        if pid.is_some_and(gone) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Copies a job's dump, log and options out.
fn keep(folder: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    let copy = |from: PathBuf| match from.file_name() {
        Some(name) if from.is_file() => std::fs::copy(&from, to.join(name)).map(|_| ()),
        _ => Ok(()),
    };
    for entry in std::fs::read_dir(folder.join(file::DUMP))? {
        copy(entry?.path())?;
    }
    let log = folder.join(file::LOG);
    match log.is_file() {
        true => std::fs::copy(log, to.join("compiler.log")).map(|_| ()),
        false => Ok(()),
    }
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// What tells one compiler from another without reading half a gigabyte.
fn identity(library: &Path) -> Vec<u8> {
    let path = library
        .canonicalize()
        .unwrap_or_else(|_| library.to_path_buf());
    let meta = std::fs::metadata(&path).ok();
    let modified = meta.as_ref().and_then(|m| m.modified().ok());
    let since = modified.and_then(|t| t.duration_since(SystemTime::UNIX_EPOCH).ok());
    format!(
        "{} {} {}",
        path.display(),
        meta.map_or(0, |m| m.len()),
        since.map_or(0, |s| s.as_nanos())
    )
    .into_bytes()
}
