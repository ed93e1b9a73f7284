//! `Protect` for structs: the walk over the fields of each part.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{DeriveInput, Fields, Result};

use crate::words::{self, Role};
use crate::{Bounds, at, members, shown};

pub(crate) fn expand(input: &DeriveInput, fields: &Fields) -> Result<TokenStream> {
    let mut bounds = Bounds::new(input);
    let (mut constant, mut variable, mut described) = (Vec::new(), Vec::new(), Vec::new());
    for (member, field) in members(fields) {
        let words = words::of_state(field)?;
        if !words.role.is_saved() {
            continue;
        }
        let (ty, name) = (&field.ty, shown(&member));
        let span = at(ty);
        let heading = format!(" {name}: {:?}{}", words.role, if words.serde { " by serde" } else { "" });
        let (call, bound, description) = match (words.role, words.serde) {
            (Role::Nested, _) => (
                quote_spanned!(span=> <#ty as ::ft_checkpoint::Protect>::walk(&mut self.#member, __part, __walk)),
                quote!(::ft_checkpoint::Protect),
                quote!(<#ty as ::ft_checkpoint::Protect>::describe(__text);),
            ),
            (_, true) => (
                quote_spanned!(span=> ::ft_checkpoint::Walk::serde::<#ty>(__walk, &mut self.#member)),
                quote!(::ft_checkpoint::serde::Serialize + ::ft_checkpoint::serde::de::DeserializeOwned),
                quote!(::ft_checkpoint::describe_plainly::<#ty>(__text);),
            ),
            (_, false) => (
                quote_spanned!(span=> <#ty as ::ft_checkpoint::Field>::walk(&mut self.#member, __walk)),
                quote!(::ft_checkpoint::Field),
                quote!(<#ty as ::ft_checkpoint::Field>::describe(__text);),
            ),
        };
        bounds.add(ty, &bound)?;
        described.push(quote!(__text.push_str(#heading); #description));
        let statement = quote!(#call.map_err(|__error| __error.in_field(#name))?;);
        if words.role != Role::Variable {
            constant.push(statement.clone());
        }
        if words.role != Role::Constant {
            variable.push(statement);
        }
    }

    let name = &input.ident;
    let (_, ty_generics, _) = input.generics.split_for_impl();
    let (impl_generics, _, where_clause) = bounds.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::ft_checkpoint::Protect for #name #ty_generics #where_clause {
            #[allow(unused_variables)]
            fn walk<__W: ::ft_checkpoint::Walk>(
                &mut self,
                __part: ::ft_checkpoint::StatePart,
                __walk: &mut __W,
            ) -> ::core::result::Result<(), ::ft_checkpoint::ProtectError> {
                match __part {
                    ::ft_checkpoint::StatePart::Constant => { #(#constant)* }
                    ::ft_checkpoint::StatePart::Variable => { #(#variable)* }
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
