//! XSpace bytes → the programs inside, and what kind of machine ran them. Planes are walked field
//! by field; the lines of events, most of any profile, are stepped over unread.

use super::schema::{x_event_metadata, x_plane, x_space, x_stat};
use crate::hlo::decode::schema::map_entry;
use crate::hlo::decode::wire::{fields, fields_of_truncated, text, Value, WireError, WireResult};

/// What an XSpace holds, as far as memory analysis goes.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct XSpace<'a> {
    /// Programs of the metadata plane, in file order.
    pub programs: Vec<XProgram<'a>>,
    /// Every plane, in file order.
    pub planes: Vec<XPlaneInfo<'a>>,
    /// Host names that the profile covers.
    pub hostnames: Vec<&'a str>,
    /// Whether a metadata plane is there (it may still hold no program).
    pub has_metadata_plane: bool,
    /// Whether the file ends early; what came before is here.
    pub truncated_at: Option<usize>,
    /// A plane that could not be read to its end: name and what was wrong.
    pub damaged_planes: Vec<(&'a str, WireError)>,
    /// Whether the host's plane has allocator events.
    pub has_allocator_events: bool,
}

/// One program in a profile.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct XProgram<'a> {
    /// Name without the program id, `jit_step`.
    pub name: &'a str,
    /// Program id.
    pub program_id: u64,
    /// Serialized HloProto.
    pub hlo: &'a [u8],
}

/// One plane.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct XPlaneInfo<'a> {
    /// `/device:TPU:0`, `/host:CPU`.
    pub name: &'a str,
    /// Number of lines (threads, streams).
    pub line_count: usize,
    /// Bytes of those lines.
    pub line_bytes: u64,
    /// Text statistics of the plane, such as `device_type_string`: name and value.
    pub text_stats: Vec<(&'a str, &'a str)>,
    /// Whole-number statistics of the plane.
    pub number_stats: Vec<(&'a str, u64)>,
}

impl<'a> XSpace<'a> {
    /// Kind of the devices, as the profiler names it: `TPU v6 lite`.
    pub fn device_kind(&self) -> Option<&'a str> {
        let devices = self
            .planes
            .iter()
            .filter(|p| p.name.starts_with("/device:"));
        devices
            .flat_map(|p| &p.text_stats)
            .find(|(name, value)| {
                matches!(
                    *name,
                    "device_type_string" | "device_kind" | "gpu_model_name"
                ) && !value.is_empty()
            })
            .map(|(_, value)| *value)
    }

    /// Number of device planes.
    pub fn device_count(&self) -> usize {
        self.planes.iter().filter(|p| is_device(p.name)).count()
    }
}

fn is_device(plane: &str) -> bool {
    plane.starts_with("/device:TPU:") || plane.starts_with("/device:GPU:")
}

/// Reads an XSpace. Damage inside one plane costs that plane alone; a file that ends early gives
/// what came before.
///
/// # Errors
/// Bytes that are not protobuf from the start.
pub fn decode_xspace(bytes: &[u8]) -> WireResult<XSpace<'_>> {
    let mut out = XSpace::default();
    let mut walk = fields_of_truncated(bytes);
    let mut index = 0;
    for field in walk.by_ref() {
        match field {
            Ok((x_space::PLANES, Value::Bytes(b))) => {
                plane(b, &mut out, index);
                index += 1;
            }
            Ok((x_space::HOSTNAMES, Value::Bytes(b))) => out.hostnames.push(text(b)),
            Ok(_) => {}
            Err(e) if index == 0 => return Err(e.within("planes", Some(index))),
            Err(e) => out.truncated_at = Some(e.offset_in(bytes) as usize),
        }
    }
    if walk.truncated() {
        out.truncated_at = Some(bytes.len());
    }
    Ok(out)
}

fn plane<'a>(bytes: &'a [u8], out: &mut XSpace<'a>, index: usize) {
    let mut info = XPlaneInfo::default();
    let mut events = Vec::new();
    let mut stat_names = Vec::new();
    let mut stats = Vec::new();
    let mut damage = None;
    for field in fields_of_truncated(bytes) {
        match field {
            Ok((x_plane::NAME, Value::Bytes(b))) => info.name = text(b),
            Ok((x_plane::LINES, Value::Bytes(b))) => {
                info.line_count += 1;
                info.line_bytes += b.len() as u64;
            }
            Ok((x_plane::EVENT_METADATA, Value::Bytes(b))) => events.push(b),
            Ok((x_plane::STAT_METADATA, Value::Bytes(b))) => stat_names.push(b),
            Ok((x_plane::STATS, Value::Bytes(b))) => stats.push(b),
            Ok(_) => {}
            Err(e) => damage = Some(e.within("planes", Some(index))),
        }
    }
    let is_metadata = info.name == "/host:metadata";
    let is_host = info.name.starts_with("/host:");
    let stat_name = |id: u64| lookup(&stat_names, id);
    if is_device(info.name) {
        for (name, value) in stats
            .iter()
            .filter_map(|b| stat(b).ok())
            .filter_map(|s| Some((stat_name(s.0)?, s.1?)))
        {
            match value {
                StatValue::Text(t) => info.text_stats.push((name, t)),
                StatValue::Number(n) => info.number_stats.push((name, n)),
                StatValue::Reference(id) => {
                    info.text_stats.extend(stat_name(id).map(|t| (name, t)));
                }
            }
        }
    }
    if is_metadata {
        out.has_metadata_plane = true;
        let names: Vec<(u64, &str)> = stat_names.iter().filter_map(|b| named_entry(b)).collect();
        for (i, b) in events.iter().enumerate() {
            match program(b, &names) {
                Ok(Some(p)) => out.programs.push(p),
                Ok(None) => {}
                Err(e) => damage = Some(e.within("event_metadata", Some(i))),
            }
        }
    } else if is_host && !out.has_allocator_events {
        out.has_allocator_events = events
            .iter()
            .any(|b| named_entry(b).is_some_and(|(_, n)| n == "MemoryAllocation"));
    }
    if let Some(e) = damage {
        out.damaged_planes.push((info.name, e));
    }
    out.planes.push(info);
}

