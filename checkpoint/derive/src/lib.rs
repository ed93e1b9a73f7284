//! `#[derive(Protect)]`: the walk over the fields of a state, written from their attributes.
//!
//! Documented where users meet it, at the trait `ft_checkpoint::Protect`.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Field, Fields, Ident, Index, Member, Result};

/// Derives `ft_checkpoint::Protect` for a struct; see there for the field attributes.
#[proc_macro_derive(Protect, attributes(protect))]
pub fn derive_protect(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    syn::parse(input).and_then(|input| expand(&input)).unwrap_or_else(Error::into_compile_error).into()
}

/// What happens to one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Constant,
    Variable,
    Derived,
    Nested,
}

fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let fields = match &input.data {
        Data::Struct(data) => &data.fields,
        Data::Enum(data) => {
            let text = "Protect cannot be derived for an enum: put it into a struct, as a field marked #[protect(serde)]";
            return Err(Error::new(data.enum_token.span(), text));
        }
        Data::Union(data) => {
            return Err(Error::new(data.union_token.span(), "Protect cannot be derived for a union"));
        }
    };
    if let Some(attribute) = input.attrs.iter().find(|a| a.path().is_ident("protect")) {
        return Err(Error::new(attribute.span(), "#[protect(...)] belongs on a field, not on the struct"));
    }

    let parameters: Vec<&Ident> = input.generics.type_params().map(|p| &p.ident).collect();
    let mut generics = input.generics.clone();
    let (mut constant, mut variable, mut described) = (Vec::new(), Vec::new(), Vec::new());
    for (member, field) in members(fields) {
        let (role, serde) = attributes(field)?;
        let ty = &field.ty;
        // Errors point at the type; names are those of the walk, also where a macro wrote the struct.
        let span = Span::call_site().located_at(ty.span());
        let name = member.to_token_stream().to_string();
        let name = name.trim_start_matches("r#");
        let (call, bound) = match (role, serde) {
            (Role::Derived, _) => continue,
            (Role::Nested, _) => (
                quote_spanned!(span=> <#ty as ::ft_checkpoint::Protect>::walk(&mut self.#member, __part, __walk)),
                quote!(#ty: ::ft_checkpoint::Protect),
            ),
            (_, true) => (
                quote_spanned!(span=> ::ft_checkpoint::Walk::serde::<#ty>(__walk, &mut self.#member)),
                quote!(#ty: ::ft_checkpoint::serde::Serialize + ::ft_checkpoint::serde::de::DeserializeOwned),
            ),
            (_, false) => (
                quote_spanned!(span=> <#ty as ::ft_checkpoint::Field>::walk(&mut self.#member, __walk)),
                quote!(#ty: ::ft_checkpoint::Field),
            ),
        };
        if mentions(ty.to_token_stream(), &parameters) {
            generics.make_where_clause().predicates.push(syn::parse2(bound)?);
        }
        let heading = format!(" {name}: {role:?}{}", if serde { " by serde" } else { "" });
        described.push(match role {
            Role::Nested => {
                quote!(__text.push_str(#heading); <#ty as ::ft_checkpoint::Protect>::describe(__text);)
            }
            _ => quote!(::ft_checkpoint::describe_field::<#ty>(#heading, __text);),
        });
        let statement = quote!(#call.map_err(|__error| __error.in_field(#name))?;);
        if role != Role::Variable {
            constant.push(statement.clone());
        }
        if role != Role::Constant {
            variable.push(statement);
        }
    }

    let name = &input.ident;
    let (_, ty_generics, _) = input.generics.split_for_impl();
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::ft_checkpoint::Protect for #name #ty_generics #where_clause {
            #[allow(unused_variables)]
            fn walk<__W: ::ft_checkpoint::Walk>(
                &mut self,
                __part: ::ft_checkpoint::Part,
                __walk: &mut __W,
            ) -> ::core::result::Result<(), ::ft_checkpoint::ProtectError> {
                match __part {
                    ::ft_checkpoint::Part::Constant => { #(#constant)* }
                    ::ft_checkpoint::Part::Variable => { #(#variable)* }
                }
                ::core::result::Result::Ok(())
            }

            fn describe(__text: &mut ::std::string::String) {
                __text.push_str(::core::concat!("{ ", ::core::stringify!(#name)));
                #(#described)*
                __text.push_str(" }");
            }
        }
    })
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

/// Reads the role of a field and whether it goes through serde.
fn attributes(field: &Field) -> Result<(Role, bool)> {
    let mut role: Option<(Role, Ident)> = None;
    let mut serde: Option<Ident> = None;
    for attribute in field.attrs.iter().filter(|a| a.path().is_ident("protect")) {
        let mut words = 0;
        attribute.parse_nested_meta(|meta| {
            words += 1;
            let Some(word) = meta.path.get_ident().cloned() else {
                return Err(unknown(meta.path.span(), &meta.path.to_token_stream().to_string()));
            };
            let new = match word.to_string().as_str() {
                "constant" => Role::Constant,
                "variable" => Role::Variable,
                "derived" => Role::Derived,
                "nested" => Role::Nested,
                "serde" => {
                    if serde.replace(word.clone()).is_some() {
                        return Err(Error::new(word.span(), "`serde` is given twice"));
                    }
                    return Ok(());
                }
                other => return Err(unknown(word.span(), other)),
            };
            match &role {
                Some((_, old)) if *old == word => {
                    Err(Error::new(word.span(), format!("`{word}` is given twice")))
                }
                Some((_, old)) => {
                    let text = format!("`{old}` and `{word}` contradict each other: a field has one of them");
                    Err(Error::new(word.span(), text))
                }
                None => {
                    role = Some((new, word));
                    Ok(())
                }
            }
        })?;
        if words == 0 {
            return Err(Error::new(attribute.span(), "#[protect()] says nothing"));
        }
    }
    match (&role, &serde) {
        (Some((Role::Derived, _)), Some(word)) => Err(Error::new(
            word.span(),
            "`derived` and `serde` contradict each other: a derived field is not saved",
        )),
        (Some((Role::Nested, _)), Some(word)) => Err(Error::new(
            word.span(),
            "`nested` and `serde` contradict each other: a nested field is walked by its own Protect",
        )),
        _ => Ok((role.map_or(Role::Variable, |(role, _)| role), serde.is_some())),
    }
}

fn unknown(span: proc_macro2::Span, word: &str) -> Error {
    let text = format!(
        "unknown word `{word}` in #[protect(...)]: there are constant, variable, derived, nested and serde"
    );
    Error::new(span, text)
}

/// Says whether one of `parameters` stands anywhere in `tokens`.
fn mentions(tokens: TokenStream, parameters: &[&Ident]) -> bool {
    tokens.into_iter().any(|tree| match tree {
        proc_macro2::TokenTree::Ident(ident) => parameters.iter().any(|p| **p == ident),
        proc_macro2::TokenTree::Group(group) => mentions(group.stream(), parameters),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    fn refused(input: DeriveInput) -> String {
        expand(&input).expect_err("must be refused").to_string()
    }

    fn field(attribute: TokenStream) -> DeriveInput {
        parse_quote!(struct S { #attribute x: Vec<f64> })
    }

    #[test]
    fn only_structs() {
        assert!(
            refused(parse_quote!(
                enum E {
                    A,
                    B,
                }
            ))
            .contains("enum")
        );
        assert!(refused(parse_quote!(union U { a: u32, b: f32 })).contains("union"));
        assert!(
            refused(parse_quote!(
                #[protect(constant)]
                struct S {
                    x: u8,
                }
            ))
            .contains("belongs on a field")
        );
    }

    #[test]
    fn wrong_attributes_are_named() {
        let cases = [
            (quote!(#[protect(konstant)]), "unknown word `konstant`"),
            (quote!(#[protect(a::b)]), "unknown word `a :: b`"),
            (quote!(#[protect(constant, variable)]), "`constant` and `variable` contradict"),
            (quote!(#[protect(constant)] #[protect(derived)]), "`constant` and `derived` contradict"),
            (quote!(#[protect(nested, constant)]), "`nested` and `constant` contradict"),
            (quote!(#[protect(derived, serde)]), "`derived` and `serde` contradict"),
            (quote!(#[protect(serde, nested)]), "`nested` and `serde` contradict"),
            (quote!(#[protect(serde, serde)]), "`serde` is given twice"),
            (quote!(#[protect(variable, variable)]), "`variable` is given twice"),
            (quote!(#[protect()]), "says nothing"),
        ];
        for (attribute, text) in cases {
            let shown = attribute.to_string();
            let got = refused(field(attribute));
            assert!(got.contains(text), "{shown}: {got}");
        }
        for wrong in [quote!(#[protect]), quote!(#[protect = "constant"]), quote!(#[protect(constant = 1)])] {
            refused(field(wrong));
        }
    }

    #[test]
    fn roles_and_serde_combine() {
        let read = |attribute: TokenStream| match field(attribute).data {
            Data::Struct(data) => {
                attributes(data.fields.iter().next().expect("one field")).expect("understood")
            }
            _ => unreachable!("a struct"),
        };
        assert_eq!(read(quote!()), (Role::Variable, false));
        assert_eq!(read(quote!(#[protect(serde)])), (Role::Variable, true));
        assert_eq!(read(quote!(#[protect(constant, serde)])), (Role::Constant, true));
        assert_eq!(read(quote!(#[protect(serde)] #[protect(constant)])), (Role::Constant, true));
        assert_eq!(read(quote!(#[protect(nested)])), (Role::Nested, false));
        assert_eq!(read(quote!(#[other] #[protect(derived)])), (Role::Derived, false));
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
        let text = expand(&input).expect("valid").to_string();
        assert!(text.contains("where Vec < T > : :: ft_checkpoint :: Field"), "{text}");
        assert!(!text.contains("Vec < f64 > : :: ft"), "{text}");
        assert!(!text.contains("Option"), "{text}");
    }
}
