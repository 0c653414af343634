//! `--donate`: arguments give their memory to outputs: whole-program blocks merge. Which argument fits which
//! output, and whether that can save anything, is the verdict of the analysis, the same that a
//! finding prints. Where it says "may", a copy or the temporaries that used the output's memory live
//! in the arena meanwhile, and the saving is what packing leaves of it.
//!
//! In: arguments. Out: blocks emptied, copies added, and what was found.

use std::collections::{BTreeSet, VecDeque};

use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::findings::{Finding, Safety};
use crate::hlo::{AllocationId, AllocationKind};
use crate::peak::{argument_name, is_identifier, top_level};
use crate::training::DonationPair;
use crate::units;
use crate::whatif::applying::Applying;
use crate::whatif::confidence::Confidence;
use crate::whatif::edit::{Change, Edit, EditKind};
use crate::whatif::outputs::{outputs_in_order, Writes};
use crate::whatif::python::function_name;
use crate::whatif::selector::MatchedBy;
use crate::whatif::Base;
use crate::whatif::Scenario;

pub(crate) static KIND: EditKind = EditKind {
    name: "donate",
    value: Some("ARG|all"),
    help: "Donate an argument to the outputs",
    usage: "--donate ARG or --donate all",
    safety: Safety::Safe,
    verify: "compile again: no \"donated buffers were not usable\" warning, and alias_size_in_bytes of memory_analysis() has grown",
    pins: false,
    parse: |value| Some(of(value)),
    candidates: |_, _| vec![vec![of("all")]],
};

#[derive(Debug)]
struct Donate {
    selector: String,
}

fn of(selector: &str) -> Edit {
    Edit::new(Donate {
        selector: selector.to_owned(),
    })
}

impl Change for Donate {
    fn kind(&self) -> &'static EditKind {
        &KIND
    }

    fn value(&self) -> String {
        self.selector.clone()
    }

    fn ranges(&self, run: &mut Applying<'_, '_, '_>) -> Result<()> {
        let chosen = run.select(&self.selector)?;
        let numbers = run.parameters(&chosen);
        let d = donate(run.base, &mut run.scenario, &|n| numbers.contains(&n));
        let mut text = format!(
            "{} arguments take over outputs of {}",
            d.pairs,
            units::bytes(d.bytes)
        );
        if d.copied > 0 {
            text.push_str(&format!(
                "; {} are still read while their output is written, and must be copied",
                d.copied
            ));
        }
        if let Some(why) = &d.why {
            text.push_str(&format!("; {} would save nothing: {why}", d.without_effect));
        }
        if d.unusable > 0 && chosen.by != MatchedBy::Everything {
            text.push_str(&format!("; {} fit no output", d.unusable));
        }
        run.note(d.pairs, text);
        Ok(())
    }

    fn jax(&self, base: &Base<'_, '_>, _: &[Finding]) -> String {
        let names = match self.selector.as_str() {
            "all" => donated_names(base),
            s => vec![top_level(s).to_owned()],
        };
        let function = function_name(base.program.module.name);
        if names.is_empty() || !names.iter().all(|n| is_identifier(n)) {
            return format!("# give jax.jit({function}, ...) the positions of these arguments as donate_argnums");
        }
        let names: Vec<String> = names.iter().map(|n| format!("\"{n}\"")).collect();
        format!(
            "{function} = jax.jit({function}, donate_argnames=({},))",
            names.join(", ")
        )
    }
}

/// Top-level names of the arguments of which some part may save memory when donated.
fn donated_names(base: &Base<'_, '_>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let names = base
        .donations()
        .iter()
        .filter(|p| p.may_save)
        .map(|p| top_level(argument_name(base.program, p.parameter)));
    names
        .filter(|n| seen.insert(*n))
        .map(str::to_owned)
        .collect()
}

/// What came of a donation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Donated {
    /// Arguments whose memory an output takes over.
    pairs: usize,
    /// Of these, arguments that must be copied first.
    copied: usize,
    /// Bytes of outputs that need no memory of their own any more.
    bytes: u64,
    /// Arguments that fit an output, but would have to be kept beside it.
    without_effect: usize,
    /// Why, of the largest of them.
    why: Option<String>,
    /// Arguments that no output can use.
    unusable: usize,
}

