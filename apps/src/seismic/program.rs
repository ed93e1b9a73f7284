//! One rank of `seismic`: takes shots from the bag, models them, and writes their gathers.
//!
//! A step of the resilient loop is a slice of time: the rank models as far as it gets, then all ranks meet and agree on
//! what is done and who does what next ([`ft_checkpoint::Worker`]). After a failure survivors keep the shot that they
//! are in. A shot whose rank was lost starts again elsewhere; or, if wave fields are protected, the replacement goes on
//! in the middle of it.

use std::time::Duration;

use ft_checkpoint::resilient::activity;
use ft_checkpoint::{
    Flow, Program, Protect, ProtectError, RankState, RestorePolicy, Spread, StatePart, Walk, Worker,
};
use ft_comm::time::{Clock, Time};
use ft_comm::{CommError, Op, Rank, World};
use ft_seismic::gather::Gather;
use ft_seismic::geometry::{Shot, Survey};
use ft_seismic::{CheckError, Model, Propagator, Wavefield};

use super::args::SeismicArgs;
use super::facts::facts;
use super::gathers::{self, GatherError};
use super::setup::{Setup, Steps};
use super::summary::{self, Measured, Summary};
use crate::app;
use crate::rank::{Rate, Reporter};
use crate::settings::AppSettings;

