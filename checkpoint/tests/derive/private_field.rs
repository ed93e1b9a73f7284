use ft_checkpoint::{Protect, Redistribute};

#[derive(Protect, Redistribute)]
struct State {
    #[protect(distributed)]
    x: Vec<f64>,
    rank: usize,
}

#[derive(Protect, Redistribute)]
enum Mode {
    Cold,
}

fn main() {}
