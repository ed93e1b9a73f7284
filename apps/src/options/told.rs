//! What ranks are told of the options: the settings of each layer.

use std::num::NonZero;

use ft_checkpoint::checkpointer::CHECKSUM_LIMIT;
use ft_checkpoint::{Checkpoints, Interval, LoopSettings, Protection, Scheme, Trial};
use ft_comm::settings::MessageSettings;

use super::Options;
use crate::value::Timed;

impl Options {
    /// What the resilient loop is told, with the scheme as the launcher has read it, and the `command` of the program.
    pub(crate) fn loop_settings(&self, scheme: Scheme, command: String) -> LoopSettings {
        let interval = match (&self.levels, self.interval) {
            (Some(levels), _) => levels.interval,
            (None, Some(Timed::Seconds(seconds))) => Interval::Seconds(seconds),
            (None, Some(Timed::Auto)) => Interval::Auto { mtbf: self.expect_mtbf },
            (None, None) => Interval::Steps(self.every as u64),
        };
        let protection = Protection {
            scheme,
            interval,
            checkpoints: match self.checkpoints {
                super::Checkpoints::Blocking => Checkpoints::Blocking,
                super::Checkpoints::Asynchronous => Checkpoints::Asynchronous,
            },
            lines: self.lines(),
            recovery: self.recovery,
            log_memory: self.log_memory.and_then(NonZero::new),
            throttle: self.throttle.and_then(NonZero::new),
            incremental: self.incremental,
            memory_use: self.memory,
            scrub: self.scrub,
            memory: self.checkpoint_memory.and_then(NonZero::new),
            checksum_limit: self.checksum_limit.unwrap_or(CHECKSUM_LIMIT),
            levels: self.levels.as_ref().map(|levels| levels.above.clone()).unwrap_or_default(),
            spill: self.spill(),
        };
        let writes_files = protection.spill.is_some() || matches!(protection.scheme, Scheme::Disk { .. });
        let command = writes_files.then_some(command);
        let trial = Trial { seconds: self.trial_seconds, steps: self.trial_steps.map(|steps| steps as u64) };
        LoopSettings { protection, trial, pace: self.pace, resume: self.resume(), command }
    }

    /// What is about messages, with the table of collective algorithms if it is not the builtin one, the host of each rank if
    /// there are several, and whether there are more ranks than cores on one.
    pub(crate) fn message_settings(
        &self,
        collectives: Option<String>,
        hosts: Option<Vec<usize>>,
        crowded: bool,
    ) -> MessageSettings {
        MessageSettings {
            watchdog: self.watchdog,
            check: self.check,
            timeline: self.timeline.is_some() || self.dashboard.is_some(),
            collectives,
            hosts,
            crowded,
        }
    }
}
