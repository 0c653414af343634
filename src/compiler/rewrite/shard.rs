//! `--shard`: arguments and what the step returns in their place get another sharding; values inside
//! get a constraint, or another one where the user wrote one. As Shardy's attributes where the module
//! has a mesh of its own, else as HLO's.

use super::arguments::{parameters_of, returned};
use super::module::{attribute, with_attribute, Computation, Editable};
use super::record::Record;
use super::{nothing, Choice, Context};
use crate::compiler::wire_out::Message;
use crate::error::{Error, Result};
use crate::hlo::decode::schema::{hlo_instruction, op_sharding};
use crate::hlo::{Mesh, Shape};
use crate::whatif::selector::{plain_shape, select};

const RESULT_SHARDING: &[u8] = b"xla.sdy.FuncResultSharding";
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
    choice: Choice,
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
        let shape = shape_of(&entry.instructions[at]);
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

/// A sharding to write.
#[derive(Debug, Clone, Default)]
struct New {
    /// In Shardy's words, `<@mesh, [{"data"}, {}]>`.
    shardy: Option<String>,
    /// As an OpSharding: what default layouts follow, and all that a module without a mesh has.
    tiles: Option<Vec<u8>>,
}

impl New {
    /// Writes it to a parameter or, `per_value`, to a constraint.
    fn put(&self, i: &mut Record, per_value: bool) {
        match &self.tiles {
            Some(bytes) => i.set_bytes(hlo_instruction::SHARDING, bytes.clone()),
            None => i.remove(hlo_instruction::SHARDING),
        }
        if let Some(text) = &self.shardy {
            let text = match per_value {
                true => format!("#sdy.sharding_per_value<[{text}]>"),
                false => format!("#sdy.sharding{text}"),
            };
            let old = i.bytes(hlo_instruction::FRONTEND_ATTRIBUTES);
            let new = with_attribute(old, ATTRIBUTE, &text);
            i.set_bytes(hlo_instruction::FRONTEND_ATTRIBUTES, new);
        }
    }

    /// What a parameter has now; `None` without Shardy's attribute.
    fn of(i: &Record) -> Option<New> {
        let attributes = i.bytes(hlo_instruction::FRONTEND_ATTRIBUTES);
        let text = attribute(attributes, ATTRIBUTE)?;
        let tiles = i.bytes(hlo_instruction::SHARDING);
        Some(New {
            shardy: Some(text.strip_prefix("#sdy.sharding")?.to_owned()),
            tiles: i.has(hlo_instruction::SHARDING).then(|| tiles.to_vec()),
        })
    }
}