/// Donates the arguments in `chosen`, in order of their numbers.
fn donate(base: &Base<'_, '_>, scenario: &mut Scenario, chosen: &dyn Fn(u32) -> bool) -> Donated {
    let mut out = Donated::default();
    let blocks: FxHashMap<AllocationId, usize> = base
        .blocks
        .iter()
        .enumerate()
        .map(|(i, b)| (b.allocation, i))
        .collect();
    let block = |id: AllocationId| blocks.get(&id).copied();
    let mut paired = vec![false; base.blocks.len()];
    let mut largest_without_effect = 0;
    for pair in base.donations() {
        let number = base
            .program
            .module
            .instruction(pair.parameter)
            .parameter_number;
        let ends = block(pair.parameter_allocation).zip(block(pair.output_allocation));
        let Some((argument, output)) = ends.filter(|_| chosen(number)) else {
            continue;
        };
        let size = scenario.blocks.get(argument).copied().unwrap_or(0);
        if size == 0 || scenario.blocks.get(output) != Some(&size) {
            continue;
        }
        if let Some(p) = paired.get_mut(argument) {
            *p = true;
        }
        if !pair.may_save {
            out.without_effect += 1;
            if size > largest_without_effect {
                largest_without_effect = size;
                out.why = Some(pair.reason.clone());
            }
            continue;
        }
        take_over(scenario, output, size, &mut out);
        if pair.copied_bytes > 0 {
            scenario.caveat(
                Confidence::Simulated,
                "a copy of a donated argument that is there at the peak may go too",
            );
        }
        if !pair.effective {
            keep_beside(base, scenario, pair, output, size, &mut out);
        }
    }
    let arguments = base.blocks.iter().enumerate();
    out.unusable = arguments
        .filter(|(_, b)| b.kind == AllocationKind::Parameter && b.parameter.is_some_and(chosen))
        .filter(|&(i, _)| paired.get(i) == Some(&false))
        .filter(|&(i, _)| scenario.blocks.get(i).is_some_and(|&s| s > 0))
        .count();
    out
}

fn take_over(scenario: &mut Scenario, output: usize, size: u64, out: &mut Donated) {
    out.pairs += 1;
    out.bytes = out.bytes.saturating_add(size);
    if let Some(b) = scenario.blocks.get_mut(output) {
        *b = 0;
    }
}

/// What lives in the arena because the argument's memory is not free in time.
fn keep_beside(
    base: &Base<'_, '_>,
    scenario: &mut Scenario,
    pair: &DonationPair,
    output: usize,
    size: u64,
    out: &mut Donated,
) {
    scenario.caveat(
        Confidence::Simulated,
        "an argument that is read after its output's memory begins to be written makes the compiler move or copy what is there",
    );
    let Some(writes) = Writes::of(base, output) else {
        return;
    };
    let number = base
        .program
        .module
        .instruction(pair.parameter)
        .parameter_number;
    let read = pair.read_until.unwrap_or(0);
    if read > writes.result {
        out.copied += 1;
        let end = base.points.point_count();
        let label = format!("copy of argument {number}");
        scenario.add(label, size, writes.result_point(base), end);
    } else {
        // Temporaries had used the output's memory: they need their own while the argument is
        // read.
        let label = format!("temporaries in the memory of argument {number}'s output");
        let size = size.min(writes.housed_bytes);
        let (first, result) = (writes.first_point(base), writes.result_point(base));
        scenario.add(label, size, first, result);
    }
}

/// Arguments that the program offers for donation, and that no output fitted as compiled, take over
/// outputs that an edit made fit.
pub(crate) fn donate_offered(
    base: &Base<'_, '_>,
    scenario: &mut Scenario,
    offered: &dyn Fn(u32) -> bool,
) {
    let mut free: FxHashMap<Fit, VecDeque<usize>> = FxHashMap::default();
    for output in outputs_in_order(base) {
        if let Some(fit) = fit_of(base, scenario, output) {
            free.entry(fit).or_default().push_back(output);
        }
    }
    let mut arguments: Vec<usize> = (0..base.blocks.len())
        .filter(|&b| base.blocks[b].kind == AllocationKind::Parameter)
        .filter(|&b| base.blocks[b].parameter.is_some_and(offered))
        .collect();
    arguments.sort_by_key(|&b| (base.blocks[b].parameter, b));
    let mut done = Donated::default();
    for argument in arguments {
        let fits = fit_of(base, scenario, argument).and_then(|f| free.get_mut(&f)?.pop_front());
        if let Some(output) = fits {
            let size = scenario.blocks.get(output).copied().unwrap_or(0);
            take_over(scenario, output, size, &mut done);
        }
    }
    if done.pairs > 0 {
        scenario.caveat(
            Confidence::Simulated,
            "arguments offered for donation are taken to fit the outputs that become as large",
        );
    }
}

/// Bytes after the edits, rank, element type: what changes with an edit changes on both sides.
type Fit = (u64, usize, u32);

fn fit_of(base: &Base<'_, '_>, scenario: &Scenario, block: usize) -> Option<Fit> {
    let size = scenario.blocks.get(block).copied().filter(|&s| s > 0)?;
    let names = &base.blocks.get(block)?.names;
    let (_, shape) = names.iter().find_map(|&n| base.content(n))?;
    Some((size, shape.dimensions.len(), shape.element_type.0))
}
