//! From recognised files to the programs to analyse: the newest run of a log directory with all
//! its hosts, the module files of a dump that have buffer assignment.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use super::file_name::{host_name, in_log_directory, module_key, stage_rank};
use super::sniff::FileKind;
use super::walk::SourceFile;
use super::xspace::{decode_xspace, XSpace};
use crate::error::{Diagnostic, Error, Result, Severity};
use crate::hlo::decode::schema::{buffer_assignment, hlo, hlo_snapshot};
use crate::hlo::decode::wire::{bytes_of, fields, Value};
use crate::hlo::decode::HloContainer;
use crate::source::Sources;

/// Which programs the user wants.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Select {
    /// Run of a log directory; `None` = the newest.
    pub run: Option<String>,
    /// Host of a run; `None` = all.
    pub host: Option<String>,
}

/// What kind of source a program came from, in the words of the JSON contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SourceKind {
    /// One profile file.
    Xplane,
    /// One HloProto (or HloSnapshot).
    HloProto,
    /// One module without buffer assignment.
    HloModule,
    /// A folder of XLA dumps.
    DumpDir,
    /// A profile log directory.
    Logdir,
}

/// Where programs came from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[non_exhaustive]
pub struct SourceLabel {
    /// Path of the file.
    pub path: String,
    /// What kind of source led to it.
    pub kind: SourceKind,
    /// Run, in log directories.
    pub run: Option<String>,
    /// Hosts that hold the same program: comma-separated.
    pub host: Option<String>,
}

/// A program that has been found and not yet decoded.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProgramSource<'s> {
    /// Where it is.
    pub label: SourceLabel,
    /// File it is in.
    pub path: &'s Path,
    /// The file's whole content, for offsets in errors.
    pub file: &'s [u8],
    /// Its name in the profile; the module's own name otherwise.
    pub name: String,
    /// Program id, in profiles.
    pub program_id: Option<u64>,
    /// Its bytes.
    pub hlo: &'s [u8],
    /// What message they are.
    pub container: HloContainer,
    /// Hosts that hold the very same program.
    pub hosts: Vec<String>,
    /// Device kind, where the profile tells.
    pub device_kind: Option<String>,
    /// The same module before optimization (global shapes), where the dump has it.
    pub before_optimizations: Option<(&'s Path, &'s [u8], HloContainer)>,
    /// Flags the compiler ran with: the dump's flagfile, where there is one.
    pub flagfile: Option<&'s [u8]>,
    /// Whether it has a buffer assignment with anything in it.
    pub has_buffer_assignment: bool,
}

/// Texts beside a dump that are larger than this are not looked into.
const MAX_TEXT_BESIDE: usize = 4 << 20;

/// The kind of message a file holds, if it is a program.
fn container(kind: FileKind) -> Option<HloContainer> {
    match kind {
        FileKind::HloProto => Some(HloContainer::Proto),
        FileKind::HloModule => Some(HloContainer::Module),
        FileKind::HloSnapshot => Some(HloContainer::Snapshot),
        _ => None,
    }
}

/// Whether a serialized program has a buffer assignment with anything in it.
pub fn has_buffer_assignment(hlo: &[u8], container: HloContainer) -> bool {
    let proto = match container {
        HloContainer::Module => return false,
        HloContainer::Proto => Some(hlo),
        HloContainer::Snapshot => bytes_of(hlo, hlo_snapshot::HLO),
    };
    proto.is_some_and(|p| {
        fields(p)
            .filter_map(std::result::Result::ok)
            .any(|f| matches!(f, (hlo::BUFFER_ASSIGNMENT, Value::Bytes(b)) if has_allocation(b)))
    })
}

fn has_allocation(assignment: &[u8]) -> bool {
    fields(assignment)
        .filter_map(std::result::Result::ok)
        .any(|(n, _)| n == buffer_assignment::BUFFER_ALLOCATIONS)
}

impl Sources {
    /// The programs that `select` means, in order of their files.
    ///
    /// # Errors
    /// A run or host that does not exist.
    pub fn programs(
        &self,
        select: &Select,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Result<Vec<ProgramSource<'_>>> {
        let mut out = Vec::new();
        let chosen = self.chosen_profiles(select)?;
        let mut folders_with_programs = BTreeSet::new();
        for f in &chosen {
            let before = out.len();
            self.profile_programs(f, &mut out, diagnostics);
            if out.len() > before {
                folders_with_programs.insert(f.path.parent().map(Path::to_path_buf));
            }
        }
        let skip_run = |f: &SourceFile| {
            // XProf leaves caches of programs beside a profile: needed only without the profile's.
            let folder = f.path.parent().map(Path::to_path_buf);
            let beside = self
                .files
                .iter()
                .any(|x| x.kind == FileKind::XSpace && x.path.parent() == folder.as_deref());
            beside
                && !f.named
                && (folders_with_programs.contains(&folder)
                    || !chosen.iter().any(|x| x.path.parent() == folder.as_deref()))
        };
        let profile_folders: BTreeSet<Option<PathBuf>> = self
            .files
            .iter()
            .filter(|x| x.kind == FileKind::XSpace)
            .map(|x| x.path.parent().map(Path::to_path_buf))
            .collect();
        let dumps: Vec<&SourceFile> = self
            .files
            .iter()
            .filter(|f| container(f.kind).is_some())
            .filter(|f| {
                !profile_folders.contains(&f.path.parent().map(Path::to_path_buf)) || !skip_run(f)
            })
            .collect();
        self.dump_programs(&dumps, &mut out);
        Ok(merge_hosts(out))
    }

