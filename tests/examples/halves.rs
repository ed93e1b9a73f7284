//! The 2-D heat equation with explicit Euler steps. The ranks of equal parity have a communicator,
//! which `init` and `rebuild` make.
use ft_checkpoint::{Flow, MainError, Program, Protect, Protection, RankState, Redistribute, Redistribution};
use ft_comm::{CommError, Communicator, Op, World, wait_all};

#[derive(Clone, Default, Protect, Redistribute)]
struct Plate {
    #[protect(distributed)]
    u: Vec<f64>, // my rows of n points
    #[protect(replicated)]
    residual: f64,
    #[protect(replicated)]
    halves: Vec<f64>, // max of the even and of the odd ranks
    #[protect(replicated)]
    hash: u64,
}

struct Heat {
    n: usize,
    steps: u64,
    half: Option<Communicator>,
}

fn rows(n: usize, rank: usize, size: usize) -> std::ops::Range<usize> {
    n * rank / size..n * (rank + 1) / size
}

impl Heat {
    fn split(&mut self, world: &World) -> Result<(), CommError> {
        self.half = world.comm().split(Some(world.rank() as u32 % 2), 0)?;
        Ok(())
    }
}

impl Program for Heat {
    type State = Plate;
    type Error = CommError;
    const SHRINKS: bool = true;
    const GROWS: bool = true;
    const ALONE: bool = true;

    fn init(&mut self, world: &World) -> Result<Plate, CommError> {
        self.split(world)?;
        let mine = rows(self.n, world.rank(), world.size());
        let u = mine
            .flat_map(|i| {
                let n = self.n;
                (0..n).map(move |j| {
                    let (x, y) = (i as f64 / n as f64 - 0.3, j as f64 / n as f64 - 0.6);
                    (-60.0 * (x * x + y * y)).exp()
                })
            })
            .collect();
        Ok(Plate { u, residual: f64::MAX, halves: vec![0.0; 2], hash: 0 })
    }

    fn rebuild(&mut self, _: &mut Plate, world: &World) -> Result<(), CommError> {
        self.split(world)
    }

    fn redistribute(
        &mut self,
        shares: Vec<RankState<Plate>>,
        before: usize,
        world: &World,
    ) -> Result<Plate, CommError> {
        let n = self.n;
        let held = shares.iter().map(|s| s.rank).collect();
        let from = (0..before).map(|r| rows(n, r, before)).collect();
        let to = (0..world.size()).map(|r| rows(n, r, world.size())).collect();
        Redistribution::new(world.comm(), held, from, to)?.deal(shares)
    }

    fn step(&mut self, s: &mut Plate, world: &World, number: u64) -> Result<Flow, CommError> {
        let (comm, rank, size, n) = (world.comm(), world.rank(), world.size(), self.n);
        let m = s.u.len() / n;
        let (up, down) = (rank.checked_sub(1), (rank + 1 < size).then_some(rank + 1));
        // halos
        let mut requests = vec![];
        let mut sources = vec![];
        for (neighbor, tag_in, tag_out, row) in [(up, 1, 2, 0), (down, 2, 1, m - 1)] {
            if let Some(p) = neighbor {
                requests.push(comm.irecv(vec![0.0; n], p, tag_in)?);
                sources.push(Some(p));
                requests.push(comm.isend(s.u[row * n..(row + 1) * n].to_vec(), p, tag_out)?);
                sources.push(None);
            }
        }
        let mut ghost = [vec![0.0; n], vec![0.0; n]];
        for ((buf, _), src) in wait_all(requests)?.into_iter().zip(sources) {
            if let Some(p) = src {
                ghost[usize::from(p > rank)] = buf;
            }
        }
        let old = &s.u;
        let at = |i: isize, j: isize| -> f64 {
            if j < 0 || j >= n as isize {
                return 0.0;
            }
            let j = j as usize;
            match i {
                ..0 => ghost[0][j],
                i if i >= m as isize => ghost[1][j],
                i => old[i as usize * n + j],
            }
        };
        let mut new = vec![0.0; m * n];
        let mut change = 0.0f64;
        for i in 0..m as isize {
            for j in 0..n as isize {
                let c = at(i, j);
                let v = c + 0.2 * (at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1) - 4.0 * c);
                new[i as usize * n + j as usize] = v;
                change = change.max((v - c).abs());
            }
        }
        s.u = new;
        let half = self.half.as_ref().expect("made in init or rebuild");
        let mut top = [s.u.iter().copied().fold(0.0, f64::max)];
        half.allreduce(&mut top, Op::Max)?;
        let mut all = [change, 0.0, 0.0];
        all[1 + rank % 2] = top[0];
        comm.allreduce(&mut all, Op::Max)?;
        s.residual = all[0];
        s.halves = all[1..].to_vec();
        world.progress(
            Some(number as f64 / self.steps as f64),
            format!("step {number}, residual {:e}", s.residual),
        );
        if number == self.steps {
            let first = rows(n, rank, size).start * n;
            let mut hash = [s.u.iter().enumerate().fold(0u64, |h, (k, v)| {
                h ^ (v.to_bits().wrapping_mul(2 * (first + k) as u64 + 1))
                    .rotate_left(((first + k) % 61) as u32)
            })];
            comm.allreduce(&mut hash, Op::BitXor)?;
            s.hash = hash[0];
            return Ok(Flow::Done);
        }
        Ok(Flow::Continue)
    }
}

fn main() -> Result<(), MainError> {
    let mut args = std::env::args().skip(1);
    let n = args.next().unwrap_or("256".into()).parse()?;
    let steps = args.next().unwrap_or("200".into()).parse()?;
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    let state = ft_checkpoint::run(world, protection, &mut Heat { n, steps, half: None })?;
    if let Some(s) = state.filter(|state| state.rank == 0) {
        println!("residual {:e}, halves {:?}, hash {:016x}", s.residual, s.halves, s.hash);
    }
    Ok(())
}
