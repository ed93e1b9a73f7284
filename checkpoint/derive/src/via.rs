//! The trait that a field is saved by, and the code that this takes.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::Type;

use crate::at;
use crate::words::{Role, Words};

/// What a field that is saved is, to whoever writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    /// A state of its own.
    Protect,
    Serde,
    Field,
}

impl Via {
    pub(crate) fn of(words: Words) -> Self {
        match (words.role, words.serde) {
            (Role::Nested, _) => Self::Protect,
            (_, true) => Self::Serde,
            (_, false) => Self::Field,
        }
    }

    /// What the type of the field has to be.
    pub(crate) fn bound(self) -> TokenStream {
        match self {
            Self::Protect => quote!(::ft_checkpoint::Protect),
            Self::Serde => {
                quote!(::ft_checkpoint::serde::Serialize + ::ft_checkpoint::serde::de::DeserializeOwned)
            }
            Self::Field => quote!(::ft_checkpoint::Field),
        }
    }

    /// Takes the walk to `place`, a mutable reference to a field of a state: it is of type `ty`, and has this name and these words.
    pub(crate) fn visit(self, ty: &Type, place: &TokenStream, name: &str, words: Words) -> TokenStream {
        let span = at(ty);
        let spread = match words.place {
            None => quote!(::core::option::Option::None),
            Some(place) => {
                let place = Ident::new(&format!("{place:?}"), span);
                quote!(::core::option::Option::Some(::ft_checkpoint::Spread::#place))
            }
        };
        // The compiler says once what a type is not, as this is put in the same words as what describes the type.
        let call = match self {
            Self::Protect => quote_spanned!(span=>
                <#ty as ::ft_checkpoint::Protect>::visit_nested(#place, #name, #spread, __part, __walk)
            ),
            Self::Serde => quote_spanned!(span=>
                ::ft_checkpoint::Walk::field_by_serde::<#ty>(__walk, #name, #spread, #place)
            ),
            Self::Field => quote_spanned!(span=>
                <#ty as ::ft_checkpoint::Field>::visit_field(#place, #name, #spread, __walk)
            ),
        };
        quote!(#call?;)
    }

    /// Takes the walk to `place`, a mutable reference to what a value holds, of type `ty`. Errors name `path`.
    pub(crate) fn walk(self, ty: &Type, place: &TokenStream, path: &str) -> TokenStream {
        let span = at(ty);
        let call = match self {
            Self::Protect => {
                quote_spanned!(span=> <#ty as ::ft_checkpoint::Protect>::walk(#place, __part, __walk))
            }
            Self::Serde => quote_spanned!(span=> ::ft_checkpoint::Walk::serde::<#ty>(__walk, #place)),
            Self::Field => quote_spanned!(span=> <#ty as ::ft_checkpoint::Field>::walk(#place, __walk)),
        };
        quote!(#call.map_err(|__error| __error.in_field(#path))?;)
    }

    /// Adds type `ty` to the description of the layout, after `heading`.
    pub(crate) fn describe(self, ty: &Type, heading: &str) -> TokenStream {
        let (heading, description) = match self {
            Self::Protect => {
                (heading.to_owned(), quote!(<#ty as ::ft_checkpoint::Protect>::describe(__text);))
            }
            Self::Serde => {
                (format!("{heading} by serde"), quote!(::ft_checkpoint::describe_plainly::<#ty>(__text);))
            }
            Self::Field => (heading.to_owned(), quote!(<#ty as ::ft_checkpoint::Field>::describe(__text);)),
        };
        quote!(__text.push_str(#heading); #description)
    }

    /// The value of type `ty` that is the same on all ranks, out of `list`.
    pub(crate) fn replicated(self, ty: &Type, list: &Ident) -> TokenStream {
        let span = at(ty);
        let function = match self {
            Self::Protect => Ident::new("replicated_state", span),
            Self::Serde => Ident::new("replicated_by_serde", span),
            Self::Field => Ident::new("replicated", span),
        };
        quote_spanned!(span=> ::ft_checkpoint::Redistribution::#function::<#ty>(__moves, #list)?)
    }

    /// What the type of such a field has to be: a state of its own is made before it is loaded.
    pub(crate) fn replicated_bound(self) -> TokenStream {
        let bound = self.bound();
        match self {
            Self::Protect => quote!(#bound + ::core::default::Default),
            Self::Serde | Self::Field => bound,
        }
    }
}
