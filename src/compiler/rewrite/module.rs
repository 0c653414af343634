//! An unoptimised module that can be changed: computations as lists of instructions, each a record.

use super::record::Record;
use super::shape;
use crate::compiler::wire_out::Message;
use crate::hlo::decode::schema::{
    frontend_attributes, hlo_computation, hlo_instruction, hlo_module, map_entry, program_shape,
};
use crate::hlo::decode::wire::WireResult;

/// A module.
#[derive(Debug, Clone)]
pub(crate) struct Editable {
    /// Everything but its computations.
    pub(crate) head: Record,
    /// Its computations, in order.
    pub(crate) computations: Vec<Computation>,
    entry: usize,
}

/// A computation.
#[derive(Debug, Clone)]
pub(crate) struct Computation {
    /// Everything but its instructions.
    pub(crate) head: Record,
    /// Its instructions: an operand stands before those that use it.
    pub(crate) instructions: Vec<Record>,
    next_id: u64,
}

impl Editable {
    /// Reads a module.
    ///
    /// # Errors
    /// Damage.
    pub(crate) fn read(module: &[u8]) -> WireResult<Editable> {
        let mut head = Record::read(module)?;
        let mut computations = Vec::new();
        for bytes in head.all(hlo_module::COMPUTATIONS) {
            computations.push(Computation::read(bytes)?);
        }
        head.remove(hlo_module::COMPUTATIONS);
        let id = head.number(hlo_module::ENTRY_COMPUTATION_ID);
        let name = head.bytes(hlo_module::ENTRY_COMPUTATION_NAME);
        let by_id = |c: &Computation| c.head.number(hlo_computation::ID) == id && id != 0;
        let by_name = |c: &Computation| c.head.bytes(hlo_computation::NAME) == name;
        let entry = computations.iter().position(by_id);
        let entry = entry.or_else(|| computations.iter().position(by_name));
        let last = computations.len().saturating_sub(1);
        Ok(Editable {
            entry: entry.unwrap_or(last),
            head,
            computations,
        })
    }

    /// The module's bytes.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Message::default();
        self.head.write(&mut out);
        for c in &self.computations {
            out.message(hlo_module::COMPUTATIONS, |m| c.write(m));
        }
        out.0
    }

    /// The entry computation; `None` for a module without computations.
    pub(crate) fn entry(&mut self) -> Option<&mut Computation> {
        self.computations.get_mut(self.entry)
    }

    /// The same to look at.
    pub(crate) fn entry_ref(&self) -> Option<&Computation> {
        self.computations.get(self.entry)
    }

    /// Where the computation with that id stands.
    pub(crate) fn computation(&self, id: u64) -> Option<usize> {
        let mut ids = self.computations.iter();
        ids.position(|c| c.head.number(hlo_computation::ID) == id)
    }

    /// Where the entry computation stands.
    pub(crate) fn entry_position(&self) -> usize {
        self.entry
    }

    /// Drops computations that nothing calls.
    pub(crate) fn retain_reachable(&mut self) {
        let mut reached = vec![false; self.computations.len()];
        let mut open = vec![self.entry];
        while let Some(at) = open.pop() {
            let Some(seen) = reached.get_mut(at) else {
                continue;
            };
            if !std::mem::replace(seen, true) {
                let instructions = self.computations[at].instructions.iter();
                let called: Vec<u64> = instructions
                    .flat_map(|i| i.numbers(hlo_instruction::CALLED_COMPUTATION_IDS))
                    .collect();
                open.extend(called.into_iter().filter_map(|id| self.computation(id)));
            }
        }
        let before = reached.iter().take(self.entry);
        self.entry = before.filter(|r| **r).count();
        let mut reached = reached.into_iter();
        self.computations.retain(|_| reached.next().unwrap_or(true));
    }

    /// Changes the shape of an entry parameter, in all three places that have it.
    pub(crate) fn set_parameter_shape(&mut self, number: u64, change: &dyn Fn(&mut Record)) {
        let edit_list = |program: &[u8]| -> Option<Vec<u8>> {
            let mut program = Record::read(program).ok()?;
            let mut all: Vec<Vec<u8>> = program
                .all(program_shape::PARAMETERS)
                .map(<[u8]>::to_vec)
                .collect();
            let one = all.get_mut(usize::try_from(number).ok()?)?;
            *one = shape::changed(one, change)?;
            program.set_all(program_shape::PARAMETERS, all);
            Some(program.bytes_out())
        };
        if let Some(b) = edit_list(self.head.bytes(hlo_module::HOST_PROGRAM_SHAPE)) {
            self.head.set_bytes(hlo_module::HOST_PROGRAM_SHAPE, b);
        }
        let Some(entry) = self.entry() else { return };
        if let Some(b) = edit_list(entry.head.bytes(hlo_computation::PROGRAM_SHAPE)) {
            entry.head.set_bytes(hlo_computation::PROGRAM_SHAPE, b);
        }
        if let Some(i) = entry.parameter(number) {
            let i = &mut entry.instructions[i];
            if let Some(b) = shape::changed(i.bytes(hlo_instruction::SHAPE), change) {
                i.set_bytes(hlo_instruction::SHAPE, b);
            }
        }
    }

    /// Changes the result's shape in both heads and the root.
    pub(crate) fn set_result_shape(&mut self, change: &dyn Fn(&mut Record)) {
        let edit_result = |program: &[u8]| -> Option<Vec<u8>> {
            let mut program = Record::read(program).ok()?;
            let result = shape::changed(program.bytes(program_shape::RESULT), change)?;
            program.set_bytes(program_shape::RESULT, result);
            Some(program.bytes_out())
        };
        if let Some(b) = edit_result(self.head.bytes(hlo_module::HOST_PROGRAM_SHAPE)) {
            self.head.set_bytes(hlo_module::HOST_PROGRAM_SHAPE, b);
        }
        let Some(entry) = self.entry() else { return };
        if let Some(b) = edit_result(entry.head.bytes(hlo_computation::PROGRAM_SHAPE)) {
            entry.head.set_bytes(hlo_computation::PROGRAM_SHAPE, b);
        }
        if let Some(root) = entry.root() {
            let root = &mut entry.instructions[root];
            if let Some(b) = shape::changed(root.bytes(hlo_instruction::SHAPE), change) {
                root.set_bytes(hlo_instruction::SHAPE, b);
            }
        }
    }

    /// A list in the module's attributes, `arg_memory_spaces="0;0;5"`; empty without it.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        let attributes = self.head.bytes(hlo_module::FRONTEND_ATTRIBUTES);
        let value = attribute(attributes, name).unwrap_or_default();
        match value.is_empty() {
            true => Vec::new(),
            false => value.split(';').map(str::to_owned).collect(),
        }
    }

    /// Sets such a list.
    pub(crate) fn set_list(&mut self, name: &str, values: &[String]) {
        let attributes = self.head.bytes(hlo_module::FRONTEND_ATTRIBUTES);
        let new = with_attribute(attributes, name, &values.join(";"));
        self.head.set_bytes(hlo_module::FRONTEND_ATTRIBUTES, new);
    }
}

