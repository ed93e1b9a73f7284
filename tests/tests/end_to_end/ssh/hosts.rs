//! Hosts on this machine, each with a network, processes and a server of OpenSSH of its own, and one for the launcher.
//!
//! A host is namespaces that end with the process that holds them, and that ends with its standard input. So nothing is left, whatever
//! becomes of a test. Keys are made for each test, and no file of the user is read or written.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::{TempDir, tempdir};

use crate::common::{Run, built};

/// Where servers are, which is not in the path of every user.
const SERVER: &str = "/usr/sbin/sshd";

/// A process that keeps the namespaces of a host.
struct Holder(Child);

impl Holder {
    /// `unshare` with these options runs `script`, which says a line with `ready` in it on standard error when it is.
    fn new(options: &[&str], script: &str, ready: &str) -> Result<Self, String> {
        let mut command = Command::new("unshare");
        command.args(options).args(["sh", "-c", &format!("ip link set lo up && {script}")]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("unshare: {error}"))?;
        let mut said = BufReader::new(child.stderr.take().expect("it has a pipe"));
        let holder = Self(child);
        let mut all = String::new();
        loop {
            let before = all.len();
            if said.read_line(&mut all).unwrap_or(0) == 0 {
                return Err(format!("no host can be made of namespaces: {}", all.trim()));
            }
            if all[before..].contains(ready) {
                // What it says later is taken, and is of no interest.
                std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
                return Ok(holder);
            }
        }
    }

    /// Where `nsenter` finds the namespace of this kind.
    fn namespace(&self, kind: &str) -> String {
        format!("/proc/{}/ns/{kind}", self.0.id())
    }

    /// Runs a script in its network.
    fn run(&self, script: &str) {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.namespace("net"))).args(["sh", "-ec", script]);
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// See the module. Hosts are numbered from 1, and the one with number 2 is called `h2`.
pub(crate) struct Hosts {
    folder: TempDir,
    launcher: Holder,
    /// None: it is switched off.
    hosts: Vec<Option<Holder>>,
}

impl Hosts {
    /// None, with the reason, where there cannot be any.
    pub(crate) fn start(count: usize) -> Option<Self> {
        match Self::new(count) {
            Ok(hosts) => Some(hosts),
            Err(reason) => {
                println!("skipped: {reason}");
                None
            }
        }
    }

    fn new(count: usize) -> Result<Self, String> {
        if !rustix::process::getuid().is_root() {
            return Err("only root can make hosts".into());
        }
        for program in [SERVER, "/usr/bin/ssh", "/usr/bin/ssh-keygen"] {
            if !Path::new(program).is_file() {
                return Err(format!("{program} is not installed"));
            }
        }
        let folder = tempdir().unwrap();
        let path = folder.path().display();
        for name in ["bin", "work"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("names"), "127.0.0.1 localhost\n").unwrap();
        let script = format!(
            "mount --bind {path}/names /etc/hosts && ip link add name bridge type bridge && \
             ip address add 10.79.0.1/24 dev bridge && ip link set bridge up && echo ready >&2 && exec cat"
        );
        let launcher = Holder::new(&["-n", "-m"], &script, "ready")?;
        let mut hosts = Self { folder, launcher, hosts: vec![] };
        hosts.give_keys();
        for number in 1..=count {
            hosts.hosts.push(None);
            hosts.install(number);
            hosts.name(number);
            let key = fs::read_to_string(hosts.path(&format!("h{number}/key.pub"))).unwrap();
            hosts.append("known", &format!("h{number} {}", key.trim()));
            hosts.switch_on(number)?;
        }
        Ok(hosts)
    }

