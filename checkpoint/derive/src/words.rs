//! The words in `#[protect(...)]`, and which of them go together.

use proc_macro2::Span;
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Field, Ident, Result};

/// In which part of the state a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Constant,
    Variable,
    Derived,
    Lasting,
    Skip,
    Nested,
}

impl Role {
    /// Whether a checkpoint has it.
    pub(crate) fn is_saved(self) -> bool {
        !matches!(self, Self::Derived | Self::Lasting | Self::Skip)
    }
}

/// What the field is to the other ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Private,
    Replicated,
    Distributed,
}

/// All that is said of one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) role: Role,
    /// None: nothing is said.
    pub(crate) place: Option<Place>,
    pub(crate) serde: bool,
}

const KNOWN: &str = "there are constant, variable, derived, lasting, skip, nested and serde, and private, replicated and distributed";

/// A word that was read, of a kind of which a field has one.
type Read<T> = Option<(T, Ident)>;

/// Takes the next word of a kind.
fn take<T>(slot: &mut Read<T>, value: T, word: Ident) -> Result<()> {
    if let Some((_, old)) = slot {
        let text = match *old == word {
            true => format!("`{word}` is given twice"),
            false => format!("`{old}` and `{word}` contradict each other: a field has one of them"),
        };
        return Err(Error::new(word.span(), text));
    }
    *slot = Some((value, word));
    Ok(())
}

/// Reads the words of a field of a state.
pub(crate) fn of_state(field: &Field) -> Result<Words> {
    let (role, place, serde) = read(&field.attrs)?;
    if let (Some((role, old)), Some((_, word))) = (&role, &serde) {
        let why = match role {
            Role::Derived | Role::Lasting | Role::Skip => format!("a field that is `{old}` is not saved"),
            Role::Nested => "a nested field is walked by its own Protect".into(),
            Role::Constant | Role::Variable => String::new(),
        };
        if !why.is_empty() {
            return Err(Error::new(word.span(), format!("`{old}` and `serde` contradict each other: {why}")));
        }
    }
    if let (Some((role, old)), Some((_, word))) = (&role, &place)
        && !role.is_saved()
    {
        let text = format!(
            "`{old}` and `{word}` contradict each other: a field that is not saved is dealt out to nobody"
        );
        return Err(Error::new(word.span(), text));
    }
    Ok(Words {
        role: role.map_or(Role::Variable, |(role, _)| role),
        place: place.map(|(place, _)| place),
        serde: serde.is_some(),
    })
}

/// Reads the words of a field of a value, which has no parts: an enum, or a struct that derives `Field`.
pub(crate) fn of_value(field: &Field) -> Result<Words> {
    let (role, place, serde) = read(&field.attrs)?;
    let foreign = match (&role, &place) {
        (Some((Role::Constant | Role::Variable | Role::Lasting | Role::Nested, word)), _) => Some(word),
        (_, Some((_, word))) => Some(word),
        _ => None,
    };
    if let Some(word) = foreign {
        let text = format!(
            "`{word}` has no meaning in a value, which is saved as a whole: put it on the field of the state that holds the value"
        );
        return Err(Error::new(word.span(), text));
    }
    if let (Some((_, old)), Some((_, word))) = (&role, &serde) {
        let text = format!("`{old}` and `serde` contradict each other: a field that is `{old}` is not saved");
        return Err(Error::new(word.span(), text));
    }
    let role = role.map_or(Role::Variable, |(role, _)| role);
    Ok(Words { role, place: None, serde: serde.is_some() })
}

/// Refuses words where there is no field.
pub(crate) fn none(attributes: &[Attribute], what: &str) -> Result<()> {
    match attributes.iter().find(|attribute| attribute.path().is_ident("protect")) {
        Some(wrong) => {
            Err(Error::new_spanned(wrong, format!("#[protect(...)] belongs on a field, not on the {what}")))
        }
        None => Ok(()),
    }
}

fn read(attributes: &[Attribute]) -> Result<(Read<Role>, Read<Place>, Read<()>)> {
    let (mut role, mut place, mut serde) = (None, None, None);
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("protect")) {
        let mut words = 0;
        attribute.parse_nested_meta(|meta| {
            words += 1;
            let Some(word) = meta.path.get_ident().cloned() else {
                return Err(unknown(meta.path.span(), &meta.path.to_token_stream().to_string()));
            };
            match word.to_string().as_str() {
                "constant" => take(&mut role, Role::Constant, word),
                "variable" => take(&mut role, Role::Variable, word),
                "derived" => take(&mut role, Role::Derived, word),
                "lasting" => take(&mut role, Role::Lasting, word),
                "skip" => take(&mut role, Role::Skip, word),
                "nested" => take(&mut role, Role::Nested, word),
                "private" => take(&mut place, Place::Private, word),
                "replicated" => take(&mut place, Place::Replicated, word),
                "distributed" => take(&mut place, Place::Distributed, word),
                "serde" => take(&mut serde, (), word),
                other => Err(unknown(word.span(), other)),
            }
        })?;
        if words == 0 {
            return Err(Error::new_spanned(attribute, "#[protect()] says nothing"));
        }
    }
    Ok((role, place, serde))
}

