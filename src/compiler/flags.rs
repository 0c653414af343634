//! Which values of the catalogue's flags are tried on a program, and what came of each.
//!
//! In: the program as compiled without a flag. Out: [`Trial`]s, and after compiling [`FlagsReport`].

use serde::Serialize;

use super::error::CompileError;
use super::options::FlagValue;
use super::report::{difference, CompileResult, FlagSetting};
use crate::whatif::SpaceName;

/// Differences below this share of the total are none: 0.1 %.
const NOTICED: u64 = 1000;

/// One flag with one value.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The flag's name.
    pub name: &'static str,
    /// The value to try.
    pub value: FlagValue,
    /// The value as it is written.
    pub text: String,
}

/// What a value did to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effect {
    /// A smaller total.
    Saves,
    /// The same, within a thousandth.
    NoChange,
    /// A larger total.
    Harms,
    /// The compiler knows no such flag or does not take the value.
    Refused,
    /// The compiler failed with it.
    Failed,
}

/// One row of `xpeak flags`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FlagRow {
    /// The flag and its value.
    #[serde(flatten)]
    pub setting: FlagSetting,
    /// What it did.
    pub effect: Effect,
    /// The total less the one without the flag.
    pub difference_bytes: Option<i64>,
    /// The program compiled with it.
    pub result: Option<CompileResult>,
    /// Why there is none.
    pub error: Option<String>,
}

/// Result of `xpeak flags`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FlagsReport {
    /// Version of this form.
    pub schema_version: u32,
    /// The module's name.
    pub module: String,
    /// The memory space.
    pub space: SpaceName,
    /// The program compiled without a flag.
    pub base: CompileResult,
    /// What each value did, the best first.
    pub flags: Vec<FlagRow>,
}

/// The values to try on a program.
pub fn trials(base: &CompileResult) -> Vec<Trial> {
    // A limit helps only below what the program takes; where it does not fit, below the chip's.
    let total = base.after.allocated_bytes;
    let aim = match base.fits {
        true => total,
        false => base.limit_bytes.map_or(total, |l| l.min(total)),
    };
    let mib = (aim / 10 * 9) >> 20;
    let mut out = Vec::new();
    let mut add = |name, values: &[&str]| {
        for value in values {
            out.push(Trial {
                name,
                value: FlagValue::parse(value),
                text: (*value).to_owned(),
            });
        }
    };
    add("xla_latency_hiding_scheduler_rerun", &["5"]);
    add("xla_tpu_rwb_fusion", &["false"]);
    add("xla_memory_scheduler", &["list", "dfs", "post_order"]);
    add("xla_tpu_enable_latency_hiding_scheduler", &["false"]);
    add(
        "xla_jf_spmd_threshold_for_windowed_einsum_mib",
        &["10", "1000"],
    );
    add("xla_tpu_max_hbm_size_mib", &[&mib.max(1).to_string()]);
    add("xla_tpu_rematerialization_algo", &["PEAK_PRIORITY"]);
    add("xla_tpu_rematerialization_max_block_size_limit", &["32"]);
    add("xla_tpu_rematerialization_block_effort_factor", &["10.0"]);
    add("xla_tpu_pre_fusion_remat", &["true"]);
    out
}

impl FlagRow {
    /// What came of a trial.
    pub fn new(
        trial: &Trial,
        base: &CompileResult,
        answer: Result<CompileResult, CompileError>,
    ) -> FlagRow {
        let setting = FlagSetting::new(trial.name, trial.text.clone());
        match answer {
            Ok(result) => {
                let before = base.after.allocated_bytes;
                let d = difference(result.after.allocated_bytes, before);
                FlagRow {
                    setting,
                    effect: match d {
                        d if d.unsigned_abs() <= before / NOTICED => Effect::NoChange,
                        d if d < 0 => Effect::Saves,
                        _ => Effect::Harms,
                    },
                    difference_bytes: Some(d),
                    result: Some(result),
                    error: None,
                }
            }
            Err(e) => FlagRow {
                setting,
                effect: match e {
                    CompileError::Refused { flag: true, .. } => Effect::Refused,
                    _ => Effect::Failed,
                },
                difference_bytes: None,
                result: None,
                error: Some(e.to_string()),
            },
        }
    }
}

impl FlagsReport {
    /// Sorts the rows.
    pub fn new(
        module: impl Into<String>,
        space: SpaceName,
        base: CompileResult,
        mut flags: Vec<FlagRow>,
    ) -> FlagsReport {
        flags.sort_by(|a, b| {
            let key = |r: &FlagRow| (r.effect, r.difference_bytes, r.setting.clone());
            key(a).cmp(&key(b))
        });
        FlagsReport {
            schema_version: super::report::SCHEMA_VERSION,
            module: module.into(),
            space,
            base,
            flags,
        }
    }
}

/// One row of `xpeak fits`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FitsRow {
    /// The topology asked for.
    pub topology: String,
    /// The program compiled for it.
    pub result: Option<CompileResult>,
    /// Why there is none.
    pub error: Option<String>,
}

/// Result of `xpeak fits`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FitsReport {
    /// Version of this form.
    pub schema_version: u32,
    /// The module's name.
    pub module: String,
    /// The memory space.
    pub space: SpaceName,
    /// Devices the program is for.
    pub device_count: usize,
    /// A row a topology, in the order asked.
    pub rows: Vec<FitsRow>,
}

impl FitsReport {
    /// Whether it fits any of them.
    pub fn any_fits(&self) -> bool {
        let mut results = self.rows.iter().filter_map(|r| r.result.as_ref());
        results.any(|r| r.fits)
    }

    /// Gathers the rows.
    pub fn new(
        module: impl Into<String>,
        space: SpaceName,
        device_count: usize,
        rows: Vec<FitsRow>,
    ) -> FitsReport {
        FitsReport {
            schema_version: super::report::SCHEMA_VERSION,
            module: module.into(),
            space,
            device_count,
            rows,
        }
    }
}

impl FitsRow {
    /// What came of a topology.
    pub fn new(topology: impl Into<String>, answer: Result<CompileResult, String>) -> FitsRow {
        let (result, error) = match answer {
            Ok(result) => (Some(result), None),
            Err(e) => (None, Some(e)),
        };
        FitsRow {
            topology: topology.into(),
            result,
            error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::report::Totals;

    #[test]
    fn every_flag_of_the_catalogue_is_tried_and_no_other() {
        let totals = Totals {
            allocated_bytes: 10 << 30,
            peak_bytes: 10 << 30,
            fragmentation_bytes: 0,
            parameter_bytes: 0,
            output_bytes: 0,
            donated_bytes: 0,
            constant_bytes: 0,
            heap_peak_bytes: 0,
            instruction_count: 1,
        };
        let base = CompileResult::of_totals(totals);
        let mut tried: Vec<&str> = trials(&base).iter().map(|t| t.name).collect();
        tried.dedup();
        let catalogue: Vec<&str> = crate::triage::catalogue::FLAGS
            .iter()
            .map(|f| f.name)
            .collect();
        assert_eq!(tried, catalogue);
        let limit = trials(&base);
        let limit = limit
            .iter()
            .find(|t| t.name.ends_with("hbm_size_mib"))
            .unwrap();
        assert_eq!(limit.text, "9216");
    }
}
