use ft_checkpoint::{Field, Protect};

#[derive(Protect)]
enum Parts {
    Rows(#[protect(constant)] Vec<f64>),
}

#[derive(Protect)]
enum Never {}

#[derive(Protect)]
enum Endless {
    Left(Box<Endless>),
    Right(Box<Self>),
}

#[derive(Field)]
enum Value {
    Some(u8),
}

fn main() {}
