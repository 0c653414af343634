//! The build's reading of the schemas is the compiler's.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../build.rs"]
mod build;

#[test]
fn field_numbers_are_the_compilers() {
    let mut read = Vec::new();
    for (package, schema) in [
        ("hlo", include_str!("../proto/hlo.proto")),
        ("xplane", include_str!("../proto/xplane.proto")),
    ] {
        for field in build::read(schema).unwrap() {
            let message = format!("{package}.{}", field.message.join("."));
            read.push((message, field.name, field.number));
        }
    }
    let compiled = xpeak_protos::FIELDS.iter();
    let mut compiled: Vec<_> = compiled
        .map(|(message, name, number)| (message.to_string(), name.to_string(), *number))
        .collect();
    read.sort();
    compiled.sort();
    assert!(read.len() > 100);
    assert_eq!(read, compiled);
}

#[test]
fn what_the_build_does_not_know_is_refused() {
    for schema in [
        "enum Kind {",
        "message M { reserved 3; }",
        "message M { int32 a = x; }",
    ] {
        assert!(build::read(schema).is_err(), "{schema}");
    }
}
