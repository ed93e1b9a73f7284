//! The start: an agent on every other host.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{Error, Write};
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use super::places::Places;
use super::{Door, Fleet};
use crate::crew::{Crew, Task};
use crate::invitation::Invitation;
use crate::reach::Reach;
use crate::remote::Remote;
use crate::spec::{JobSpec, LaunchError};
use ft_comm::estate::ENV_GROUND;
use ft_comm::time::Time;
use ft_comm::transport::{
    Credentials, Doorman, ENV_CONGESTION, ENV_HOST, ENV_LINK_FAULTS, ENV_LISTEN, ENV_PLAIN, ENV_TRANSPORT,
    ENV_WAIT, HOST_OF_LAUNCHER,
};
use ft_proto::detector::Detector;
use ft_proto::rank::PeerId;
use ft_proto::wire::agent::{Site, ToAgent};

/// Longest time until an agent that is started has come to the launcher.
pub(super) const AGENT_TIMEOUT: Duration = Duration::from_secs(10);

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
        let mut environment = environment(spec, credentials);
        let (site, doors) = (site(spec, &environment)?, doorman.tcp()?);
        for (at, ip) in reach.launcher.iter().enumerate() {
            let launcher = doors.iter().find(|door| Some(door.ip()) == *ip).copied();
            let door = fleet.open(spec, at, credentials, launcher, &site, now)?;
            fleet.doors.push(door);
        }
        environment.extend([
            (ft_comm::ENV_LAUNCHER.into(), doorman.address(HOST_OF_LAUNCHER)?.to_string()),
            (ENV_HOST.into(), HOST_OF_LAUNCHER.to_owned()),
        ]);
        environment.extend(reach.own(spec.carrier).map(|ip| (ENV_LISTEN.into(), ip.to_string())));
        fleet.task.environment = environment;
        Ok(fleet)
    }

    /// A fleet without doors.
    fn here(spec: &JobSpec, credentials: &Credentials, now: Time) -> Result<Self, LaunchError> {
        let config = &spec.config;
        Ok(Self {
            crew: Crew::new(spec.guardian)?,
            cluster: spec.cluster.clone(),
            doors: vec![],
            places: Places::new(spec.cluster.place(config.total), config.compute, spec.binding),
            homes: HashMap::new(),
            pids: HashMap::new(),
            begun: vec![],
            inputs: HashMap::new(),
            inflow: None,
            holds: false,
            detector: Detector::new(config.timeout, now),
            interval: config.interval,
            timeout: config.timeout,
            beat_due: now,
            task: Task {
                program: spec.program.clone(),
                args: spec.args.clone(),
                environment: vec![],
                key: credentials.key.clone(),
            },
        })
    }

    fn open(
        &mut self,
        spec: &JobSpec,
        at: usize,
        credentials: &Credentials,
        launcher: Option<SocketAddr>,
        site: &Site,
        now: Time,
    ) -> Result<Door, LaunchError> {
        let host = self.cluster.hosts()[at].name.clone();
        let Some(launcher) = launcher else { return Ok(Door::Here) };
        // Ranks count from the other end.
        let peer = PeerId(u32::MAX - u32::try_from(at).expect("a job has fewer than 2^32 hosts"));
        let (exec, args) = self.cluster.starter(&host, &spec.program, spec.agent);
        let words: Vec<String> = std::iter::once(exec.as_os_str())
            .chain(args.iter().map(|arg| &**arg))
            .map(|w| w.display().to_string())
            .collect();
        let mut remote = Remote::new(peer, host.clone(), words.join(" "), now.after(AGENT_TIMEOUT));
        let started = self.crew.begin(peer, &exec, &args, &[], Stdio::piped());
        let stdin = started.map_err(|error| remote.refused(&error.to_string()))?;
        let invitation = Invitation { credentials: credentials.clone(), peer, launcher, host };
        // It fits into the pipe. If nobody reads it, the end of the command says so.
        let _ = stdin.map(|mut stdin| stdin.write_all(invitation.to_text().as_bytes()));
        remote.send(ToAgent::Site(site.clone()));
        Ok(Door::Agent(Box::new(remote)))
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
    Ok(Site {
        program: bytes(&spec.program),
        args: spec.args.iter().map(bytes).collect(),
        folder: bytes(std::env::current_dir().map_err(gone)?),
        environment: environment.iter().cloned().chain(congestion).collect(),
        heartbeat_ms: spec.config.interval.as_millis() as u64,
        timeout_ms: spec.config.timeout.as_millis() as u64,
    })
}

fn bytes(text: impl Into<OsString>) -> Vec<u8> {
    text.into().into_encoded_bytes()
}
