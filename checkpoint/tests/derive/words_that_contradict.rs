use ft_checkpoint::Protect;

#[derive(Protect)]
struct ConstantAndDerived {
    #[protect(constant, derived)]
    rows: Vec<f64>,
}

#[derive(Protect)]
struct SkippedAndSerde {
    #[protect(skip)]
    #[protect(serde)]
    cache: Vec<f64>,
}

#[derive(Protect)]
struct Twice {
    #[protect(replicated, replicated)]
    tolerance: f64,
}

#[derive(Protect)]
struct DerivedAndDistributed {
    #[protect(derived, distributed)]
    plan: Vec<u32>,
}

fn main() {}
