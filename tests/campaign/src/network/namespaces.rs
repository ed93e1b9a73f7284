//! Three hosts with a network each, and a router between them that keeps all TCP connections to itself.
//!
//! Each host knows the others by addresses behind the router, which takes packets for any of them as its own
//! (a local route for all that comes from a host). A listener there needs no address of its own but a port: that is
//! what the narrow range of ports of each host is for; so that it suffices no port rests after its use. Nothing of it has a name outside, and all of it goes with
//! the processes that hold the namespaces.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::programs::{self, Programs};

/// Hosts, numbered from 1.
pub(super) const HOSTS: usize = 3;
/// The ports that processes of hosts listen at.
pub(super) const PORTS: std::ops::Range<u16> = 20_000..20_192;

/// The address of a host.
pub(super) fn address(host: usize) -> String {
    format!("10.78.{host}.2")
}

/// A process that does nothing but to keep a network namespace.
#[derive(Debug)]
struct Holder(Child);

impl Holder {
    fn new() -> Result<Self, String> {
        let failed = |why: String| format!("no network namespace can be made: {why}");
        let mut child = Command::new("unshare")
            .args(["-n", "sh", "-c", "ip link set lo up && echo ready && exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(format!("unshare: {error}")))?;
        let mut said = String::new();
        if let Some(stdout) = &mut child.stdout {
            let _ = BufReader::new(stdout).read_line(&mut said);
        }
        let holder = Self(child);
        match said.trim() {
            "ready" => Ok(holder),
            _ => Err(failed("unshare -n and ip are needed, and root".to_owned())),
        }
    }

    fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.0.id())
    }

    fn run(&self, script: &str) -> Result<(), String> {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.path())).args(["sh", "-ec", script]);
        let output = command.output().map_err(|error| format!("nsenter: {error}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("{script}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Namespaces {
    router: Holder,
    hosts: Vec<Holder>,
    /// With `ftrun`, a stranger's program with a name of the same length, and what stands for `ssh`.
    folder: TempDir,
}

impl Namespaces {
    /// # Errors
    /// It cannot be made here.
    pub(super) fn new(programs: &Programs) -> Result<Self, String> {
        let router = Holder::new()?;
        let mut hosts = Vec::new();
        for number in 1..=HOSTS {
            let host = Holder::new()?;
            router.run(&format!(
                "ip link add h{number} type veth peer name out netns {}
                 ip address add 10.78.{number}.1/24 dev h{number}
                 ip link set h{number} up
                 ip rule add iif h{number} lookup 100",
                host.0.id()
            ))?;
            host.run(&format!(
                "ip address add {}/24 dev out
                 ip link set out up
                 ip route add default via 10.78.{number}.1
                 echo 0 >/proc/sys/net/ipv4/tcp_max_tw_buckets
                 echo '{} {}' >/proc/sys/net/ipv4/ip_local_port_range",
                address(number),
                PORTS.start,
                PORTS.end - 1
            ))?;
            hosts.push(host);
        }
        router.run("ip route add local 10.78.0.0/16 dev lo table 100")?;

        let folder = programs.folder()?;
        let here = folder.path();
        let io = |error: std::io::Error| format!("{}: {error}", here.display());
        let ftrun = here.join("ftrun");
        std::fs::hard_link(&programs.ftrun, &ftrun)
            .or_else(|_| std::fs::copy(&programs.ftrun, &ftrun).map(drop))
            .map_err(io)?;
        programs::script(&here.join("ftruN"), &format!("echo here >'{}'", here.join("stranger").display()))?;
        let enter =
            hosts.iter().enumerate().map(|(at, host)| format!("{}) net={};;", address(at + 1), host.path()));
        let enter: Vec<String> = enter.collect();
        let exec =
            format!("case $1 in {} esac\nshift\nexec nsenter --net=$net sh -c \"exec $*\"", enter.join(" "));
        programs::script(&here.join("exec"), &exec)?;
        Ok(Self { router, hosts, folder })
    }

    pub(super) fn router(&self) -> Result<File, String> {
        File::open(self.router.path()).map_err(|error| format!("{}: {error}", self.router.path()))
    }

    /// How `nsenter` gets to a host.
    pub(super) fn entrance(&self, host: usize) -> String {
        format!("--net={}", self.hosts[host - 1].path())
    }

    pub(super) fn ftrun(&self) -> PathBuf {
        self.folder.path().join("ftrun")
    }

    pub(super) fn exec(&self) -> PathBuf {
        self.folder.path().join("exec")
    }

    /// Whether the program was started that nobody but the relay names; from now on it was not.
    pub(super) fn a_stranger_has_run(&self) -> bool {
        std::fs::remove_file(self.folder.path().join("stranger")).is_ok()
    }
}
