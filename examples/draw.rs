//! Draws every chart of a program's HBM peak: `cargo run --example draw -- PATH DIR [DEVICE]`, where
//! PATH is anything that xpeak reads and DEVICE a name such as `TPU v6 lite`, for files that do not
//! say.

use std::path::PathBuf;

use xpeak::chart::{chart_data, render_all, ChartFormat, ChartKind};
use xpeak::chips::capacity_of;
use xpeak::report::{load, Options};
use xpeak::source::Sources;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let (path, folder, device) = match arguments.as_slice() {
        [path, folder] => (path, folder, None),
        [path, folder, device] => (path, folder, device.to_str()),
        _ => return Err("usage: draw PATH DIR [DEVICE]".into()),
    };
    let sources = Sources::open(std::slice::from_ref(path))?;
    let loaded = load(&sources, &Options::default())?;
    let Some((module, analysis)) = loaded
        .modules
        .iter()
        .find_map(|m| Some((m, m.analysis.as_ref()?)))
    else {
        return Err("no module has buffer assignment".into());
    };
    let device = device.or(loaded.device.kind.as_deref()).unwrap_or_default();
    let capacity = loaded.device.hbm_capacity_bytes.or(capacity_of(device));
    let context = analysis.context(&module.program, capacity);
    let data = chart_data(&context, &analysis.groups, device);
    std::fs::create_dir_all(folder)?;
    let shown = ChartKind::ALL.into_iter().filter(|k| k.has_content(&data));
    let wanted: Vec<_> = shown
        .flat_map(|k| [(k, ChartFormat::Png), (k, ChartFormat::Svg)])
        .collect();
    for ((kind, format), bytes) in wanted.iter().zip(render_all(&wanted, &data)?) {
        let name = format!("{}.{}", kind.file_stem(), format.extension());
        std::fs::write(folder.join(name), bytes)?;
    }
    Ok(())
}
