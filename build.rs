//! Field numbers from `proto/*.proto`: a module a message, a constant a field. The decoders match on
//! these names, so that a number stands in the schema alone.
//!
//! It reads what our own schemas use of the language and refuses the rest; `tests/schema.rs` compares
//! its reading with a compiler's.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;

#[allow(clippy::print_stdout)] // To cargo.
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    println!("cargo:rerun-if-changed=build.rs");
    let folder = PathBuf::from(std::env::var("OUT_DIR")?);
    for schema in ["hlo", "xplane"] {
        let path = format!("proto/{schema}.proto");
        let fields = read(&std::fs::read_to_string(&path)?).map_err(|e| format!("{path}: {e}"))?;
        let mut messages = Messages::default();
        for field in &fields {
            messages.add(&field.message, field);
        }
        let mut rust = String::new();
        messages.write(&mut rust)?;
        std::fs::write(folder.join(format!("{schema}.rs")), rust)?;
    }
    Ok(())
}

/// One field of a message.
#[derive(Debug)]
pub struct Field {
    /// Names of the messages it is in, outermost first.
    pub message: Vec<String>,
    /// Its name.
    pub name: String,
    /// Its number on the wire.
    pub number: u32,
    /// As the schema writes it.
    pub declaration: String,
}

/// Every field of a schema, in its order.
pub fn read(schema: &str) -> Result<Vec<Field>, String> {
    let code: Vec<&str> = schema
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default().trim())
        .collect();
    let mut out = Vec::new();
    // What is open; `None` for a oneof, whose fields are the message's.
    let mut open: Vec<Option<String>> = Vec::new();
    for statement in code.join(" ").split_inclusive(['{', '}', ';']) {
        let statement = statement.trim();
        let words: Vec<&str> = statement.split_whitespace().collect();
        match words[..] {
            [] | ["syntax" | "package", ..] => {}
            ["}"] => drop(open.pop()),
            ["message", name, "{"] => open.push(Some(name.to_owned())),
            ["oneof", _, "{"] => open.push(None),
            [.., name, "=", number] => {
                let number = number.trim_end_matches(';').parse();
                out.push(Field {
                    message: open.iter().flatten().cloned().collect(),
                    name: name.to_owned(),
                    number: number.map_err(|e| format!("`{statement}`: {e}"))?,
                    declaration: statement.to_owned(),
                });
            }
            _ => return Err(format!("`{statement}` is not understood")),
        }
    }
    Ok(out)
}

/// Messages by name, with their fields and the messages in them.
#[derive(Default)]
struct Messages<'a>(BTreeMap<String, (Vec<&'a Field>, Messages<'a>)>);

impl<'a> Messages<'a> {
    fn add(&mut self, path: &[String], field: &'a Field) {
        if let Some((name, inner)) = path.split_first() {
            let (fields, messages) = self.0.entry(name.clone()).or_default();
            if inner.is_empty() {
                fields.push(field);
            }
            messages.add(inner, field);
        }
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        for (name, (fields, inner)) in &self.0 {
            writeln!(
                out,
                "/// Fields of {name}.\npub(crate) mod {} {{",
                snake(name)
            )?;
            for f in fields {
                let name = f.name.to_uppercase();
                writeln!(out, "/// `{}`", f.declaration)?;
                writeln!(out, "pub(crate) const {name}: u32 = {};", f.number)?;
            }
            inner.write(out)?;
            writeln!(out, "}}")?;
        }
        Ok(())
    }
}

/// `HloModuleProto` → `hlo_module`, `XSpace` → `x_space`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.strip_suffix("Proto").unwrap_or(name).chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}
