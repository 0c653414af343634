//! `--dtype`: tensors change their element type, and with them what takes its type from them.
//!
//! In: a selector and a type. Out: effects on classes of arrays of one type.

use rustc_hash::FxHashSet;

use crate::error::Result;
use crate::findings::{Finding, Safety};
use crate::hlo::ElementType;
use crate::whatif::applying::Applying;
use crate::whatif::arguments::names_of_large;
use crate::whatif::confidence::Confidence;
use crate::whatif::edit::{assignment, Change, Edit, EditKind};
use crate::whatif::python::variable;
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
        let mut classes = FxHashSet::default();
        for n in run.nodes(&s) {
            let now = ElementType(values.element_type(n));
            let counts = values.dimensions(n).iter().any(|&d| d > 1);
            if now.is_float() && now != self.to && counts {
                classes.insert(values.type_class(n));
            }
        }
        for &c in &classes {
            run.effects.types.insert(c, self.to);
        }
        let text = format!(
            "{} tensors by {}, with what takes its type from them",
            classes.len(),
            s.by.name()
        );
        run.note(classes.len(), text);
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
