//! `--shard`: arguments and what the step returns in their place get another sharding; values inside
//! get a constraint, or another one where the user wrote one. As Shardy's attributes where the module
//! has a mesh of its own, else as HLO's.

use super::arguments::{pairs, parameters_of};
use super::module::{attribute, with_attribute, Editable};
use super::record::Record;
use super::{nothing, Context};
use crate::compiler::wire_out::Message;
use crate::error::{Error, Result};
use crate::hlo::decode::schema::{hlo_instruction, op_sharding};
use crate::hlo::{Mesh, Shape};
use crate::whatif::selector::{plain_shape, select};

const ATTRIBUTE: &str = "xla.sdy.sharding";
/// Arrays smaller than this stay whole: splitting them saves nothing and costs a collective each.
const SMALLEST: u64 = 64 << 10;
/// Type of an OpSharding that tiles.
const OTHER: u64 = 3;

/// By how much, and over which axes of the mesh.
struct Split<'s> {
    ways: u64,
    axis: Option<&'s str>,
    mesh: Option<&'s Mesh>,
    partitions: u64,
}

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
    let returned = pairs(context.after, numbers, &[]);
    let (mut done, mut together, mut small) = (0, 0, 0);
    for &number in numbers {
        let Some(entry) = module.entry() else { break };
        let Some(at) = entry.parameter(number) else {
            continue;
        };
        let shape = shape_of(&entry.instructions[at]);
        if shape.unpadded_bytes() < SMALLEST {
            small += 1;
            continue;
        }
        let Some(new) = split.argument(&entry.instructions[at], &shape)? else {
            continue;
        };
        let text = match &new {
            New::Shardy(text) => Some(text.clone()),
            New::Tiles(_) => None,
        };
        new.put(&mut entry.instructions[at], false);
        done += 1;
        if let (Some(&output), Some(text)) = (returned.get(&number), text) {
            let of = entry.instructions[at].clone();
            if entry
                .insert_before_root(output, result_sharding(&of, &text))
                .is_some()
            {
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
        let shape = plain_shape(&shape_of(i));
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
            let shape = shape_of(i);
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
    let dimensions = |s: &str| s.split_once('[').map(|(_, d)| d.to_owned());
    if let Some(shape) = chosen.shape.as_deref().or(after.shape.as_deref()) {
        return Wanted::Dimensions(dimensions(shape).into_iter().collect());
    }
    let names = |ids: &[crate::hlo::InstructionId]| {
        let name = |&i: &_| before.module.instruction(i).name.to_owned();
        ids.iter().map(name).collect()
    };
    if !chosen.instructions.is_empty() {
        return Wanted::Names(names(&chosen.instructions));
    }
    // A finding: of the optimised program. Its values are those of the same operation.
    let mut same = Vec::new();
    for &i in &after.instructions {
        let of = context.after.module.instruction(i);
        let rank = context.after.module.shape(i).dimensions.len();
        let is = |b: &crate::hlo::InstructionId| {
            let at = before.module.instruction(*b);
            at.op_name == of.op_name && before.module.shape(*b).dimensions.len() == rank
        };
        let all = before.module.with_ids().map(|(id, _)| id);
        same.extend(all.filter(is));
    }
    Wanted::Names(names(&same))
}

/// A sharding to write.
enum New {
    /// In Shardy's words, `<@mesh, [{"data"}, {}]>`.
    Shardy(String),
    /// An OpSharding.
    Tiles(Vec<u8>),
}

impl New {
    /// Writes it to a parameter or, `per_value`, to a constraint.
    fn put(&self, i: &mut Record, per_value: bool) {
        i.remove(hlo_instruction::SHARDING);
        match self {
            New::Tiles(bytes) => i.set_bytes(hlo_instruction::SHARDING, bytes.clone()),
            New::Shardy(text) => {
                let text = match per_value {
                    true => format!("#sdy.sharding_per_value<[{text}]>"),
                    false => format!("#sdy.sharding{text}"),
                };
                let old = i.bytes(hlo_instruction::FRONTEND_ATTRIBUTES);
                let new = with_attribute(old, ATTRIBUTE, &text);
                i.set_bytes(hlo_instruction::FRONTEND_ATTRIBUTES, new);
            }
        }
    }
}

impl Split<'_> {
    /// A weight is split along its largest dimension: a step may walk over the first.
    fn argument(&self, i: &Record, shape: &Shape) -> Result<Option<New>> {
        let mut order: Vec<usize> = (0..shape.dimensions.len()).collect();
        order.sort_by_key(|&d| (std::cmp::Reverse(shape.dimensions[d]), d));
        self.along(i, shape, &order)
    }

    /// A value inside along its first: the batch.
    fn value(&self, i: &Record, shape: &Shape) -> Result<Option<New>> {
        let order: Vec<usize> = (0..shape.dimensions.len()).collect();
        self.along(i, shape, &order)
    }

    fn along(&self, i: &Record, shape: &Shape, order: &[usize]) -> Result<Option<New>> {
        let attributes = i.bytes(hlo_instruction::FRONTEND_ATTRIBUTES);
        let written = attribute(attributes, ATTRIBUTE);
        let Some(mesh) = self.mesh else {
            return Ok(self.tiles(shape, order));
        };
        let mut dimensions = match written.as_deref().map(dimensions_of) {
            None => vec![String::new(); shape.dimensions.len()],
            Some(d) if d.len() == shape.dimensions.len() => d,
            Some(_) => {
                let what = format!(
                    "{}: a sharding that xpeak cannot read",
                    written.unwrap_or_default()
                );
                return Err(Error::missing(what, ""));
            }
        };
        let used = dimensions.join(",");
        let free = |name: &str| !used.contains(&format!("\"{name}\""));
        let axes: Vec<&str> = match self.axis {
            Some(name) if free(name) => vec![name],
            Some(_) => return Ok(None),
            None => match axes_for(mesh, self.ways, &free) {
                Some(axes) => axes,
                None => return Ok(None),
            },
        };
        let whole = |d: &&usize| {
            shape.dimensions[**d].is_multiple_of(self.ways.max(1)) && dimensions[**d].is_empty()
        };
        let Some(&d) = order.iter().find(whole) else {
            return Ok(None);
        };
        let names: Vec<String> = axes.iter().map(|a| format!("\"{a}\"")).collect();
        dimensions[d] = names.join(", ");
        let all: Vec<String> = dimensions.iter().map(|d| format!("{{{d}}}")).collect();
        let name = written.as_deref().and_then(mesh_name).unwrap_or("mesh");
        Ok(Some(New::Shardy(format!(
            "<@{name}, [{}]>",
            all.join(", ")
        ))))
    }

    /// As HLO writes it, over devices in order; only for what is whole so far.
    fn tiles(&self, shape: &Shape, order: &[usize]) -> Option<New> {
        let ways = self.ways.max(1);
        if !self.partitions.is_multiple_of(ways) {
            return None;
        }
        let whole = |d: &&usize| shape.dimensions[**d].is_multiple_of(ways);
        let &d = order.iter().find(whole)?;
        let mut tiles: Vec<u64> = vec![1; shape.dimensions.len()];
        tiles[d] = ways;
        let rest = self.partitions / ways;
        let mut out = Message::default();
        out.number(op_sharding::TYPE, OTHER);
        if rest > 1 {
            tiles.push(rest);
        }
        out.packed(op_sharding::TILE_ASSIGNMENT_DIMENSIONS, tiles);
        out.packed(op_sharding::TILE_ASSIGNMENT_DEVICES, 0..self.partitions);
        if rest > 1 {
            out.number(op_sharding::REPLICATE_ON_LAST_TILE_DIM, 1);
        }
        Some(New::Tiles(out.0))
    }
}

/// Free axes that together have `ways` devices: one, else neighbours in the mesh's order.
fn axes_for<'m>(mesh: &'m Mesh, ways: u64, free: &dyn Fn(&str) -> bool) -> Option<Vec<&'m str>> {
    let axes = &mesh.axes;
    for length in 1..=axes.len() {
        for window in axes.windows(length) {
            let product: u64 = window.iter().map(|a| a.size).product();
            if product == ways && window.iter().all(|a| free(&a.name) && a.size > 1) {
                return Some(window.iter().map(|a| a.name.as_str()).collect());
            }
        }
    }
    None
}

