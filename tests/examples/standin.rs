//! Stands in for an MPI library and its `mpirun`, for tests of `ftrun --transport mpi` where there is none: the process that the launcher has started starts the others, and tells them
//! what MPI would. Their messages go through sockets. The launcher sees no difference.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use ft_checkpoint::{Flow, MainError, Program, Protect, Protection};
use ft_comm::service::thread::{Inlet, ServiceThread};
use ft_comm::transport::sockets::SocketTransport;
use ft_comm::transport::{Credentials, ENV_HOST, ENV_TRANSPORT, HOST_OF_LAUNCHER, LinkOptions};
use ft_comm::{CommError, ENV_KEY, ENV_LAUNCHER, Op, World, inherited};
use ft_proto::rank::PeerId;
use ft_proto::wire::handshake::JobKey;

const STEPS: u64 = 60;
/// Environment of the processes that are started here: their number, and the key as text.
const ENV_NUMBER: &str = "STANDIN_NUMBER";
const ENV_TEXT: &str = "STANDIN_KEY";

#[derive(Default, Protect)]
struct Total {
    sum: u64,
}

struct Sums;

impl Program for Sums {
    type State = Total;
    type Error = CommError;
    const ALONE: bool = true;

    fn init(&mut self, _: &World) -> Result<Total, CommError> {
        Ok(Total::default())
    }

    fn step(&mut self, total: &mut Total, world: &World, number: u64) -> Result<Flow, CommError> {
        let mut terms = [number * (world.rank() as u64 + 1)];
        world.comm().allreduce(&mut terms, Op::Sum)?;
        total.sum += terms[0];
        Ok(if number == STEPS { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, total: &mut Total, world: &World) -> Result<Vec<u8>, CommError> {
        let ranks = world.size() as u64;
        assert_eq!(total.sum, STEPS * (STEPS + 1) / 2 * (ranks * (ranks + 1) / 2));
        if world.rank() == 0 {
            println!("{} on {ranks} ranks", total.sum);
        }
        Ok(vec![])
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

/// The number of this process, and the key. The first has started the others when this returns: `children`.
fn number_and_key(children: &mut Vec<Child>) -> (u32, String) {
    if let Ok(number) = std::env::var(ENV_NUMBER) {
        return (number.parse().expect("a number"), variable(ENV_TEXT));
    }
    let key = inherited::take(&variable(ENV_KEY), JobKey::TEXT_BYTES).expect("the key");
    let key = String::from_utf8(key).expect("the key as text");
    let count: u32 = variable("PMI_SIZE").parse().expect("a number");
    for number in 2..=count {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        // A signal to the first and its children is not for them.
        command.env(ENV_NUMBER, number.to_string()).env(ENV_TEXT, &key).stdin(Stdio::null()).process_group(0);
        children.push(command.spawn().expect("another process"));
    }
    (1, key)
}

fn join(children: &mut Vec<Child>) -> Result<World, CommError> {
    let (number, key) = number_and_key(children);
    let credentials = Credentials { key: JobKey::from_text(&key).expect("the key"), secret: true };
    let options = LinkOptions::from_environment(|name| match name {
        ENV_TRANSPORT => Some("auto".to_owned()),
        ENV_HOST => Some(HOST_OF_LAUNCHER.to_owned()),
        _ => std::env::var(name).ok(),
    });
    let options = options.map_err(CommError::Join)?;
    let launcher = variable(ENV_LAUNCHER).parse().expect("an address");
    let peer = PeerId(number);
    let (service, inlet) =
        ServiceThread::start(&credentials, peer, &launcher, &options, None, true).map_err(CommError::Join)?;
    let Inlet { inbox, wake, accounts, room, address } = inlet;
    let transport = SocketTransport::new(credentials, peer, options, inbox, wake, accounts, room);
    let transport = transport.map_err(|error| CommError::Join(error.to_string()))?;
    World::join(Box::new(transport), Box::new(service), address, None)
}

fn main() -> Result<(), MainError> {
    let mut children = vec![];
    let world = match join(&mut children) {
        // A spare that was not needed.
        Err(CommError::Ended { code: 0, .. }) => return Ok(()),
        joined => joined?,
    };
    let protection = Protection::from_launcher(&world)?;
    ft_checkpoint::run(world, protection, &mut Sums)?;
    children.iter_mut().for_each(|child| _ = child.wait());
    Ok(())
}
