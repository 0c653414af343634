//! Which devices a dump was compiled for.
//!
//! In: a dump's `target_arguments.pb`, or a chip and a number of devices. Out: a topology's name,
//! `v6e:2x4`.

use crate::hlo::decode::wire::{bytes_of, fields, text, Value};

/// Fields of libtpu's `target_arguments.pb`, as far as they were read out of dumps for known
/// topologies.
mod field {
    pub(super) const TOPOLOGY: u32 = 6;
    pub(super) const GENERATION: u32 = 1;
    pub(super) const VARIANT: u32 = 2;
    pub(super) const CHIPS_OF_A_HOST: u32 = 5;
    pub(super) const HOSTS: u32 = 6;
}

/// Chips as topologies name them, by generation and variant, and whether their mesh has three
/// dimensions.
const CHIPS: &[(u64, &str, &str, bool)] = &[
    (1, "", "v2", false),
    (2, "", "v3", false),
    (3, "", "v4", true),
    (4, "lite", "v5e", false),
    (4, "", "v5p", true),
    (5, "", "v6e", false),
    (6, "", "tpu7x", true),
];

/// The topology in a dump's `target_arguments.pb`; `None` where it names none that is known.
pub fn topology_of_dump(target_arguments: &[u8]) -> Option<String> {
    let topology = bytes_of(target_arguments, field::TOPOLOGY)?;
    let mut generation = 0;
    let mut variant = "";
    let (mut chips, mut hosts) = ([1u64; 3], [1u64; 3]);
    for f in fields(topology) {
        match f.ok()? {
            (field::GENERATION, Value::Varint(n)) => generation = n,
            (field::VARIANT, Value::Bytes(b)) => variant = text(b),
            (field::CHIPS_OF_A_HOST, Value::Bytes(b)) => chips = bounds(b)?,
            (field::HOSTS, Value::Bytes(b)) => hosts = bounds(b)?,
            _ => {}
        }
    }
    let known = |c: &&(u64, &str, &str, bool)| c.0 == generation && c.1 == variant;
    let (_, _, name, three) = CHIPS.iter().find(known)?;
    let size = |d: usize| chips[d].checked_mul(hosts[d]);
    let (x, y, z) = (size(0)?, size(1)?, size(2)?);
    Some(match three {
        true => format!("{name}:{x}x{y}x{z}"),
        false => format!("{name}:{x}x{y}"),
    })
}

fn bounds(message: &[u8]) -> Option<[u64; 3]> {
    let mut out = [1; 3];
    for f in fields(message) {
        if let (number, Value::Varint(n)) = f.ok()? {
            if let Some(at) = (number as usize)
                .checked_sub(1)
                .and_then(|d| out.get_mut(d))
            {
                *at = n.max(1);
            }
        }
    }
    Some(out)
}

/// A topology with `devices` devices of a chip that is given without a shape: `v6e`, 8 → `v6e:2x4`.
/// A name with a shape is given back as it is; `None` where no usual shape has as many.
pub fn shape_for(name: &str, devices: usize) -> Option<String> {
    if name.contains(':') {
        return Some(name.to_owned());
    }
    let chip = CHIPS.iter().find(|c| c.2 == name)?;
    // These have two cores a chip, each a device.
    let of_a_chip = if matches!(name, "v2" | "v3" | "v4" | "tpu7x") {
        2
    } else {
        1
    };
    if !devices.is_multiple_of(of_a_chip) {
        return None;
    }
    let chips = devices / of_a_chip;
    let flat = [
        (1, 1),
        (2, 2),
        (2, 4),
        (4, 4),
        (4, 8),
        (8, 8),
        (8, 16),
        (16, 16),
    ];
    if !chip.3 {
        let shape = flat.iter().find(|(x, y)| x * y == chips)?;
        return Some(format!("{name}:{}x{}", shape.0, shape.1));
    }
    let (mut shape, mut next) = ([2, 2, 1], 2);
    while shape.iter().product::<usize>() < chips {
        shape[next] *= 2;
        next = match shape {
            [x, y, z] if y == x && z > y => 1,
            [x, y, z] if x < y && y == z => 0,
            _ => 2,
        };
    }
    let fits = shape.iter().product::<usize>() == chips;
    fits.then(|| format!("{name}:{}x{}x{}", shape[0], shape[1], shape[2]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::wire_out::Message;

    fn arguments(generation: u64, variant: &str, chips: [u64; 3], hosts: [u64; 3]) -> Vec<u8> {
        let mut out = Message::default();
        out.message(6, |t| {
            t.number(1, generation);
            if !variant.is_empty() {
                t.bytes(2, variant.as_bytes());
            }
            for (field, bounds) in [(5, chips), (6, hosts)] {
                t.message(field, |b| {
                    for (i, n) in (1..).zip(bounds) {
                        b.number(i, n);
                    }
                });
            }
        });
        out.0
    }

    #[test]
    fn dumps_name_their_topology() {
        let of = |g, v, c, h| topology_of_dump(&arguments(g, v, c, h));
        assert_eq!(of(4, "lite", [2, 2, 1], [2, 2, 1]).unwrap(), "v5e:4x4");
        assert_eq!(of(4, "", [2, 2, 1], [1, 1, 1]).unwrap(), "v5p:2x2x1");
        assert_eq!(of(5, "", [1, 1, 1], [1, 1, 1]).unwrap(), "v6e:1x1");
        assert_eq!(of(3, "", [2, 2, 1], [1, 2, 4]).unwrap(), "v4:2x4x4");
        assert_eq!(of(9, "", [2, 2, 1], [1, 1, 1]), None);
        assert_eq!(topology_of_dump(b"\x32\x7f"), None);
    }

    #[test]
    fn a_chip_alone_gets_a_shape() {
        let of = |name, devices| shape_for(name, devices);
        assert_eq!(of("v6e", 8).unwrap(), "v6e:2x4");
        assert_eq!(of("v5e", 1).unwrap(), "v5e:1x1");
        assert_eq!(of("v5p", 4).unwrap(), "v5p:2x2x1");
        assert_eq!(of("v5p", 16).unwrap(), "v5p:2x2x4");
        assert_eq!(of("v5p", 64).unwrap(), "v5p:4x4x4");
        assert_eq!(of("tpu7x", 8).unwrap(), "tpu7x:2x2x1");
        assert_eq!(of("v6e:3x3", 8).unwrap(), "v6e:3x3");
        assert_eq!(of("v6e", 3), None);
        assert_eq!(of("h100", 4), None);
    }
}
