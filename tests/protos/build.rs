//! Compiles `proto/*.proto` with a compiler written in Rust: no `protoc` needed.

use std::fmt::Write as _;

const FOLDER: &str = "../../proto";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed={FOLDER}");
    let descriptors = protox::compile(["xplane.proto", "hlo.proto"], [FOLDER])?;
    let mut rows = String::new();
    for file in &descriptors.file {
        let package = file.package().trim_start_matches("xpeak.").to_owned();
        for message in &file.message_type {
            write_fields(message, &package, &mut rows)?;
        }
    }
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("fields.rs"), format!("&[{rows}]"))?;
    prost_build::Config::new()
        .btree_map(["."])
        .compile_fds(descriptors)?;
    Ok(())
}

fn write_fields(
    message: &protox::prost_reflect::prost_types::DescriptorProto,
    within: &str,
    rows: &mut String,
) -> std::fmt::Result {
    let name = format!("{within}.{}", message.name());
    for field in &message.field {
        write!(rows, "({name:?}, {:?}, {}),", field.name(), field.number())?;
    }
    let nested = message.nested_type.iter();
    nested
        .filter(|m| !m.options.as_ref().is_some_and(|o| o.map_entry()))
        .try_for_each(|m| write_fields(m, &name, rows))
}
