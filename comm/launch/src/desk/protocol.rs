//! What is said at the desk: a line of JSON for each request, and one for its answer. Both name the version of this protocol.
//!
//! Fields may be added within a version: whoever does not know them passes over them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fleet::HostChange;

/// The version that is spoken here.
pub(crate) const VERSION: u32 = 1;

/// What somebody wants of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Command {
    /// To know how it is.
    Status,
    /// To kill the process of a rank.
    Kill {
        /// Which, by its number at the start of the job.
        rank: usize,
    },
    /// To have what is protected written to files.
    #[serde(rename = "checkpoint")]
    Save,
    /// To end it.
    Stop,
    /// To know its hosts.
    Hosts,
    /// To have a host more, or less.
    Host {
        /// What is wanted of it.
        change: HostChange,
        /// Its name, for a new one with its slots if it has more than one: `NAME:SLOTS`.
        name: String,
    },
}

/// What the launcher has to say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Answer {
    /// How the job is.
    Status(Box<Status>),
    /// The hosts.
    Hosts(Vec<HostStatus>),
    /// It is done, or under way, in words.
    Done(String),
    /// It is not done, and why not.
    Refused(String),
    /// The job is over. Nobody has asked: whoever is at the desk then is told so.
    Ended {
        /// Exit status.
        code: i32,
        /// Cause, empty if all went well.
        message: String,
    },
}

/// How a job is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its number, that of the launcher's process.
    pub job: u32,
    /// What it runs.
    pub command: String,
    /// Where its metrics are, if it has any.
    pub metrics: Option<String>,
    /// Where its dashboard is, if it has one, with the token that lets one see it.
    pub dashboard: Option<String>,
    /// `starting`, `running`, `repairing` or `ending`.
    pub state: String,
    /// Since its start.
    pub seconds: f64,
    /// Of a processor, that the launcher has used.
    pub launcher_cpu_seconds: f64,
    /// Number of repairs so far; none before all ranks have joined.
    pub generation: Option<u32>,
    /// Number of the newest committed checkpoint.
    pub epoch: Option<u64>,
    /// Checkpoints committed so far.
    #[serde(rename = "checkpoints")]
    pub commits: u64,
    /// Of those, how many are in files too.
    pub files: u64,
    /// Share of the work that is done, from 0 to 1, if the program says so.
    pub done: Option<f64>,
    /// How far the work is, in the program's words.
    pub progress: Option<String>,
    /// The ranks.
    pub ranks: Vec<RankStatus>,
    /// What has failed so far.
    pub failures: Failures,
}

/// A rank of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankStatus {
    /// Its number at the start of the job.
    pub rank: usize,
    /// The host of its process, if it has one.
    pub host: Option<String>,
    /// The number of its process on that host.
    pub pid: Option<u32>,
    /// `starting`, `joined`, `working`, `waiting` (for a repair), `gone` or `lost`.
    pub state: String,
    /// How often it was replaced.
    pub incarnation: u32,
    /// The step that it is in, if it counts them.
    pub step: Option<u64>,
    /// The call in which it has waited for half a second or for as long as `--watchdog` says, and since when.
    pub waits: Option<String>,
    /// The ranks that it waits for there, as far as they can be named.
    pub waits_for: Vec<usize>,
}

/// A host of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostStatus {
    /// Its name.
    pub host: String,
    /// How many ranks it is given before another one gets some.
    pub slots: usize,
    /// Processes of the job that run there.
    pub processes: usize,
    /// `open`, `drained` (it takes no new processes), `removed`, or `awaited` (it is lost, or has not answered yet).
    pub state: String,
    /// Processes that want to run there, for each core, of whomever; with `--place load`.
    pub load: Option<f64>,
}

/// State of a rank whose process belongs to the current generation.
pub(crate) const WORKING: &str = "working";

impl RankStatus {
    /// Whether its process works.
    pub fn is_up(&self) -> bool {
        self.state == WORKING
    }
}

/// What has failed in a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Failures {
    /// How many failures there were; ranks that were lost together count once.
    pub total: u64,
    /// The same by cause. Causes beyond a number are `other`.
    pub causes: BTreeMap<String, u64>,
    /// Those that are over: all ranks work again.
    pub recovered: u64,
    /// From their notice until all ranks worked again, all of these together.
    pub recovery_seconds: f64,
    /// The newest, the last one last.
    pub newest: Vec<FailureStatus>,
}

/// A failure of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FailureStatus {
    /// Ranks that were lost together.
    pub ranks: Vec<usize>,
    /// The point of an injected failure, or how the loss was noticed.
    pub cause: String,
    /// From its notice until all ranks worked again; none if they do not yet.
    pub recovery_seconds: Option<f64>,
}

/// A line with its version.
#[derive(Serialize, Deserialize)]
struct Request {
    version: u32,
    command: Command,
}

