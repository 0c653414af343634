//! A CompileOptionsProto: how many devices, what the dump is to hold, and flags.

use super::wire_out::Message;

/// Fields of XLA's `compile_options.proto`.
mod field {
    pub(super) const BUILD_OPTIONS: u32 = 3;
    pub(super) const PROFILE_VERSION: u32 = 5;
    pub(super) const ENV_OPTION_OVERRIDES: u32 = 7;
    pub(super) const DEVICE_ORDINAL: u32 = 1;
    pub(super) const NUM_REPLICAS: u32 = 4;
    pub(super) const NUM_PARTITIONS: u32 = 5;
    pub(super) const USE_SPMD: u32 = 6;
    pub(super) const DEVICE_ASSIGNMENT: u32 = 9;
    pub(super) const OUTPUTS_MAY_SPREAD: u32 = 12;
    pub(super) const PARAMETERS_MAY_SPREAD: u32 = 18;
    pub(super) const USE_SHARDY: u32 = 19;
    pub(super) const STRING: u32 = 1;
    pub(super) const BOOL: u32 = 2;
    pub(super) const INT: u32 = 3;
    pub(super) const DOUBLE: u32 = 4;
}

/// A flag's value as the compiler takes it.
#[derive(Debug, Clone, PartialEq)]
pub enum FlagValue {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a point.
    Double(f64),
    /// Anything else.
    Text(String),
}

impl FlagValue {
    /// A value as it is written on a command line.
    pub fn parse(text: &str) -> FlagValue {
        if let Ok(b) = text.parse() {
            return FlagValue::Bool(b);
        }
        let number = text.parse().map(FlagValue::Int);
        let number = number.or_else(|_| text.parse().map(FlagValue::Double));
        match number {
            Ok(FlagValue::Double(d)) if !d.is_finite() => FlagValue::Text(text.to_owned()),
            Ok(number) => number,
            Err(_) => FlagValue::Text(text.to_owned()),
        }
    }
}

/// How a program is to be compiled, apart from its flags.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildOptions {
    /// Runs of the program on other data.
    pub replicas: u32,
    /// Parts of one run.
    pub partitions: u32,
    /// Whether Shardy partitions it.
    pub shardy: bool,
    /// Whether the compiler may choose an output's sharding: one for each, or one for all.
    pub outputs_may_spread: Vec<bool>,
    /// The same for arguments.
    pub parameters_may_spread: Vec<bool>,
    /// Which device has which part, a serialised DeviceAssignmentProto; `None` = in order.
    pub device_assignment: Option<Vec<u8>>,
}

/// Devices in the order of their numbers.
fn in_order(build: &BuildOptions, d: &mut Message) {
    d.number(1, build.replicas.into());
    d.number(2, build.partitions.into());
    for partition in 0..build.partitions {
        let device =
            |replica: u32| u64::from(replica) * u64::from(build.partitions) + u64::from(partition);
        d.message(3, |c| {
            c.packed(1, (0..build.replicas).map(device));
        });
    }
}

/// The bytes of the message.
pub(crate) fn compile_options(build: &BuildOptions, flags: &[(String, FlagValue)]) -> Vec<u8> {
    let mut out = Message::default();
    out.message(field::BUILD_OPTIONS, |b| {
        b.number(field::DEVICE_ORDINAL, u64::MAX);
        b.number(field::NUM_REPLICAS, build.replicas.into());
        b.number(field::NUM_PARTITIONS, build.partitions.into());
        b.number(field::USE_SPMD, 1);
        match &build.device_assignment {
            Some(bytes) => b.bytes(field::DEVICE_ASSIGNMENT, bytes),
            None => b.message(field::DEVICE_ASSIGNMENT, |d| in_order(build, d)),
        };
        let spread = build.outputs_may_spread.iter().map(|&s| u64::from(s));
        b.packed(field::OUTPUTS_MAY_SPREAD, spread);
        let spread = build.parameters_may_spread.iter().map(|&s| u64::from(s));
        b.packed(field::PARAMETERS_MAY_SPREAD, spread);
        b.number(field::USE_SHARDY, build.shardy.into());
    });
    out.number(field::PROFILE_VERSION, u64::MAX);
    for (name, value) in flags {
        out.message(field::ENV_OPTION_OVERRIDES, |entry| {
            entry.bytes(1, name.as_bytes());
            entry.message(2, |v| {
                match value {
                    FlagValue::Bool(b) => v.number(field::BOOL, (*b).into()),
                    FlagValue::Int(n) => v.number(field::INT, *n as u64),
                    FlagValue::Double(d) => v.double(field::DOUBLE, *d),
                    FlagValue::Text(t) => v.bytes(field::STRING, t.as_bytes()),
                };
            });
        });
    }
    out.0
}
