//! `#[derive(Protect)]`, `#[derive(Field)]` and `#[derive(Redistribute)]`: what happens to the fields of a state,
//! written from their attributes.
//!
//! Documented where users meet them, at the traits of `ft_checkpoint` with these names.

#![forbid(unsafe_code)]

mod redistribute;
mod state;
mod value;
mod via;
mod words;

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Field, Fields, Generics, Ident, Index, Member, Result, Type};

/// Derives `ft_checkpoint::Protect` for a struct, or `Protect` and `Field` for an enum; see there for the attributes.
#[proc_macro_derive(Protect, attributes(protect))]
pub fn derive_protect(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    derived(input, protect)
}

/// Derives `ft_checkpoint::Field` for a struct; see there for the attributes.
#[proc_macro_derive(Field, attributes(protect))]
pub fn derive_field(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    derived(input, field)
}

/// Derives `ft_checkpoint::Redistribute` for a struct; see there for the attributes.
#[proc_macro_derive(Redistribute, attributes(protect))]
pub fn derive_redistribute(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    derived(input, redistribute::expand)
}

fn derived(
    input: proc_macro::TokenStream,
    expand: fn(&DeriveInput) -> Result<TokenStream>,
) -> proc_macro::TokenStream {
    syn::parse(input).and_then(|input| expand(&input)).unwrap_or_else(Error::into_compile_error).into()
}

fn protect(input: &DeriveInput) -> Result<TokenStream> {
    words::none(&input.attrs, "type")?;
    match &input.data {
        Data::Struct(data) => state::expand(input, &data.fields),
        Data::Enum(data) => {
            let (field, state) = (value::of_enum(input, data)?, value::as_state(input));
            Ok([field, state].into_iter().collect())
        }
        Data::Union(data) => {
            Err(Error::new(data.union_token.span(), "Protect cannot be derived for a union"))
        }
    }
}

fn field(input: &DeriveInput) -> Result<TokenStream> {
    words::none(&input.attrs, "type")?;
    match &input.data {
        Data::Struct(data) => value::of_struct(input, &data.fields),
        Data::Enum(data) => {
            let text = "derive Protect for an enum instead: it makes it a Field as well";
            Err(Error::new(data.enum_token.span(), text))
        }
        Data::Union(data) => Err(Error::new(data.union_token.span(), "Field cannot be derived for a union")),
    }
}

fn members(fields: &Fields) -> impl Iterator<Item = (Member, &Field)> {
    fields.iter().enumerate().map(|(index, field)| {
        let member = match &field.ident {
            Some(name) => Member::Named(name.clone()),
            None => Member::Unnamed(Index::from(index)),
        };
        (member, field)
    })
}

/// The name of a field as people write it in messages.
fn shown(member: &Member) -> String {
    let name = member.to_token_stream().to_string();
    name.trim_start_matches("r#").to_owned()
}

/// Errors point at the type; names are those of the caller, also where a macro wrote the struct.
fn at(ty: &Type) -> Span {
    Span::call_site().located_at(ty.span())
}

/// The generics of a type, with bounds on the types of its fields where a parameter stands in them. Elsewhere the
/// compiler sees for itself, and says it at the field.
struct Bounds<'a> {
    /// The type's own name, and `Self`.
    itself: [Ident; 2],
    parameters: Vec<&'a Ident>,
    generics: Generics,
}

impl<'a> Bounds<'a> {
    fn new(input: &'a DeriveInput) -> Self {
        let itself = [input.ident.clone(), Ident::new("Self", Span::call_site())];
        let parameters = input.generics.type_params().map(|p| &p.ident).collect();
        Self { itself, parameters, generics: input.generics.clone() }
    }

    /// Whether a value of type `ty` may hold one of the type itself.
    fn is_recursive(&self, ty: &Type) -> bool {
        mentions(ty.to_token_stream(), &self.itself.each_ref())
    }

    /// Demands `bound` of `ty`. A bound on a type that holds the type itself would be its own condition; so it is
    /// then on the parameters in it.
    fn add(&mut self, ty: &Type, bound: &TokenStream) -> Result<()> {
        let tokens = ty.to_token_stream();
        let parameters = self.parameters.iter().filter(|name| mentions(tokens.clone(), &[name]));
        let mut subjects: Vec<TokenStream> = parameters.map(|name| name.to_token_stream()).collect();
        if !subjects.is_empty() && !self.is_recursive(ty) {
            subjects = vec![tokens];
        }
        let clause = self.generics.make_where_clause();
        for subject in subjects {
            clause.predicates.push(syn::parse2(quote!(#subject: #bound))?);
        }
        Ok(())
    }
}

/// Says whether one of `names` stands anywhere in `tokens`.
fn mentions(tokens: TokenStream, names: &[&Ident]) -> bool {
    tokens.into_iter().any(|tree| match tree {
        TokenTree::Ident(ident) => names.iter().any(|name| **name == ident),
        TokenTree::Group(group) => mentions(group.stream(), names),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    #[test]
    fn what_cannot_be_derived_is_said() {
        let refused = |expanded: Result<TokenStream>| expanded.expect_err("must be refused").to_string();
        let union: DeriveInput = parse_quote!(
            union U {
                a: u32,
                b: f32,
            }
        );
        assert!(refused(protect(&union)).contains("union"));
        assert!(refused(field(&union)).contains("union"));
        assert!(refused(redistribute::expand(&union)).contains("union"));
        let on_type: DeriveInput = parse_quote!(
            #[protect(constant)]
            struct S {
                x: u8,
            }
        );
        assert!(refused(protect(&on_type)).contains("belongs on a field"));
        let on_variant: DeriveInput = parse_quote!(
            enum E {
                #[protect(skip)]
                A,
            }
        );
        assert!(refused(protect(&on_variant)).contains("belongs on a field, not on the variant"));
        let never: DeriveInput = parse_quote!(
            enum E {}
        );
        assert!(refused(protect(&never)).contains("no value"));
        let endless: DeriveInput = parse_quote!(
            enum E {
                A(Box<E>),
                B(Box<Self>),
            }
        );
        assert!(refused(protect(&endless)).contains("every variant"));
        let value: DeriveInput = parse_quote!(
            enum E {
                A,
            }
        );
        assert!(refused(field(&value)).contains("derive Protect"));
        let private: DeriveInput = parse_quote!(
            struct S {
                #[protect(distributed)]
                a: Vec<f64>,
                b: u8,
            }
        );
        assert!(refused(redistribute::expand(&private)).contains("`b` is private"));
    }

    #[test]
    fn bounds_only_where_a_parameter_stands() {
        let input: DeriveInput = parse_quote!(
            struct S<T> {
                a: Vec<T>,
                b: Vec<f64>,
                #[protect(derived)]
                c: Option<T>,
            }
        );
        let text = protect(&input).expect("valid").to_string();
        assert!(text.contains("where Vec < T > : :: ft_checkpoint :: Field"), "{text}");
        assert!(!text.contains("Vec < f64 > : :: ft"), "{text}");
        assert!(!text.contains("Option < T >"), "{text}");
    }
}
