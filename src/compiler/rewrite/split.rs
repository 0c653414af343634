//! A sharding in both notations, Shardy's attributes and HLO's tiles, and how one is split further.

use super::context::Choice;
use super::module::{attribute, with_attribute};
use super::record::Record;
use crate::compiler::wire_out::Message;
use crate::error::{Error, Result};
use crate::hlo::decode::schema::{hlo_instruction, op_sharding};
use crate::hlo::{Mesh, Shape};

const ATTRIBUTE: &str = "xla.sdy.sharding";
/// Type of an OpSharding that tiles.
const OTHER: u64 = 3;

/// By how much, and over which axes of the mesh.
pub(super) struct Split<'s> {
    pub(super) ways: u64,
    pub(super) axis: Option<&'s str>,
    pub(super) mesh: Option<&'s Mesh>,
    pub(super) partitions: u64,
    pub(super) choice: Choice,
}

/// A sharding to write.
#[derive(Debug, Clone, Default)]
pub(super) struct New {
    /// In Shardy's words, `<@mesh, [{"data"}, {}]>`.
    pub(super) shardy: Option<String>,
    /// As an OpSharding: what default layouts follow, and all that a module without a mesh has.
    pub(super) tiles: Option<Vec<u8>>,
}

impl New {
    /// Writes it to a parameter or, `per_value`, to a constraint.
    pub(super) fn put(&self, i: &mut Record, per_value: bool) {
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
    pub(super) fn of(i: &Record) -> Option<New> {
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
    pub(super) fn argument(&self, i: &Record, shape: &Shape) -> Result<Option<New>> {
        let mut order: Vec<usize> = (0..shape.dimensions.len()).collect();
        order.sort_by_key(|&d| (std::cmp::Reverse(shape.dimensions[d]), d));
        self.chosen(i, shape, order)
    }

    /// A value inside along its first: the batch.
    pub(super) fn value(&self, i: &Record, shape: &Shape) -> Result<Option<New>> {
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
