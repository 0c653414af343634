//! What the compiler answered: one compile, several chips, several flags, changes that were compiled.

use super::whatif::{confidence, figures};
use crate::compiler::{
    CompileReport, CompileResult, Effect, FitsReport, FlagsReport, MeasuredWhatIf,
};
use crate::render::document::{Block, Document, Item, Mark};
use crate::render::words::Words;
use crate::render::{Cell, Column, Table};
use crate::units;

/// One compile.
pub fn compile(r: &CompileReport) -> Document {
    let mut out = titled("Compiled: ", &r.module, &r.space.name);
    out.paragraph(verdict(&r.result));
    out.table(compile_figures(r));
    match r.difference_bytes {
        Some(0) => out.paragraph("The dump's total is the same, to the byte."),
        Some(d) => {
            let size = units::bytes(d.unsigned_abs());
            let verb = if d < 0 { "less" } else { "more" };
            out.paragraph(format!("The total is {size} {verb} than the dump's."));
        }
        None => {}
    }
    out.paragraph(how(
        &r.result.compiler,
        &r.result.topology,
        r.result.seconds,
        r.result.cached,
    ));
    out.bullets(r.notes.iter().map(String::as_str));
    out
}

/// Figures of the dump and of the compile.
pub fn compile_figures(r: &CompileReport) -> Table {
    let (after, before) = (&r.result.after, r.before.as_ref());
    let row = |name: &str, figure: fn(&crate::compiler::Totals) -> u64| {
        let new = figure(after);
        let old = before.map(figure);
        vec![
            Cell::of(name),
            old.map_or(Cell::of(""), Cell::Bytes),
            Cell::Bytes(new),
            old.map_or(Cell::of(""), |old| Cell::Change(old, new)),
        ]
    };
    Table {
        columns: vec![
            Column::left(""),
            Column::right("dump"),
            Column::right("compiled"),
            Column::right("change"),
        ],
        rows: vec![
            row("must fit (allocated)", |t| t.allocated_bytes),
            row("peak", |t| t.peak_bytes),
            row("  temporaries", |t| t.heap_peak_bytes),
            row("  arguments", |t| t.parameter_bytes),
            row("  donated", |t| t.donated_bytes),
            row("  results", |t| t.output_bytes),
            row("fragmentation", |t| t.fragmentation_bytes),
        ],
        ..Table::default()
    }
}

/// Several chips.
pub fn fits(r: &FitsReport) -> Document {
    let mut out = titled("Fits: ", &r.module, &r.space.name);
    out.paragraph(format!("The program is for {} devices.", r.device_count));
    out.table(fits_table(r));
    let failed = r.rows.iter().filter(|r| r.result.is_none());
    out.bullets(failed.map(|row| {
        let why = row.error.clone().unwrap_or_default();
        Words::new().code(&row.topology).plain(format!(": {why}"))
    }));
    let first = r.rows.iter().find_map(|r| r.result.as_ref());
    out.paragraph(first.map_or(String::new(), |c| format!("Compiled with {}.", c.compiler)));
    out
}

/// A row a chip.
pub fn fits_table(r: &FitsReport) -> Table {
    let rows = r.rows.iter().filter_map(|row| {
        let c = row.result.as_ref()?;
        Some(vec![
            Cell::Code(row.topology.clone()),
            Cell::of(if c.fits { "fits" } else { "does not fit" }),
            Cell::Bytes(c.after.allocated_bytes),
            c.limit_bytes.map_or(Cell::of("unknown"), Cell::Bytes),
            Cell::Bytes(c.after.peak_bytes),
            Cell::of(format!("{:.1}", c.seconds)),
        ])
    });
    Table {
        columns: vec![
            Column::left("topology"),
            Column::left(""),
            Column::right("must fit"),
            Column::right("limit"),
            Column::right("peak"),
            Column::right("seconds"),
        ],
        rows: rows.collect(),
        ..Table::default()
    }
}

