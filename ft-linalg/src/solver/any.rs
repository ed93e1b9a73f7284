//! A solver that is chosen at run time.

use ft_checkpoint::{Protect, ProtectError, Redistribute, Redistribution, Spread, StatePart, Walk};
use ft_comm::{CommError, Communicator};

use super::{
    Bicgstab, Cg, Cgls, Chebyshev, ChebyshevOptions, Course, Fgmres, Gmres, GmresOptions, Lanczos,
    LanczosOptions, Lobpcg, LobpcgOptions, Lsqr, Method, Minres, Power, Richardson, RichardsonOptions,
    SingleReductionCg, Solver, Step, System,
};
use crate::{LinalgError, StopCriteria, Workspace};

/// Which solver, and what any of them leaves open; each takes what it knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnyOptions {
    /// Which one.
    pub method: Method,
    /// When to stop.
    pub stop: StopCriteria,
    /// See [`GmresOptions::restart`].
    pub restart: usize,
    /// See [`RichardsonOptions::omega`].
    pub omega: f64,
    /// See [`ChebyshevOptions::bounds`].
    pub bounds: Option<[f64; 2]>,
    /// See [`LanczosOptions::count`], [`LobpcgOptions::count`].
    pub count: usize,
    /// See [`LanczosOptions::largest`], [`LobpcgOptions::largest`].
    pub largest: bool,
}

impl Default for AnyOptions {
    /// Conjugate gradients; a restart after 30, all of a correction, estimated bounds, the largest eigenvalue.
    fn default() -> Self {
        Self {
            method: Method::Cg,
            stop: StopCriteria::DEFAULT,
            restart: 30,
            omega: 1.0,
            bounds: None,
            count: 1,
            largest: true,
        }
    }
}

/// What each solver takes of them.
trait FromAny {
    fn of(any: &AnyOptions) -> Self;
}

impl FromAny for StopCriteria {
    fn of(any: &AnyOptions) -> Self {
        any.stop
    }
}

impl FromAny for GmresOptions {
    fn of(any: &AnyOptions) -> Self {
        Self { stop: any.stop, restart: any.restart }
    }
}

impl FromAny for RichardsonOptions {
    fn of(any: &AnyOptions) -> Self {
        Self { stop: any.stop, omega: any.omega }
    }
}

impl FromAny for ChebyshevOptions {
    fn of(any: &AnyOptions) -> Self {
        Self { stop: any.stop, bounds: any.bounds }
    }
}

impl FromAny for LanczosOptions {
    fn of(any: &AnyOptions) -> Self {
        Self { stop: any.stop, count: any.count, largest: any.largest }
    }
}

impl FromAny for LobpcgOptions {
    fn of(any: &AnyOptions) -> Self {
        Self { stop: any.stop, count: any.count, largest: any.largest }
    }
}

macro_rules! any_solver {
    ($($name:ident),+ $(,)?) => {
        /// One of the solvers of this crate; [`Method`] has their names.
        #[derive(Clone, Debug)]
        pub enum AnySolver {
            $(
                #[doc = concat!("See [`", stringify!($name), "`].")]
                $name($name),
            )+
        }

        impl AnySolver {
            fn blank(method: Method) -> Self {
                match method {
                    $(Method::$name => Self::$name($name::default()),)+
                }
            }

            /// Which one it is.
            pub fn method(&self) -> Method {
                match self {
                    $(Self::$name(_) => Method::$name,)+
                }
            }
        }

        /// Which one it is belongs to the constant part.
        impl Protect for AnySolver {
            fn walk<W: Walk>(&mut self, part: StatePart, walk: &mut W) -> Result<(), ProtectError> {
                if part == StatePart::Constant {
                    let mut method = self.method();
                    walk.field("method", Some(Spread::Replicated), &mut method)?;
                    if method != self.method() {
                        *self = Self::blank(method);
                    }
                }
                match self {
                    $(Self::$name(solver) => solver.walk(part, walk),)+
                }
            }

            fn describe(text: &mut String) {
                $(<$name as Protect>::describe(text);)+
            }
        }

        impl Redistribute for AnySolver {
            fn extent(&self) -> usize {
                match self {
                    $(Self::$name(solver) => solver.extent(),)+
                }
            }

            fn redistribute(parts: Vec<Self>, moves: &Redistribution<'_>) -> Result<Self, CommError> {
                match moves.replicated(parts.iter().map(Self::method).collect())? {
                    $(Method::$name => {
                        let inner = |part| if let Self::$name(solver) = part { Some(solver) } else { None };
                        $name::redistribute(parts.into_iter().filter_map(inner).collect(), moves).map(Self::$name)
                    })+
                }
            }
        }

        impl Solver for AnySolver {
            type Options = AnyOptions;

            fn start(
                options: &AnyOptions,
                system: &System<'_>,
                x: &[f64],
                comm: &Communicator,
                work: &mut Workspace,
            ) -> Result<Self, LinalgError> {
                match options.method {
                    $(Method::$name => {
                        $name::start(&FromAny::of(options), system, x, comm, work).map(Self::$name)
                    })+
                }
            }

            fn step(
                &mut self,
                system: &System<'_>,
                comm: &Communicator,
                work: &mut Workspace,
            ) -> Result<Step, LinalgError> {
                match self {
                    $(Self::$name(solver) => solver.step(system, comm, work),)+
                }
            }

            fn x(&self) -> &[f64] {
                match self {
                    $(Self::$name(solver) => solver.x(),)+
                }
            }

            fn course(&self) -> &Course {
                match self {
                    $(Self::$name(solver) => solver.course(),)+
                }
            }

            fn settle(
                &mut self,
                system: &System<'_>,
                comm: &Communicator,
                work: &mut Workspace,
            ) -> Result<(), LinalgError> {
                match self {
                    $(Self::$name(solver) => solver.settle(system, comm, work),)+
                }
            }

            fn true_norm(
                &self,
                system: &System<'_>,
                comm: &Communicator,
                work: &mut Workspace,
            ) -> Result<f64, LinalgError> {
                match self {
                    $(Self::$name(solver) => solver.true_norm(system, comm, work),)+
                }
            }

            fn relative_residual(
                &self,
                true_norm: f64,
                system: &System<'_>,
                comm: &Communicator,
                work: &mut Workspace,
            ) -> Result<f64, LinalgError> {
                match self {
                    $(Self::$name(solver) => solver.relative_residual(true_norm, system, comm, work),)+
                }
            }
        }
    };
}

any_solver! {
    Cg, SingleReductionCg, Minres, Bicgstab, Gmres, Fgmres, Richardson, Chebyshev, Cgls, Lsqr, Power, Lanczos, Lobpcg,
}

impl Default for AnySolver {
    fn default() -> Self {
        Self::blank(Method::default())
    }
}

impl AnySolver {
    /// Returns the eigenvalues that were wanted, and the norm of the residual of each; none if the
    /// method finds none.
    pub fn eigenvalues(&self) -> Vec<(f64, f64)> {
        match self {
            Self::Power(power) => vec![(power.eigenvalue(), power.progress().residual_norm)],
            Self::Lanczos(lanczos) => lanczos.eigenvalues().to_vec(),
            Self::Lobpcg(lobpcg) => lobpcg.eigenvalues().to_vec(),
            _ => vec![],
        }
    }
}