    /// Profiles of the wanted run and host; files that the user named are always wanted.
    fn chosen_profiles(&self, select: &Select) -> Result<Vec<&SourceFile>> {
        let profiles: Vec<&SourceFile> = self
            .files
            .iter()
            .filter(|f| f.kind == FileKind::XSpace)
            .collect();
        let runs: BTreeSet<String> = profiles
            .iter()
            .filter(|f| !f.named)
            .map(|f| f.folder_name())
            .collect();
        let wanted = match &select.run {
            Some(run) => {
                if !profiles.iter().any(|f| f.folder_name() == *run) {
                    return Err(Error::usage(
                        format!("--run {run}: there is no such run"),
                        one_of("the runs are", runs.iter().map(String::as_str)),
                    ));
                }
                Some(run.clone())
            }
            None => runs.last().cloned(),
        };
        let of_run: Vec<&SourceFile> = profiles
            .into_iter()
            .filter(|f| match &select.run {
                Some(run) => f.folder_name() == *run,
                None => f.named || Some(f.folder_name()) == wanted,
            })
            .collect();
        let Some(host) = &select.host else {
            return Ok(of_run);
        };
        let hosts: BTreeSet<String> = of_run.iter().map(|f| host_name(f)).collect();
        let of_host: Vec<&SourceFile> = of_run
            .into_iter()
            .filter(|f| host_name(f) == *host)
            .collect();
        if of_host.is_empty() {
            return Err(Error::usage(
                format!("--host {host}: there is no such host"),
                one_of("the hosts are", hosts.iter().map(String::as_str)),
            ));
        }
        Ok(of_host)
    }

    fn profile_programs<'s>(
        &self,
        f: &'s SourceFile,
        out: &mut Vec<ProgramSource<'s>>,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        let space = match decode_xspace(&f.bytes) {
            Ok(space) => space,
            Err(e) => {
                let e = crate::hlo::decode::damaged(&f.path, &f.bytes, &e);
                diagnostics.push(
                    Diagnostic::new(Severity::Error, "damaged_profile", e.to_string())
                        .with_path(&f.path),
                );
                return;
            }
        };
        profile_diagnostics(f, &space, diagnostics);
        let host = host_name(f);
        for p in &space.programs {
            out.push(ProgramSource {
                label: SourceLabel {
                    path: f.path.display().to_string(),
                    kind: if f.named {
                        SourceKind::Xplane
                    } else {
                        SourceKind::Logdir
                    },
                    run: (!f.named || in_log_directory(&f.path)).then(|| f.folder_name()),
                    host: Some(host.clone()),
                },
                path: &f.path,
                file: &f.bytes,
                name: p.name.to_owned(),
                program_id: Some(p.program_id),
                hlo: p.hlo,
                container: HloContainer::Proto,
                hosts: vec![host.clone()],
                device_kind: space.device_kind().map(str::to_owned),
                before_optimizations: None,
                flagfile: None,
                has_buffer_assignment: has_buffer_assignment(p.hlo, HloContainer::Proto),
            });
        }
    }

    // Long: which file of a dump is taken for what, in the order of preference.
    fn dump_programs<'s>(&'s self, dumps: &[&'s SourceFile], out: &mut Vec<ProgramSource<'s>>) {
        let mut modules: BTreeMap<(usize, PathBuf, String), Vec<&SourceFile>> = BTreeMap::new();
        for f in dumps {
            let folder = f.path.parent().map(Path::to_path_buf).unwrap_or_default();
            // A file that the user named is shown whatever stands beside it.
            let key = if f.named {
                f.file_name()
            } else {
                module_key(&f.file_name())
            };
            modules.entry((f.root, folder, key)).or_default().push(f);
        }
        let mut families: FxHashMap<(Option<&Path>, String), Vec<&SourceFile>> =
            FxHashMap::default();
        for f in &self.files {
            let family = (f.path.parent(), module_key(&f.file_name()));
            families.entry(family).or_default().push(f);
        }
        for ((_, _, key), files) in modules {
            let best = files.iter().min_by_key(|f| {
                let c = container(f.kind).unwrap_or(HloContainer::Module);
                (
                    Reverse(has_buffer_assignment(&f.bytes, c)),
                    stage_rank(&f.file_name()),
                    &f.path,
                )
            });
            let Some(best) = best else { continue };
            let kind = container(best.kind).unwrap_or(HloContainer::Module);
            let family = families.get(&(best.path.parent(), module_key(&best.file_name())));
            let beside = |wanted: &str| {
                let mut family = family.into_iter().flatten().copied();
                family.find(|f| f.file_name().contains(wanted))
            };
            let before = files
                .iter()
                .copied()
                .chain(beside("before_optimizations"))
                .find(|f| f.file_name().contains("before_optimizations") && f.path != best.path);
            out.push(ProgramSource {
                label: SourceLabel {
                    path: best.path.display().to_string(),
                    kind: match (best.named, kind) {
                        (false, _) => SourceKind::DumpDir,
                        (true, HloContainer::Module) => SourceKind::HloModule,
                        (true, _) => SourceKind::HloProto,
                    },
                    run: None,
                    host: None,
                },
                path: &best.path,
                file: &best.bytes,
                name: key,
                program_id: None,
                hlo: &best.bytes,
                container: kind,
                hosts: Vec::new(),
                device_kind: None,
                before_optimizations: before
                    .and_then(|f| Some((f.path.as_path(), &f.bytes[..], container(f.kind)?))),
                flagfile: beside(".flagfile").map(|f| &f.bytes[..]),
                has_buffer_assignment: has_buffer_assignment(&best.bytes, kind),
            });
        }
    }
}