/// Flags on this program.
pub fn flags(r: &FlagsReport) -> Document {
    let mut out = titled("Flags: ", &r.module, &r.space.name);
    out.paragraph(verdict(&r.base));
    out.table(flags_table(r));
    let without = r.flags.iter().filter(|f| f.result.is_none());
    out.bullets(without.map(|f| {
        let why = f.error.clone().unwrap_or_default();
        Words::new().code(&f.setting.name).plain(format!(": {why}"))
    }));
    out.paragraph(how(
        &r.base.compiler,
        &r.base.topology,
        r.base.seconds,
        r.base.cached,
    ));
    out
}

/// A row a flag, the best first.
pub fn flags_table(r: &FlagsReport) -> Table {
    let before = r.base.after.allocated_bytes;
    let row = |f: &crate::compiler::FlagRow| {
        let says = match f.effect {
            Effect::Saves => "saves",
            Effect::NoChange => "no change",
            Effect::Harms => "takes more",
            Effect::Refused => "not taken",
            _ => "fails",
        };
        let result = f.result.as_ref();
        vec![
            Cell::of(says),
            result.map_or(Cell::of(""), |c| Cell::Bytes(c.after.allocated_bytes)),
            result.map_or(Cell::of(""), |c| {
                Cell::Change(before, c.after.allocated_bytes)
            }),
            result.map_or(Cell::of(""), |c| Cell::Bytes(c.after.peak_bytes)),
            Cell::of(result.map_or(String::new(), |c| format!("{:.1}", c.seconds))),
            Cell::Code(format!("{}={}", f.setting.name, f.setting.value)),
        ]
    };
    Table {
        columns: vec![
            Column::left(""),
            Column::right("must fit"),
            Column::right("change"),
            Column::right("peak"),
            Column::right("seconds"),
            Column::flexible("flag"),
        ],
        rows: r.flags.iter().map(row).collect(),
        ..Table::default()
    }
}

/// Changes that were compiled.
pub fn measured(w: &MeasuredWhatIf) -> Document {
    let mut out = titled("What if: ", &w.module, &w.space.name);
    let edits = w.edits.iter().map(|e| {
        let mut item = Item::of(Mark::Bullet, Words::new().code(&e.edit));
        item.blocks.push(Block::Paragraph(e.note.as_str().into()));
        item
    });
    out.list(edits.collect());
    out.table(figures(&w.before, &w.after));
    out.paragraph(match w.fits {
        true => "The compiler says that it fits.",
        false => "The compiler says that it does not fit.",
    });
    out.paragraph(confidence(w.confidence.name()));
    let m = &w.measured;
    out.paragraph(how(&m.compiler, &m.topology, m.seconds, m.cached));
    out.bullets(w.caveats.iter().map(String::as_str));
    out
}

fn titled(what: &str, module: &str, space: &str) -> Document {
    let mut out = Document::new(format!("{what}{module}"));
    let title = Words::from(what).code(module).plain(format!(", {space}"));
    out.heading(1, title);
    out
}

fn verdict(c: &CompileResult) -> Words {
    let total = units::bytes(c.after.allocated_bytes);
    let limit = c.limit_bytes.map(units::bytes);
    let text = match (c.fits, limit) {
        (true, Some(limit)) => format!("It fits: {total} of {limit} on "),
        (true, None) => format!("It fits: {total} on "),
        (false, Some(limit)) => format!("It does not fit: {total}, and there are {limit} on "),
        (false, None) => format!("It does not fit: {total} on "),
    };
    Words::from(text).code(&c.topology).plain(".")
}

fn how(compiler: &str, topology: &str, seconds: f64, cached: bool) -> Words {
    let kept = if cached { ", earlier" } else { "" };
    Words::from(format!("Compiled with {compiler} for "))
        .code(topology)
        .plain(format!(" in {seconds:.1} s{kept}."))
}