    /// A file or folder that all hosts have.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A key for the user, and what `ssh` is told.
    fn give_keys(&self) {
        let path = self.folder.path().display();
        new_key(&self.path("user"));
        let configuration = format!(
            "Host *\n IdentityFile {path}/user\n IdentitiesOnly yes\n UserKnownHostsFile {path}/known\n \
             GlobalKnownHostsFile /dev/null\n SendEnv FT_TESTS_*\n"
        );
        fs::write(self.path("configuration"), configuration).unwrap();
        let script = format!("#!/bin/sh\nexec /usr/bin/ssh -F {path}/configuration \"$@\"\n");
        fs::write(self.path("bin/ssh"), script).unwrap();
        fs::set_permissions(self.path("bin/ssh"), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// What the server of a host needs.
    fn install(&self, number: usize) {
        let home = self.path(&format!("h{number}"));
        fs::create_dir(&home).unwrap();
        new_key(&home.join("key"));
        let (path, home) = (self.folder.path().display(), home.display());
        let configuration = format!(
            "AddressFamily inet\nHostKey {home}/key\nAuthorizedKeysFile {path}/user.pub\nStrictModes no\nUsePAM no\n\
             PermitRootLogin yes\nPidFile none\nPrintMotd no\nPrintLastLog no\nAcceptEnv FT_TESTS_*\n\
             SetEnv HOME={home} FT_TESTS_HOST=h{number}\n"
        );
        fs::write(self.path(&format!("h{number}/configuration")), configuration).unwrap();
    }

    /// The launcher's host knows the address of a host.
    pub(crate) fn name(&self, number: usize) {
        self.append("names", &format!("10.79.0.{} h{number}", number + 1));
    }

    fn append(&self, file: &str, line: &str) {
        let text = fs::read_to_string(self.path(file)).unwrap_or_default();
        fs::write(self.path(file), format!("{text}{line}\n")).unwrap();
    }

    /// Nobody knows its name any more.
    pub(crate) fn forget_name(&self, number: usize) {
        self.forget("names", number);
    }

    /// Nobody knows its key any more.
    pub(crate) fn forget_key(&self, number: usize) {
        self.forget("known", number);
    }

    fn forget(&self, file: &str, number: usize) {
        let text = fs::read_to_string(self.path(file)).unwrap();
        let others = text.lines().filter(|line| !line.split(' ').any(|word| word == format!("h{number}")));
        let others: String = others.map(|line| format!("{line}\n")).collect();
        fs::write(self.path(file), others).unwrap();
    }

    /// Puts lines into the file that a login shell of a host reads first.
    pub(crate) fn at_login(&self, number: usize, lines: &str) {
        fs::write(self.path(&format!("h{number}/.bashrc")), lines).unwrap();
    }

    pub(crate) fn switch_on(&mut self, number: usize) -> Result<(), String> {
        self.switch_on_with(number, "true")
    }

    /// A host begins with a script of its own, which sees files as the host does.
    pub(crate) fn switch_on_with(&mut self, number: usize, script: &str) -> Result<(), String> {
        let configuration = self.path(&format!("h{number}/configuration"));
        let script = format!(
            "mount -t tmpfs none /run && mkdir /run/sshd && {script} && \
             {{ {SERVER} -D -e -f {} & cat; :; }}",
            configuration.display()
        );
        let options = ["-n", "-m", "-p", "--fork", "--kill-child", "--mount-proc"];
        let host = Holder::new(&options, &script, "Server listening")?;
        let net = host.0.id();
        self.launcher.run(&format!(
            "ip link delete h{number} 2>/dev/null || true
             ip link add h{number} type veth peer name out address 02:00:00:00:00:{number:02} netns {net}
             ip link set h{number} master bridge up"
        ));
        host.run(&format!("ip address add 10.79.0.{}/24 dev out; ip link set out up", number + 1));
        self.hosts[number - 1] = Some(host);
        self.reach(number);
        Ok(())
    }

    /// Waits until a connection to the server of a host comes about: a bridge does not pass everything on at once.
    fn reach(&self, number: usize) {
        let attempt = format!("exec 3<>/dev/tcp/10.79.0.{}/22", number + 1);
        let script = format!("until ({attempt}); do sleep 0.02; done 2>/dev/null");
        self.launcher.run(&format!("timeout 20 bash -c '{script}'"));
    }

    /// All processes of a host die at once, and its network with them.
    pub(crate) fn switch_off(&mut self, number: usize) {
        self.hosts[number - 1] = None;
    }

    /// Nothing gets to a host any more, nor from there.
    pub(crate) fn cut(&self, number: usize) {
        self.launcher.run(&format!("ip link set h{number} down"));
    }

    /// The end of a cut.
    pub(crate) fn mend(&self, number: usize) {
        self.launcher.run(&format!("ip link set h{number} up"));
        self.reach(number);
    }

    /// Whatever is sent to a host is lost on the way, and nobody is told.
    pub(crate) fn swallow(&self, number: usize) {
        let address = number + 1;
        self.launcher.run(&format!("ip neigh replace 10.79.0.{address} lladdr 02:00:00:00:00:ff dev bridge"));
    }

    /// A name for an address of the launcher's own host, where no server is.
    pub(crate) fn name_nobody(&self, name: &str) {
        self.append("names", &format!("10.79.0.1 {name}"));
    }

    /// A name that `ssh` alone knows.
    pub(crate) fn name_for_ssh(&self, name: &str, number: usize) {
        let address = number + 1;
        self.append(
            "configuration",
            &format!("Host {name}\n HostName 10.79.0.{address}\n HostKeyAlias h{number}"),
        );
    }

    /// The hosts, with two slots each.
    pub(crate) fn list(&self) -> String {
        let names: Vec<String> = (1..=self.hosts.len()).map(|number| format!("h{number}:2")).collect();
        names.join(",")
    }

    /// `ftrun` on the launcher's host, with arguments that are separated by blanks.
    pub(crate) fn ftrun(&self, arguments: &str) -> Run {
        self.program(&built().join("ftrun"), arguments)
    }

    /// Any program, likewise.
    pub(crate) fn program(&self, program: &Path, arguments: &str) -> Run {
        let enter = format!(
            "--net={} --mount={} env -C {} {} {arguments}",
            self.launcher.namespace("net"),
            self.launcher.namespace("mnt"),
            self.path("work").display(),
            program.display()
        );
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        Run::program(Path::new("nsenter"), &enter).variable("PATH", path)
    }
}

fn new_key(file: &Path) {
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"]).arg(file).stdin(Stdio::null());
    assert!(command.status().unwrap().success());
}