/// `[{"data"}, {}]` of a sharding's text: what is in each pair of braces.
fn dimensions_of(text: &str) -> Vec<String> {
    let from = text.find(", [").map_or(0, |i| i + 3);
    let list = text.get(from..).unwrap_or_default();
    let list = list.split(']').next().unwrap_or_default();
    let mut out = Vec::new();
    for part in list.split('{').skip(1) {
        out.push(part.split('}').next().unwrap_or_default().trim().to_owned());
    }
    out
}

/// `mesh` of `#sdy.sharding<@mesh, ...`.
fn mesh_name(text: &str) -> Option<&str> {
    let (_, after) = text.split_once('@')?;
    after.split([',', '>']).next().map(str::trim)
}

fn shape_of(i: &Record) -> Shape {
    crate::hlo::decode_shape(i.bytes(hlo_instruction::SHAPE)).unwrap_or_default()
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

/// How JAX says that a result has a sharding.
fn result_sharding(of: &Record, text: &str) -> Record {
    let mut out = custom_call(of, b"xla.sdy.FuncResultSharding", true);
    New::Shardy(text.to_owned()).put(&mut out, true);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hlo::MeshAxis;

    #[test]
    fn shardings_are_read_by_their_dimensions() {
        let text = "#sdy.sharding<@mesh, [{\"data\", \"x\"}, {}, {?}], replicated={\"y\"}>";
        assert_eq!(dimensions_of(text), ["\"data\", \"x\"", "", "?"]);
        assert_eq!(mesh_name(text), Some("mesh"));
        let text = "#sdy.sharding_per_value<[<@mesh, [{\"a\"}]>]>";
        assert_eq!(dimensions_of(text), ["\"a\""]);
        assert!(dimensions_of("#sdy.sharding<@mesh, []>").is_empty());
    }

    #[test]
    fn free_axes_are_taken() {
        let axis = |name: &str, size| MeshAxis {
            name: name.to_owned(),
            size,
        };
        let mesh = Mesh {
            axes: vec![axis("a", 2), axis("b", 2), axis("c", 4)],
            ..Mesh::default()
        };
        let all = |_: &str| true;
        assert_eq!(axes_for(&mesh, 2, &all).unwrap(), ["a"]);
        assert_eq!(axes_for(&mesh, 2, &|n| n != "a").unwrap(), ["b"]);
        assert_eq!(axes_for(&mesh, 4, &all).unwrap(), ["c"]);
        assert_eq!(axes_for(&mesh, 16, &all).unwrap(), ["a", "b", "c"]);
        assert_eq!(axes_for(&mesh, 3, &all), None);
    }
}