impl Sources {
    /// Texts that stand in a folder and are small enough to look into, in the order of their files.
    pub fn texts_in<'s>(
        &'s self,
        folder: Option<&'s Path>,
    ) -> impl Iterator<Item = &'s SourceFile> {
        self.files.iter().filter(move |f| {
            f.kind == FileKind::Text
                && f.path.parent() == folder
                && f.bytes.len() <= MAX_TEXT_BESIDE
                && !f.file_name().ends_with(".json")
        })
    }
}

fn profile_diagnostics(f: &SourceFile, space: &XSpace<'_>, diagnostics: &mut Vec<Diagnostic>) {
    if let Some(at) = space.truncated_at {
        diagnostics.push(
            Diagnostic::new(
                Severity::Error,
                "truncated",
                format!("the profile ends early, at byte {at}; what came before is used"),
            )
            .with_path(&f.path),
        );
    }
    for (name, e) in &space.damaged_planes {
        if space.truncated_at.is_none() {
            diagnostics.push(
                Diagnostic::new(
                    Severity::Error,
                    "damaged_plane",
                    format!(
                        "plane {name:?} is damaged at byte {}: {}",
                        e.offset_in(&f.bytes),
                        e.cause()
                    ),
                )
                .with_path(&f.path),
            );
        }
    }
}

/// Programs that hosts of one run hold identically become one.
fn merge_hosts(programs: Vec<ProgramSource<'_>>) -> Vec<ProgramSource<'_>> {
    let mut by_name: BTreeMap<(Option<u64>, String, usize), Vec<usize>> = BTreeMap::new();
    let mut out: Vec<ProgramSource<'_>> = Vec::new();
    for p in programs {
        if p.program_id.is_none() {
            out.push(p);
            continue;
        }
        let same = by_name
            .entry((p.program_id, p.name.clone(), p.hlo.len()))
            .or_default();
        let twin = same.iter().copied().find(|&i| {
            out[i].label.run == p.label.run
                && std::ptr::eq(out[i].hlo, p.hlo) | (out[i].hlo == p.hlo)
        });
        match twin {
            Some(i) => {
                for h in p.hosts {
                    if !out[i].hosts.contains(&h) {
                        out[i].hosts.push(h);
                    }
                }
                out[i].label.host = Some(out[i].hosts.join(","));
            }
            None => {
                same.push(out.len());
                out.push(p);
            }
        }
    }
    out
}

/// `the runs are a, b, c`; empty when there are none.
fn one_of<'x>(intro: &str, names: impl Iterator<Item = &'x str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return String::new();
    }
    const SHOWN: usize = 20;
    let more = if names.len() > SHOWN {
        format!(", and {} more", names.len() - SHOWN)
    } else {
        String::new()
    };
    format!(
        "{intro} {}{more}",
        names
            .iter()
            .take(SHOWN)
            .copied()
            .collect::<Vec<_>>()
            .join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_module_share_a_key() {
        let after = module_key("module_0000.jit_f.cl_1.after_optimizations.hlo.pb.gz");
        assert_eq!(
            after,
            module_key("module_0000.jit_f.cl_1.before_optimizations.hlo.pb")
        );
        assert_ne!(
            after,
            module_key("module_0001.jit_f.cl_1.after_optimizations.hlo.pb")
        );
        assert_eq!(module_key("step.hlo.pb"), "step.hlo.pb");
        assert_eq!(module_key("module_x.jit_f.hlo.pb"), "module_x.jit_f.hlo.pb");
    }
}