enum StatValue<'a> {
    Text(&'a str),
    Number(u64),
    Reference(u64),
}

/// Name's id and value of an XStat.
fn stat(bytes: &[u8]) -> WireResult<(u64, Option<StatValue<'_>>)> {
    let (mut id, mut value) = (0, None);
    for field in fields(bytes) {
        match field? {
            (x_stat::METADATA_ID, Value::Varint(v)) => id = v,
            (x_stat::UINT64_VALUE | x_stat::INT64_VALUE, Value::Varint(v)) => {
                value = Some(StatValue::Number(v))
            }
            (x_stat::STR_VALUE | x_stat::BYTES_VALUE, Value::Bytes(b)) => {
                value = Some(StatValue::Text(text(b)))
            }
            (x_stat::REF_VALUE, Value::Varint(v)) => value = Some(StatValue::Reference(v)),
            _ => {}
        }
    }
    Ok((id, value))
}

/// Key and name of one entry of a metadata map.
fn named_entry(entry: &[u8]) -> Option<(u64, &str)> {
    let (mut key, mut name) = (0, "");
    for field in fields(entry) {
        match field.ok()? {
            (map_entry::KEY, Value::Varint(v)) => key = v,
            (map_entry::VALUE, Value::Bytes(b)) => {
                for field in fields(b) {
                    match field.ok()? {
                        (x_event_metadata::NAME, Value::Bytes(n)) => {
                            name = text(n);
                            break;
                        }
                        (n, _) if n > 2 => break,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Some((key, name))
}

fn lookup<'a>(entries: &[&'a [u8]], id: u64) -> Option<&'a str> {
    entries
        .iter()
        .filter_map(|b| named_entry(b))
        .find(|(k, _)| *k == id)
        .map(|(_, n)| n)
}

/// A program from an entry of the metadata plane's event_metadata; `None` for entries without HLO.
fn program<'a>(entry: &'a [u8], stat_names: &[(u64, &str)]) -> WireResult<Option<XProgram<'a>>> {
    let (mut key, mut metadata) = (0u64, &[][..]);
    for field in fields(entry) {
        match field? {
            (map_entry::KEY, Value::Varint(v)) => key = v,
            (map_entry::VALUE, Value::Bytes(b)) => metadata = b,
            _ => {}
        }
    }
    let named = |id: u64, wanted: &str| {
        stat_names.iter().any(|(k, n)| {
            *k == id
                && n.chars()
                    .filter(|c| c.is_ascii_alphanumeric())
                    .map(|c| c.to_ascii_lowercase())
                    .eq(wanted.chars())
        })
    };
    let (mut name, mut hlo, mut program_id) = ("", None, None);
    for field in fields(metadata) {
        match field? {
            (x_event_metadata::NAME, Value::Bytes(b)) => name = text(b),
            (x_event_metadata::STATS, Value::Bytes(b)) => {
                let (mut id, mut bytes, mut number) = (0, None, None);
                for field in fields(b) {
                    match field? {
                        (x_stat::METADATA_ID, Value::Varint(v)) => id = v,
                        (x_stat::UINT64_VALUE | x_stat::INT64_VALUE, Value::Varint(v)) => {
                            number = Some(v)
                        }
                        (x_stat::BYTES_VALUE, Value::Bytes(v)) => bytes = Some(v),
                        _ => {}
                    }
                }
                if bytes.is_some() && named(id, "hloproto") {
                    hlo = bytes;
                } else if number.is_some() && named(id, "programid") {
                    program_id = number;
                }
            }
            _ => {}
        }
    }
    Ok(hlo.map(|hlo| XProgram {
        name: without_program_id(name),
        program_id: program_id.unwrap_or(key),
        hlo,
    }))
}

/// `jit_step(6)` → `jit_step`.
fn without_program_id(name: &str) -> &str {
    name.strip_suffix(')')
        .and_then(|s| s.rsplit_once('('))
        .filter(|(_, id)| !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()))
        .map_or(name, |(s, _)| s)
}
