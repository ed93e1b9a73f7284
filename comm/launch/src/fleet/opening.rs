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
use crate::order::{LaunchError, Order};
use crate::reach::Reach;
use crate::remote::{Remote, command};
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
        order: &Order,
        credentials: &Credentials,
        doorman: &Doorman,
        reach: &Reach,
        now: Time,
    ) -> Result<Self, LaunchError> {
        let mut fleet = Self::here(order, credentials, now)?;
        let mut environment = environment(order, credentials);
        let (site, doors) = (site(order, &environment)?, doorman.tcp()?);
        for (at, ip) in reach.launcher.iter().enumerate() {
            let launcher = doors.iter().find(|door| Some(door.ip()) == *ip).copied();
            let door = fleet.open(order, at, credentials, launcher, &site, now)?;
            fleet.doors.push(door);
        }
        environment.extend([
            (ft_comm::ENV_LAUNCHER.into(), doorman.address(HOST_OF_LAUNCHER)?.to_string()),
            (ENV_HOST.into(), HOST_OF_LAUNCHER.to_owned()),
        ]);
        environment.extend(reach.own(order.carrier).map(|ip| (ENV_LISTEN.into(), ip.to_string())));
        fleet.task.environment = environment;
        Ok(fleet)
    }

    /// A fleet without doors.
    fn here(order: &Order, credentials: &Credentials, now: Time) -> Result<Self, LaunchError> {
        let config = &order.config;
        Ok(Self {
            crew: Crew::new(order.guardian)?,
            cluster: order.cluster.clone(),
            doors: vec![],
            places: Places::new(order.cluster.place(config.total), config.compute, order.binding),
            homes: HashMap::new(),
            begun: vec![],
            inputs: HashMap::new(),
            inflow: None,
            holds: false,
            detector: Detector::new(config.timeout, now),
            interval: config.interval,
            timeout: config.timeout,
            beat_due: now,
            task: Task {
                program: order.program.clone(),
                args: order.args.clone(),
                environment: vec![],
                key: credentials.key.clone(),
            },
        })
    }

    fn open(
        &mut self,
        order: &Order,
        at: usize,
        credentials: &Credentials,
        launcher: Option<SocketAddr>,
        site: &Site,
        now: Time,
    ) -> Result<Door, LaunchError> {
        let host = self.cluster.hosts()[at].name.clone();
        let Some(launcher) = launcher else { return Ok(Door::Here) };
        // Ranks count from the other end.
        let peer = PeerId(u32::MAX - u32::try_from(at).expect("hosts are few"));
        let mut args: Vec<OsString> = vec![host.clone().into()];
        args.extend(command(&order.program, order.agent));
        let exec = self.cluster.exec().clone();
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
fn environment(order: &Order, credentials: &Credentials) -> Vec<(String, String)> {
    let mut environment = order.environment.clone();
    environment.push((ENV_TRANSPORT.into(), order.carrier.to_string()));
    environment.push((ENV_WAIT.into(), order.waiting.to_string()));
    if !credentials.secret {
        environment.push((ENV_PLAIN.into(), String::new()));
    }
    if !(order.config.cuts.is_empty() && order.slow.is_empty()) {
        let slow: Vec<String> = order.slow.iter().map(ToString::to_string).collect();
        environment.push((ENV_LINK_FAULTS.into(), slow.join(" ")));
    }
    environment
}

/// What agents are told. Ranks here inherit what this process has; others have to be told.
fn site(order: &Order, environment: &[(String, String)]) -> Result<Site, LaunchError> {
    let congestion = std::env::var(ENV_CONGESTION).map(|value| (ENV_CONGESTION.to_owned(), value));
    let gone = |error: Error| Error::new(error.kind(), format!("the working folder: {error}"));
    Ok(Site {
        program: bytes(&order.program),
        args: order.args.iter().map(bytes).collect(),
        folder: bytes(std::env::current_dir().map_err(gone)?),
        environment: environment.iter().cloned().chain(congestion).collect(),
        heartbeat_ms: order.config.interval.as_millis() as u64,
        timeout_ms: order.config.timeout.as_millis() as u64,
    })
}

fn bytes(text: impl Into<OsString>) -> Vec<u8> {
    text.into().into_encoded_bytes()
}
