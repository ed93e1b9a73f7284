//! What is wrong with options that are right one by one.

use ft_checkpoint::{Lines, MemoryUse, Recovery};

use super::levels::Levels;
use super::{Checkpoints, OnFailure, Options, Output};
use crate::value::Timed;

impl Options {
    /// Says what is wrong with them that no single option can be blamed for.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (interval, timeout) = (self.heartbeat_interval().as_millis(), self.heartbeat_timeout);
        if u128::from(timeout) < 3 * interval {
            return Err(format!(
                "--heartbeat-timeout {timeout} is less than three times --heartbeat-interval {interval}: \
                 living ranks would count as lost"
            ));
        }
        if self.expect_mtbf.is_some() && self.interval != Some(Timed::Auto) {
            return Err("--expect-mtbf is for --interval auto, which is not asked for".into());
        }
        if let Some(folder) = &self.remote_path
            && !folder.is_absolute()
        {
            let folder = folder.display();
            return Err(format!(
                "--remote-path {folder}: write the whole path, from / on: it is one on other hosts"
            ));
        }
        if self.output == Some(Output::Raw) && self.tag_output {
            return Err("--output raw passes bytes unchanged: leave out --tag-output, which adds some".into());
        }
        if self.throttle.is_some() && self.checkpoints == Checkpoints::Blocking {
            return Err(
                "--throttle is for --checkpoints asynchronous: nobody waits for a slower checkpoint".into()
            );
        }
        let saves_memory = self.memory == MemoryUse::Least;
        if saves_memory && self.checkpoints == Checkpoints::Asynchronous {
            return Err(
                "--checkpoints asynchronous needs a copy of the state: --memory least is for blocking ones"
                    .into(),
            );
        }
        if saves_memory && self.incremental {
            return Err("--memory least keeps no copy that --incremental could compare the state with".into());
        }
        let in_memory = [
            (self.keep_memory, "--keep-memory"),
            (self.incremental, "--incremental"),
            (saves_memory, "--memory least"),
        ];
        if let Some(scheme) = self.scheme.as_deref()
            && let Some((_, option)) = in_memory.into_iter().find(|(is_wanted, _)| *is_wanted)
            && (scheme == "none" || scheme.starts_with("disk:"))
        {
            return Err(format!(
                "{option} is for checkpoints in the memory of several ranks: --scheme {scheme} has none"
            ));
        }
        if let Some(levels) = &self.levels {
            self.check_levels(levels)?;
        }
        self.check_checksums()?;
        self.check_lines()?;
        if self.keep_memory && self.on_failure != OnFailure::Rebuild {
            return Err("--keep-memory is for ranks that are replaced: leave out --on-failure".into());
        }
        // With parity ranks the size of the job depends on the number of groups, without a number of ranks on hosts that are not read
        // yet; the launcher checks then.
        let is_told = self.ranks.is_some() || self.hosts.is_some() && self.ppn.is_none();
        let is_known = self.parity_ranks == 0 && is_told;
        if is_known { self.check_ranks(self.ranks()) } else { Ok(()) }
    }

    /// Whether several levels of protection go with the other options.
    fn check_levels(&self, levels: &Levels) -> Result<(), String> {
        if levels.spill.is_some() && self.spill.is_none() {
            return Err("--levels has 'spill': say with --spill DIR where the files are to go".into());
        }
        if levels.above.is_empty() {
            return Ok(());
        }
        let others = [
            (self.parity_ranks > 0, "--parity-ranks"),
            (self.checkpoint_memory.is_some(), "--checkpoint-memory"),
            (self.on_failure != OnFailure::Rebuild && self.on_failure != OnFailure::Abort, "--on-failure"),
        ];
        match others.into_iter().find(|(is_given, _)| *is_given) {
            Some((_, option)) => {
                Err(format!("--levels with several schemes does not go together with {option}"))
            }
            None => Ok(()),
        }
    }

    /// Whether a checksum scheme goes with the other options, and the limit of its errors with the scheme.
    /// Whether messages may cross checkpoints with the other options.
    fn check_lines(&self) -> Result<(), String> {
        match self.recovery {
            Recovery::Local if self.lines() != Lines::Log => {
                let why = "--recovery local is for --lines log, where each rank takes its checkpoints when it comes by";
                return Err(why.into());
            }
            Recovery::Global if self.log_memory.is_some() => {
                return Err(
                    "--log-memory is for --recovery local, where messages are kept for the lost".into()
                );
            }
            _ => {}
        }
        if self.lines() == Lines::Meet {
            return Ok(());
        }
        let scheme = self.scheme();
        let is_fit = !["disk:", "checksum:"].iter().any(|kind| scheme.starts_with(kind));
        let others = [
            (self.incremental, "--incremental"),
            (self.memory == MemoryUse::Least, "--memory least"),
            (self.scrub, "--scrub"),
            (self.spill.is_some(), "--spill"),
            (self.resume.is_some(), "--resume"),
            (self.levels.as_ref().is_some_and(|levels| !levels.above.is_empty()), "--levels"),
            (!self.may_be_tried(), "a trial, as by ftrun advise"),
            (self.on_failure == OnFailure::Shrink, "--on-failure shrink"),
            (self.on_failure == OnFailure::Blank, "--on-failure blank"),
            (!is_fit, "--scheme disk:DIR or checksum:K+M"),
        ];
        match others.into_iter().find(|(is_given, _)| *is_given) {
            Some((_, option)) => {
                Err(format!("--lines {} does not go together with {option}", self.lines().name()))
            }
            None => Ok(()),
        }
    }

    /// With lines each rank ends a trial by itself, after so many of its own steps.
    fn may_be_tried(&self) -> bool {
        !self.is_trial() || self.lines() == Lines::Log && self.trial_seconds.is_none()
    }

    fn check_checksums(&self) -> Result<(), String> {
        let is_checksum = |scheme: &str| scheme.starts_with("checksum:");
        let mut levels = self.levels.iter().flat_map(|levels| &levels.above);
        let is_above = levels.any(|level| is_checksum(&level.scheme.to_string()));
        if !is_checksum(self.scheme()) {
            return match self.checksum_limit {
                Some(_) if !is_above => {
                    Err("--checksum-limit is for --scheme checksum:K+M, which is not asked for".into())
                }
                _ => Ok(()),
            };
        }
        let others = [
            (self.parity_ranks > 0, "--parity-ranks"),
            (self.incremental, "--incremental"),
            (self.checkpoint_memory.is_some(), "--checkpoint-memory"),
            (self.on_failure == OnFailure::Shrink, "--on-failure shrink"),
        ];
        match others.into_iter().find(|(is_given, _)| *is_given) {
            Some((_, option)) => {
                Err(format!("--scheme {} does not go together with {option}", self.scheme()))
            }
            None => Ok(()),
        }
    }

    /// Whether all ranks that are to fail exist in a job of this size.
    pub(crate) fn check_ranks(&self, total: usize) -> Result<(), String> {
        self.kill.iter().try_for_each(|spec| spec.validate(total)).map_err(|error| error.to_string())?;
        self.cut.iter().try_for_each(|spec| spec.validate(total)).map_err(|error| error.to_string())?;
        self.slow.iter().try_for_each(|spec| spec.validate(total)).map_err(|error| error.to_string())
    }
}
