//! `xpeak whatif --compile`: the compiler asked instead of simulated.

use super::args::WhatIfArgs;
use super::compile::{ask, flag, interrupted, on_interrupt};
use super::output;
use crate::compiler::{
    best, is_comparable, program_of, rewritten, CompileError, DoneEdit, MeasuredWhatIf, Prepared,
};
use crate::error::Result;
use crate::findings::Finding;
use crate::render::documents;
use crate::report::{LoadedModule, Options};
use crate::whatif::Edit;

pub(crate) fn whatif(
    args: &WhatIfArgs,
    options: &Options,
    module: &LoadedModule<'_>,
    edits: &[Edit],
    findings: &[Finding],
) -> Result<u8> {
    let measure = &args.measure;
    let flags: Vec<_> = measure
        .flag
        .iter()
        .map(|f| flag(f))
        .collect::<Result<_>>()?;
    let prepared = Prepared::new(module)?;
    let changed = rewritten(module, &prepared, edits, findings)?;
    let topology = prepared.topology(measure.topology.as_deref())?;
    let cancel = on_interrupt()?;
    let mut settings = measure.compiler.settings(&cancel)?;
    settings.keep_dump = measure.keep_dump.clone();
    let requests: Vec<_> = changed
        .iter()
        .map(|c| c.request(&prepared, &topology, &flags))
        .collect();
    let answers = ask(&requests, &settings, args.answer.quiet, |_| {
        topology.clone()
    });
    let (chosen, compiled) = match best(answers, options.space)? {
        Err(CompileError::Interrupted) => return Ok(interrupted()),
        answer => answer?,
    };
    let again = match is_comparable(&prepared, &compiled) {
        true => None,
        false => {
            settings.keep_dump = None;
            let requests = [prepared.request(&topology, &[])];
            match ask(&requests, &settings, args.answer.quiet, |_| {
                "unchanged".to_owned()
            })
            .pop()
            {
                Some(Err(CompileError::Interrupted)) | None => return Ok(interrupted()),
                Some(answer) => Some(answer?),
            }
        }
    };
    let base = again.as_ref().map(program_of).transpose()?;
    let ways = changed.len();
    let changed = &changed[chosen];
    let mut notes = changed.notes.clone();
    if let (Some(choice), true) = (&changed.choice, ways > 1) {
        let last = notes
            .iter_mut()
            .zip(edits)
            .filter(|(_, e)| e.kind().name == "shard");
        last.for_each(|(n, _)| {
            n.push_str(&format!("; {choice}: the best of {ways} ways compiled"))
        });
    }
    let done = edits.iter().zip(&notes);
    let result = MeasuredWhatIf::new(
        &prepared,
        options.space,
        done.map(|(e, n)| DoneEdit::new(e, n)).collect(),
        base.as_ref().unwrap_or(&module.program),
        &compiled,
        measure.keep_dump.as_ref().map(|d| d.display().to_string()),
    )?;
    output::answer(
        &args.answer,
        || output::json(&result),
        || documents::measured(&result),
        || documents::figures(&result.before, &result.after),
    )?;
    Ok(0)
}
