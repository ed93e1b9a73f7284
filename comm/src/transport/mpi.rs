//! Packets over a site's MPI library.
//!
//! MPI carries bytes here and does nothing else. Who is lost is the launcher's word, as on other transports, so it need not survive a failure well: messages between
//! the living must still arrive. A library that reports failures (ULFM, MPI 5.1 draft, chapter 11) is asked to go on after each.
//!
//! # Safety
//!
//! What the `unsafe` here rests on:
//! - MPI is initialized before any other call, once: by [`Library::start`], of which a second call is refused. It is finalized by the drop, after which nobody has
//!   the library.
//! - MPI is told that one thread calls it (`MPI_THREAD_FUNNELED`): a [`Library`] cannot leave the thread that has made it.
//! - The bytes of an operation under way are in a `Vec` that nobody touches until MPI says that it is done. Those that are under way at the
//!   end are leaked.
//! - Every pointer that is handed over is to a value that lives during the call, of the type that `mpi.h` says.
#![expect(unsafe_code, reason = "the interface of MPI is one of C")]

use std::collections::VecDeque;
use std::ffi::{CStr, c_int};
use std::fmt;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, forget};
use std::ptr::null_mut;
use std::time::Duration;

use mpi_sys as mpi;

use super::packets::Packets;
use crate::time::Clock;

/// All packets have it.
const TAG: c_int = 0;
/// Packets that are kept to be filled again.
const SPARE: usize = 16;
/// How long what is under way may take to leave at the end.
const PATIENCE: Duration = Duration::from_secs(5);
/// Set by `mpirun --with-ft ulfm` of Open MPI.
const ENV_ULFM: &str = "OMPI_MCA_mpi_ft_enable";
/// `MPI_Comm_ack_failed` before it was in a standard (ULFM): receives from anybody go on although somebody has failed.
const ACKNOWLEDGE: &CStr = c"MPIX_Comm_failure_ack";
type Acknowledge = unsafe extern "C" fn(mpi::MPI_Comm) -> c_int;

/// The number that MPI has given to an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Code(c_int);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0_u8; mpi::MPI_MAX_ERROR_STRING as usize + 1];
        let mut length = 0;
        // SAFETY: there is room for the longest text.
        unsafe { mpi::MPI_Error_string(self.0, text.as_mut_ptr().cast(), &mut length) };
        let text = String::from_utf8_lossy(&text[..usize::try_from(length).unwrap_or(0)]);
        f.write_str(text.trim_end_matches('\0'))
    }
}

fn done(code: c_int) -> Result<(), Code> {
    if code == mpi::MPI_SUCCESS as c_int { Ok(()) } else { Err(Code(code)) }
}

/// A packet under way, out or in.
struct Moving {
    request: mpi::MPI_Request,
    bytes: Vec<u8>,
    /// The process at the other end.
    other: usize,
    has_come: bool,
}

impl Moving {
    /// Whether it is done.
    fn test(&mut self) -> Result<bool, Code> {
        let mut flag = 0;
        // SAFETY: the request is one of MPI's, or the null request that it has become.
        done(unsafe { mpi::MPI_Test(&mut self.request, &mut flag, mpi::RSMPI_STATUS_IGNORE) })?;
        Ok(flag != 0)
    }
}

/// The MPI library of this process.
pub(crate) struct Library {
    comm: mpi::MPI_Comm,
    me: usize,
    size: usize,
    out: VecDeque<Moving>,
    /// Bytes of it by process.
    under_way: Vec<usize>,
    coming: VecDeque<Moving>,
    spare: Vec<Vec<u8>>,
    acknowledge: Option<Acknowledge>,
    /// Why nothing goes to a process any more.
    trouble: Vec<Option<String>>,
    /// All processes are alive, or so it seems: `MPI_Finalize` waits for all.
    finalizes: bool,
    /// It stays in its thread.
    here: PhantomData<*const ()>,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").field("me", &self.me).field("size", &self.size).finish_non_exhaustive()
    }
}

