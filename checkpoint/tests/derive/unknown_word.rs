use ft_checkpoint::Protect;

#[derive(Protect)]
struct State {
    #[protect(konstant)]
    rows: Vec<f64>,
}

fn main() {}