impl Split<'_> {
    /// A weight is split along its largest dimension: a step may walk over the first.
    fn argument(&self, i: &Record, shape: &Shape) -> Result<Option<New>> {
        let mut order: Vec<usize> = (0..shape.dimensions.len()).collect();
        order.sort_by_key(|&d| (std::cmp::Reverse(shape.dimensions[d]), d));
        self.chosen(i, shape, order)
    }

    /// A value inside along its first: the batch.
    fn value(&self, i: &Record, shape: &Shape) -> Result<Option<New>> {
        self.chosen(i, shape, (0..shape.dimensions.len()).collect())
    }

    fn chosen(&self, i: &Record, shape: &Shape, mut order: Vec<usize>) -> Result<Option<New>> {
        match self.choice {
            Choice::Usual => {}
            Choice::Dimension(d) => order.sort_by_key(|&o| o != d),
            Choice::Spread => {
                if let Some(new) = self.spread(i, shape) {
                    return Ok(Some(new));
                }
            }
        }
        self.along(i, shape, &order)
    }

    /// The first axis along the first dimension that it divides, the next along the last, and so on.
    fn spread(&self, i: &Record, shape: &Shape) -> Option<New> {
        let mesh = self.mesh?;
        let written = attribute(i.bytes(hlo_instruction::FRONTEND_ATTRIBUTES), ATTRIBUTE);
        let written = written.unwrap_or_default();
        let free = |name: &str| !written.contains(&format!("\"{name}\""));
        let axes = axes_for(mesh, self.ways, &free).filter(|a| a.len() > 1)?;
        let mut dimensions = dimensions_of(&written);
        dimensions.resize(shape.dimensions.len(), String::new());
        for (n, axis) in axes.iter().enumerate() {
            let size = mesh.axes.iter().find(|a| a.name == *axis)?.size;
            let mut order: Vec<usize> = (0..dimensions.len()).collect();
            if n % 2 == 1 {
                order.reverse();
            }
            let fits = |d: &&usize| {
                dimensions[**d].is_empty() && shape.dimensions[**d].is_multiple_of(size)
            };
            let d = *order.iter().find(fits)?;
            dimensions[d] = format!("\"{axis}\"");
        }
        Some(shardy(mesh, &written, &dimensions))
    }

    fn along(&self, i: &Record, shape: &Shape, order: &[usize]) -> Result<Option<New>> {
        let attributes = i.bytes(hlo_instruction::FRONTEND_ATTRIBUTES);
        let written = attribute(attributes, ATTRIBUTE);
        let Some(mesh) = self.mesh else {
            let tiles = self.tiles(shape, order);
            return Ok(tiles.map(|tiles| New {
                tiles: Some(tiles),
                shardy: None,
            }));
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
        Ok(Some(shardy(
            mesh,
            written.as_deref().unwrap_or_default(),
            &dimensions,
        )))
    }

    /// As HLO writes it, over devices in order; only for what is whole so far.
    fn tiles(&self, shape: &Shape, order: &[usize]) -> Option<Vec<u8>> {
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
        Some(out.0)
    }
}

/// Both notations of a sharding, over the mesh that was named before.
fn shardy(mesh: &Mesh, written: &str, dimensions: &[String]) -> New {
    let all: Vec<String> = dimensions.iter().map(|d| format!("{{{d}}}")).collect();
    let name = mesh_name(written).unwrap_or("mesh");
    New {
        shardy: Some(format!("<@{name}, [{}]>", all.join(", "))),
        tiles: tiles_of(mesh, dimensions),
    }
}

/// Shardy's sharding as HLO has it: tiles along the axes of each dimension, copies along the rest.
/// `None` for parts of axes and odd orders of devices.
fn tiles_of(mesh: &Mesh, dimensions: &[String]) -> Option<Vec<u8>> {
    if !mesh.device_ids.is_empty() || !mesh.reshape_dims.is_empty() {
        return None;
    }
    let mut order: Vec<u64> = Vec::new();
    let mut tiles = Vec::new();
    for d in dimensions {
        let mut tile = 1;
        for name in d.split(',').map(|n| n.trim().trim_matches('"')) {
            if name.is_empty() {
                continue;
            }
            let at = mesh.axes.iter().position(|a| a.name == name)?;
            order.push(at as u64);
            tile *= mesh.axes[at].size;
        }
        tiles.push(tile);
    }
    let rest: Vec<u64> = (0..mesh.axes.len() as u64)
        .filter(|a| !order.contains(a))
        .collect();
    let size = |a: &u64| mesh.axes[*a as usize].size;
    let copies: u64 = rest.iter().map(size).product();
    let mut out = Message::default();
    if tiles.iter().all(|&t| t == 1) {
        // Replicated, as HLO says by saying nothing.
        return Some(out.0);
    }
    out.number(op_sharding::TYPE, OTHER);
    if copies > 1 {
        tiles.push(copies);
        out.number(op_sharding::REPLICATE_ON_LAST_TILE_DIM, 1);
    }
    order.extend(rest);
    out.packed(op_sharding::TILE_ASSIGNMENT_DIMENSIONS, tiles);
    let sizes = mesh.axes.iter().map(|a| a.size);
    out.packed(op_sharding::IOTA_RESHAPE_DIMS, sizes);
    out.packed(op_sharding::IOTA_TRANSPOSE_PERM, order);
    Some(out.0)
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
