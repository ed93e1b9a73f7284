//! The start: an agent on every other host.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::io::Error;

use super::adopted::Adopted;
use super::invitations::Invitations;
use super::loads::Loads;
use super::places::Places;
use super::pulses::Pulses;
use super::returns::Returns;
use super::{Door, Fleet};
use crate::cluster::Placing;
use crate::crew::{Crew, Task};
use crate::executable;
use crate::gauge::Gauge;
use crate::reach::Reach;
use crate::spec::{Elsewhere, JobSpec, LaunchError, OutputForm};
use crate::standing;
use crate::stdin::Receivers;
use ft_comm::estate::ENV_GROUND;
use ft_comm::time::Time;
use ft_comm::transport::{
    Credentials, Doorman, ENV_CONGESTION, ENV_HOST, ENV_LINK_FAULTS, ENV_LISTEN, ENV_PLAIN, ENV_TRANSPORT,
    ENV_WAIT, HOST_OF_LAUNCHER,
};
use ft_proto::arbiter::OnFailure;
use ft_proto::detector::Detector;
use ft_proto::wire::agent::{Held, Site};

impl Fleet {
    /// Starts an agent on every other host; they have not come when this returns.
    ///
    /// # Errors
    /// An agent cannot be started.
    pub(crate) fn new(
        spec: &JobSpec,
        credentials: &Credentials,
        doorman: &Doorman,
        reach: &Reach,
        now: Time,
    ) -> Result<Self, LaunchError> {
        let mut fleet = Self::here(spec, credentials, now)?;
        if spec.output == OutputForm::Raw {
            fleet.crew.pass_unchanged();
        }
        let mut environment = environment(spec, credentials);
        let doors = doorman.tcp()?;
        let door_for = |ip: &Option<_>| doors.iter().find(|door| Some(door.ip()) == *ip).copied();
        let mut invitations = Invitations {
            credentials: credentials.clone(),
            build: spec.build,
            program: spec.elsewhere().program,
            agent: spec.agent,
            launcher: reach.launcher.iter().map(door_for).collect(),
            site: site(spec, &environment)?,
            sent: 0,
        };
        for at in 0..invitations.launcher.len() {
            let remote = invitations.invite(&mut fleet.crew, &fleet.cluster, at, now)?;
            fleet.doors.push(remote.map_or(Door::Here, |remote| Door::Agent(Box::new(remote))));
        }
        fleet.invitations = Some(invitations);
        environment.extend([
            (ft_comm::ENV_LAUNCHER.into(), doorman.address(HOST_OF_LAUNCHER)?.to_string()),
            (ENV_HOST.into(), HOST_OF_LAUNCHER.to_owned()),
        ]);
        environment.extend(reach.own(spec.carrier).map(|ip| (ENV_LISTEN.into(), ip.to_string())));
        if spec.task.is_some() {
            // The library of the first process is to find what mpirun has told the launcher.
            let told =
                standing::names().filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)));
            environment.extend(told);
        }
        fleet.task.environment = environment;
        Ok(fleet)
    }

    /// A fleet without doors.
    fn here(spec: &JobSpec, credentials: &Credentials, now: Time) -> Result<Self, LaunchError> {
        let config = &spec.config;
        Ok(Self {
            crew: Crew::new(spec.guardian)?,
            adopted: spec.task.map(|task| Adopted::new(task.count)),
            cluster: spec.cluster.clone(),
            doors: vec![],
            invitations: None,
            returns: Returns::default(),
            loads: Loads::default(),
            gauge: (spec.cluster.placing() == Placing::Load).then(Gauge::open).flatten(),
            drained: BTreeSet::new(),
            removed: BTreeSet::new(),
            awaited: BTreeSet::new(),
            added: BTreeSet::new(),
            replaces: config.on_failure == OnFailure::Rebuild,
            places: Places::new(spec.cluster.place(config.total), config.compute, spec.binding),
            homes: HashMap::new(),
            pids: HashMap::new(),
            begun: vec![],
            resumed: vec![],
            inputs: HashMap::new(),
            inflows: HashMap::new(),
            receivers: Receivers::new(spec.input),
            held: Held::default(),
            detector: Detector::new(config.timeout, now),
            pulses: Pulses::new(config.interval, now),
            interval: config.interval,
            timeout: config.timeout,
            beat_due: now,
            task: Task {
                program: spec.program.clone().into_os_string(),
                args: spec.args.clone(),
                executable: spec.executable.as_deref().and_then(executable::hold),
                environment: vec![],
                key: credentials.key.clone(),
            },
        })
    }
}

/// What the processes of all hosts are told.
fn environment(spec: &JobSpec, credentials: &Credentials) -> Vec<(String, String)> {
    let mut environment = spec.environment.clone();
    environment.push((ENV_TRANSPORT.into(), spec.carrier.to_string()));
    environment.push((ENV_WAIT.into(), spec.waiting.to_string()));
    if spec.keeps_memory {
        // The host puts the number in its place.
        environment.push((ENV_GROUND.into(), String::new()));
    }
    if !credentials.secret {
        environment.push((ENV_PLAIN.into(), String::new()));
    }
    if !(spec.config.cuts.is_empty() && spec.slow.is_empty()) {
        let slow: Vec<String> = spec.slow.iter().map(ToString::to_string).collect();
        environment.push((ENV_LINK_FAULTS.into(), slow.join(" ")));
    }
    environment
}

/// What agents are told. Ranks here inherit what this process has; others have to be told.
fn site(spec: &JobSpec, environment: &[(String, String)]) -> Result<Site, LaunchError> {
    let congestion = std::env::var(ENV_CONGESTION).map(|value| (ENV_CONGESTION.to_owned(), value));
    let gone = |error: Error| Error::new(error.kind(), format!("the working folder: {error}"));
    let Elsewhere { program, args, executable } = spec.elsewhere();
    Ok(Site {
        program: bytes(program),
        args: args.iter().map(bytes).collect(),
        executable: executable.map(bytes),
        folder: bytes(std::env::current_dir().map_err(gone)?),
        environment: environment.iter().cloned().chain(congestion).collect(),
        heartbeat_ms: spec.config.interval.as_millis() as u64,
        timeout_ms: spec.config.timeout.as_millis() as u64,
        measures: spec.cluster.placing() == Placing::Load,
        raw_output: spec.output == OutputForm::Raw,
    })
}

fn bytes(text: impl Into<OsString>) -> Vec<u8> {
    text.into().into_encoded_bytes()
}