fn unknown(span: Span, word: &str) -> Error {
    Error::new(span, format!("unknown word `{word}` in #[protect(...)]: {KNOWN}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proc_macro2::TokenStream;
    use quote::quote;
    use syn::parse_quote;

    fn field(attribute: TokenStream) -> Field {
        let input: syn::ItemStruct = parse_quote!(struct S { #attribute x: Vec<f64> });
        input.fields.into_iter().next().expect("one field")
    }

    #[test]
    fn wrong_words_are_named() {
        let cases = [
            (quote!(#[protect(konstant)]), "unknown word `konstant`"),
            (quote!(#[protect(a::b)]), "unknown word `a :: b`"),
            (quote!(#[protect(constant, variable)]), "`constant` and `variable` contradict"),
            (quote!(#[protect(constant)] #[protect(derived)]), "`constant` and `derived` contradict"),
            (quote!(#[protect(nested, constant)]), "`nested` and `constant` contradict"),
            (quote!(#[protect(skip, derived)]), "`skip` and `derived` contradict"),
            (quote!(#[protect(derived, serde)]), "`derived` and `serde` contradict"),
            (quote!(#[protect(lasting, derived)]), "`lasting` and `derived` contradict"),
            (quote!(#[protect(lasting, serde)]), "`lasting` and `serde` contradict"),
            (quote!(#[protect(lasting, replicated)]), "`lasting` and `replicated` contradict"),
            (quote!(#[protect(serde, skip)]), "`skip` and `serde` contradict"),
            (quote!(#[protect(serde, nested)]), "`nested` and `serde` contradict"),
            (quote!(#[protect(skip, replicated)]), "`skip` and `replicated` contradict"),
            (quote!(#[protect(distributed, derived)]), "`derived` and `distributed` contradict"),
            (quote!(#[protect(distributed, replicated)]), "`distributed` and `replicated` contradict"),
            (quote!(#[protect(serde, serde)]), "`serde` is given twice"),
            (quote!(#[protect(variable, variable)]), "`variable` is given twice"),
            (quote!(#[protect()]), "says nothing"),
        ];
        for (attribute, text) in cases {
            let shown = attribute.to_string();
            let got = of_state(&field(attribute)).expect_err("must be refused").to_string();
            assert!(got.contains(text), "{shown}: {got}");
        }
        for wrong in [quote!(#[protect]), quote!(#[protect = "constant"]), quote!(#[protect(constant = 1)])] {
            assert!(of_state(&field(wrong)).is_err());
        }
    }

    #[test]
    fn a_value_has_no_parts() {
        for word in ["constant", "variable", "lasting", "nested", "private", "replicated", "distributed"] {
            let ident = Ident::new(word, Span::call_site());
            let got = of_value(&field(quote!(#[protect(#ident)]))).expect_err("must be refused").to_string();
            assert!(got.starts_with(&format!("`{word}` has no meaning in a value")), "{got}");
        }
        assert!(of_value(&field(quote!(#[protect(skip, serde)]))).is_err());
        assert_eq!(of_value(&field(quote!(#[protect(skip)]))).expect("understood").role, Role::Skip);
        assert!(of_value(&field(quote!(#[protect(serde)]))).expect("understood").serde);
    }

    #[test]
    fn words_of_different_kinds_combine() {
        let read = |attribute: TokenStream| {
            let Words { role, place, serde } = of_state(&field(attribute)).expect("understood");
            (role, place, serde)
        };
        assert_eq!(read(quote!()), (Role::Variable, None, false));
        assert_eq!(read(quote!(#[protect(serde)])), (Role::Variable, None, true));
        assert_eq!(read(quote!(#[protect(constant, serde)])), (Role::Constant, None, true));
        assert_eq!(
            read(quote!(#[protect(serde)] #[protect(constant, replicated)])),
            (Role::Constant, Some(Place::Replicated), true)
        );
        assert_eq!(
            read(quote!(#[protect(nested, distributed)])),
            (Role::Nested, Some(Place::Distributed), false)
        );
        assert_eq!(read(quote!(#[other] #[protect(derived)])), (Role::Derived, None, false));
        assert_eq!(read(quote!(#[protect(skip)])), (Role::Skip, None, false));
    }
}
