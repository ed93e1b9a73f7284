//! `Protect` for structs: the walk over the fields of each part.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{DeriveInput, Fields, Result};

use crate::via::Via;
use crate::words::{self, Role};
use crate::{Bounds, at, members, shown};

/// The code for the fields that are saved.
#[derive(Default)]
struct Saved {
    /// The walk over the constant part.
    constant: Vec<TokenStream>,
    /// The walk over the variable part.
    variable: Vec<TokenStream>,
    described: Vec<TokenStream>,
}

pub(crate) fn expand(input: &DeriveInput, fields: &Fields) -> Result<TokenStream> {
    let mut bounds = Bounds::new(input);
    let mut saved = Saved::default();
    for (member, field) in members(fields) {
        let words = words::of_state(field)?;
        if words.role == Role::Lasting {
            bounds.add(&field.ty, &quote!(::core::default::Default))?;
            saved.constant.push(quote!(::ft_checkpoint::Walk::lasting(__walk, &mut self.#member);));
        }
        if !words.role.is_saved() {
            continue;
        }
        let (ty, name, via) = (&field.ty, shown(&member), Via::of(words));
        bounds.add(ty, &via.bound())?;
        saved.described.push(via.describe(ty, &format!(" {name}: {:?}", words.role)));
        let statement = via.visit(ty, &quote_spanned!(at(ty)=> &mut self.#member), &name, words);
        if words.role != Role::Variable {
            saved.constant.push(statement.clone());
        }
        if words.role != Role::Constant {
            saved.variable.push(statement);
        }
    }
    Ok(implementation(input, &bounds, &saved))
}

fn implementation(input: &DeriveInput, bounds: &Bounds<'_>, saved: &Saved) -> TokenStream {
    let Saved { constant, variable, described } = saved;
    let name = &input.ident;
    let (_, ty_generics, _) = input.generics.split_for_impl();
    let (impl_generics, _, where_clause) = bounds.generics.split_for_impl();
    quote! {
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
    }
}
