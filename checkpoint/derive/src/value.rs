//! `Field` for enums and structs: values that are made while they are loaded.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DataEnum, DeriveInput, Error, Fields, Ident, Result, Variant};

use crate::via::Via;
use crate::words;
use crate::{Bounds, at, members, shown};

/// The code for the fields of a struct or of one variant, bound to names of their own.
struct Pieces {
    /// `Self { a: __0, b: __1 }`, or with the variant.
    pattern: TokenStream,
    /// The same with values to be overwritten.
    blank: TokenStream,
    /// Hands all names to the walk.
    walk: TokenStream,
    describe: TokenStream,
}

fn pieces(variant: Option<&Ident>, fields: &Fields, bounds: &mut Bounds<'_>) -> Result<Pieces> {
    let (mut patterns, mut blanks, mut walks, mut described) = (vec![], vec![], vec![], vec![]);
    for (index, (member, field)) in members(fields).enumerate() {
        let words = words::of_value(field)?;
        let (ty, name, here) = (&field.ty, shown(&member), format_ident!("__{index}"));
        let span = at(ty);
        let default = quote_spanned!(span=> <#ty as ::core::default::Default>::default());
        if !words.role.is_saved() {
            bounds.add(ty, &quote!(::core::default::Default))?;
            patterns.push(quote!(#member: _));
            blanks.push(quote!(#member: #default));
            continue;
        }
        let via = Via::of(words);
        let (bound, blank) = match (via.bound(), words.serde) {
            (bound, true) => (quote!(#bound + ::core::default::Default), default),
            (bound, false) => (bound, quote_spanned!(span=> <#ty as ::ft_checkpoint::Field>::blank())),
        };
        bounds.add(ty, &bound)?;
        patterns.push(quote!(#member: #here));
        blanks.push(quote!(#member: #blank));
        let path = variant.map_or_else(|| name.clone(), |variant| format!("{variant}.{name}"));
        walks.push(via.walk(ty, &here.to_token_stream(), &path));
        described.push(via.describe(ty, &format!(" {name}:")));
    }
    let path = variant.map_or_else(|| quote!(Self), |variant| quote!(Self::#variant));
    Ok(Pieces {
        pattern: quote!(#path { #(#patterns),* }),
        blank: quote!(#path { #(#blanks),* }),
        walk: quote!(#(#walks)*),
        describe: quote!(#(#described)*),
    })
}

pub(crate) fn of_struct(input: &DeriveInput, fields: &Fields) -> Result<TokenStream> {
    let mut bounds = Bounds::new(input);
    let Pieces { pattern, blank, walk, describe } = pieces(None, fields, &mut bounds)?;
    let walk = quote! {
        let #pattern = self;
        ::ft_checkpoint::Walk::deeper(__walk, |__walk| {
            #walk
            ::core::result::Result::Ok(())
        })
    };
    Ok(implementation(input, &bounds, &blank, &walk, &describe))
}

pub(crate) fn of_enum(input: &DeriveInput, data: &DataEnum) -> Result<TokenStream> {
    let mut bounds = Bounds::new(input);
    let mut variants = vec![];
    for variant in &data.variants {
        words::none(&variant.attrs, "variant")?;
        variants.push((variant, pieces(Some(&variant.ident), &variant.fields, &mut bounds)?));
    }
    let is_recursive = |variant: &Variant| variant.fields.iter().any(|field| bounds.is_recursive(&field.ty));
    let first = variants.iter().find(|(variant, _)| !is_recursive(variant));
    let (_, Pieces { blank, .. }) = first.ok_or_else(|| without_value(data))?;
    let describe = variants.iter().map(|(Variant { ident, .. }, Pieces { describe, .. })| {
        quote!(__text.push_str(::core::concat!(" | ", ::core::stringify!(#ident))); #describe)
    });
    let (walk, describe) = (walk_of_variants(&input.ident, &variants), quote!(#(#describe)*));
    Ok(implementation(input, &bounds, blank, &walk, &describe))
}

/// The walk over an enum: over the index of the variant, which a load may change, then over its fields.
fn walk_of_variants(name: &Ident, variants: &[(&Variant, Pieces)]) -> TokenStream {
    let indexed = || (0_u32..).zip(variants);
    let indices = indexed().map(|(index, (Variant { ident, .. }, _))| quote!(Self::#ident { .. } => #index,));
    let blanks = indexed().map(|(index, (_, Pieces { blank, .. }))| quote!(#index => #blank,));
    let walks = variants.iter().map(|(_, Pieces { pattern, walk, .. })| quote!(#pattern => { #walk }));
    quote! {
        let __was: u32 = match self { #(#indices)* };
        let mut __is = __was;
        <u32 as ::ft_checkpoint::Field>::walk(&mut __is, __walk)?;
        if __is != __was {
            *self = match __is {
                #(#blanks)*
                _ => return ::core::result::Result::Err(::ft_checkpoint::Walk::invalid(
                    __walk,
                    ::core::concat!("variant of ", ::core::stringify!(#name)),
                )),
            };
        }
        ::ft_checkpoint::Walk::deeper(__walk, |__walk| {
            match self { #(#walks)* }
            ::core::result::Result::Ok(())
        })
    }
}

/// There is no variant that a load could start with.
fn without_value(data: &DataEnum) -> Error {
    let text = match data.variants.is_empty() {
        true => "an enum without variants has no value to protect",
        false => "every variant holds another value of this enum: there is none to start a load with",
    };
    Error::new(data.enum_token.span(), text)
}

fn implementation(
    input: &DeriveInput,
    bounds: &Bounds<'_>,
    blank: &TokenStream,
    walk: &TokenStream,
    describe: &TokenStream,
) -> TokenStream {
    let name = &input.ident;
    let (_, ty_generics, _) = input.generics.split_for_impl();
    let (impl_generics, _, where_clause) = bounds.generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #impl_generics ::ft_checkpoint::Field for #name #ty_generics #where_clause {
            fn blank() -> Self {
                #blank
            }

            fn walk<__W: ::ft_checkpoint::Walk>(
                &mut self,
                __walk: &mut __W,
            ) -> ::core::result::Result<(), ::ft_checkpoint::ProtectError> {
                #walk
            }

            fn describe(__text: &mut ::std::string::String) {
                ::ft_checkpoint::describe_once::<Self>(__text, |__text| { #describe });
            }
        }
    }
}

/// `Protect` for an enum that is a `Field`: all of it is variable.
pub(crate) fn as_state(input: &DeriveInput) -> TokenStream {
    let name = &input.ident;
    let (impl_generics, ty_generics, where_clause) = input.generics.split_for_impl();
    let predicates = where_clause.map(|clause| &clause.predicates);
    // The bound holds by the other implementation, under its own bounds.
    let clause = match input.generics.type_params().next() {
        Some(_) => quote!(where Self: ::ft_checkpoint::Field, #predicates),
        None => quote!(#where_clause),
    };
    quote! {
        #[automatically_derived]
        impl #impl_generics ::ft_checkpoint::Protect for #name #ty_generics #clause {
            fn walk<__W: ::ft_checkpoint::Walk>(
                &mut self,
                __part: ::ft_checkpoint::StatePart,
                __walk: &mut __W,
            ) -> ::core::result::Result<(), ::ft_checkpoint::ProtectError> {
                match __part {
                    ::ft_checkpoint::StatePart::Constant => ::core::result::Result::Ok(()),
                    ::ft_checkpoint::StatePart::Variable => <Self as ::ft_checkpoint::Field>::walk(self, __walk),
                }
            }

            fn describe(__text: &mut ::std::string::String) {
                <Self as ::ft_checkpoint::Field>::describe(__text);
            }
        }
    }
}
