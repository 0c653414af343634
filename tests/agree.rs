//! A finding and the edit that follows from it say the same: walked over every program here.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "common/agree.rs"]
mod agree;
mod common;

#[test]
fn a_finding_and_its_edit_are_one_verdict() {
    let mut folders = common::folders();
    folders.extend(common::folders_in(&common::samples().join("pairs")));
    let seen = agree::findings_and_edits(&folders);
    println!("{} programs: {seen:#?}", folders.len());
}
