//! One measurement, as raw numbers.

use serde::Serialize;

use super::child::{Failure, Report, Restore};
use super::experiment::{Kind, Run};

/// What one job has shown. Times are in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// What the run was for.
    pub kind: Kind,
    /// Protected state of each rank.
    pub state_bytes: u64,
    /// Name of the scheme.
    pub scheme: String,
    /// From 0.
    pub repetition: usize,
    /// Steps of the job.
    pub steps: u64,
    /// Load average over a minute, before the job.
    pub load_average: f64,
    /// The process of the launcher, from outside.
    pub wall_s: f64,
    /// The job, as it reports itself.
    pub elapsed_s: f64,
    /// From the first step to the last.
    pub loop_s: f64,
    /// Mean of a step, without checkpoints.
    pub step_s: f64,
    /// Checkpoints of the whole job, in order.
    pub checkpoints: u64,
    /// Bytes of state in them, all ranks.
    pub bytes_protected: u64,
    /// Bytes sent for them, all ranks.
    pub bytes_sent: u64,
    /// Time in checkpoints, all of them.
    pub checkpoint_s: f64,
    /// Part of it, as are the next three.
    pub copy_s: f64,
    /// Hashes and redundant blocks.
    pub encode_s: f64,
    /// Messages or files, and waiting for others.
    pub exchange_s: f64,
    /// Votes.
    pub commit_s: f64,
    /// Bytes in memory for each byte of state.
    pub memory_overhead: f64,
    /// Most memory that a rank has used.
    pub vm_hwm_bytes: u64,
    /// Failures that happened; the times below are sums over them.
    pub failures: usize,
    /// From the kill to the notice.
    pub detect_s: f64,
    /// From the notice to the next generation.
    pub repair_s: f64,
    /// Part of it, until all survivors have heard.
    pub agree_s: f64,
    /// Part of it, until the replacement has joined; at the same time as agreement.
    pub respawn_s: f64,
    /// From the next generation to the resumption.
    pub restore_s: f64,
    /// Part of it: links, and checks of what is there.
    pub plan_s: f64,
    /// What is lost is computed or read.
    pub rebuild_s: f64,
    /// Redundancy is made whole.
    pub reprotect_s: f64,
    /// State is checked and given back.
    pub load_s: f64,
    /// Steps that were done again.
    pub steps_lost: u64,
    /// Random kills that had to wait for redundancy to be whole.
    pub kills_postponed: u64,
    /// The answer.
    pub answer_hash: String,
}

/// Parts of a recovery, one after the other.
pub const RECOVERY_PHASES: [&str; 6] = ["detect", "agree", "respawn", "reconnect", "restore", "re-protect"];

/// Parts of a checkpoint, one after the other.
pub const CHECKPOINT_PHASES: [&str; 4] = ["copy", "encode", "exchange", "commit"];

impl Measurement {
    pub(crate) fn new(run: &Run, scheme: &str, load_average: f64, wall_s: f64, report: &Report) -> Self {
        let Report { result, checkpoints, failures, .. } = report;
        let sum = |part: fn(&Failure) -> Option<f64>| {
            failures.iter().filter_map(part).fold(0.0, |sum, part| sum + part)
        };
        let restore = |part: fn(&Restore) -> f64| {
            failures.iter().filter_map(|f| f.restore.as_ref().map(part)).fold(0.0, |sum, part| sum + part)
        };
        Self {
            kind: run.kind,
            state_bytes: run.state,
            scheme: scheme.to_owned(),
            repetition: run.repetition,
            steps: run.steps,
            load_average,
            wall_s,
            elapsed_s: report.elapsed_s,
            loop_s: result.seconds,
            step_s: result.step_seconds,
            checkpoints: checkpoints.committed,
            bytes_protected: checkpoints.bytes_protected,
            bytes_sent: checkpoints.bytes_sent,
            checkpoint_s: checkpoints.seconds,
            copy_s: checkpoints.phases.copy,
            encode_s: checkpoints.phases.encode,
            exchange_s: checkpoints.phases.exchange,
            commit_s: checkpoints.phases.commit,
            memory_overhead: checkpoints.memory_overhead,
            vm_hwm_bytes: result.vm_hwm_bytes,
            failures: failures.len(),
            detect_s: sum(|failure| failure.detect_s),
            repair_s: sum(|failure| failure.repair_s),
            agree_s: sum(|failure| failure.agree_s),
            respawn_s: sum(|failure| failure.respawn_s),
            restore_s: sum(|failure| failure.restore_s),
            plan_s: restore(|restore| restore.plan),
            rebuild_s: restore(|restore| restore.rebuild),
            reprotect_s: restore(|restore| restore.reprotect),
            load_s: restore(|restore| restore.load),
            steps_lost: failures.iter().map(|failure| failure.steps_lost).sum(),
            kills_postponed: report.kills_postponed,
            answer_hash: result.answer_hash.clone(),
        }
    }

