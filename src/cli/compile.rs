//! `xpeak compile`.

use std::io::{IsTerminal, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use super::args::{size, CompileArgs, CompilerArgs};
use super::{output, sink};
use crate::compiler::{
    compile_all, find_compiler, Cache, CompileError, CompileReport, CompileResult, Compiled,
    FlagSetting, FlagValue, Prepared, Request, Settings, Totals,
};
use crate::error::{Error, Result};
use crate::render::documents;
use crate::report::{load, Detail, Loaded, LoadedModule, Options};
use crate::source::Sources;

/// Exit code of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// A flag as `--flag` takes it.
pub(crate) fn flag(text: &str) -> Result<(String, FlagValue)> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let name = name.trim().trim_start_matches('-');
    if name.is_empty() || value.trim().is_empty() {
        return Err(Error::usage(
            format!("--flag {text}: not a flag and its value"),
            "for example --flag xla_tpu_rwb_fusion=false",
        ));
    }
    Ok((name.to_owned(), FlagValue::parse(value.trim())))
}

pub(crate) fn run(args: CompileArgs) -> Result<u8> {
    let flags: Vec<_> = args.flag.iter().map(|f| flag(f)).collect::<Result<_>>()?;
    let mut options = args.input.options()?;
    options.detail = Detail::FirstModule;
    let sources = Sources::open(&args.input.paths)?;
    let loaded = load(&sources, &options)?;
    sink::warn(&loaded.diagnostics, args.answer.quiet);
    let module = module(&loaded)?;
    let prepared = Prepared::new(module)?;
    let topology = prepared.topology(args.topology.as_deref())?;
    let cancel = on_interrupt()?;
    let mut settings = args.compiler.settings(&cancel)?;
    settings.keep_dump = args.keep_dump.clone();
    let requests = [prepared.request(&topology, &flags)];
    let compiled = match ask(&requests, &settings, args.answer.quiet, |_| {
        topology.clone()
    })
    .pop()
    {
        Some(Err(CompileError::Interrupted)) | None => return Ok(interrupted()),
        Some(answer) => answer?,
    };
    let set = args.flag.iter().filter_map(|f| f.split_once('='));
    let set = set.map(|(n, v)| FlagSetting::new(n, v)).collect();
    let report = report(module, &prepared, &options, &compiled, set)?;
    output::answer(
        &args.answer,
        || output::json(&report),
        || documents::compile(&report),
        || documents::compile_figures(&report),
    )?;
    Ok(0)
}

/// The module with the largest peak.
pub(crate) fn module<'l, 's>(loaded: &'l Loaded<'s>) -> Result<&'l LoadedModule<'s>> {
    let none = || Error::missing("no module here", "");
    loaded.modules.first().ok_or_else(none)
}

impl CompilerArgs {
    /// The library's settings.
    pub(crate) fn settings<'c>(&self, cancel: &'c AtomicBool) -> Result<Settings<'c>> {
        let library = find_compiler(self.compiler.as_deref())?;
        let mut settings = Settings::new(library, cancel);
        settings.cache = Cache::of_user().filter(|_| !self.no_cache);
        settings.time = Duration::from_secs(self.timeout);
        if let Some(text) = &self.memory {
            settings.memory_bytes = size("--memory", text)?;
        }
        if let Some(jobs) = self.jobs {
            settings.at_once = jobs.into();
        }
        Ok(settings)
    }
}

/// A flag that Ctrl-C sets; a second one ends the program at once.
pub(crate) fn on_interrupt() -> Result<Arc<AtomicBool>> {
    let cancel = Arc::new(AtomicBool::new(false));
    for signal in signal_hook::consts::TERM_SIGNALS {
        let twice = || {
            let code = i32::from(INTERRUPTED);
            signal_hook::flag::register_conditional_shutdown(*signal, code, cancel.clone())?;
            signal_hook::flag::register(*signal, cancel.clone())
        };
        twice().map_err(|e| Error::missing(format!("no signals can be caught: {e}"), ""))?;
    }
    Ok(cancel)
}

/// Says so, and with which code to end.
pub(crate) fn interrupted() -> u8 {
    sink::complain("interrupted; no compiler is left running");
    INTERRUPTED
}

/// Compiles, with progress on a terminal. `what` names a request.
pub(crate) fn ask(
    requests: &[Request],
    settings: &Settings<'_>,
    quiet: bool,
    what: impl Fn(usize) -> String + Sync,
) -> Vec<Result<Compiled, CompileError>> {
    let shown = !quiet && std::io::stderr().is_terminal();
    let done = AtomicBool::new(false);
    let count = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        if shown {
            scope.spawn(|| {
                let started = std::time::Instant::now();
                while !done.load(Ordering::Relaxed) {
                    let mut err = std::io::stderr().lock();
                    let (n, of) = (count.load(Ordering::Relaxed), requests.len());
                    let name = if of == 1 {
                        what(0)
                    } else {
                        format!("{n} of {of} done")
                    };
                    let seconds = started.elapsed().as_secs();
                    let _ = write!(err, "\r\x1b[Kasking the compiler: {name}, {seconds} s");
                    let _ = err.flush();
                    drop(err);
                    std::thread::sleep(Duration::from_millis(200));
                }
                let _ = write!(std::io::stderr(), "\r\x1b[K");
            });
        }
        let answers = compile_all(requests, settings, &|_, _| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        done.store(true, Ordering::Relaxed);
        answers
    })
}

fn report(
    module: &LoadedModule<'_>,
    prepared: &Prepared,
    options: &Options,
    compiled: &Compiled,
    flags: Vec<FlagSetting>,
) -> Result<CompileReport> {
    let result = CompileResult::new(compiled, options.space)?;
    let before = Totals::of(&module.program, options.space);
    Ok(CompileReport::new(
        prepared,
        options.space,
        before,
        result,
        flags,
    ))
}
