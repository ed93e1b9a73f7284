use ft_checkpoint::Protect;

#[derive(Protect)]
#[protect(constant)]
struct State {
    rows: Vec<f64>,
}

#[derive(Protect)]
enum Mode {
    #[protect(skip)]
    Cold,
}

fn main() {}