    /// From the kill to the resumption, without the steps that are done again.
    pub fn recovery_s(&self) -> f64 {
        self.detect_s + self.repair_s + self.restore_s
    }

    /// Seconds of each of [`RECOVERY_PHASES`]. Agreement and the start of replacements run side by side: what counts as
    /// respawn is the part of it that agreement did not hide. The parts of a restore are those of the slowest rank each,
    /// and who is not concerned waits for the others in the last one, so this is what remains after the others.
    pub fn recovery_phases_s(&self) -> [f64; 6] {
        let agree = self.agree_s.min(self.repair_s);
        let respawn = (self.respawn_s.min(self.repair_s) - agree).max(0.0);
        let reprotect = self.reprotect_s.min(self.restore_s);
        let plan = self.plan_s.min(self.restore_s - reprotect);
        let reconnect = self.repair_s - agree - respawn + plan;
        [self.detect_s, agree, respawn, reconnect, self.restore_s - reprotect - plan, reprotect]
    }

    /// One checkpoint on average, in [`CHECKPOINT_PHASES`].
    pub fn checkpoint_phases_s(&self) -> [f64; 4] {
        let each = |seconds: f64| seconds / self.checkpoints.max(1) as f64;
        [self.copy_s, self.encode_s, self.exchange_s, self.commit_s].map(each)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A run with plausible numbers, all of which are exact in binary.
    pub(crate) fn measurement(scheme: &str, kind: Kind) -> Measurement {
        let report = serde_json::json!({
            "elapsed_s": 4.0, "kills_postponed": 0,
            "result": {"seconds": 3.0, "step_seconds": 0.0625, "vm_hwm_bytes": 4 << 20, "answer_hash": "ab"},
            "checkpoints": {"committed": 8, "bytes_protected": 32 << 20, "bytes_sent": 32 << 20, "seconds": 1.0,
                "phases": {"copy": 0.125, "encode": 0.25, "exchange": 0.5, "commit": 0.125}, "memory_overhead": 3.0},
            "failures": [{"detect_s": 0.25, "repair_s": 1.0, "agree_s": 0.5, "respawn_s": 0.75, "restore_s": 2.0,
                "restore": {"generation": 1, "plan": 0.25, "rebuild": 0.5, "reprotect": 0.25, "load": 0.125},
                "steps_lost": 2}],
        });
        let report = serde_json::from_value(report).unwrap();
        let run = Run { state: 1 << 20, scheme: 0, kind, steps: 40, repetition: 0 };
        Measurement::new(&run, scheme, 0.5, 4.25, &report)
    }

    #[test]
    fn phases_of_a_recovery_fill_it() {
        let run = measurement("xor", Kind::Kill { victim: 1 });
        assert_eq!(run.recovery_s(), 3.25);
        // Respawn 0.75 in the shadow of agreement 0.5; the rest of repair 0.25 with the plan 0.25; 2 - 0.25 - 0.25.
        assert_eq!(run.recovery_phases_s(), [0.25, 0.5, 0.25, 0.5, 1.5, 0.25]);
        assert_eq!(run.recovery_phases_s().iter().sum::<f64>(), run.recovery_s());
        let hidden = Measurement { respawn_s: 0.25, ..run.clone() };
        assert_eq!(hidden.recovery_phases_s(), [0.25, 0.5, 0.0, 0.75, 1.5, 0.25]);
        let waits = Measurement { plan_s: 1.5, reprotect_s: 1.0, ..run };
        assert_eq!(waits.recovery_phases_s(), [0.25, 0.5, 0.25, 1.25, 0.0, 1.0]);
    }

    #[test]
    fn phases_of_a_checkpoint_are_those_of_one() {
        let phases = measurement("xor", Kind::Plain).checkpoint_phases_s();
        assert_eq!(phases, [0.015_625, 0.031_25, 0.0625, 0.015_625]);
    }
}
