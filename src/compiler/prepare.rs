//! A loaded program made ready for the compiler: its unoptimised module, found beside it, and the
//! devices that its dump names.
//!
//! In: [`LoadedModule`]. Out: [`Prepared`].

use std::path::{Path, PathBuf};

use super::compile::{build_in, Request};
use super::options::FlagValue;
use super::source::{module_of, unoptimised, Unoptimised};
use super::topology::{shape_for, topology_of_dump};
use crate::error::{Error, Result};
use crate::hlo::decode::damaged;
use crate::report::LoadedModule;
use crate::source::FileBytes;

/// What a dump has of a program for the compiler.
#[derive(Debug)]
#[non_exhaustive]
pub struct Prepared {
    /// The module, and how it is partitioned.
    pub source: Unoptimised,
    /// The file it is in.
    pub path: PathBuf,
    /// Topology that the dump names.
    pub topology: Option<String>,
    /// The compiler's build, by the dump's file names.
    pub build: Option<String>,
    /// What is not as it was when the dump was written.
    pub notes: Vec<String>,
}

/// Where an unoptimised module's name ends in the names of a dump's files.
const STAGE: &str = ".before_optimizations";

impl Prepared {
    /// Finds the unoptimised module of a program and puts its donations back.
    ///
    /// # Errors
    /// There is none, or it is damaged.
    pub fn new(loaded: &LoadedModule<'_>) -> Result<Prepared> {
        let source = &loaded.source;
        let own = source.path.to_string_lossy().contains(STAGE);
        let (path, bytes, container) = match source.before_optimizations {
            Some(before) => before,
            None if own => (source.path, source.hlo, source.container),
            None => return Err(no_unoptimised(source.path)),
        };
        let missing = || Error::missing(format!("{}: no module in it", path.display()), "");
        let before = module_of(bytes, container).ok_or_else(missing)?;
        let after = match own {
            true => None,
            false => module_of(source.hlo, source.container),
        };
        if path.to_string_lossy().contains("_gpu_") || is_gpu(source.path) {
            return Err(Error::missing(
                format!("{}: compiled for a GPU", source.path.display()),
                "xpeak asks TPU compilers; give another chip: --topology v5e:2x2",
            ));
        }
        let module = &loaded.program.module;
        let execution = beside(path, "execution_options.pb");
        let mut notes = Vec::new();
        let mut devices = (module.replica_count, module.num_partitions);
        if execution.is_none() && own {
            let meshes = crate::report::meshes_beside(loaded).iter();
            let largest = meshes.filter_map(|m| m.device_count()).max();
            let largest = u32::try_from(largest.unwrap_or(1)).unwrap_or(1);
            devices.1 = devices.1.max(largest);
            notes.push(format!(
                "the dump does not say for how many devices it is: {} taken, as its mesh has",
                devices.1
            ));
        }
        let unoptimised = unoptimised(before, after, execution.as_deref(), devices)
            .map_err(|e| damaged(path, bytes, &e))?;
        let topology = beside(path, "target_arguments.pb");
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(Prepared {
            source: unoptimised,
            path: path.to_path_buf(),
            topology: topology.as_deref().and_then(topology_of_dump),
            build: build_in(&file, ".cl_").map(str::to_owned),
            notes,
        })
    }

    /// Devices the program is for.
    pub fn device_count(&self) -> usize {
        let build = &self.source.build;
        (build.replicas as usize).saturating_mul(build.partitions as usize)
    }

    /// The topology to compile for: as asked, with a usual shape where only a chip is named, or the
    /// dump's.
    ///
    /// # Errors
    /// The dump names none; a chip of which no usual shape has as many devices.
    pub fn topology(&self, asked: Option<&str>) -> Result<String> {
        let devices = self.device_count();
        let Some(asked) = asked else {
            return self.topology.clone().ok_or_else(|| {
                Error::usage(
                    format!("{}: the dump does not name its chip", self.path.display()),
                    format!(
                        "give it: --topology v5e, v6e, v5p, ... (the program is for {devices} devices)"
                    ),
                )
            });
        };
        shape_for(asked, devices).ok_or_else(|| {
            Error::usage(
                format!("--topology {asked}: no usual shape of it has {devices} devices"),
                "give chip and shape, as v5e:4x4, v6e:2x2 or v5p:2x2x1",
            )
        })
    }

    /// The program, as it is in the dump, for a topology.
    pub fn request(&self, topology: &str, flags: &[(String, FlagValue)]) -> Request {
        let source = &self.source;
        Request::new(
            source.module.clone(),
            source.name.clone(),
            topology,
            source.build.clone(),
        )
        .with_flags(flags.to_vec())
    }
}

fn is_gpu(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.contains(".sm_") || name.contains("gpu_after_optimizations")
}

/// Another file of the same module in the dump.
fn beside(before: &Path, kind: &str) -> Option<FileBytes> {
    let name = before.file_name()?.to_string_lossy();
    let (prefix, _) = name.split_once(STAGE)?;
    let plain = before.with_file_name(format!("{prefix}.{kind}"));
    let packed = before.with_file_name(format!("{prefix}.{kind}.gz"));
    let there = [plain, packed].into_iter().find(|p| p.is_file())?;
    FileBytes::open(&there).ok()
}

fn no_unoptimised(path: &Path) -> Error {
    Error::missing(
        format!(
            "{}: no before_optimizations module beside it, and that is what a compiler takes",
            path.display()
        ),
        "dump the program again with xla_dump_to=DIR and xla_dump_hlo_as_proto=true, and give DIR",
    )
}
