//! The other side of the desk: somebody who asks a job.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::folder::reach;
use super::protocol::{self, Answer, Command, HostStatus, Status};

/// How long a launcher may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer in bytes.
const ANSWER_MAX: u64 = 64 << 20;

/// A job does not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum InquiryError {
    /// It is gone.
    #[error("job {0} is gone")]
    Gone(u32),
    /// It has ended meanwhile.
    #[error("job {job} has ended with status {code}{}{message}", if message.is_empty() { "" } else { ": " })]
    Ended {
        /// Its number.
        job: u32,
        /// Its status.
        code: i32,
        /// Cause, empty if all went well.
        message: String,
    },
    /// Its launcher does not answer: it may be stopped.
    #[error("job {0} does not answer")]
    Silent(u32),
    /// Its launcher refuses, or is of another release.
    #[error("job {job}: {why}")]
    Refused {
        /// Its number.
        job: u32,
        /// Why.
        why: String,
    },
}

/// A connection to the desk of a job.
#[derive(Debug)]
pub struct Inquiry {
    job: u32,
    stream: BufReader<UnixStream>,
}

impl Inquiry {
    /// Goes to the desk of the job with this number, which is at `path` ([`jobs`](super::jobs) has both).
    ///
    /// # Errors
    /// The job is gone, or its launcher takes nobody in.
    pub fn begin(job: u32, path: &Path) -> Result<Self, InquiryError> {
        let failed = |error: Error| wrong(job, &error);
        let stream = reach(path).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        Ok(Self { job, stream: BufReader::new(stream) })
    }

    /// How the job is.
    ///
    /// # Errors
    /// It does not say so.
    pub fn status(&mut self) -> Result<Status, InquiryError> {
        match self.ask(Command::Status)? {
            Answer::Status(status) => Ok(*status),
            Answer::Done(said) => {
                Err(self.refused(format!("it has said '{said}' when asked for its status")))
            }
            answer => Err(self.no(answer)),
        }
    }

    /// The hosts of the job.
    ///
    /// # Errors
    /// It does not say so.
    pub fn hosts(&mut self) -> Result<Vec<HostStatus>, InquiryError> {
        match self.ask(Command::Hosts)? {
            Answer::Hosts(hosts) => Ok(hosts),
            answer => Err(self.no(answer)),
        }
    }

    /// Has the job do something; gives what it has to say about that.
    ///
    /// # Errors
    /// It does not do it.
    pub fn order(&mut self, command: Command) -> Result<String, InquiryError> {
        match self.ask(command)? {
            Answer::Done(said) => Ok(said),
            answer => Err(self.no(answer)),
        }
    }

    /// Stays at the desk for so long.
    ///
    /// # Errors
    /// The job has ended meanwhile.
    pub fn stay(&mut self, span: Duration) -> Result<(), InquiryError> {
        let job = self.job;
        let failed = |error: Error| wrong(job, &error);
        self.stream.get_ref().set_read_timeout(Some(span)).map_err(failed)?;
        let heard = self.hear();
        self.stream.get_ref().set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        match heard {
            Err(InquiryError::Silent(_)) => Ok(()),
            heard => Err(self.no(heard?)),
        }
    }

    fn ask(&mut self, command: Command) -> Result<Answer, InquiryError> {
        let sent = self.stream.get_mut().write_all(protocol::request(command).as_bytes());
        // A launcher that has ended may have said so before.
        sent.or_else(|error| if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
            .map_err(|error| wrong(self.job, &error))?;
        self.hear()
    }

    fn hear(&mut self) -> Result<Answer, InquiryError> {
        let mut line = Vec::new();
        let read = self.stream.by_ref().take(ANSWER_MAX).read_until(b'\n', &mut line);
        read.map_err(|error| wrong(self.job, &error))?;
        match line.last() {
            Some(b'\n') => protocol::read_reply(&line).map_err(|why| self.refused(why)),
            _ => Err(InquiryError::Gone(self.job)),
        }
    }

    fn no(&self, answer: Answer) -> InquiryError {
        let job = self.job;
        match answer {
            Answer::Refused(why) => self.refused(why),
            Answer::Ended { code, message } => InquiryError::Ended { job, code, message },
            Answer::Status(_) | Answer::Hosts(_) | Answer::Done(_) => {
                self.refused("it has answered something else".into())
            }
        }
    }

    fn refused(&self, why: String) -> InquiryError {
        InquiryError::Refused { job: self.job, why }
    }
}

fn wrong(job: u32, error: &Error) -> InquiryError {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => InquiryError::Silent(job),
        ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => {
            InquiryError::Gone(job)
        }
        _ => InquiryError::Refused { job, why: error.to_string() },
    }
}
