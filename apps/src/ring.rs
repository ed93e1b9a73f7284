//! `ring`: a token goes round, and each rank adds its number + 1. It does by hand what the resilient loop does for a
//! program: checkpoints, repairs and restores, also on dedicated parity ranks.

use std::process::ExitCode;

use clap::Args;
use ft_checkpoint::resilient::{RankReport, activity};
use ft_checkpoint::{CheckpointError, Checkpointer, Lines, MemoryUse, Protect, Restored};
use ft_comm::{CommError, Repair, Tag, World};
use serde::{Deserialize, Serialize};

use crate::app::{self, App};
use crate::options::Options;
use crate::rank::{self, Reporter};
use crate::value::{U32_MAX, from_to};
use crate::words::count;

const TOKEN: Tag = 1;

/// The arguments of `ring`.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(next_help_heading = "Options of ring")]
pub(crate) struct RingArgs {
    /// How often the token goes round
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = from_to::<u32>(1..=U32_MAX))]
    rounds: u32,
    /// Take a checkpoint every N rounds, not --every steps
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = from_to::<u32>(1..=U32_MAX))]
    checkpoint_rounds: u32,
}

/// What `ring` is about, in the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RingResult {
    rounds: u64,
    ranks: u64,
    token: u64,
}

impl RingResult {
    fn expected(&self) -> u64 {
        self.rounds * (self.ranks * (self.ranks + 1) / 2)
    }
}

impl App for RingArgs {
    type Outcome = RingResult;

    fn check(&self, options: &Options) -> Result<(), String> {
        if options.interval.is_some() {
            return Err("--interval is nothing for ring, which counts rounds: --checkpoint-rounds".into());
        }
        if options.scheme().starts_with("checksum:") {
            return Err("--scheme checksum is nothing for ring, which has no doubles: use rs:K+M".into());
        }
        if options.lines() != Lines::Meet {
            return Err("--lines is nothing for ring, which takes its checkpoints by hand".into());
        }
        match &options.levels {
            Some(_) => Err("--levels is nothing for ring, which has one scheme: --scheme".into()),
            None => Ok(()),
        }
    }

    fn rank(&self) -> ExitCode {
        let world = World::init().map_err(CheckpointError::from);
        match world.and_then(|world| Ring::new(world, self)).and_then(Ring::run) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        }
    }

    fn complaint(&self, result: &RingResult) -> Option<String> {
        let (token, expected) = (result.token, result.expected());
        (token != expected).then(|| format!("the token came back as {token}, not as {expected}"))
    }

    fn lines(&self, RingResult { rounds, token, .. }: &RingResult) -> Vec<String> {
        vec![format!("{}, the token came back as {token}", count(*rounds, "round"))]
    }
}

/// What each rank protects: how far it is, and the token as it last handed it on.
#[derive(Debug, Default, Protect)]
struct Token {
    round: u64,
    value: u64,
}

struct Ring {
    world: World,
    checkpointer: Checkpointer,
    token: Token,
    rounds: u64,
    every: u64,
    reporter: Reporter,
}

impl Ring {
    fn new(world: World, args: &RingArgs) -> Result<Self, CheckpointError> {
        let (settings, protection) = rank::told(&world)?;
        let checkpointer = Checkpointer::new(&world, protection.scheme);
        let mut checkpointer = checkpointer.inspect_err(|error| _ = world.abort(2, error.to_string()))?;
        checkpointer.set_saves_memory(protection.memory_use == MemoryUse::Least);
        Ok(Self {
            checkpointer,
            world,
            token: Token::default(),
            rounds: args.rounds.into(),
            every: args.checkpoint_rounds.into(),
            reporter: Reporter::new(settings),
        })
    }

