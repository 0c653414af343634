//! Where the user's compiler is. No Python is run and nothing is downloaded.
//!
//! In: an option, environment variables. Out: [`CompilerLibrary`].

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::error::CompileError;

/// A compiler's shared library.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompilerLibrary {
    /// The file.
    pub path: PathBuf,
    /// Its package's version, `libtpu 0.0.52`, where it is part of a Python package.
    pub version: Option<String>,
}

const FILE: &str = "libtpu.so";

/// Looks for a compiler: at `asked` (a file, or a folder that has it), else in `XPEAK_COMPILER`,
/// the active virtual environment, the Python on the path, and pip's user folder.
///
/// # Errors
/// There is none, or not where it was said to be.
pub fn find_compiler(asked: Option<&Path>) -> Result<CompilerLibrary, CompileError> {
    find_in(asked, &|name| {
        std::env::var_os(name).filter(|v| !v.is_empty())
    })
}

fn find_in(
    asked: Option<&Path>,
    env: &dyn Fn(&str) -> Option<OsString>,
) -> Result<CompilerLibrary, CompileError> {
    let named = asked
        .map(|p| (p.to_path_buf(), "--compiler"))
        .or_else(|| Some((PathBuf::from(env("XPEAK_COMPILER")?), "XPEAK_COMPILER")));
    if let Some((path, option)) = named {
        return in_place(&path).ok_or_else(|| CompileError::NotFound {
            looked_in: vec![format!("{option} {}", path.display())],
        });
    }
    let mut looked_in = Vec::new();
    let mut roots: Vec<PathBuf> = Vec::new();
    for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        roots.extend(env(name).map(PathBuf::from));
    }
    if let Some(path) = env("PATH") {
        for folder in std::env::split_paths(&path) {
            let there = ["python3", "python"].iter().map(|p| folder.join(p));
            for python in there.filter(|p| p.is_file()) {
                // The environment is where the link stands; the installation where it leads.
                roots.extend(prefix_of(&python));
                roots.extend(pyenv_versions(&python));
                roots.extend(python.canonicalize().ok().as_deref().and_then(prefix_of));
            }
        }
    }
    roots.extend(env("HOME").map(|home| PathBuf::from(home).join(".local")));
    roots.extend([PathBuf::from("/usr/local"), PathBuf::from("/usr")]);
    for root in roots {
        if looked_in.contains(&root.display().to_string()) {
            continue;
        }
        if let Some(found) = in_environment(&root) {
            return Ok(found);
        }
        looked_in.push(root.display().to_string());
    }
    Err(CompileError::NotFound { looked_in })
}

/// `/opt/py/bin/python3` → `/opt/py`.
fn prefix_of(python: &Path) -> Option<PathBuf> {
    Some(python.parent()?.parent()?.to_path_buf())
}

/// The installations behind a shim of pyenv: `~/.pyenv/shims/python3` is a script.
fn pyenv_versions(python: &Path) -> Vec<PathBuf> {
    let shims = python.parent().filter(|f| f.ends_with("shims"));
    let versions = shims
        .and_then(Path::parent)
        .map(|root| root.join("versions"));
    let entries = versions.and_then(|v| std::fs::read_dir(v).ok());
    let mut out: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
        .collect();
    out.sort();
    out.reverse();
    out
}

/// A library, a folder that holds it, or an environment.
fn in_place(path: &Path) -> Option<CompilerLibrary> {
    if path.is_file() {
        return Some(library(path));
    }
    let direct = [path.join(FILE), path.join("libtpu").join(FILE)];
    let mut direct = direct.iter().filter(|p| p.is_file());
    let found = direct.next().map(|p| library(p));
    found.or_else(|| in_environment(path))
}

