//! `Redistribute` for structs: each field is dealt out as its role says.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Field, Fields, Member, Result};

use crate::via::Via;
use crate::words::{self, Place};
use crate::{Bounds, at, members, shown};

/// The code for one field.
#[derive(Default)]
struct Dealt {
    /// `a: __0`, or `a: _` if it is made anew.
    pattern: TokenStream,
    /// Makes a list for the values that all parts have of it.
    list: TokenStream,
    /// Adds that of one part.
    push: TokenStream,
    /// `a: value`, with the value out of the list.
    value: TokenStream,
    /// The length of what is distributed, if the field is.
    extent: Option<TokenStream>,
}

impl Dealt {
    fn of(index: usize, member: &Member, field: &Field, bounds: &mut Bounds<'_>) -> Result<Self> {
        let words = words::of_state(field)?;
        let (ty, list, here) = (&field.ty, format_ident!("__list_{index}"), format_ident!("__{index}"));
        let span = at(ty);
        if !words.role.is_saved() {
            bounds.add(ty, &quote!(::core::default::Default))?;
            let value = quote_spanned!(span=> #member: <#ty as ::core::default::Default>::default());
            return Ok(Self { pattern: quote!(#member: _), value, ..Self::default() });
        }
        let via = Via::of(words);
        let (value, bound, extent) = match words.place.unwrap_or(Place::Private) {
            Place::Private => return Err(private(member, field)),
            Place::Distributed => (
                quote_spanned!(span=> <#ty as ::ft_checkpoint::Redistribute>::redistribute(#list, __moves)?),
                quote!(::ft_checkpoint::Redistribute),
                Some(quote_spanned!(span=> <#ty as ::ft_checkpoint::Redistribute>::extent(&self.#member))),
            ),
            Place::Replicated => (via.replicated(ty, &list), via.replicated_bound(), None),
        };
        bounds.add(ty, &bound)?;
        Ok(Self {
            pattern: quote!(#member: #here),
            list: quote!(let mut #list = ::std::vec::Vec::with_capacity(__parts.len());),
            push: quote!(#list.push(#here);),
            value: quote!(#member: #value),
            extent,
        })
    }
}

fn private(member: &Member, field: &Field) -> Error {
    let name = shown(member);
    let text = format!(
        "`{name}` is private to its rank and cannot be dealt out to others: mark it #[protect(replicated)] or \
         #[protect(distributed)], or #[protect(derived)] if it can be made again, or write Redistribute by hand"
    );
    Error::new_spanned(&field.ty, text)
}

fn fields(input: &DeriveInput) -> Result<&Fields> {
    match &input.data {
        Data::Struct(data) => Ok(&data.fields),
        Data::Enum(data) => {
            let text = "Redistribute cannot be derived for an enum; one that is the same on all ranks is a field \
                        marked #[protect(replicated)]";
            Err(Error::new(data.enum_token.span(), text))
        }
        Data::Union(data) => {
            Err(Error::new(data.union_token.span(), "Redistribute cannot be derived for a union"))
        }
    }
}

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    words::none(&input.attrs, "type")?;
    let mut bounds = Bounds::new(input);
    let dealt = members(fields(input)?).enumerate();
    let dealt = dealt.map(|(index, (member, field))| Dealt::of(index, &member, field, &mut bounds));
    let dealt = dealt.collect::<Result<Vec<_>>>()?;
    let each = |part: fn(&Dealt) -> &TokenStream| dealt.iter().map(part).collect::<Vec<_>>();
    let (patterns, values) = (each(|dealt| &dealt.pattern), each(|dealt| &dealt.value));
    let (lists, pushes) = (each(|dealt| &dealt.list), each(|dealt| &dealt.push));
    let extent = dealt.iter().find_map(|dealt| dealt.extent.clone()).unwrap_or_else(|| quote!(0));
    let name = &input.ident;
    let (_, ty_generics, _) = input.generics.split_for_impl();
    let (impl_generics, _, where_clause) = bounds.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::ft_checkpoint::Redistribute for #name #ty_generics #where_clause {
            fn extent(&self) -> usize {
                #extent
            }

            #[allow(unused_variables)]
            fn redistribute(
                __parts: ::std::vec::Vec<Self>,
                __moves: &::ft_checkpoint::Redistribution<'_>,
            ) -> ::core::result::Result<Self, ::ft_checkpoint::CommError> {
                #(#lists)*
                for __part in __parts {
                    let Self { #(#patterns),* } = __part;
                    #(#pushes)*
                }
                ::core::result::Result::Ok(Self { #(#values),* })
            }
        }
    })
}
