//! A finding and the edit that follows from it say the same: walked over every program here.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "common/agree.rs"]
mod agree;
mod common;

use xpeak::findings::FindingKind;

#[test]
fn a_finding_and_its_edit_are_one_verdict() {
    let mut folders = common::folders();
    folders.extend(common::folders_in(&common::samples().join("pairs")));
    let seen = agree::findings_and_edits(&folders);
    assert!(agree::looked_at_all(&seen, 2), "{seen:#?}");
    let donations = seen[&FindingKind::DONATION];
    assert!(
        donations.same >= 10 && donations.less >= 8 && donations.without_effect >= 4,
        "{seen:#?}"
    );
}
