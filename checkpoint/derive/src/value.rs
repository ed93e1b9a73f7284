//! `Field` for enums and structs: values that are made while they are loaded.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DataEnum, DeriveInput, Error, Fields, Ident, Result};

use crate::words;
use crate::{Bounds, at, members, shown};

/// The code for the fields of a struct or of one variant, bound to names of their own.
struct Pieces {
    /// `{ a: __0, b: __1 }`, without the type or variant.
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
        let (call, blank, bound, description) = if words.serde {
            let serde = quote!(::ft_checkpoint::serde);
            (
                quote_spanned!(span=> ::ft_checkpoint::Walk::serde::<#ty>(__walk, #here)),
                default,
                quote!(#serde::Serialize + #serde::de::DeserializeOwned + ::core::default::Default),
                quote!(::ft_checkpoint::describe_plainly::<#ty>(__text);),
            )
        } else {
            (
                quote_spanned!(span=> <#ty as ::ft_checkpoint::Field>::walk(#here, __walk)),
                quote_spanned!(span=> <#ty as ::ft_checkpoint::Field>::blank()),
                quote!(::ft_checkpoint::Field),
                quote!(<#ty as ::ft_checkpoint::Field>::describe(__text);),
            )
        };
        bounds.add(ty, &bound)?;
        patterns.push(quote!(#member: #here));
        blanks.push(quote!(#member: #blank));
        let path = variant.map_or_else(|| name.clone(), |variant| format!("{variant}.{name}"));
        walks.push(quote!(#call.map_err(|__error| __error.in_field(#path))?;));
        let heading = format!(" {name}:{}", if words.serde { " by serde" } else { "" });
        described.push(quote!(__text.push_str(#heading); #description));
    }
    Ok(Pieces {
        pattern: quote!({ #(#patterns),* }),
        blank: quote!({ #(#blanks),* }),
        walk: quote!(#(#walks)*),
        describe: quote!(#(#described)*),
    })
}

pub(crate) fn of_struct(input: &DeriveInput, fields: &Fields) -> Result<TokenStream> {
    let mut bounds = Bounds::new(input);
    let Pieces { pattern, blank, walk, describe } = pieces(None, fields, &mut bounds)?;
    let walk = quote! {
        let Self #pattern = self;
        ::ft_checkpoint::Walk::deeper(__walk, |__walk| {
            #walk
            ::core::result::Result::Ok(())
        })
    };
    Ok(implementation(input, &bounds, &quote!(Self #blank), &walk, &describe))
}

pub(crate) fn of_enum(input: &DeriveInput, data: &DataEnum) -> Result<TokenStream> {
    let mut bounds = Bounds::new(input);
    let (mut indices, mut blanks, mut walks, mut described) = (vec![], vec![], vec![], vec![]);
    let mut first = None;
    for (index, variant) in data.variants.iter().enumerate() {
        words::none(&variant.attrs, "variant")?;
        let index = u32::try_from(index).expect("variants are few");
        let (name, fields) = (&variant.ident, &variant.fields);
        let Pieces { pattern, blank, walk, describe } = pieces(Some(name), fields, &mut bounds)?;
        if first.is_none() && !fields.iter().any(|field| bounds.is_recursive(&field.ty)) {
            first = Some(quote!(Self::#name #blank));
        }
        indices.push(quote!(Self::#name { .. } => #index,));
        blanks.push(quote!(#index => Self::#name #blank,));
        walks.push(quote!(Self::#name #pattern => { #walk }));
        described.push(quote!(__text.push_str(::core::concat!(" | ", ::core::stringify!(#name))); #describe));
    }
    let Some(first) = first else {
        let text = match data.variants.is_empty() {
            true => "an enum without variants has no value to protect",
            false => "every variant holds another value of this enum: there is none to start a load with",
        };
        return Err(Error::new(data.enum_token.span(), text));
    };
    let enum_name = &input.ident;
    let walk = quote! {
        let __was: u32 = match self { #(#indices)* };
        let mut __is = __was;
        <u32 as ::ft_checkpoint::Field>::walk(&mut __is, __walk)?;
        if __is != __was {
            *self = match __is {
                #(#blanks)*
                _ => return ::core::result::Result::Err(::ft_checkpoint::Walk::invalid(
                    __walk,
                    ::core::concat!("variant of ", ::core::stringify!(#enum_name)),
                )),
            };
        }
        ::ft_checkpoint::Walk::deeper(__walk, |__walk| {
            match self { #(#walks)* }
            ::core::result::Result::Ok(())
        })
    };
    Ok(implementation(input, &bounds, &first, &walk, &quote!(#(#described)*)))
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