/// How often a rank looks for failures while it computes.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Why a run cannot go on.
#[derive(Debug, thiserror::Error)]
pub(super) enum SeismicError {
    #[error(transparent)]
    Comm(#[from] CommError),
    #[error(transparent)]
    Gather(#[from] GatherError),
    #[error(transparent)]
    Physics(#[from] CheckError),
    #[error("{0}")]
    Setup(String),
    /// Finite velocities and a stable time step leave only a wavelet that is too high.
    #[error(
        "shot {shot} overflows: what receiver {receiver} records is not finite from {at_s:.3} s on; use a lower wavelet"
    )]
    NotFinite { shot: u32, receiver: usize, at_s: f64 },
}

/// The state of one rank.
#[derive(Debug, Default)]
pub(super) struct State {
    // Constant.
    model: Model,
    survey: Survey,
    steps: Steps,
    protects_shots: bool,
    // Variable.
    worker: Worker,
    // Variable if wave fields are protected.
    shot: Option<usize>,
    field: Wavefield,
    /// Receiver after receiver.
    traces: Vec<f32>,
}

impl Protect for State {
    fn walk<W: Walk>(&mut self, part: StatePart, walk: &mut W) -> Result<(), ProtectError> {
        match part {
            StatePart::Constant => {
                let same = Some(Spread::Replicated);
                walk.field_by_serde("survey", same, &mut self.survey)?;
                walk.field_by_serde("steps", same, &mut self.steps)?;
                walk.field_by_serde("protects_shots", same, &mut self.protects_shots)?;
                walk.field_by_serde("nx", same, &mut self.model.nx)?;
                walk.field_by_serde("nz", same, &mut self.model.nz)?;
                walk.field("spacing", same, &mut self.model.spacing)?;
                walk.field("velocity", same, &mut self.model.velocity)
            }
            StatePart::Variable => {
                walk.nested("worker", None, part, &mut self.worker)?;
                if self.protects_shots {
                    walk.field_by_serde("shot", None, &mut self.shot)?;
                    walk.field("traces", None, &mut self.traces)?;
                    for part in self.field.parts_mut() {
                        let mut length = part.len();
                        walk.serde(&mut length)?;
                        part.resize(length);
                        walk.plain(&mut part[..])?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Modeling {
    args: SeismicArgs,
    propagator: Option<Propagator>,
    reporter: Reporter,
    rate: Rate,
    clock: Clock,
    looked: Time,
    /// Gathers that this process has begun to write.
    writes: u64,
    measured: Measured,
}

impl Modeling {
    pub(super) fn new(args: SeismicArgs, settings: AppSettings) -> Self {
        Self {
            args,
            propagator: None,
            reporter: Reporter::new(settings),
            rate: Rate::new(),
            clock: Clock::start(),
            looked: Time(0),
            writes: 0,
            measured: Measured::default(),
        }
    }

    /// Models until the slice is over or nothing is left to do.
    fn work(&mut self, state: &mut State, world: &World) -> Result<(), SeismicError> {
        let start = self.clock.now();
        let end = start.after(Duration::from_millis(self.args.slice));
        while let Some(task) = state.worker.task() {
            let now = self.clock.now();
            if now >= end {
                break;
            }
            if now.since(self.looked) >= LOOK_EVERY {
                self.looked = now;
                world.check()?;
            }
            self.advance(state, task, world)?;
        }
        self.measured.seconds += self.clock.now().since(start).as_secs_f64();
        Ok(())
    }

    /// One time step of a shot; before the first, everything is made still, after the last, the gather is written.
    fn advance(&mut self, state: &mut State, task: usize, world: &World) -> Result<(), SeismicError> {
        let propagator = self.propagator.as_ref().expect("made by init or rebuild");
        let State { survey, steps, worker, shot, field, traces, .. } = state;
        let Some(order) = survey.shots.get(task) else { return Ok(()) };
        if worker.progress() == 0 || *shot != Some(task) {
            *shot = Some(task);
            *field = propagator.still();
            traces.clear();
            traces.resize(order.receivers.len() * steps.samples, 0.0);
        }
        if let Some(&amplitude) = steps.wavelet.get(worker.progress() as usize) {
            propagator.step(field, order.source, amplitude);
            worker.advance(1);
            self.measured.steps += 1;
            let done = worker.progress() as usize;
            if done.is_multiple_of(steps.every) {
                let sample = done / steps.every;
                for (trace, receiver) in traces.chunks_exact_mut(steps.samples).zip(&order.receivers) {
                    trace[sample] = propagator.sample(field, *receiver);
                }
            }
        }
        if worker.progress() as usize == steps.wavelet.len() {
            require_finite(order, traces, steps)?;
            self.write(state, task, world)?;
            state.worker.finish();
            state.shot = None;
        }
        Ok(())
    }

    fn write(&mut self, state: &State, task: usize, world: &World) -> Result<(), SeismicError> {
        let Some(out) = &self.args.out else { return Ok(()) };
        let shot = &state.survey.shots[task];
        let gather = Gather {
            shot,
            spacing: state.model.spacing,
            interval_s: state.steps.interval(),
            samples: state.steps.samples,
            traces: &state.traces,
            delay_s: state.steps.delay,
            facts: &facts(&self.args, &state.model, &state.steps),
        };
        self.writes += 1;
        let writer = format!("{}.{}", world.rank(), world.incarnation());
        let halfway = || world.fault_point("gather-write", self.writes, None).map_err(SeismicError::Comm);
        gathers::write(&gather, &gathers::path(out, shot.number, "sgy"), false, &writer, halfway)?;
        if self.args.su {
            gathers::write(&gather, &gathers::path(out, shot.number, "su"), true, &writer, || {
                Ok::<(), SeismicError>(())
            })?;
        }
        Ok(())
    }

    /// Hash of the hashes of all gathers in the order of their shots, each read back by one rank; collective.
    fn hash(&self, survey: &Survey, world: &World) -> Result<Option<String>, SeismicError> {
        let Some(out) = &self.args.out else { return Ok(None) };
        let (rank, size) = (world.rank(), world.size());
        let rounds = survey.shots.len().div_ceil(size);
        let mut mine = vec![0; 32 * rounds];
        for (at, shot) in survey.shots.iter().skip(rank).step_by(size).enumerate() {
            mine[32 * at..32 * (at + 1)].copy_from_slice(&gathers::hash(&gathers::path(
                out,
                shot.number,
                "sgy",
            ))?);
        }
        let mut all = vec![0; 32 * rounds * size];
        world.comm().allgather(&mine, &mut all)?;
        let mut hasher = blake3::Hasher::new();
        for task in 0..survey.shots.len() {
            let at = 32 * ((task % size) * rounds + task / size);
            hasher.update(&all[at..at + 32]);
        }
        Ok(Some(hasher.finalize().to_hex().to_string()))
    }
}

/// Looks through the recordings of a shot.
fn require_finite(shot: &Shot, traces: &[f32], steps: &Steps) -> Result<(), SeismicError> {
    let Some(at) = traces.iter().position(|sample| !sample.is_finite()) else { return Ok(()) };
    let at_s = (at % steps.samples) as f64 * steps.interval();
    Err(SeismicError::NotFinite { shot: shot.number, receiver: at / steps.samples + 1, at_s })
}

impl Program for Modeling {
    type State = State;
    type Error = SeismicError;
    const RESTORE: RestorePolicy = RestorePolicy::LostOnly;
    const SHRINKS: bool = true;
    const GROWS: bool = true;

    fn init(&mut self, world: &World) -> Result<State, SeismicError> {
        let Setup { model, survey, steps, .. } = Setup::new(&self.args).map_err(SeismicError::Setup)?;
        self.propagator = Some(Propagator::new(&model, steps.order, steps.dt)?);
        let worker = Worker::new(survey.shots.len(), world.rank(), world.size());
        Ok(State {
            model,
            survey,
            steps,
            worker,
            protects_shots: self.args.protect_shots,
            ..State::default()
        })
    }

    fn rebuild(&mut self, state: &mut State, _: &World) -> Result<(), SeismicError> {
        // Survivors have theirs.
        if self.propagator.is_none() {
            self.propagator = Some(Propagator::new(&state.model, state.steps.order, state.steps.dt)?);
            self.rate.restart(summary::steps_done(&state.worker, state.steps.wavelet.len() as u64));
        }
        Ok(())
    }

    /// Each rank takes the place of one of then, with the shot that this was in. Shots of those whose place nobody takes begin again.
    fn redistribute(
        &mut self,
        shares: Vec<RankState<State>>,
        _: usize,
        world: &World,
    ) -> Result<State, SeismicError> {
        let states = shares.into_iter().map(|share| share.state);
        let (mut state, own) = match states.max_by_key(|state| state.worker.progress()) {
            Some(mut state) => {
                let own = std::mem::take(&mut state.worker);
                (state, Some(own))
            }
            None => (self.init(world)?, None),
        };
        state.worker = Worker::take_up(own, world.comm())?;
        Ok(state)
    }

    fn reconcile(&mut self, state: &mut State, world: &World, lost: &[Rank]) -> Result<u64, SeismicError> {
        Ok(state.worker.reconcile(world.comm(), lost, state.protects_shots)?)
    }

    fn step(&mut self, state: &mut State, world: &World, _: u64) -> Result<Flow, SeismicError> {
        self.work(state, world)?;
        world.activity(activity::WAITING);
        let done = state.worker.meet(world.comm())?;
        world.activity(activity::COMPUTING);
        self.reporter
            .say(world, || summary::progress(&state.worker, state.steps.wavelet.len() as u64, &self.rate));
        Ok(if done { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, state: &mut State, world: &World) -> Result<Vec<u8>, SeismicError> {
        let mut spent = [self.measured.seconds, self.measured.steps as f64];
        world.comm().allreduce(&mut spent, Op::Sum)?;
        let all = Measured { seconds: spent[0], steps: spent[1] as u64 };
        let points = self.propagator.as_ref().map_or(0, Propagator::points);
        let hash = self.hash(&state.survey, world)?;
        // Whoever was there at the start has done something.
        let ranks = state.worker.bag().size();
        let summary = Summary::new(&state.model, &state.survey, &state.steps, state.worker.bag(), ranks)
            .measured(all, points)
            .hashed(hash);
        Ok(app::write(&summary))
    }

    /// What is wrong with the input is found before the start; what is left are disks and bugs.
    fn status(&self, error: &SeismicError) -> i32 {
        match error {
            SeismicError::Setup(_) | SeismicError::Physics(_) => 2,
            SeismicError::Comm(_) | SeismicError::Gather(_) | SeismicError::NotFinite { .. } => 1,
        }
    }
}
