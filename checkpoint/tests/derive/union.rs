use ft_checkpoint::Protect;

#[derive(Protect)]
union Either {
    bits: u32,
    value: f32,
}

fn main() {}
