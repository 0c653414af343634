//! `--shard`: arguments and what the step returns in their place get another sharding; values inside
//! get a constraint, or another one where the user wrote one. As Shardy's attributes where the module
//! has a mesh of its own, else as HLO's.

use super::arguments::{parameters_of, returned};
use super::context::{nothing, Context};
use super::module::{Computation, Editable};
use super::record::Record;
use super::shape;
use super::split::{New, Split};
use crate::error::Result;
use crate::hlo::decode::schema::{hlo_instruction, op_sharding};
use crate::hlo::Mesh;
use crate::whatif::selector::{plain_shape, select};

const RESULT_SHARDING: &[u8] = b"xla.sdy.FuncResultSharding";
/// Arrays smaller than this stay whole: splitting them saves nothing and costs a collective each.
const SMALLEST: u64 = 64 << 10;

pub(crate) fn shard(
    module: &mut Editable,
    context: &Context<'_, '_>,
    value: &str,
) -> Result<String> {
    let (selector, how) = value.rsplit_once('=').unwrap_or((value, ""));
    let axis = how.parse::<u64>().err().map(|_| how);
    let mesh_has = |m: &&Mesh| match axis {
        Some(name) => m.axes.iter().any(|a| a.name == name),
        None => !m.axes.is_empty(),
    };
    let mesh = context.meshes.iter().find(mesh_has);
    let size_of = |name: &str| {
        let mut axes = mesh.into_iter().flat_map(|m| &m.axes);
        axes.find(|a| a.name == name).map(|a| a.size)
    };
    let ways = match axis {
        None => how.parse().unwrap_or(1),
        Some(name) => size_of(name)
            .ok_or_else(|| nothing("shard", value, "the mesh has no axis of that name"))?,
    };
    let split = Split {
        ways,
        axis,
        mesh,
        partitions: context.after.module.num_partitions.into(),
        choice: context.choice,
    };
    let numbers = parameters_of(context, selector);
    if numbers.is_empty() {
        return constrain(module, context, selector, value, &split);
    }
    arguments(module, context, &numbers, value, &split)
}

fn arguments(
    module: &mut Editable,
    context: &Context<'_, '_>,
    numbers: &[u64],
    value: &str,
    split: &Split<'_>,
) -> Result<String> {
    let every: Vec<u64> = (0..context.after.module.entry_parameters().len() as u64).collect();
    let returned = returned(context.after, &every);
    let (mut done, mut together, mut small) = (0, 0, 0);
    for number in every {
        let Some(entry) = module.entry() else { break };
        let Some(at) = entry.parameter(number) else {
            continue;
        };
        let asked = numbers.contains(&number);
        let shape = shape::of(&entry.instructions[at]);
        let new = match asked && shape.unpadded_bytes() >= SMALLEST {
            true => split.argument(&entry.instructions[at], &shape)?,
            false => None,
        };
        small += usize::from(asked && shape.unpadded_bytes() < SMALLEST);
        if let Some(new) = &new {
            new.put(&mut entry.instructions[at], false);
            done += 1;
        }
        // What the step returns of its state is to come in as it is next time.
        let pinned = new.is_some();
        let own = new.or_else(|| New::of(&entry.instructions[at]));
        if let (Some(&output), Some(own)) = (returned.get(&number), own) {
            let of = entry.instructions[at].clone();
            let call = result_sharding(&of, &own);
            if entry.pin_output(output, call, &own.tiles) && pinned {
                together += 1;
            }
        }
    }
    if done == 0 {
        return Err(nothing(
            "shard",
            value,
            "no argument of it has a whole dimension that divides so, and unused axes of the mesh",
        ));
    }
    let left = match small {
        0 => String::new(),
        n => format!("; {n} under 64 KiB stay whole"),
    };
    Ok(format!(
        "{done} arguments split over {} devices, and {together} outputs that take their place{left}",
        split.ways
    ))
}

/// Constraints on values inside.
fn constrain(
    module: &mut Editable,
    context: &Context<'_, '_>,
    selector: &str,
    value: &str,
    split: &Split<'_>,
) -> Result<String> {
    let wanted = wanted(context, selector);
    let chosen = |i: &Record| {
        let shape = plain_shape(&shape::of(i));
        let dimensions = shape.split_once('[').map_or("", |(_, d)| d);
        match &wanted {
            Wanted::Dimensions(all) => all.iter().any(|d| d == dimensions),
            Wanted::Names(names) => names.iter().any(|n| n == i.text(hlo_instruction::NAME)),
        }
    };
    let is_constraint = |i: &Record| i.bytes(hlo_instruction::CUSTOM_CALL_TARGET) == b"Sharding";
    let written = module.computations.iter().flat_map(|c| &c.instructions);
    let any_written = written.filter(|i| is_constraint(i)).any(&chosen);
    let mut done = 0;
    for c in &mut module.computations {
        let mut at = 0;
        while at < c.instructions.len() {
            let i = &c.instructions[at];
            let opcode = i.bytes(hlo_instruction::OPCODE);
            let fits = chosen(i) && (!any_written || is_constraint(i));
            let passive = matches!(opcode, b"parameter" | b"tuple" | b"constant");
            let shape = shape::of(i);
            if !fits || passive || !shape.tuple.is_empty() {
                at += 1;
                continue;
            }
            let Some(new) = split.value(i, &shape)? else {
                at += 1;
                continue;
            };
            done += 1;
            match is_constraint(i) {
                true => new.put(&mut c.instructions[at], true),
                false => {
                    let mut call = custom_call(&i.clone(), b"Sharding", false);
                    new.put(&mut call, true);
                    c.insert_behind(at, call);
                    at += 1;
                }
            }
            at += 1;
        }
    }
    match (done, any_written) {
        (0, _) => Err(nothing(
            "shard",
            value,
            "nothing in the unoptimised module that it means can be split so",
        )),
        (n, true) => Ok(format!("{n} sharding constraints of the program changed")),
        (n, false) => Ok(format!("{n} values constrained to {} parts", split.ways)),
    }
}

