//! Agents are started on other hosts, at the start of the job and again when a host was lost.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::agent_peer;
use crate::cluster::Cluster;
use crate::crew::{Crew, Input};
use crate::invitation::Invitation;
use crate::process::Order;
use crate::remote::Remote;
use crate::spec::LaunchError;
use ft_comm::limits;
use ft_comm::time::Time;
use ft_comm::transport::Credentials;
use ft_proto::wire::agent::{Site, ToAgent};

/// Longest time until an agent that is started has come to the launcher.
pub(super) const AGENT_TIMEOUT: Duration = Duration::from_secs(10);

/// What agents are started with, and told first.
#[derive(Debug)]
pub(super) struct Invitations {
    pub(super) credentials: Credentials,
    /// The number of this build.
    pub(super) build: u32,
    /// The program there, which becomes an agent by one argument.
    pub(super) program: PathBuf,
    pub(super) agent: &'static str,
    /// By host where the launcher listens for it; none for the launcher's own.
    pub(super) launcher: Vec<Option<SocketAddr>>,
    pub(super) site: Site,
    /// So many were sent.
    pub(super) sent: u32,
}

impl Invitations {
    /// Starts an agent on a host, as a process of `crew`, which has none of that number; it has not come when this returns. None for the
    /// launcher's own host.
    ///
    /// # Errors
    /// The command that is to start it cannot be started itself.
    pub(super) fn invite(
        &mut self,
        crew: &mut Crew,
        cluster: &Cluster,
        at: usize,
        now: Time,
    ) -> Result<Option<Remote>, LaunchError> {
        let Some(launcher) = self.launcher[at] else { return Ok(None) };
        let host = cluster.hosts()[at].name.clone();
        let peer = agent_peer(at);
        let (exec, args) = cluster.starter(&host, &self.program, self.agent);
        let command = cluster.command(&host, &self.program, self.agent);
        self.sent += 1;
        let term = self.sent;
        let mut remote = Remote::new(peer, term, host.clone(), command, now.after(AGENT_TIMEOUT));
        let order = Order { program: exec.into_os_string(), is_self: false, args, environment: vec![] };
        let started = crew.begin(peer, order, vec![], Input::Pipe);
        let stdin = started.map_err(|error| remote.refused(&limits::explain(&error)))?;
        let (credentials, build) = (self.credentials.clone(), self.build);
        let invitation = Invitation { credentials, build, peer, term, launcher, host };
        // It fits into the pipe. If nobody reads it, the end of the command says so.
        let _ = stdin.map(|mut stdin| stdin.write_all(invitation.to_text().as_bytes()));
        remote.send(ToAgent::Site(self.site.clone()));
        Ok(Some(remote))
    }
}