/// The library in an environment's `lib/pythonX.Y/{site,dist}-packages`, of the newest Python.
fn in_environment(root: &Path) -> Option<CompilerLibrary> {
    let mut found = Vec::new();
    for lib in ["lib", "lib64", "local/lib"] {
        let Ok(entries) = std::fs::read_dir(root.join(lib)) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(version) = name.strip_prefix("python") else {
                continue;
            };
            let minor = version.rsplit('.').next().and_then(|m| m.parse().ok());
            for packages in ["site-packages", "dist-packages"] {
                let path = entry.path().join(packages).join("libtpu").join(FILE);
                if path.is_file() {
                    found.push((minor.unwrap_or(0u32), path));
                }
            }
        }
    }
    found.sort();
    found.pop().map(|(_, path)| library(&path))
}

fn library(path: &Path) -> CompilerLibrary {
    CompilerLibrary {
        path: path.to_path_buf(),
        version: version_of(path),
    }
}

/// The version by the folder that pip leaves beside a package.
fn version_of(path: &Path) -> Option<String> {
    let packages = path.parent()?.parent()?;
    let entries = std::fs::read_dir(packages).ok()?;
    let mut versions: Vec<String> = entries
        .flatten()
        .filter_map(|e| {
            let name = e.file_name().to_string_lossy().into_owned();
            let info = name.strip_suffix(".dist-info")?;
            let (package, version) = info.split_once('-')?;
            matches!(package, "libtpu" | "libtpu_nightly").then(|| format!("libtpu {version}"))
        })
        .collect();
    versions.sort();
    versions.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install(root: &Path, python: &str) -> PathBuf {
        let packages = root.join("lib").join(python).join("site-packages");
        std::fs::create_dir_all(packages.join("libtpu")).unwrap();
        std::fs::create_dir_all(packages.join("libtpu-0.0.9.dist-info")).unwrap();
        let file = packages.join("libtpu").join(FILE);
        std::fs::write(&file, "").unwrap();
        file
    }

    #[test]
    fn places_are_looked_at_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let (venv, home) = (dir.path().join("venv"), dir.path().join("home"));
        let in_venv = install(&venv, "python3.11");
        let at_home = install(&home.join(".local"), "python3.9");
        let newer = install(&home.join(".local"), "python3.10");
        let env = |set: &[(&str, &Path)]| {
            let set: Vec<(String, OsString)> =
                set.iter().map(|(n, v)| (n.to_string(), v.into())).collect();
            move |name: &str| set.iter().find(|s| s.0 == name).map(|s| s.1.clone())
        };
        let both = env(&[("VIRTUAL_ENV", &venv), ("HOME", &home)]);
        let found = find_in(None, &both).unwrap();
        assert_eq!(found.path, in_venv);
        assert_eq!(found.version.as_deref(), Some("libtpu 0.0.9"));
        let found = find_in(None, &env(&[("HOME", &home)])).unwrap();
        assert_eq!(found.path, newer);
        let found = find_in(Some(&at_home), &both).unwrap();
        assert_eq!(found.path, at_home);
        let named = env(&[("VIRTUAL_ENV", &venv), ("XPEAK_COMPILER", &at_home)]);
        assert_eq!(find_in(None, &named).unwrap().path, at_home);
        let found = find_in(Some(&venv), &both).unwrap();
        assert_eq!(found.path, in_venv);
        std::fs::create_dir_all(venv.join("bin")).unwrap();
        std::fs::write(venv.join("bin/python3"), "").unwrap();
        let on_path = env(&[("PATH", &venv.join("bin"))]);
        assert_eq!(find_in(None, &on_path).unwrap().path, in_venv);
    }

    #[test]
    fn what_is_named_and_absent_is_an_error_and_nothing_else_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let venv = dir.path().join("venv");
        install(&venv, "python3.11");
        let env = |name: &str| (name == "VIRTUAL_ENV").then(|| venv.clone().into());
        let e = find_in(Some(&dir.path().join("no.so")), &env).unwrap_err();
        assert!(e.to_string().contains("no.so"), "{e}");
        assert!(e.hint().contains("pip install libtpu"));
    }
}
