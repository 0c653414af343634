//! Donation pairs → findings: one per top-level argument, with what to write.

use super::donation_without_effect::donation_without_effect;
use super::evidence::{matters, shortened};
use super::finding::{Detector, Finding, FindingKind, FindingSeverity, Safety, SavingKind};
use crate::peak::is_identifier;
use crate::peak::Context;
use crate::peak::{argument_name, top_level, top_level_arguments};
use crate::training::DonationPair;
use crate::units;

pub(crate) static DETECTOR: Detector = Detector {
    name: "donation",
    intervention: Some("donation"),
    brief: "an argument could give its memory to an output",
    text: "An argument that could become an output is not donated, or was donated without effect. Donating saves its bytes when an output has the same shape, type and layout and the argument is not read after that output is written; otherwise it saves nothing.",
    detects: "An argument whose memory an output could take over. One finding per top-level argument, with `donate_argnames` / `donate_argnums`.",
    how: "Arguments and outputs are matched by shape, type, layout, memory space and size; pairs that are aliased or offered already are left out. The argument's value is followed through tuples, bitcasts, calls and loops to its last read in program order; a read inside a loop lasts until the loop's end, one by an asynchronous operation until that is done. It must come before the first write of the output, or be the write itself where each element needs only the same element of the argument.",
    silent: "The argument is small, or nothing fits it. Where something fits and would not help (a loop reads the old value while it writes the new one; a reader needs both), a low finding says why and promises nothing: the compiler would keep both, and the temporaries would grow by what the outputs shrink.",
    saving: "`exact`: all pairs of the argument hold for certain. `upper_bound`: for some the compiler has to run things in another order, or the output's memory also holds temporaries before the argument is last read (usual on GPU and CPU) and they need another place then. Where the last read is a copy that is alive at the peak, the copy may go too: it is counted, and the sum is an `upper_bound`. An argument that is donated while a loop fills an array like it beside it is a finding that promises nothing.",
    every_space: false,
    find: |facts, _| {
        let mut out = donation_findings(facts, facts.donations());
        out.extend(donation_without_effect(facts, facts.graph()));
        out
    },
    yields_to: &[],
};

impl FindingKind {
    /// An argument that could give its memory to an output.
    pub const DONATION: FindingKind = FindingKind::new(&DETECTOR);
}

/// One finding per top-level argument that fits outputs; those that would not help say why.
pub fn donation_findings(ctx: &Context<'_, '_>, pairs: &[DonationPair]) -> Vec<Finding> {
    let mut groups: Vec<(&str, Vec<&DonationPair>)> = Vec::new();
    for p in pairs {
        let top = top_level(argument_name(ctx.program, p.parameter));
        // Parts of one argument stand together: parameters are in the order of arguments.
        match groups.last_mut().filter(|g| g.0 == top) {
            Some(g) => g.1.push(p),
            None => groups.push((top, vec![p])),
        }
    }
    groups
        .iter()
        .filter_map(|(top, pairs)| finding(ctx, top, pairs))
        .collect()
}

fn sum<'p>(pairs: impl IntoIterator<Item = &'p &'p DonationPair>) -> u64 {
    pairs.into_iter().fold(0, |s, p| s.saturating_add(p.bytes))
}