impl Computation {
    fn read(bytes: &[u8]) -> WireResult<Computation> {
        let mut head = Record::read(bytes)?;
        let mut instructions = Vec::new();
        for bytes in head.all(hlo_computation::INSTRUCTIONS) {
            instructions.push(Record::read(bytes)?);
        }
        head.remove(hlo_computation::INSTRUCTIONS);
        let ids = instructions.iter().map(|i| i.number(hlo_instruction::ID));
        let next_id = ids.max().unwrap_or(0).saturating_add(1);
        Ok(Computation {
            head,
            instructions,
            next_id,
        })
    }

    fn write(&self, out: &mut Message) {
        self.head.write(out);
        for i in &self.instructions {
            out.message(hlo_computation::INSTRUCTIONS, |m| i.write(m));
        }
    }

    /// An id that no instruction has. (Newer files number instructions within their computation,
    /// whose id is the upper half; older ones throughout the module, and then ids of other
    /// computations may be taken: those are far above or below, and only operands refer to them.)
    pub(crate) fn fresh_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    /// Adds an instruction with an id and a name of its own; its id. Where it stands is for
    /// [`sort`](Self::sort) to say.
    pub(crate) fn push(&mut self, mut new: Record) -> u64 {
        let id = self.fresh_id();
        let name = new.text(hlo_instruction::NAME);
        let name = match name.is_empty() {
            true => new.text(hlo_instruction::OPCODE),
            false => name,
        };
        let name = format!("{name}.x{id}");
        new.set_bytes(hlo_instruction::NAME, name.into_bytes());
        new.set_number(hlo_instruction::ID, id);
        self.instructions.push(new);
        id
    }