    /// Everything, through failures.
    fn run(mut self) -> Result<(), CheckpointError> {
        // A replacement comes to life in the repair that it was started for, and goes on from there.
        let mut repair = self.world.membership();
        loop {
            match self.attempt(&repair) {
                Ok(()) => return Ok(()),
                Err(CheckpointError::Comm(error)) if error.is_failure() => {
                    let report = self.checkpointer.report()?;
                    repair = self.world.repair(report)?;
                    self.checkpointer.begin_account();
                }
                Err(error) => {
                    let beyond = matches!(error, CheckpointError::BeyondTolerance(_));
                    self.world.abort(if beyond { 3 } else { 1 }, error.to_string());
                    return Err(error);
                }
            }
        }
    }

    /// From the start or the last repair to the end. Dedicated parity ranks count the rounds as the others do: so
    /// they know when the others take checkpoints.
    fn attempt(&mut self, repair: &Repair) -> Result<(), CheckpointError> {
        if repair.generation > 0 {
            self.restore(repair)?;
        }
        if !self.checkpointer.has_committed() {
            self.checkpoint()?;
        }
        self.world.activity(self.usual());
        while self.token.round < self.rounds {
            self.world.step(self.token.round + 1)?;
            if !self.world.is_parity() {
                self.pass_on()?;
            }
            self.token.round += 1;
            if self.token.round.is_multiple_of(self.every) {
                self.checkpoint()?;
            }
        }
        self.finish()
    }

    fn usual(&self) -> &'static str {
        if self.world.is_parity() { activity::WAITING } else { activity::COMPUTING }
    }

    /// One round, as this rank sees it.
    fn pass_on(&mut self) -> Result<(), CommError> {
        let comm = self.world.comm();
        let (rank, size, mut token) = (comm.rank(), comm.size(), [self.token.value]);
        if rank > 0 {
            comm.recv(&mut token, rank - 1, TOKEN)?;
        }
        token[0] += rank as u64 + 1;
        comm.send(&token, (rank + 1) % size, TOKEN)?;
        if rank == 0 {
            comm.recv(&mut token, size - 1, TOKEN)?;
        }
        self.token.value = token[0];
        let Token { round, value } = self.token;
        let share = round as f64 / self.rounds as f64;
        self.reporter.say(&self.world, || (Some(share), format!("round {round}, token {value}")));
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<(), CheckpointError> {
        self.world.activity(activity::CHECKPOINT);
        match self.world.is_parity() {
            true => self.checkpointer.checkpoint(&self.world, &mut ())?,
            false => self.checkpointer.checkpoint(&self.world, &mut self.token)?,
        }
        self.tell();
        self.world.activity(self.usual());
        Ok(())
    }

    /// What protection has cost since the last repair, in case that this process does not come to its end.
    fn tell(&self) {
        self.world.account(self.checkpointer.account().to_bytes());
    }

    fn restore(&mut self, repair: &Repair) -> Result<(), CheckpointError> {
        self.world.activity(activity::REBUILDING);
        // A parity rank has nothing to do again.
        let reached = if self.world.is_parity() { 0 } else { self.token.round };
        let restored = match self.world.is_parity() {
            true => self.checkpointer.restore(&self.world, repair, Some(&mut ()))?,
            false => self.checkpointer.restore(&self.world, repair, Some(&mut self.token))?,
        };
        match restored {
            Restored::Nothing => self.token = Token::default(),
            // Epoch 1 is the start; a parity rank has no other way to know.
            Restored::Epoch(epoch) => self.token.round = u64::from(epoch - 1) * self.every,
        }
        self.tell();
        self.world.resumed(reached.saturating_sub(self.token.round));
        Ok(())
    }

    /// Leaves with all others; a rank that is lost before all are done is repaired like any other.
    fn finish(&mut self) -> Result<(), CheckpointError> {
        self.world.activity(activity::WAITING);
        let Token { round, value } = self.token;
        let result = RingResult { rounds: round, ranks: self.world.size() as u64, token: value };
        let output = match self.world.rank() {
            0 => app::write(&result),
            _ => vec![],
        };
        let report = RankReport { stats: self.checkpointer.stats(), output, interval: None };
        self.world.finalize(report.to_bytes())?;
        // Those of a scheme that has any; the job is done, whatever becomes of them.
        let _ = self.checkpointer.remove_files();
        Ok(())
    }
}