/// Likewise.
#[derive(Serialize, Deserialize)]
struct Reply {
    version: u32,
    answer: Answer,
}

/// What there is in a line of every version.
#[derive(Deserialize)]
struct Any {
    version: u32,
}

/// A line that asks for `command`.
pub(super) fn request(command: Command) -> String {
    line(&Request { version: VERSION, command })
}

/// A line that answers.
pub(super) fn reply(answer: Answer) -> String {
    line(&Reply { version: VERSION, answer })
}

fn line(message: &impl Serialize) -> String {
    let text = serde_json::to_string(message).expect("what is said at the desk has names for keys");
    text + "\n"
}

/// What a line asks for.
///
/// # Errors
/// Why it cannot be told, for whoever has sent it.
pub(super) fn read_request(line: &[u8]) -> Result<Command, String> {
    let any: Any = serde_json::from_slice(line).map_err(|error| format!("this is no request: {error}"))?;
    check_version(any.version)?;
    let request: Result<Request, _> = serde_json::from_slice(line);
    request.map(|request| request.command).map_err(|error| format!("no such request: {error}"))
}

/// What a line answers.
///
/// # Errors
/// Why it cannot be told, for whoever has asked.
pub(super) fn read_reply(line: &[u8]) -> Result<Answer, String> {
    let any: Any = serde_json::from_slice(line).map_err(|error| format!("this is no answer: {error}"))?;
    check_version(any.version)?;
    let reply: Result<Reply, _> = serde_json::from_slice(line);
    reply.map(|reply| reply.answer).map_err(|error| format!("no such answer: {error}"))
}

fn check_version(version: u32) -> Result<(), String> {
    match version {
        VERSION => Ok(()),
        _ => Err(format!("version {version} of the protocol is not spoken here, version {VERSION} is")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_safe(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in ".{0,100}") {
            for line in [&bytes[..], text.as_bytes(), format!("{{\"version\":1,\"command\":{text}}}").as_bytes()] {
                let _ = (read_request(line), read_reply(line));
            }
        }
    }

    #[test]
    fn lines_arrive_as_they_were_sent() {
        let drain = Command::Host { change: HostChange::Drain, name: "n2".into() };
        let plain =
            [Command::Status, Command::Kill { rank: 2 }, Command::Save, Command::Stop, Command::Hosts];
        for command in plain.into_iter().chain([drain]) {
            assert_eq!(read_request(request(command.clone()).trim_end().as_bytes()), Ok(command));
        }
        let status = Status {
            job: 7,
            done: Some(0.5),
            ranks: vec![RankStatus { waits_for: vec![1], ..RankStatus::default() }],
            ..Status::default()
        };
        let ended = Answer::Ended { code: 3, message: "two\nlines".into() };
        let hosts = Answer::Hosts(vec![HostStatus { host: "n1".into(), ..HostStatus::default() }]);
        for answer in [Answer::Status(Box::new(status)), hosts, Answer::Done("so".into()), ended] {
            let line = reply(answer.clone());
            assert_eq!(line.matches('\n').count(), 1);
            assert_eq!(read_reply(line.as_bytes()), Ok(answer));
        }
    }

    /// Programs of others write these lines.
    #[test]
    fn requests_keep_their_text() {
        assert_eq!(request(Command::Status), "{\"version\":1,\"command\":\"status\"}\n");
        assert_eq!(
            request(Command::Kill { rank: 2 }),
            "{\"version\":1,\"command\":{\"kill\":{\"rank\":2}}}\n"
        );
        let add = Command::Host { change: HostChange::Add, name: "n4:2".into() };
        assert_eq!(
            request(add),
            "{\"version\":1,\"command\":{\"host\":{\"change\":\"add\",\"name\":\"n4:2\"}}}\n"
        );
        assert_eq!(request(Command::Save), "{\"version\":1,\"command\":\"checkpoint\"}\n");
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for (line, part) in [
            (
                "{\"version\":2,\"command\":\"status\"}",
                "version 2 of the protocol is not spoken here, version 1 is",
            ),
            ("{\"version\":2}", "version 2"),
            (
                "{\"version\":1,\"command\":\"sing\"}",
                "no such request: unknown variant `sing`, expected one of `status`",
            ),
            ("{\"version\":1,\"command\":{\"kill\":{\"rank\":-1}}}", "no such request"),
            ("{\"version\":1}", "missing field `command`"),
            ("GET / HTTP/1.1", "this is no request"),
            ("", "this is no request"),
            ("\u{ff}{", "this is no request"),
        ] {
            let said = read_request(line.as_bytes()).unwrap_err();
            assert!(said.contains(part), "{line}: {said}");
        }
        // What a later build of the same version adds is passed over.
        assert_eq!(read_request(b"{\"version\":1,\"command\":\"stop\",\"why\":\"so\"}"), Ok(Command::Stop));
    }
}
