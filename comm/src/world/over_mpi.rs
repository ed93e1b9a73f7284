//! Joining a job whose ranks `mpirun` has started (`ftrun --transport mpi`).
//!
//! Process 0 of MPI's world is a child of the launcher, which has told it through the environment where it is and what the key of the job is. The others were started by
//! `mpirun` alone, and hear it from process 0 over MPI. From there on each has its link to the launcher as any rank has; process `n` is the peer `n + 1`, of
//! which those behind the ranks are spares.

use super::{ENV_KEY, ENV_LAUNCHER, ENV_REFUSED, World, credentials, spoiled, unreadable};
use crate::lifeline::ENV_LIFELINE;
use crate::service::thread::ServiceThread;
use crate::transport::mpi::Library;
use crate::transport::{
    Address, Carrier, Credentials, ENV_HOST, ENV_LINK_FAULTS, ENV_PLAIN, ENV_TRANSPORT, ENV_WAIT,
    HOST_OF_LAUNCHER, LinkOptions, PacketTransport,
};
use ft_proto::error::CommError;
use ft_proto::rank::PeerId;
use ft_proto::wire::handshake::{JobKey, hex};

/// What process 0 has to say, as lines `NAME=VALUE`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Told(Vec<(String, String)>);

impl Told {
    fn write(&self) -> String {
        self.0.iter().map(|(name, value)| format!("{name}={value}\n")).collect()
    }

    fn read(text: &str) -> Self {
        let lines = text.lines().filter_map(|line| line.split_once('='));
        Self(lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    fn value(&self, name: &str) -> Option<String> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
    }
}

/// See [`World::init`].
pub(super) fn init() -> Result<World, CommError> {
    match joined() {
        Err(CommError::Ended { code, .. }) if std::env::var(ENV_LAUNCHER).is_err() => exit(code), // a spare that was not needed
        joined => joined,
    }
}

#[expect(clippy::disallowed_methods, reason = "there is no job, or none any more")]
fn exit(status: i32) -> ! {
    std::process::exit(status)
}

fn joined() -> Result<World, CommError> {
    let mut library = Library::start().map_err(CommError::Join)?;
    let own = if library.me() == 0 { tell(&library)?.write() } else { String::new() };
    let told = library.broadcast(own.into_bytes()).map_err(CommError::Join)?;
    let told = Told::read(&String::from_utf8_lossy(&told));
    if let Some(status) = told.value(ENV_REFUSED) {
        drop(library);
        exit(status.parse().unwrap_or(2));
    }
    let value = |name: &str| told.value(name).ok_or_else(|| unreadable(name));
    let launcher: Address = value(ENV_LAUNCHER)?.parse().map_err(|_| unreadable(ENV_LAUNCHER))?;
    let key = JobKey::from_text(&value(ENV_KEY)?).ok_or_else(|| unreadable(ENV_KEY))?;
    let credentials = Credentials { key, secret: told.value(ENV_PLAIN).is_none() };
    let own = library.host();
    let host = if value(ENV_HOST)? == own { HOST_OF_LAUNCHER.to_owned() } else { own };
    let options = LinkOptions::from_environment(|name| match name {
        ENV_HOST => Some(host.clone()),
        ENV_TRANSPORT => Some(Carrier::Mpi.to_string()),
        ENV_WAIT => told.value(ENV_WAIT),
        _ => None,
    });
    let options = options.map_err(CommError::Join)?;
    let peer = PeerId(library.me() as u32 + 1);
    let lifeline = std::env::var(ENV_LIFELINE).ok();
    let (service, inlet) = ServiceThread::start(&credentials, peer, &launcher, &options, lifeline, true)
        .map_err(CommError::Join)?;
    let transport = PacketTransport::new(library, options.waiting, inlet.wake);
    let transport = spoiled(&service, transport, told.value(ENV_LINK_FAULTS))?;
    // Links need no address; hosts are told apart by it.
    let mut world = World::join(transport, Box::new(service), format!("{host} mpi -"), None)?;
    world.job = hex(&credentials.key.job);
    Ok(world)
}

/// What the launcher has told this process.
fn tell(library: &Library) -> Result<Told, CommError> {
    if let Ok(status) = std::env::var(ENV_REFUSED) {
        return Ok(Told(vec![(ENV_REFUSED.to_owned(), status)]));
    }
    let variable = |name: &str| std::env::var(name).ok().map(|value| (name.to_owned(), value));
    let told = [ENV_LAUNCHER, ENV_WAIT, ENV_PLAIN, ENV_LINK_FAULTS].into_iter().filter_map(variable);
    let key = credentials()?.key.to_text();
    let more = [(ENV_KEY.to_owned(), key), (ENV_HOST.to_owned(), library.host())];
    Ok(Told(told.chain(more).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_arrives() {
        let pairs = [("FTRUN_LAUNCHER", "local - ftrun-1"), ("FTRUN_LINK_FAULTS", ""), ("A", "b=c")];
        let told =
            Told(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect());
        assert_eq!(Told::read(&told.write()), told);
        assert_eq!((told.value("A").as_deref(), told.value("B")), (Some("b=c"), None));
    }
}