impl Library {
    /// Initializes MPI. Returns when all processes that were started together have called it.
    ///
    /// # Errors
    /// MPI refuses, or was initialized before.
    pub(crate) fn start() -> Result<Self, String> {
        let refused = |call: &'static str| move |code: Code| format!("{call}: {code}");
        let mut flag = 0;
        // SAFETY: it may be called at any time.
        done(unsafe { mpi::MPI_Initialized(&mut flag) }).map_err(refused("MPI_Initialized"))?;
        if flag != 0 {
            return Err("MPI was initialized before, and is the job's alone".into());
        }
        let mut level = 0;
        // SAFETY: MPI takes null for the arguments of the program.
        let code =
            unsafe { mpi::MPI_Init_thread(null_mut(), null_mut(), mpi::RSMPI_THREAD_FUNNELED, &mut level) };
        done(code).map_err(refused("MPI_Init_thread"))?;
        let mut comm = MaybeUninit::uninit();
        let (mut me, mut size) = (0, 0);
        // SAFETY: MPI is initialized; the communicator is one when it was made without an error.
        let comm = unsafe {
            done(mpi::MPI_Comm_set_errhandler(mpi::RSMPI_COMM_WORLD, mpi::RSMPI_ERRORS_RETURN))
                .map_err(refused("MPI_Comm_set_errhandler"))?;
            done(mpi::MPI_Comm_dup(mpi::RSMPI_COMM_WORLD, comm.as_mut_ptr()))
                .map_err(refused("MPI_Comm_dup"))?;
            let comm = comm.assume_init();
            done(mpi::MPI_Comm_set_errhandler(comm, mpi::RSMPI_ERRORS_RETURN))
                .map_err(refused("MPI_Comm_set_errhandler"))?;
            done(mpi::MPI_Comm_rank(comm, &mut me)).map_err(refused("MPI_Comm_rank"))?;
            done(mpi::MPI_Comm_size(comm, &mut size)).map_err(refused("MPI_Comm_size"))?;
            comm
        };
        let (me, size) = (me.unsigned_abs() as usize, size.unsigned_abs() as usize);
        let is_ulfm = std::env::var(ENV_ULFM).is_ok_and(|value| value != "0");
        Ok(Self {
            comm,
            me,
            size,
            out: VecDeque::new(),
            under_way: vec![0; size],
            coming: VecDeque::new(),
            spare: vec![],
            acknowledge: acknowledge(),
            trouble: vec![None; size],
            // With ULFM a process may leave without it, and whoever calls it after a loss does not come back (Open MPI 5.0.11).
            finalizes: !is_ulfm,
            here: PhantomData,
        })
    }

    /// The number of this process among those that were started together.
    pub(crate) fn me(&self) -> usize {
        self.me
    }

    /// The name of the host by which MPI knows it.
    pub(crate) fn host(&self) -> String {
        let mut text = [0_u8; mpi::MPI_MAX_PROCESSOR_NAME as usize + 1];
        let mut length = 0;
        // SAFETY: there is room for the longest name.
        unsafe { mpi::MPI_Get_processor_name(text.as_mut_ptr().cast(), &mut length) };
        String::from_utf8_lossy(&text[..length.unsigned_abs() as usize]).into_owned()
    }

    /// All get what process 0 has.
    ///
    /// # Errors
    /// MPI refuses: somebody has failed.
    pub(crate) fn broadcast(&mut self, mut bytes: Vec<u8>) -> Result<Vec<u8>, String> {
        let refused = |code: Code| format!("MPI_Bcast: {code}");
        let mut length = [bytes.len() as u64];
        // SAFETY: one number on each process.
        let code =
            unsafe { mpi::MPI_Bcast(length.as_mut_ptr().cast(), 1, mpi::RSMPI_UINT64_T, 0, self.comm) };
        done(code).map_err(refused)?;
        bytes.resize(usize::try_from(length[0]).map_err(|error| error.to_string())?, 0);
        let count = c_int::try_from(bytes.len()).map_err(|error| error.to_string())?;
        // SAFETY: as many bytes on each process.
        let code =
            unsafe { mpi::MPI_Bcast(bytes.as_mut_ptr().cast(), count, mpi::RSMPI_UINT8_T, 0, self.comm) };
        done(code).map_err(refused)?;
        Ok(bytes)
    }

    /// Forgets what has left.
    fn settle(&mut self) {
        let Self { out, under_way, spare, trouble, .. } = self;
        // In the order in which they were sent, but no process holds up another.
        out.retain_mut(|packet| {
            let tested = packet.test();
            if tested == Ok(false) {
                return true;
            }
            under_way[packet.other] -= packet.bytes.len();
            keep(spare, std::mem::take(&mut packet.bytes));
            if let Err(code) = tested {
                trouble[packet.other].get_or_insert_with(|| code.to_string());
            }
            false
        });
    }

    /// Begins to receive the next packet that has come, if there is one.
    fn probe(&mut self) -> Result<bool, Code> {
        let (mut flag, mut length) = (0, 0);
        let (mut message, mut status) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: message and status are values if there is a packet; a packet is of bytes.
        let (message, status) = unsafe {
            done(mpi::MPI_Improbe(
                mpi::RSMPI_ANY_SOURCE,
                TAG,
                self.comm,
                &mut flag,
                message.as_mut_ptr(),
                status.as_mut_ptr(),
            ))?;
            if flag == 0 {
                return Ok(false);
            }
            (message.assume_init(), status.assume_init())
        };
        // SAFETY: the status is that of a message.
        done(unsafe { mpi::MPI_Get_count(&status, mpi::RSMPI_UINT8_T, &mut length) })?;
        let other = status.MPI_SOURCE.unsigned_abs() as usize;
        let mut bytes = self.blank();
        bytes.resize(length.unsigned_abs() as usize, 0);
        let (mut message, mut request) = (message, MaybeUninit::uninit());
        // SAFETY: the bytes stay where they are until the request is done; see the module.
        let request = unsafe {
            let code = mpi::MPI_Imrecv(
                bytes.as_mut_ptr().cast(),
                length,
                mpi::RSMPI_UINT8_T,
                &mut message,
                request.as_mut_ptr(),
            );
            done(code)?;
            request.assume_init()
        };
        self.coming.push_back(Moving { request, bytes, other, has_come: false });
        Ok(true)
    }

