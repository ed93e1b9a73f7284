use ft_checkpoint::Protect;

struct Handle;

#[derive(Protect)]
struct State {
    handle: Handle,
}

fn main() {}
