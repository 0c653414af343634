//! Small integers that differ by device and whose values can be worked out: the device's number,
//! what a constant table holds for it, arithmetic on that. Compilers cut tensors by such offsets,
//! so devices with equal offsets cut equal parts; without this each would count as different.
//!
//! Values are worked out only where a computation has a single caller, so that they hold
//! whenever it runs.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::graph::{Builder, Nodes};
use crate::hlo::decode::schema::{hlo_instruction, literal};
use crate::hlo::decode::wire::{bytes_of, fields, numbers, Value};
use crate::hlo::{ComputationId, ElementType, HloModule, InstructionId, Opcode};

/// Calls nested deeper than this are not looked into.
const MAX_DEPTH: u32 = 128;
/// Numbers kept at most.
const MAX_VALUES: usize = 1 << 23;

/// What is known of an integer array.
#[derive(Debug, Clone)]
enum Known {
    /// The same on all devices: its elements.
    Table(Rc<[i64]>),
    /// One element, by device.
    Device(Rc<[i64]>),
}

#[derive(Debug)]
struct Evaluator {
    devices: usize,
    partitions: usize,
    values: FxHashMap<u32, Known>,
    kept: usize,
}

impl Builder<'_, '_> {
    /// Pins every node whose value is known by device; returns the pinned nodes.
    pub(crate) fn pin_known(&mut self) -> Vec<u32> {
        let module = self.module;
        let varying = module
            .instructions
            .iter()
            .any(|i| matches!(i.opcode, Opcode::PartitionId | Opcode::ReplicaId));
        let Some(entry) = module.entry.filter(|_| varying) else {
            return Vec::new();
        };
        let mut e = Evaluator {
            devices: self.classes.devices(),
            partitions: self.partitions() as usize,
            values: FxHashMap::default(),
            kept: 0,
        };
        e.computation(self, entry, &[], 0);
        let mut pinned: Vec<(u32, Rc<[i64]>)> = e
            .values
            .into_iter()
            .filter_map(|(n, v)| match v {
                Known::Device(values) => Some((n, values)),
                Known::Table(_) => None,
            })
            .collect();
        pinned.sort_unstable_by_key(|p| p.0);
        pinned
            .into_iter()
            .map(|(n, values)| {
                if let Some(s) = self.graph.seed.get_mut(n as usize) {
                    *s = self.classes.of_keys(&values);
                }
                n
            })
            .collect()
    }
}

/// Whether one instruction alone runs a computation, or it is the entry.
fn runs_once(module: &HloModule<'_>, c: ComputationId) -> bool {
    module.callers(c).len() + usize::from(module.entry == Some(c)) == 1
}

impl Evaluator {
    fn computation(
        &mut self,
        b: &Builder<'_, '_>,
        c: ComputationId,
        arguments: &[InstructionId],
        depth: u32,
    ) {
        if depth > MAX_DEPTH || !runs_once(b.module, c) {
            return;
        }
        for &p in b.module.parameters(c) {
            let number = b.module.instruction(p).parameter_number;
            if let Some(&a) = arguments.get(number as usize) {
                self.copy(b.graph.nodes(a), b.graph.nodes(p));
            }
        }
        for i in b.module.computation(c).instructions() {
            self.instruction(b, i, depth);
        }
    }

    fn copy(&mut self, from: Nodes, to: Nodes) {
        if from.count == to.count {
            for k in 0..to.count {
                if let Some(v) = self.values.get(&(from.from + k)).cloned() {
                    self.keep(to.from + k, v);
                }
            }
        }
    }

    fn keep(&mut self, node: u32, v: Known) {
        let (Known::Table(x) | Known::Device(x)) = &v;
        self.kept += x.len();
        if self.kept <= MAX_VALUES {
            self.values.insert(node, v);
        }
    }

    fn of(&self, b: &Builder<'_, '_>, i: InstructionId) -> Option<&Known> {
        self.values.get(&b.graph.nodes(i).from)
    }

    fn instruction(&mut self, b: &Builder<'_, '_>, i: InstructionId, depth: u32) {
        let inst = b.module.instruction(i);
        let operands = b.module.operands(i);
        let called = b.module.called(i);
        let to = b.graph.nodes(i);
        match inst.opcode {
            Opcode::PartitionId => {
                let ids = (0..self.devices).map(|d| (d % self.partitions.max(1)) as i64);
                self.keep(to.from, Known::Device(ids.collect()));
            }
            Opcode::ReplicaId => {
                let ids = (0..self.devices).map(|d| (d / self.partitions.max(1)) as i64);
                self.keep(to.from, Known::Device(ids.collect()));
            }
            Opcode::Constant => {
                if let Some(t) = table(b, i, self.devices) {
                    self.keep(to.from, Known::Table(t.into()));
                }
            }
            Opcode::Fusion | Opcode::Call => {
                if let [c] = called {
                    self.computation(b, *c, operands, depth + 1);
                    if runs_once(b.module, *c) {
                        if let Some(root) = b.module.computation(*c).root {
                            self.copy(b.graph.nodes(root), to);
                        }
                    }
                }
            }
            Opcode::While
            | Opcode::Conditional
            | Opcode::AsyncStart
            | Opcode::AsyncUpdate
            | Opcode::AsyncDone => {
                for &c in called {
                    self.computation(b, c, &[], depth + 1);
                }
            }
            Opcode::Tuple => {
                for (k, &o) in operands.iter().enumerate() {
                    if let Some(part) = b.graph.element(i, k as u32) {
                        self.copy(b.graph.nodes(o), part);
                    }
                }
            }
            Opcode::GetTupleElement => {
                let element = operands
                    .first()
                    .and_then(|&o| b.graph.element(o, inst.tuple_index));
                if let Some(from) = element {
                    self.copy(from, to);
                }
            }
            Opcode::CopyStart | Opcode::CopyDone => {
                if let Some(v) = operands.first().and_then(|&o| self.of(b, o)).cloned() {
                    self.keep(to.from, v);
                }
            }
            _ => {
                if let Some(v) = self.arithmetic(b, i) {
                    self.keep(to.from, v);
                }
            }
        }
    }

