//! `Redistribute` for structs: each field is dealt out as its role says.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Result};

use crate::words::{self, Place, Role};
use crate::{Bounds, at, members, shown};

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    words::none(&input.attrs, "type")?;
    let fields = match &input.data {
        Data::Struct(data) => &data.fields,
        Data::Enum(data) => {
            let text = "Redistribute cannot be derived for an enum; one that is the same on all ranks is a field \
                        marked #[protect(replicated)]";
            return Err(Error::new(data.enum_token.span(), text));
        }
        Data::Union(data) => {
            return Err(Error::new(data.union_token.span(), "Redistribute cannot be derived for a union"));
        }
    };
    let mut bounds = Bounds::new(input);
    let (mut lists, mut patterns, mut pushes, mut values) = (vec![], vec![], vec![], vec![]);
    let mut extent = None;
    for (index, (member, field)) in members(fields).enumerate() {
        let words = words::of_state(field)?;
        let (ty, list, here) = (&field.ty, format_ident!("__list_{index}"), format_ident!("__{index}"));
        let span = at(ty);
        let (value, bound) = match (words.place, words.role, words.serde) {
            (_, Role::Derived | Role::Skip, _) => {
                bounds.add(ty, &quote!(::core::default::Default))?;
                patterns.push(quote!(#member: _));
                values.push(quote_spanned!(span=> #member: <#ty as ::core::default::Default>::default()));
                continue;
            }
            (Place::Private, ..) => {
                let name = shown(&member);
                let text = format!(
                    "`{name}` is private to its rank and cannot be dealt out to others: mark it #[protect(replicated)] or \
                     #[protect(distributed)], or #[protect(derived)] if it can be made again, or write Redistribute by hand"
                );
                return Err(Error::new_spanned(&field.ty, text));
            }
            (Place::Distributed, ..) => {
                if extent.is_none() {
                    extent = Some(
                        quote_spanned!(span=> <#ty as ::ft_checkpoint::Redistribute>::extent(&self.#member)),
                    );
                }
                (
                    quote_spanned!(span=> <#ty as ::ft_checkpoint::Redistribute>::redistribute(#list, __moves)?),
                    quote!(::ft_checkpoint::Redistribute),
                )
            }
            (Place::Replicated, Role::Nested, _) => (
                quote_spanned!(span=> ::ft_checkpoint::Redistribution::replicated_state::<#ty>(__moves, #list)?),
                quote!(::ft_checkpoint::Protect + ::core::default::Default),
            ),
            (Place::Replicated, _, true) => (
                quote_spanned!(span=> ::ft_checkpoint::Redistribution::replicated_by_serde::<#ty>(__moves, #list)?),
                quote!(::ft_checkpoint::serde::Serialize + ::ft_checkpoint::serde::de::DeserializeOwned),
            ),
            (Place::Replicated, _, false) => (
                quote_spanned!(span=> ::ft_checkpoint::Redistribution::replicated::<#ty>(__moves, #list)?),
                quote!(::ft_checkpoint::Field),
            ),
        };
        bounds.add(ty, &bound)?;
        lists.push(quote!(let mut #list = ::std::vec::Vec::with_capacity(__parts.len());));
        patterns.push(quote!(#member: #here));
        pushes.push(quote!(#list.push(#here);));
        values.push(quote!(#member: #value));
    }
    let extent = extent.unwrap_or_else(|| quote!(0));
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
