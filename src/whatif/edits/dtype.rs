//! `--dtype`: tensors change their element type, and with them what takes its type from them.
//!
//! In: a selector and a type. Out: effects on classes of arrays of one type.

use rustc_hash::FxHashSet;

use crate::error::Result;
use crate::findings::{Finding, Safety};
use crate::hlo::{BufferId, ElementType};
use crate::whatif::applying::Applying;
use crate::whatif::arguments::names_of_large;
use crate::whatif::confidence::Confidence;
use crate::whatif::edit::{assignment, Change, Edit, EditKind};
use crate::whatif::python::variable;
use crate::whatif::selector::Selection;
use crate::whatif::Base;

pub(crate) static KIND: EditKind = EditKind {
    name: "dtype",
    value: Some("SELECTOR=TYPE"),
    help: "Change the element type of tensors",
    usage: "--dtype SELECTOR=bf16",
    safety: Safety::ChangesNumerics,
    verify:
        "compile again, then compare training metrics over some hundred steps: rounding changes",
    pins: false,
    parse,
    candidates,
};

#[derive(Debug)]
struct Dtype {
    selector: String,
    to: ElementType,
}

fn parse(value: &str) -> Option<Edit> {
    let (selector, to) = assignment(value)?;
    let to = ElementType::from_name(to).filter(|t| t.bits() > 0)?;
    Some(Edit::new(Dtype {
        selector: selector.to_owned(),
        to,
    }))
}

fn candidates(base: &Base<'_, '_>, _: &[Finding]) -> Vec<Vec<Edit>> {
    let is_float32 = |i| base.program.module.shape(i).element_type == ElementType::F32;
    let edit = |selector| {
        vec![Edit::new(Dtype {
            selector,
            to: ElementType::BF16,
        })]
    };
    names_of_large(base, is_float32)
        .into_iter()
        .map(edit)
        .collect()
}

impl Change for Dtype {
    fn kind(&self) -> &'static EditKind {
        &KIND
    }

    fn value(&self) -> String {
        format!("{}={}", self.selector, self.to)
    }

    fn shapes(&self, run: &mut Applying<'_, '_, '_>) -> Result<()> {
        let s = run.select(&self.selector)?;
        let values = &run.base.values;
        let mut nodes = run.nodes(&s);
        nodes.retain(|&n| {
            let now = ElementType(values.element_type(n));
            let counts = values.dimensions(n).iter().any(|&d| d > 1);
            now.is_float() && now != self.to && counts
        });
        if s.buffers.is_some() {
            run.effects
                .types_alone
                .extend(nodes.iter().map(|&n| (n, self.to)));
            let copies = drop_copies(run, &s, self.to);
            let text = format!(
                "{} tensors by {}; {copies} copies of them in {} are not needed then",
                nodes.len(),
                s.by.name(),
                self.to
            );
            run.note(nodes.len() + copies, text);
        } else {
            let classes: FxHashSet<u32> = nodes.iter().map(|&n| values.type_class(n)).collect();
            run.effects
                .types
                .extend(classes.iter().map(|&c| (c, self.to)));
            let text = format!(
                "{} tensors by {}, with what takes its type from them",
                classes.len(),
                s.by.name()
            );
            run.note(classes.len(), text);
        }
        run.scenario.caveat(
            Confidence::Simulated,
            "conversions that a new type adds or saves are not seen",
        );
        Ok(())
    }

    fn jax(&self, _: &Base<'_, '_>, _: &[Finding]) -> String {
        let to = match self.to.name().as_ref() {
            "bf16" => "bfloat16".to_owned(),
            "f16" => "float16".to_owned(),
            "f32" => "float32".to_owned(),
            other => other.to_owned(),
        };
        let name = variable(&self.selector);
        format!("{name} = jax.tree.map(\n    lambda a: a.astype(jnp.{to}) if a.dtype == jnp.float32 else a, {name})")
    }
}

/// Temporaries of a finding that hold its data in the new type already go; returns how many.
fn drop_copies(run: &mut Applying<'_, '_, '_>, s: &Selection, to: ElementType) -> usize {
    let base = run.base;
    let is_copy = |names: &[BufferId]| {
        let of = s.buffers.iter().flatten().filter(|b| names.contains(b));
        let mut contents = of.filter_map(|&b| base.content(b));
        contents.any(|(_, shape)| shape.element_type == to)
    };
    let mut dropped = 0;
    for (arena, edited) in base.arenas.iter().zip(&mut run.scenario.arenas) {
        for (slot, item) in arena.slots.iter().zip(&mut edited.items) {
            if is_copy(&slot.names) {
                item.size_bytes = 0;
                dropped += 1;
            }
        }
    }
    dropped
}