    fn arithmetic(&self, b: &Builder<'_, '_>, i: InstructionId) -> Option<Known> {
        let op = b.module.instruction(i).opcode;
        let operands = b.module.operands(i);
        let known: Vec<&Known> = operands
            .iter()
            .map(|&o| self.of(b, o))
            .collect::<Option<_>>()?;
        let shape = b.module.shape(i);
        let ty = shape.element_type;
        if known.is_empty() || !is_integer(ty) {
            return None;
        }
        if let (Known::Table(t), Opcode::Copy | Opcode::Bitcast | Opcode::Reshape) =
            (known.first()?, op)
        {
            let kept = shape.element_count() == t.len() as u64 && same_type(b, operands, ty);
            return kept.then(|| Known::Table(t.clone()));
        }
        if shape.element_count() != 1 || !known.iter().any(|k| matches!(k, Known::Device(_))) {
            return None;
        }
        if op == Opcode::DynamicSlice {
            let [Known::Table(t), Known::Device(at)] = known[..] else {
                return None;
            };
            let last = t.len().checked_sub(1)?;
            let pick = |&n: &i64| t.get(usize::try_from(n).unwrap_or(0).min(last)).copied();
            return Some(Known::Device(at.iter().map(pick).collect::<Option<_>>()?));
        }
        // Mixed types would need a conversion that is not spelled out.
        if op != Opcode::Convert && !same_type(b, operands, ty) {
            return None;
        }
        let value = |k: usize, device: usize| match known.get(k)? {
            Known::Table(t) if t.len() == 1 => t.first().copied(),
            Known::Table(_) => None,
            Known::Device(v) => v.get(device).copied(),
        };
        (0..self.devices)
            .map(|d| {
                let x = value(0, d)?;
                let out = match (op, known.len()) {
                    (
                        Opcode::Copy
                        | Opcode::Bitcast
                        | Opcode::Reshape
                        | Opcode::Broadcast
                        | Opcode::Convert,
                        1,
                    ) => x.into(),
                    (Opcode::Clamp, 3) => i128::from(value(1, d)?.max(x).min(value(2, d)?)),
                    (_, 2) => binary(op, x, value(1, d)?)?,
                    _ => return None,
                };
                wrap(ty, out)
            })
            .collect::<Option<Rc<[i64]>>>()
            .map(Known::Device)
    }
}

fn binary(op: Opcode, x: i64, y: i64) -> Option<i128> {
    let (a, b) = (i128::from(x), i128::from(y));
    Some(match op {
        Opcode::Add => a + b,
        Opcode::Subtract => a - b,
        Opcode::Multiply => a * b,
        Opcode::Divide => a.checked_div(b)?,
        Opcode::Remainder => a.checked_rem(b)?,
        Opcode::And => a & b,
        Opcode::Or => a | b,
        Opcode::Xor => a ^ b,
        Opcode::Maximum => a.max(b),
        Opcode::Minimum => a.min(b),
        Opcode::ShiftLeft if (0..32).contains(&b) => a << b,
        Opcode::ShiftRightLogical if (0..32).contains(&b) && a >= 0 => a >> b,
        Opcode::ShiftRightArithmetic if (0..32).contains(&b) => a >> b,
        _ => return None,
    })
}

fn same_type(b: &Builder<'_, '_>, operands: &[InstructionId], ty: ElementType) -> bool {
    operands
        .iter()
        .all(|&o| b.module.shape(o).element_type == ty)
}

fn is_integer(ty: ElementType) -> bool {
    matches!(&*ty.name(), "s32" | "u32" | "s64" | "u64")
}

/// The value that a type holds after overflow; `None` where this file cannot represent it.
fn wrap(ty: ElementType, v: i128) -> Option<i64> {
    match &*ty.name() {
        "s32" => Some(i64::from(v as i32)),
        "u32" => Some(i64::from(v as u32)),
        "s64" => Some(v as i64),
        "u64" => i64::try_from(v as u64).ok(),
        _ => None,
    }
}

/// Elements of a small one-dimensional integer constant.
fn table(b: &Builder<'_, '_>, i: InstructionId, devices: usize) -> Option<Vec<i64>> {
    let inst = b.module.instruction(i);
    let limit = devices.max(16) * 12 + 256;
    if inst.raw.len() > limit.saturating_add(4096) {
        return None;
    }
    let shape = b.module.shape(i);
    if !is_integer(shape.element_type) || shape.dimensions.iter().filter(|&&d| d != 1).count() > 1 {
        return None;
    }
    let values = bytes_of(inst.raw, hlo_instruction::LITERAL)?;
    let wanted = match &*shape.element_type.name() {
        "s32" => literal::S32S,
        "s64" => literal::S64S,
        "u32" => literal::U32S,
        _ => literal::U64S,
    };
    let mut out = Vec::new();
    let mut fits = true;
    for field in fields(values) {
        match field.ok()? {
            (n, v) if n == wanted => {
                if let Value::Fixed32(_) | Value::Fixed64(_) = v {
                    return None;
                }
                numbers(v, |x| {
                    match wrap(shape.element_type, i128::from(x as i64)) {
                        Some(x) => out.push(x),
                        None => fits = false,
                    }
                })
                .ok()?;
            }
            _ => {}
        }
    }
    (fits && out.len() as u64 == shape.element_count()).then_some(out)
}
