//! Lines by empty channels (G. Stellner, CoCheck: Checkpointing and process migration for MPI, IPPS 1996). Who has come to its line says so on each of its links, behind all that it has sent, and
//! waits until all others have said so to it. Whatever comes before that word, and was not received, belongs to the line: it is kept with the rank's state, and is received first by
//! whoever goes back to it. All draw a line at the same step, as a rank that had passed by would wait for those who stand there. No message crosses the line, so nothing has to be logged, sent again or swallowed; but all wait for the last.

use crate::rank::Rank;

/// How far a rank is with its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// There is none that is not committed.
    Running,
    /// The rank waits at its line.
    Draining,
    /// Its channels are empty, and it goes on; whoever commits the line waits for that.
    Whole,
}

/// One rank's part in lines.
#[derive(Debug)]
pub struct Drain {
    me: Rank,
    phase: Phase,
    line: u64,
    /// Who has said that it has come to its line.
    ready: Vec<bool>,
}

impl Drain {
    /// Of rank `me` of `size`, at a line that is committed; the beginning of the job is line 0.
    pub fn new(me: Rank, size: usize, line: u64) -> Self {
        Self { me, phase: Phase::Running, line, ready: vec![false; size] }
    }

    /// How far it is.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Lines that were drawn.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The rank has come to its line: it tells each other one so, on the link, and neither sends nor receives until its channels are empty.
    pub fn draw(&mut self) {
        (self.phase, self.line) = (Phase::Draining, self.line + 1);
        self.ready[self.me] = true;
        self.go_on();
    }

    /// A rank has said that it has come to its line.
    pub fn handle_ready(&mut self, by: Rank) {
        self.ready[by] = true;
        self.go_on();
    }

    /// Whether what comes from a rank now was sent before its line. What was not is not for the state of this line.
    pub fn is_before(&self, from: Rank) -> bool {
        self.phase == Phase::Draining && !self.ready[from]
    }

    /// The line is whole at all ranks: nobody goes back behind it.
    pub fn handle_commit(&mut self) {
        if self.phase == Phase::Whole {
            self.phase = Phase::Running;
        }
    }

    fn go_on(&mut self) {
        if self.phase == Phase::Draining && self.ready.iter().all(|ready| *ready) {
            self.phase = Phase::Whole;
            self.ready.fill(false);
        }
    }
}
