//! The house keeps its order: no circle of files, arrows between rooms only downwards, and at each
//! room's door what comes in, what goes out and what it may use.
#![allow(clippy::unwrap_used)]

mod structure;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use structure::{circles, Arrows, Tree};

/// The rooms from the lowest up. Those of one line do not use each other.
const ROOMS: &[&[&str]] = &[
    &["error", "units", "text", "chips"],
    &["hlo"],
    &["source", "oom"],
    &["memory"],
    &["dataflow"],
    &["peak"],
    &["devices"],
    &["training"],
    &["facts"],
    &["findings"],
    &["whatif", "report"],
    &["triage"],
    &["compiler"],
    &["render", "chart"],
    &["cli"],
    &["lib", "main"],
];

/// Arrows that are still to go: neither counted as upward nor as part of a circle.
const EXCEPTIONS: &[(&str, &str)] = &[];

#[test]
fn arrows_point_down_and_no_files_go_in_a_circle() {
    let sources = sources();
    let all = arrows_of(&sources);
    assert!(all.len() > 100, "{} arrows found", all.len());
    let mut arrows = all.clone();
    let known: Vec<_> = EXCEPTIONS
        .iter()
        .map(|(a, b)| (a.to_string(), b.to_string()))
        .collect();
    arrows.retain(|arrow, _| !known.contains(arrow));
    let found = faults_of(&arrows);
    let mut faults = found.clone();
    for arrow in known {
        let mut with = arrows.clone();
        with.extend(all.get(&arrow).map(|path| (arrow.clone(), path.clone())));
        if faults_of(&with) == found {
            faults.push(format!("{} -> {} is a fault no more", arrow.0, arrow.1));
        }
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn rooms_use_what_their_doors_say() {
    let sources = sources();
    let mut faults = BTreeSet::new();
    for (from, to) in arrows_of(&sources).keys() {
        let known = EXCEPTIONS.contains(&(from.as_str(), to.as_str()));
        let (a, b) = (room(from), room(to));
        let Some(door) = sources.get(&format!("{a}/mod.rs")) else {
            continue;
        };
        if a != b && !known && !may_use(door, b) {
            faults.insert(format!("{a} uses {b} ({from} -> {to})"));
        }
    }
    assert_eq!(faults, BTreeSet::new(), "not said under May use:");
}

/// Whether a room may use another by its head: every room may use the lowest ones.
fn may_use(door: &str, room: &str) -> bool {
    let head: Vec<&str> = door.lines().map_while(|l| l.strip_prefix("//!")).collect();
    let head = head.join("");
    let said = head.split("May use: ").nth(1).unwrap_or_default();
    let said = said.split('.').next().unwrap_or_default();
    ROOMS[0].contains(&room) || said.contains("every room") || said.contains(&format!("`{room}`"))
}

#[test]
fn each_room_says_what_goes_in_and_out() {
    let mut silent = Vec::new();
    for (file, text) in sources() {
        let of_a_room = file.ends_with("/mod.rs") && file.matches('/').count() == 1;
        let head: String = text.lines().take_while(|l| l.starts_with("//!")).collect();
        let says = |word: &str| head.contains(word);
        if of_a_room && !["In: ", "Out: ", "May use: "].into_iter().all(says) {
            silent.push(file);
        }
    }
    assert_eq!(silent, Vec::<String>::new(), "no In:, Out: or May use:");
}

#[test]
fn a_circle_is_found() {
    let found = faults(&[
        ("lib.rs", "mod hlo; mod memory;"),
        (
            "hlo/mod.rs",
            "mod a; mod b; mod c; pub use a::A; pub use b::*;",
        ),
        ("hlo/a.rs", "use super::b::B; pub struct A(B);"),
        (
            "hlo/b.rs",
            "pub fn b() -> usize { super::c::c() } pub struct B;",
        ),
        // Through the room's own re-exports, and only within a macro's arguments.
        ("hlo/c.rs", "pub fn c() -> usize { size!(crate::hlo::A) }"),
        // A room may use those below it as often as it likes.
        ("memory/mod.rs", "use crate::hlo; pub fn m() { hlo::b(); }"),
    ]);
    assert_eq!(found, ["a circle: hlo/a.rs, hlo/b.rs, hlo/c.rs"]);
}

#[test]
fn an_upward_arrow_is_found() {
    let found = faults(&[
        (
            "lib.rs",
            "mod hlo; mod memory; mod units; mod peak; mod text;",
        ),
        ("units.rs", "pub fn bytes() { crate::text::stars() }"),
        ("text.rs", "pub fn stars() {}"),
        ("hlo/mod.rs", "use crate::peak; pub fn f() { peak::deep() }"),
        (
            "memory/mod.rs",
            "use crate::peak::Deep as D; use crate::hlo::f;",
        ),
        (
            "peak/mod.rs",
            "pub(crate) mod deep; pub use deep::{deep, Deep};",
        ),
        (
            "peak/deep.rs",
            "pub fn deep() {} pub struct Deep; use crate::hlo;",
        ),
    ]);
    let deep = |file: &str, path: &str| format!("upwards: {file} -> peak/deep.rs ({path})");
    assert_eq!(
        found,
        [
            deep("hlo/mod.rs", "peak::deep"),
            deep("memory/mod.rs", "crate::peak::Deep"),
            "upwards: units.rs -> text.rs (crate::text::stars)".to_owned(),
        ]
    );
}

#[test]
fn what_tests_use_does_not_count() {
    let found = faults(&[
        ("lib.rs", "mod hlo; mod peak;"),
        (
            "hlo/mod.rs",
            "#[cfg(test)] mod tests { use crate::peak::Peak; } #[cfg(test)] mod fake;
             #[cfg(all(test, unix))] fn f(_: crate::peak::Peak) {}",
        ),
        ("hlo/fake.rs", "use crate::peak::Peak;"),
        ("peak/mod.rs", "pub struct Peak; use crate::hlo;"),
    ]);
    assert_eq!(found, Vec::<String>::new());
}

fn faults(files: &[(&str, &str)]) -> Vec<String> {
    faults_of(&Tree::read(files.iter().copied()).arrows())
}

/// Circles, and arrows that do not point down.
fn faults_of(arrows: &Arrows) -> Vec<String> {
    let circles = circles(arrows).into_iter();
    let mut out: Vec<String> = circles
        .map(|files| format!("a circle: {}", files.join(", ")))
        .collect();
    for ((from, to), path) in arrows {
        let (a, b) = (room(from), room(to));
        if a != b && level(a) <= level(b) {
            out.push(format!("upwards: {from} -> {to} ({path})"));
        }
    }
    out
}

/// The first folder of a file's path, or the file's own name.
fn room(file: &str) -> &str {
    file.split(['/', '.']).next().unwrap_or(file)
}

fn level(room: &str) -> usize {
    let at = ROOMS.iter().position(|level| level.contains(&room));
    at.unwrap_or_else(|| panic!("no place for `{room}` in the table of rooms"))
}

fn arrows_of(sources: &BTreeMap<String, String>) -> Arrows {
    Tree::read(sources.iter().map(|(f, t)| (f.as_str(), t.as_str()))).arrows()
}

/// Every file of `src`, by its path below it.
fn sources() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut out = BTreeMap::new();
    let mut folders = BTreeSet::from([root.clone()]);
    while let Some(folder) = folders.pop_first() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.insert(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
                out.insert(
                    name.replace('\\', "/"),
                    std::fs::read_to_string(&path).unwrap(),
                );
            }
        }
    }
    out
}
