//! An option for each kind of edit, from the table of kinds.

use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches};

use crate::error::Result;
use crate::whatif::{Edit, KINDS};

/// One option for each kind of edit, as often as wanted.
#[derive(Debug, Clone, Default)]
pub struct EditArgs {
    /// Options and their values, as they stand on the command line.
    given: Vec<(&'static str, Option<String>)>,
}

impl EditArgs {
    /// The edits, in the order given.
    ///
    /// # Errors
    /// As [`Edit::parse`].
    pub fn edits(&self) -> Result<Vec<Edit>> {
        let given = self.given.iter();
        given
            .map(|(name, value)| Edit::parse(name, value.as_deref()))
            .collect()
    }
}

impl Args for EditArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        KINDS.iter().fold(command, |command, kind| {
            let arg = Arg::new(kind.name).long(kind.name).help(kind.help);
            command.arg(match kind.value {
                Some(value) => arg.value_name(value).action(ArgAction::Append),
                None => arg.action(ArgAction::SetTrue),
            })
        })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for EditArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut out = Self::default();
        out.update_from_arg_matches(matches)?;
        Ok(out)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let mut found: Vec<(usize, &'static str, Option<String>)> = Vec::new();
        for kind in KINDS {
            let at = matches.indices_of(kind.name).into_iter().flatten();
            if kind.value.is_some() {
                let values = matches.get_many::<String>(kind.name).into_iter().flatten();
                found.extend(at.zip(values).map(|(i, v)| (i, kind.name, Some(v.clone()))));
            } else if matches.get_flag(kind.name) {
                found.extend(at.take(1).map(|i| (i, kind.name, None)));
            }
        }
        found.sort();
        self.given = found.into_iter().map(|f| (f.1, f.2)).collect();
        Ok(())
    }
}