    /// Puts operands before what uses them, and leaves all else as it is.
    pub(crate) fn sort(&mut self) {
        let needs = |i: &Record| {
            let mut ids = i.numbers(hlo_instruction::OPERAND_IDS);
            ids.extend(i.numbers(hlo_instruction::CONTROL_PREDECESSOR_IDS));
            ids
        };
        let positions: rustc_hash::FxHashMap<u64, usize> = self
            .instructions
            .iter()
            .enumerate()
            .map(|(at, i)| (i.number(hlo_instruction::ID), at))
            .collect();
        let mut seen = vec![false; self.instructions.len()];
        let mut order = Vec::with_capacity(seen.len());
        for start in 0..seen.len() {
            let mut open: Vec<(usize, Vec<u64>)> = Vec::new();
            if !std::mem::replace(&mut seen[start], true) {
                open.push((start, needs(&self.instructions[start])));
            }
            while let Some((at, left)) = open.last_mut() {
                let next = left.pop().map(|id| positions.get(&id).copied());
                match next {
                    None => {
                        order.push(*at);
                        open.pop();
                    }
                    Some(Some(next)) if !std::mem::replace(&mut seen[next], true) => {
                        open.push((next, needs(&self.instructions[next])));
                    }
                    Some(_) => {}
                }
            }
        }
        let mut old: Vec<Option<Record>> = std::mem::take(&mut self.instructions)
            .into_iter()
            .map(Some)
            .collect();
        let sorted = order.into_iter().filter_map(|at| old[at].take());
        self.instructions = sorted.collect();
    }

    /// Where the parameter with that number stands.
    pub(crate) fn parameter(&self, number: u64) -> Option<usize> {
        self.instructions.iter().position(|i| {
            i.bytes(hlo_instruction::OPCODE) == b"parameter"
                && i.number(hlo_instruction::PARAMETER_NUMBER) == number
        })
    }

    /// Where the root stands.
    pub(crate) fn root(&self) -> Option<usize> {
        self.position(self.head.number(hlo_computation::ROOT_ID))
    }

    /// Where the instruction with that id stands.
    pub(crate) fn position(&self, id: u64) -> Option<usize> {
        let mut ids = self
            .instructions
            .iter()
            .map(|i| i.number(hlo_instruction::ID));
        ids.position(|i| i == id)
    }

    /// Puts an instruction behind another, whose users take it instead. `new` gets the other's id.
    pub(crate) fn insert_behind(&mut self, at: usize, mut new: Record) -> u64 {
        let id = self.fresh_id();
        let of = self.instructions[at].number(hlo_instruction::ID);
        new.set_number(hlo_instruction::ID, id);
        new.set_numbers(hlo_instruction::OPERAND_IDS, [of]);
        for user in &mut self.instructions {
            replace_operand(user, of, id);
        }
        if self.head.number(hlo_computation::ROOT_ID) == of {
            self.head.set_number(hlo_computation::ROOT_ID, id);
        }
        self.instructions.insert(at + 1, new);
        id
    }

    /// Puts an instruction in front of the root's operand number `operand` alone.
    pub(crate) fn insert_before_root(&mut self, operand: usize, mut new: Record) -> Option<u64> {
        let root = self.root()?;
        let mut operands = self.instructions[root].numbers(hlo_instruction::OPERAND_IDS);
        let id = self.fresh_id();
        let place = operands.get_mut(operand)?;
        new.set_number(hlo_instruction::ID, id);
        new.set_numbers(hlo_instruction::OPERAND_IDS, [*place]);
        *place = id;
        self.instructions[root].set_numbers(hlo_instruction::OPERAND_IDS, operands);
        self.instructions.insert(root, new);
        Some(id)
    }
}

fn replace_operand(user: &mut Record, old: u64, new: u64) {
    for field in [
        hlo_instruction::OPERAND_IDS,
        hlo_instruction::CONTROL_PREDECESSOR_IDS,
    ] {
        let mut ids = user.numbers(field);
        if ids.contains(&old) {
            ids.iter_mut().filter(|i| **i == old).for_each(|i| *i = new);
            user.set_numbers(field, ids);
        }
    }
}

/// The value of a frontend attribute.
pub(crate) fn attribute(attributes: &[u8], name: &str) -> Option<String> {
    let attributes = Record::read(attributes).ok()?;
    let mut entries = attributes.all(frontend_attributes::MAP);
    entries.find_map(|e| {
        let entry = Record::read(e).ok()?;
        let found = entry.text(map_entry::KEY) == name;
        found.then(|| entry.text(map_entry::VALUE).to_owned())
    })
}

/// Frontend attributes with one set.
pub(crate) fn with_attribute(attributes: &[u8], name: &str, value: &str) -> Vec<u8> {
    let mut all = Record::read(attributes).unwrap_or_default();
    let mut entries: Vec<Vec<u8>> = all
        .all(frontend_attributes::MAP)
        .filter(|e| Record::read(e).is_ok_and(|e| e.text(map_entry::KEY) != name))
        .map(<[u8]>::to_vec)
        .collect();
    let mut entry = Message::default();
    entry
        .bytes(map_entry::KEY, name.as_bytes())
        .bytes(map_entry::VALUE, value.as_bytes());
    entries.push(entry.0);
    all.set_all(frontend_attributes::MAP, entries);
    all.bytes_out()
}
