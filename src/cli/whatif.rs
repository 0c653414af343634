//! `xpeak whatif` and `xpeak plan`.

use super::args::{size, PlanArgs, WhatIfArgs};
use super::{output, sink};
use crate::error::{Error, Result};
use crate::render::documents;
use crate::report::{load, meshes_beside, Detail, Loaded, Options, Report};
use crate::source::Sources;
use crate::whatif;
use crate::whatif::{PlanOptions, WhatIfChart, WhatIfOptions};

pub(crate) fn whatif(args: WhatIfArgs) -> Result<u8> {
    let edits = args.edits.edits()?;
    if edits.is_empty() {
        return Err(Error::usage(
            "whatif: no edit given",
            "for example --donate all, --batch 16:8, --checkpoint all, --dtype params=bf16",
        ));
    }
    let chart_file = match &args.output {
        Some(folder) => Some(sink::Target::new(&folder.join("whatif.png"), args.force)?),
        None => None,
    };
    let options = first_module(args.input.options()?);
    let sources = Sources::open(&args.input.paths)?;
    let loaded = load(&sources, &options)?;
    let report = loaded.report(&options);
    sink::warn(&report.diagnostics, args.answer.quiet);
    let capacity_bytes = report
        .device
        .hbm_capacity_bytes
        .filter(|_| options.space.0 == 0);
    let module = program(&loaded)?;
    if args.measure.compile {
        let findings = findings(&report, &options);
        return super::compile_whatif::whatif(&args, &options, module, &edits, findings);
    }
    let (result, chart) = whatif::whatif(
        &module.program,
        &WhatIfOptions {
            space: options.space,
            edits,
            findings: findings(&report, &options),
            meshes: meshes_beside(module),
            capacity_bytes,
        },
    )?;
    if let Some(target) = chart_file {
        target.write(&picture(&loaded, &options, &report, &chart)?)?;
        if !args.answer.quiet {
            sink::complain(&format!("Wrote {}", target.path().display()));
        }
    }
    output::answer(
        &args.answer,
        || output::json(&result),
        || documents::whatif(&result),
        || documents::figures(&result.before, &result.after),
    )?;
    Ok(0)
}

pub(crate) fn plan(args: PlanArgs) -> Result<u8> {
    let mut options = first_module(args.input.options()?);
    if let Some(fit) = &args.fit {
        options.capacity_bytes = Some(size("--fit", fit)?);
    }
    let reserve_bytes = args.reserve.as_deref().map(reserve).transpose()?;
    let sources = Sources::open(&args.input.paths)?;
    let loaded = load(&sources, &options)?;
    let report = loaded.report(&options);
    sink::warn(&report.diagnostics, args.answer.quiet);
    let Some(capacity_bytes) = report.device.hbm_capacity_bytes else {
        return Err(Error::usage(
            "plan: the device's memory is not known from this input",
            "give it: --fit 15.75GiB",
        ));
    };
    let module = program(&loaded)?;
    let plan = whatif::plan(
        &module.program,
        &PlanOptions {
            space: options.space,
            capacity_bytes,
            reserve_bytes,
            findings: findings(&report, &options),
            meshes: meshes_beside(module),
            device_kind: report.device.kind.as_deref(),
        },
    )?;
    output::answer(
        &args.answer,
        || output::json(&plan),
        || documents::plan(&plan),
        || documents::overview(&plan.steps),
    )?;
    Ok(0)
}

/// `0` is a size here: nothing is to be left free.
fn reserve(text: &str) -> Result<u64> {
    match text.trim() {
        "0" => Ok(0),
        text => size("--reserve", text),
    }
}

fn first_module(mut options: Options) -> Options {
    options.detail = Detail::FirstModule;
    options
}

/// The module with the largest peak, if it can be simulated.
fn program<'l, 's>(loaded: &'l Loaded<'s>) -> Result<&'l crate::report::LoadedModule<'s>> {
    loaded
        .modules
        .iter()
        .find(|m| m.analysis.is_some())
        .ok_or_else(|| {
            Error::missing(
                "no module here has buffer assignment, so nothing can be simulated",
                "use the *after_optimizations.hlo.pb of the dump, or a profile",
            )
        })
}

fn findings<'r>(report: &'r Report, options: &Options) -> &'r [crate::findings::Finding] {
    report
        .modules
        .first()
        .and_then(|m| Report::space(m, options.space.0))
        .map_or(&[], |s| &s.findings)
}

#[cfg(not(feature = "charts"))]
fn picture(_: &Loaded<'_>, _: &Options, _: &Report, _: &WhatIfChart) -> Result<Vec<u8>> {
    Err(Error::usage(
        "-o: this build of xpeak draws no charts",
        "build it with the charts feature",
    ))
}

#[cfg(feature = "charts")]
fn picture(
    loaded: &Loaded<'_>,
    options: &Options,
    report: &Report,
    chart: &WhatIfChart,
) -> Result<Vec<u8>> {
    use crate::chart::{render, ChartFormat, ChartKind, Timeline, WhatIfData};
    let mut data = super::pictures::data(loaded, options, report).unwrap_or_default();
    data.capacity_bytes = chart.capacity_bytes;
    data.what_if = Some(WhatIfData {
        before_label: "as compiled".to_owned(),
        after_label: chart.edits.join(" "),
        before: Timeline::thin(&chart.before, None, chart.before_peak.0),
        after: Timeline::thin(&chart.after, None, chart.after_peak.0),
    });
    render(ChartKind::WhatIf, &data, ChartFormat::Png)
}
