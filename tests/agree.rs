//! A finding and the edit that follows from it say the same: walked over every program here.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "common/agree.rs"]
mod agree;
mod common;

#[test]
fn donation_is_one_verdict() {
    let mut folders = common::folders();
    folders.extend(common::folders_in(&common::samples().join("pairs")));
    let seen = agree::donations(&folders);
    assert!(
        seen.exact >= 10 && seen.bounded >= 8 && seen.in_vain >= 4,
        "{seen:?}"
    );
}
