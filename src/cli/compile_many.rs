//! `xpeak fits` and `xpeak flags`: one program compiled in several ways.

use std::path::PathBuf;

use super::args::{FitsArgs, FlagsArgs, InputArgs};
use super::compile::{ask, interrupted, module, on_interrupt};
use super::{output, sink};
use crate::compiler::{
    trials, CompileError, CompileResult, FitsReport, FitsRow, FlagRow, FlagsReport, Prepared,
};
use crate::error::Result;
use crate::hlo::MemorySpace;
use crate::render::documents;
use crate::report::{load, Detail};
use crate::source::Sources;
use crate::whatif::SpaceName;

/// What both read.
fn prepared(input: &InputArgs, quiet: bool) -> Result<(Prepared, MemorySpace)> {
    let mut options = input.options()?;
    options.detail = Detail::FirstModule;
    let paths: &[PathBuf] = &input.paths;
    let sources = Sources::open(paths)?;
    let loaded = load(&sources, &options)?;
    sink::warn(&loaded.diagnostics, quiet);
    Ok((Prepared::new(module(&loaded)?)?, options.space))
}

pub(crate) fn fits(args: FitsArgs) -> Result<u8> {
    let (prepared, space) = prepared(&args.input, args.answer.quiet)?;
    let asked = args.on.iter().map(|t| t.trim()).filter(|t| !t.is_empty());
    let topologies: Vec<String> = asked
        .map(|t| prepared.topology(Some(t)))
        .collect::<Result<_>>()?;
    let cancel = on_interrupt()?;
    let settings = args.compiler.settings(&cancel)?;
    let requests: Vec<_> = topologies
        .iter()
        .map(|t| prepared.request(t, &[]))
        .collect();
    let mut rows = Vec::new();
    let mut last = None;
    for (topology, answer) in
        topologies
            .iter()
            .zip(ask(&requests, &settings, args.answer.quiet, |i| {
                topologies.get(i).cloned().unwrap_or_default()
            }))
    {
        let row = match answer {
            Err(CompileError::Interrupted) => return Ok(interrupted()),
            Err(e) => {
                let text = e.to_string();
                last = Some(e);
                Err(text)
            }
            Ok(compiled) => CompileResult::new(&compiled, space).map_err(|e| e.to_string()),
        };
        rows.push(FitsRow::new(topology, row));
    }
    // Where nothing could be compiled the reason is the answer.
    if let (true, Some(e)) = (rows.iter().all(|r| r.result.is_none()), last) {
        return Err(e.into());
    }
    let report = FitsReport::new(
        &prepared.source.name,
        named(space),
        prepared.device_count(),
        rows,
    );
    output::answer(
        &args.answer,
        || output::json(&report),
        || documents::fits(&report),
        || documents::fits_table(&report),
    )?;
    Ok(if report.any_fits() { 0 } else { 1 })
}

pub(crate) fn flags(args: FlagsArgs) -> Result<u8> {
    let (prepared, space) = prepared(&args.input, args.answer.quiet)?;
    let topology = prepared.topology(args.topology.as_deref())?;
    let cancel = on_interrupt()?;
    let settings = args.compiler.settings(&cancel)?;
    let base = [prepared.request(&topology, &[])];
    let base = match ask(&base, &settings, args.answer.quiet, |_| {
        "without a flag".to_owned()
    })
    .pop()
    {
        Some(Err(CompileError::Interrupted)) | None => return Ok(interrupted()),
        Some(answer) => CompileResult::new(&answer?, space)?,
    };
    let trials = trials(&base);
    let requests: Vec<_> = trials
        .iter()
        .map(|t| prepared.request(&topology, &[(t.name.to_owned(), t.value.clone())]))
        .collect();
    let mut rows = Vec::new();
    for (trial, answer) in trials
        .iter()
        .zip(ask(&requests, &settings, args.answer.quiet, |i| {
            trials.get(i).map(|t| t.name.to_owned()).unwrap_or_default()
        }))
    {
        let answer = match answer {
            Err(CompileError::Interrupted) => return Ok(interrupted()),
            Err(e) => Err(e),
            Ok(compiled) => Ok(CompileResult::new(&compiled, space)?),
        };
        rows.push(FlagRow::new(trial, &base, answer));
    }
    let report = FlagsReport::new(&prepared.source.name, named(space), base, rows);
    output::answer(
        &args.answer,
        || output::json(&report),
        || documents::flags(&report),
        || documents::flags_table(&report),
    )?;
    Ok(0)
}

fn named(space: MemorySpace) -> SpaceName {
    SpaceName {
        color: space.0,
        name: space.name(),
    }
}
