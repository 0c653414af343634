//! A partition of the devices in words: by the names of the mesh axes that do not matter to the
//! data, by size and stride of a regular group, or by the groups themselves.

use super::classes::{DeviceClasses, DeviceClassesId};
use crate::hlo::{AxisRef, Mesh, MeshAxis};

/// Groups spelled out at most.
const MAX_GROUPS: usize = 4;
/// Devices of a group spelled out at most.
const MAX_MEMBERS: usize = 8;

/// What data of these classes is replicated over.
pub(crate) fn describe(c: &DeviceClasses, id: DeviceClassesId, meshes: &[Mesh]) -> String {
    let axes = free_axes(c, id, meshes);
    if !axes.is_empty() {
        let names: Vec<String> = axes.iter().map(|a| format!("`{}`", a.name)).collect();
        return join_and(&names);
    }
    if id == DeviceClassesId::ONE {
        return format!("all {} devices", c.devices());
    }
    let labels = c.labels(id);
    if let Some((size, stride)) = regular(labels) {
        return format!("an axis of size {size} (stride {stride})");
    }
    groups(labels, c.count(id))
}

/// Axes along which data of these classes does not change, of the first mesh whose axes account
/// for all of the replication; empty if none does.
pub(crate) fn free_axes(c: &DeviceClasses, id: DeviceClassesId, meshes: &[Mesh]) -> Vec<MeshAxis> {
    meshes
        .iter()
        .find_map(|m| free_axes_of(c.labels(id), c.count(id), m))
        .unwrap_or_default()
}

fn free_axes_of(labels: &[u32], count: u32, mesh: &Mesh) -> Option<Vec<MeshAxis>> {
    let devices = mesh.devices()?;
    let mut out = Vec::new();
    let mut copies = 1u64;
    for (k, axis) in mesh.axes.iter().enumerate() {
        let (stride, size) = mesh.stride_of(AxisRef {
            axis: k,
            part: None,
        })?;
        let at = |position: u64| {
            let d = devices.get(usize::try_from(position).ok()?)?;
            labels.get(usize::try_from(*d).ok()?)
        };
        let same = (0..devices.len() as u64).all(|p| {
            let zero = p - p / stride % size * stride;
            at(p).is_some() && at(p) == at(zero)
        });
        if size > 1 && same {
            out.push(axis.clone());
            copies = copies.checked_mul(size)?;
        }
    }
    let explained = !out.is_empty() && copies.checked_mul(count.into())? == devices.len() as u64;
    explained.then_some(out)
}

fn join_and(words: &[String]) -> String {
    match words {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        _ => words.join(""),
    }
}

/// `(size, stride)` if classes are the devices that differ in one digit of their number.
fn regular(labels: &[u32]) -> Option<(usize, usize)> {
    let members: Vec<usize> = (0..labels.len())
        .filter(|&d| labels.get(d) == labels.first())
        .collect();
    let (size, stride) = (members.len(), members.get(1).copied()?);
    let block = size.checked_mul(stride)?;
    if !labels.len().is_multiple_of(block) {
        return None;
    }
    // Numbered by first appearance, a regular partition's labels follow from the numbers.
    let expected = |d: usize| d / block * stride + d % stride;
    (0..labels.len())
        .all(|d| labels.get(d).map(|&l| l as usize) == Some(expected(d)))
        .then_some((size, stride))
}

fn groups(labels: &[u32], count: u32) -> String {
    let mut shown: Vec<Vec<usize>> = vec![Vec::new(); MAX_GROUPS.min(count as usize)];
    let mut sizes = vec![0usize; count as usize];
    for (d, &l) in labels.iter().enumerate() {
        if let Some(s) = sizes.get_mut(l as usize) {
            *s += 1;
        }
        if let Some(g) = shown.get_mut(l as usize) {
            g.push(d);
        }
    }
    let first = sizes.first().copied().unwrap_or(0);
    let mut out = if sizes.iter().all(|&s| s == first) {
        format!("{count} groups of {first}: ")
    } else {
        format!("{count} groups: ")
    };
    let words: Vec<String> = shown
        .iter()
        .map(|g| {
            let ids: Vec<String> = g.iter().take(MAX_MEMBERS).map(usize::to_string).collect();
            let more = if g.len() > MAX_MEMBERS { ",.." } else { "" };
            format!("{{{}{more}}}", ids.join(","))
        })
        .collect();
    out.push_str(&words.join(", "));
    if count as usize > MAX_GROUPS {
        out.push_str(", ..");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(labels: &[u32], mesh: &str) -> String {
        let mut c = DeviceClasses::new(labels.len());
        let id = c.of_keys(labels);
        describe(&c, id, &Mesh::parse_sdy(mesh))
    }

    #[test]
    fn axes_by_name_by_stride_or_by_group() {
        let mesh = "#sdy.mesh<[\"fsdp\"=2, \"tp\"=2]>";
        assert_eq!(words(&[0, 0, 1, 1], mesh), "`tp`");
        assert_eq!(words(&[0, 1, 0, 1], mesh), "`fsdp`");
        assert_eq!(words(&[0, 0, 0, 0], mesh), "`fsdp` and `tp`");
        assert_eq!(words(&[0, 0, 0, 0], ""), "all 4 devices");
        assert_eq!(words(&[0, 1, 0, 1], ""), "an axis of size 2 (stride 2)");
        assert_eq!(words(&[0, 1, 1, 0], mesh), "2 groups of 2: {0,3}, {1,2}");
        assert_eq!(words(&[0, 0, 0, 1], mesh), "2 groups: {0,1,2}, {3}");
        assert_eq!(words(&[0, 0, 1, 2], mesh), "3 groups: {0,1}, {2}, {3}");
    }

    #[test]
    fn a_mesh_may_number_its_devices_otherwise() {
        let mesh = "#sdy.mesh<[\"a\"=2, \"b\"=2], device_ids=[0, 2, 1, 3]>";
        assert_eq!(words(&[0, 0, 1, 1], mesh), "`a`");
    }
}