fn finding(ctx: &Context<'_, '_>, top: &str, pairs: &[&DonationPair]) -> Option<Finding> {
    let exact = sum(pairs.iter().filter(|p| p.effective));
    let copies = pairs
        .iter()
        .fold(0u64, |s, p| s.saturating_add(p.copied_bytes));
    let perhaps = sum(pairs.iter().filter(|p| p.may_save && !p.effective)).saturating_add(copies);
    let bytes = sum(pairs).saturating_add(copies);
    if !matters(ctx, bytes) {
        return None;
    }
    // One uncertain part makes the sum uncertain: an argument is donated whole.
    let saving_bytes = exact.saturating_add(perhaps);
    let saving = if perhaps == 0 {
        SavingKind::Exact
    } else {
        SavingKind::UpperBound
    };
    let helps = matters(ctx, saving_bytes);
    let title = if !helps {
        format!(
            "Donating `{top}` ({}) would not save memory",
            units::bytes(bytes)
        )
    } else if saving == SavingKind::Exact {
        format!(
            "Argument `{top}` could give {} to outputs, but is not donated",
            units::bytes(saving_bytes)
        )
    } else {
        format!(
            "Argument `{top}` could give up to {} to outputs, but is not donated",
            units::bytes(saving_bytes)
        )
    };
    let mut sorted: Vec<&&DonationPair> = pairs.iter().collect();
    sorted.sort_by_key(|p| (std::cmp::Reverse(p.bytes), p.parameter, &p.parameter_index));
    let lines = sorted
        .iter()
        .map(|p| (p.bytes, pair_line(ctx, p)))
        .collect();
    let mut evidence = shortened(lines);
    if helps && copies > 0 {
        evidence.push(format!(
            "{} of it are copies of the argument at the peak, which may go too",
            units::bytes(copies)
        ));
    }
    if helps && perhaps > 0 {
        evidence.push(format!("{} of it for certain", units::bytes(exact)));
    }
    let refused = sum(pairs.iter().filter(|p| !p.may_save));
    if helps && refused > 0 {
        evidence.push(format!("{} would not be saved", units::bytes(refused)));
    }
    let action = if helps {
        how_to_donate(ctx, top)
    } else {
        let why = sorted.first().map_or("", |p| p.reason.as_str());
        format!(
            "Nothing: {why}. The compiler would keep a second copy, and the temporaries would grow \
             by what the outputs shrink. It helps once the program reads the old value before it \
             writes the new one (in a loop: carry it and update it in place)."
        )
    };
    Some(Finding {
        kind: FindingKind::DONATION,
        severity: if helps {
            FindingSeverity::of_share(saving_bytes, ctx.usage.peak_bytes())
        } else {
            FindingSeverity::Low
        },
        title,
        bytes,
        saving_bytes: if helps { saving_bytes } else { 0 },
        saving: if helps {
            saving
        } else {
            SavingKind::UpperBound
        },
        safety: Safety::Safe,
        evidence,
        action,
        buffer_ids: parameter_buffers(ctx, &sorted),
        links: vec![
            "https://docs.jax.dev/en/latest/buffer_donation.html".to_owned(),
            "https://openxla.org/xla/aliasing".to_owned(),
        ],
    })
}

fn pair_line(ctx: &Context<'_, '_>, p: &DonationPair) -> String {
    let index: Vec<String> = p.output_index.iter().map(i64::to_string).collect();
    format!(
        "{}: {} -> output {{{}}}: {}",
        argument_name(ctx.program, p.parameter),
        units::bytes(p.bytes),
        index.join(","),
        p.reason
    )
}

fn parameter_buffers(ctx: &Context<'_, '_>, pairs: &[&&DonationPair]) -> Vec<i64> {
    let Some(assignment) = &ctx.program.assignment else {
        return Vec::new();
    };
    let mut seen = std::collections::BTreeSet::new();
    pairs
        .iter()
        .filter_map(|p| assignment.assigned(p.parameter_allocation).first())
        .map(|b| assignment.buffer(b.buffer).id)
        .filter(|id| seen.insert(*id))
        .collect()
}

fn how_to_donate(ctx: &Context<'_, '_>, top: &str) -> String {
    let at = top_level_arguments(ctx.program)
        .iter()
        .position(|a| *a == top);
    let by_number = match at {
        Some(i) => format!("donate_argnums=({i},)"),
        None => "donate_argnums".to_owned(),
    };
    if !is_identifier(top) {
        return format!("Donate it: jax.jit(f, {by_number}); it cannot be used after the call.");
    }
    format!(
        "Donate it: jax.jit(f, donate_argnames=(\"{top}\",)), or {by_number} if the arguments \
         before it are all used by the program and none is static. The old `{top}` cannot be used \
         after the call: go on with the result."
    )
}
