//! The unoptimised module of a dump, ready to be compiled again: with the donations that only the
//! optimised module names, and with how it is partitioned.
//!
//! In: the bytes of both modules, and of `execution_options.pb` where the dump has it. Out:
//! [`Unoptimised`].

use super::options::BuildOptions;
use super::wire_out::Message;
use crate::hlo::decode::schema::{device_assignment, hlo, hlo_module, hlo_snapshot};
use crate::hlo::decode::wire::{bytes_of, fields, numbers, text, Value, WireResult};
use crate::hlo::HloContainer;

/// Fields of XLA's `ExecutionOptions`.
mod execution {
    pub(super) const NUM_REPLICAS: u32 = 6;
    pub(super) const NUM_PARTITIONS: u32 = 9;
    pub(super) const SPREAD_TO_OUTPUT: u32 = 14;
    pub(super) const SPREAD_TO_PARAMETERS: u32 = 23;
    pub(super) const USE_SHARDY: u32 = 24;
}

/// A module to compile.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unoptimised {
    /// A serialised HloModuleProto.
    pub module: Vec<u8>,
    /// The module's name.
    pub name: String,
    /// How it is partitioned.
    pub build: BuildOptions,
}

/// The module of a file, whatever it is wrapped in; `None` where there is none.
pub(crate) fn module_of(bytes: &[u8], container: HloContainer) -> Option<&[u8]> {
    let proto = match container {
        HloContainer::Module => return Some(bytes),
        HloContainer::Proto => bytes,
        HloContainer::Snapshot => bytes_of(bytes, hlo_snapshot::HLO)?,
    };
    bytes_of(proto, hlo::HLO_MODULE)
}

/// Reads what is to be compiled. `devices` are replicas and partitions by the optimised module, for
/// dumps without `execution_options.pb`.
///
/// # Errors
/// A damaged module.
pub fn unoptimised(
    before: &[u8],
    after: Option<&[u8]>,
    execution_options: Option<&[u8]>,
    devices: (u32, u32),
) -> WireResult<Unoptimised> {
    // A module that still names its donors, or aliases of its own, is compiled as it was. Where the
    // dump has lost both, the optimised module tells what came of them.
    let says = |number| bytes_of(before, number).is_some_and(|b| !b.is_empty());
    let lost = !says(hlo_module::INPUT_OUTPUT_ALIAS) && !says(hlo_module::BUFFER_DONOR);
    let aliases = after.and_then(|m| bytes_of(m, hlo_module::INPUT_OUTPUT_ALIAS));
    let aliases = aliases.filter(|_| lost);
    let mut out = Message::default();
    let (mut name, mut shardy) = ("", false);
    for f in fields(before) {
        let (number, value) = f.map_err(|e| e.within("hlo_module", None))?;
        match (number, value) {
            (hlo_module::INPUT_OUTPUT_ALIAS, _) if aliases.is_some() => continue,
            (hlo_module::NAME, Value::Bytes(b)) => name = text(b),
            (hlo_module::FRONTEND_ATTRIBUTES, Value::Bytes(b)) => {
                shardy |= contains(b, b"xla.sdy.meshes");
            }
            _ => {}
        }
        out.field(number, value);
    }
    if let Some(aliases) = aliases {
        out.bytes(hlo_module::INPUT_OUTPUT_ALIAS, aliases);
    }
    let mut build = BuildOptions {
        replicas: devices.0.max(1),
        partitions: devices.1.max(1),
        shardy,
        outputs_may_spread: vec![true],
        parameters_may_spread: vec![false],
        device_assignment: None,
    };
    if let Some(options) = execution_options {
        read_execution_options(options, &mut build)
            .map_err(|e| e.within("execution_options", None))?;
    }
    build.device_assignment = bytes_of(before, hlo_module::DEVICE_ASSIGNMENT)
        .filter(|b| is_of(b, &build))
        .map(<[u8]>::to_vec);
    Ok(Unoptimised {
        module: out.0,
        name: name.to_owned(),
        build,
    })
}

fn read_execution_options(options: &[u8], build: &mut BuildOptions) -> WireResult<()> {
    build.shardy = false;
    let (mut outputs, mut parameters) = (Vec::new(), Vec::new());
    for f in fields(options) {
        let (number, value) = f?;
        match (number, value) {
            (execution::NUM_REPLICAS, Value::Varint(n)) => build.replicas = count(n),
            (execution::NUM_PARTITIONS, Value::Varint(n)) => build.partitions = count(n),
            (execution::USE_SHARDY, Value::Varint(n)) => build.shardy = n != 0,
            (execution::SPREAD_TO_OUTPUT, v) => numbers(v, |n| outputs.push(n != 0))?,
            (execution::SPREAD_TO_PARAMETERS, v) => numbers(v, |n| parameters.push(n != 0))?,
            _ => {}
        }
    }
    build.outputs_may_spread = outputs;
    build.parameters_may_spread = parameters;
    Ok(())
}

/// Whether a DeviceAssignmentProto is of as many devices.
fn is_of(bytes: &[u8], build: &BuildOptions) -> bool {
    let number = |wanted: u32| {
        let mut all = fields(bytes).filter_map(Result::ok);
        all.find_map(|(n, v)| match v {
            Value::Varint(v) if n == wanted => Some(v),
            _ => None,
        })
    };
    number(device_assignment::REPLICA_COUNT) == Some(build.replicas.into())
        && number(device_assignment::COMPUTATION_COUNT) == Some(build.partitions.into())
}

fn count(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX).max(1)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(bytes, part).is_some()
}