    /// The first packet that has come whole, of a process of which none before it is still coming.
    fn first(&mut self) -> Option<(usize, Vec<u8>)> {
        let mut at = 0;
        while at < self.coming.len() {
            let other = self.coming[at].other;
            let is_next = !self.coming.range(..at).any(|packet| packet.other == other);
            let packet = &mut self.coming[at];
            match if packet.has_come { Ok(true) } else { packet.test() } {
                Ok(has_come) => packet.has_come = has_come,
                Err(code) => {
                    self.trouble[other].get_or_insert_with(|| code.to_string());
                    self.coming.remove(at);
                    continue;
                }
            }
            if is_next && packet.has_come {
                return self.coming.remove(at).map(|packet| (other, packet.bytes));
            }
            at += 1;
        }
        None
    }
}

/// The function of this name, if the library has it.
fn acknowledge() -> Option<Acknowledge> {
    // SAFETY: it looks for a symbol of this name among those that are loaded.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, ACKNOWLEDGE.as_ptr()) };
    // SAFETY: a function of this name has this type in every library that has it (ULFM 2.1, `mpi-ext.h`).
    (!symbol.is_null()).then(|| unsafe { std::mem::transmute::<*mut libc::c_void, Acknowledge>(symbol) })
}

fn keep(spare: &mut Vec<Vec<u8>>, packet: Vec<u8>) {
    if spare.len() < SPARE {
        spare.push(packet);
    }
}

impl Packets for Library {
    fn blank(&mut self) -> Vec<u8> {
        let mut packet = self.spare.pop().unwrap_or_default();
        packet.clear();
        packet
    }

    fn recycle(&mut self, packet: Vec<u8>) {
        keep(&mut self.spare, packet);
    }

    fn post(&mut self, to: usize, packet: Vec<u8>) {
        if to >= self.size || self.trouble[to].is_some() {
            return self.recycle(packet);
        }
        let (Ok(count), Ok(there)) = (c_int::try_from(packet.len()), c_int::try_from(to)) else { return };
        let mut request = MaybeUninit::uninit();
        // SAFETY: the bytes stay as they are until the request is done; see the module.
        let posted = done(unsafe {
            mpi::MPI_Isend(
                packet.as_ptr().cast(),
                count,
                mpi::RSMPI_UINT8_T,
                there,
                TAG,
                self.comm,
                request.as_mut_ptr(),
            )
        });
        match posted {
            Ok(()) => {
                self.under_way[to] += packet.len();
                // SAFETY: it is a request when there was no error.
                let request = unsafe { request.assume_init() };
                self.out.push_back(Moving { request, bytes: packet, other: to, has_come: false });
                self.settle();
            }
            Err(code) => {
                self.trouble[to] = Some(code.to_string());
                self.recycle(packet);
            }
        }
    }

    fn under_way(&self, to: usize) -> usize {
        self.under_way.get(to).copied().unwrap_or(0)
    }

    fn next(&mut self) -> Option<(usize, Vec<u8>)> {
        self.settle();
        if let Err(code) = self.probe() {
            // Somebody has failed, which is news once.
            let again = self.acknowledge.is_some_and(|acknowledge| {
                // SAFETY: the communicator is one.
                done(unsafe { acknowledge(self.comm) }).is_ok() && self.probe().is_ok()
            });
            if !again {
                self.trouble.iter_mut().for_each(|trouble| _ = trouble.get_or_insert(code.to_string()));
            }
        }
        self.first()
    }

    fn trouble(&self, process: usize) -> Option<String> {
        match self.trouble.get(process) {
            Some(trouble) => trouble.as_ref().map(|why| format!("MPI: {why}")),
            None => Some(format!("mpirun has started {} processes, not more", self.size)),
        }
    }

    fn has_losses(&mut self) {
        self.finalizes = false;
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        if self.finalizes && !std::thread::panicking() {
            let clock = Clock::start();
            let until = clock.now().after(PATIENCE);
            while !self.out.is_empty() && clock.now() < until {
                self.settle();
            }
            if self.out.is_empty() {
                // SAFETY: nothing is called after it.
                unsafe { mpi::MPI_Finalize() };
            }
        }
        // MPI may still read or write them.
        self.out.drain(..).chain(self.coming.drain(..)).for_each(|packet| forget(packet.bytes));
    }
}