/// What a selector means inside the unoptimised module.
enum Wanted {
    /// Values with these dimensions, `16,1024]`, whatever their type: types change on the way.
    Dimensions(Vec<String>),
    /// Instructions.
    Names(Vec<String>),
}

fn wanted(context: &Context<'_, '_>, selector: &str) -> Wanted {
    let before = context.before;
    let chosen = select(before, context.findings, selector);
    let after = select(context.after, context.findings, selector);
    if let Some(shape) = chosen.shape.as_deref().or(after.shape.as_deref()) {
        let dimensions = |s: &str| s.split_once('[').map(|(_, d)| d.to_owned());
        let wanted = dimensions(shape);
        let has = |(id, _): (crate::hlo::InstructionId, _)| {
            dimensions(&plain_shape(&before.module.shape(id))) == wanted
        };
        if before.module.with_ids().any(has) {
            return Wanted::Dimensions(wanted.into_iter().collect());
        }
    }
    let names = |ids: &[crate::hlo::InstructionId]| {
        let name = |&i: &_| before.module.instruction(i).name.to_owned();
        ids.iter().map(name).collect()
    };
    if !chosen.instructions.is_empty() && chosen.shape.is_none() {
        return Wanted::Names(names(&chosen.instructions));
    }
    // A finding, or a shape on one device: its values are those of the same operation.
    let mut same = Vec::new();
    for &i in &after.instructions {
        let of = context.after.module.instruction(i);
        let count = context.after.module.shape(i);
        let (rank, count) = (count.dimensions.len(), count.element_count());
        let is = |(id, b): &(crate::hlo::InstructionId, &crate::hlo::HloInstruction<'_>)| {
            let shape = before.module.shape(*id);
            b.op_name == of.op_name
                && !of.op_name.is_empty()
                && (shape.dimensions.len() == rank || shape.element_count() == count)
        };
        same.extend(before.module.with_ids().filter(is).map(|(id, _)| id));
    }
    Wanted::Names(names(&same))
}

/// A call that says something of its operand.
pub(crate) fn custom_call(of: &Record, target: &[u8], side_effect: bool) -> Record {
    let mut out = Record::default();
    let name = format!("{}.of", of.text(hlo_instruction::NAME));
    out.set_bytes(hlo_instruction::NAME, name.into_bytes());
    out.set_bytes(hlo_instruction::OPCODE, b"custom-call".to_vec());
    let shape = of.bytes(hlo_instruction::SHAPE).to_vec();
    out.set_bytes(hlo_instruction::SHAPE, shape);
    let metadata = of.bytes(hlo_instruction::METADATA).to_vec();
    out.set_bytes(hlo_instruction::METADATA, metadata);
    out.set_bytes(hlo_instruction::CUSTOM_CALL_TARGET, target.to_vec());
    if side_effect {
        out.set_number(hlo_instruction::CUSTOM_CALL_HAS_SIDE_EFFECT, 1);
    }
    out
}

impl Computation {
    /// Puts a sharding on one output alone, instead of one that is there.
    fn pin_output(&mut self, output: usize, call: Record, tiles: &Option<Vec<u8>>) -> bool {
        let Some(root) = self.root() else {
            return false;
        };
        let operands = self.instructions[root].numbers(hlo_instruction::OPERAND_IDS);
        let Some(at) = operands.get(output).and_then(|&id| self.position(id)) else {
            return false;
        };
        let is_pinned =
            self.instructions[at].bytes(hlo_instruction::CUSTOM_CALL_TARGET) == RESULT_SHARDING;
        if is_pinned {
            let new = call.bytes(hlo_instruction::FRONTEND_ATTRIBUTES).to_vec();
            self.instructions[at].set_bytes(hlo_instruction::FRONTEND_ATTRIBUTES, new);
        } else if self.insert_before_root(output, call).is_none() {
            return false;
        }
        if let (Some(root), Some(tiles)) = (self.root(), tiles) {
            let root = &mut self.instructions[root];
            let mut all = Record::read(root.bytes(hlo_instruction::SHARDING)).unwrap_or_default();
            let mut parts: Vec<Vec<u8>> = all
                .all(op_sharding::TUPLE_SHARDINGS)
                .map(<[u8]>::to_vec)
                .collect();
            if let Some(part) = parts.get_mut(output) {
                part.clone_from(tiles);
                all.set_all(op_sharding::TUPLE_SHARDINGS, parts);
                root.set_bytes(hlo_instruction::SHARDING, all.bytes_out());
            }
        }
        true
    }
}

/// How JAX says that a result has a sharding.
fn result_sharding(of: &Record, new: &New) -> Record {
    let mut out = custom_call(of, RESULT_SHARDING, true);
    new.put(&mut out, true);
    out.remove(hlo_instruction::SHARDING);
    out
}
