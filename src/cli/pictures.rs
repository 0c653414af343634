//! The pictures of a report.

use super::args::ReportArgs;
use crate::chart::{chart_data, render_all, ChartData, ChartFormat, ChartKind, ShardingRow};
use crate::error::Result;
use crate::report::{Loaded, Options, Report};

/// File name, caption and content of a picture.
pub(crate) type Picture = (String, String, Vec<u8>);

/// All pictures of the first module; none where its peak is unknown.
pub(crate) fn pictures(
    args: &ReportArgs,
    options: &Options,
    loaded: &Loaded<'_>,
    report: &Report,
) -> Result<Vec<Picture>> {
    let Some(data) = data(loaded, options, report) else {
        return Ok(Vec::new());
    };
    let mut wanted = Vec::new();
    for kind in kinds(&data) {
        wanted.push((kind, ChartFormat::Png));
        if args.svg {
            wanted.push((kind, ChartFormat::Svg));
        }
    }
    let drawn = render_all(&wanted, &data)?;
    Ok(wanted
        .into_iter()
        .zip(drawn)
        .map(|((kind, format), bytes)| {
            let name = format!("{}.{}", kind.file_stem(), format.extension());
            (name, caption(kind).to_owned(), bytes)
        })
        .collect())
}

/// Charts for the page: caption and SVG.
pub(crate) fn svgs(
    loaded: &Loaded<'_>,
    options: &Options,
    report: &Report,
) -> Result<Vec<(String, String)>> {
    let Some(data) = data(loaded, options, report) else {
        return Ok(Vec::new());
    };
    let wanted: Vec<_> = kinds(&data)
        .into_iter()
        .filter(|k| *k != ChartKind::Report && k.has_content(&data))
        .map(|k| (k, ChartFormat::Svg))
        .collect();
    let drawn = render_all(&wanted, &data)?;
    Ok(wanted
        .iter()
        .zip(drawn)
        .map(|((kind, _), svg)| {
            (
                caption(*kind).to_owned(),
                String::from_utf8_lossy(&svg).into_owned(),
            )
        })
        .collect())
}

fn kinds(data: &ChartData) -> Vec<ChartKind> {
    ChartKind::ALL
        .into_iter()
        .filter(|k| match k {
            // Made by another command, or of programs on several devices only.
            ChartKind::WhatIf | ChartKind::Sharding => k.has_content(data),
            _ => true,
        })
        .collect()
}

fn caption(kind: ChartKind) -> &'static str {
    match kind {
        ChartKind::Report => "Device memory at a glance",
        ChartKind::Timeline => "Memory over program order",
        ChartKind::Buffers => "Largest buffers at the peak",
        ChartKind::Padding => "Tile padding at the peak",
        ChartKind::Map => "Addresses over program order",
        ChartKind::Treemap => "The peak by operation path",
        ChartKind::Sharding => "Data that several devices hold alike",
        ChartKind::WhatIf => "Before and after the change",
    }
}

pub(crate) fn data(loaded: &Loaded<'_>, options: &Options, report: &Report) -> Option<ChartData> {
    let module = loaded.modules.first()?;
    let analysis = module.analysis.as_ref()?;
    let capacity = loaded
        .device
        .hbm_capacity_bytes
        .filter(|_| options.space.0 == 0);
    let ctx = analysis.context(&module.program, capacity);
    let device = loaded.device.kind.as_deref().unwrap_or_default();
    let mut data = chart_data(&ctx, &analysis.groups, device);
    let space = report
        .modules
        .first()
        .and_then(|m| Report::space(m, options.space.0));
    if let Some(r) = space.and_then(|s| s.replication.as_ref()) {
        data.sharding = r
            .rows
            .iter()
            .map(|row| ShardingRow {
                label: row.label.clone(),
                size_bytes: row.size_bytes,
                redundant_bytes: row.redundant_bytes,
                copies: r.devices / row.distinct_copies.max(1),
                devices: r.devices,
            })
            .collect();
    }
    Some(data)
}
