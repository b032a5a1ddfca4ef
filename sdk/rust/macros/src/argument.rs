//! `#[derive(Argument)]`: a struct becomes an object, an enum without fields a choice of words.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields};

use crate::functions::doc;

pub(crate) fn expand(item: TokenStream) -> TokenStream {
    let item: DeriveInput = match syn::parse2(item) {
        Ok(item) => item,
        Err(error) => return error.to_compile_error(),
    };
    let name = &item.ident;
    let body = match &item.data {
        Data::Struct(data) => of_struct(&data.fields),
        Data::Enum(data) => of_enum(data),
        Data::Union(_) => Err(Error::new_spanned(name, "a struct or an enum is needed")),
    };
    match body {
        Ok(body) => quote! { impl ::holdfast_extension::Argument for #name { #body } },
        Err(error) => error.to_compile_error(),
    }
}

fn of_struct(fields: &Fields) -> Result<TokenStream, Error> {
    let Fields::Named(fields) = fields else {
        return Err(Error::new_spanned(fields, "the fields need names"));
    };
    let idents: Vec<_> = fields.named.iter().filter_map(|field| field.ident.as_ref()).collect();
    let names: Vec<_> =
        idents.iter().map(|ident| ident.to_string().trim_start_matches("r#").to_owned()).collect();
    let kinds: Vec<_> = fields.named.iter().map(|field| &field.ty).collect();
    let texts = fields.named.iter().map(|field| doc(&field.attrs));
    Ok(quote! {
        fn schema() -> ::holdfast_extension::Value {
            <::holdfast_extension::private::Object as ::core::default::Default>::default()
                #(.field::<#kinds>(#names, #texts))*.schema()
        }
        fn read(
            mut value: ::holdfast_extension::Value,
        ) -> ::core::result::Result<Self, ::std::string::String> {
            let wrong = |failure| match failure {
                ::holdfast_extension::Failure::InvalidArguments(text)
                | ::holdfast_extension::Failure::Denied(text)
                | ::holdfast_extension::Failure::NotFound(text)
                | ::holdfast_extension::Failure::Failed(text) => text,
            };
            ::core::result::Result::Ok(Self {
                #(#idents: ::holdfast_extension::private::take::<#kinds>(&mut value, #names).map_err(wrong)?,)*
            })
        }
    })
}

fn of_enum(data: &syn::DataEnum) -> Result<TokenStream, Error> {
    if let Some(variant) = data.variants.iter().find(|variant| !variant.fields.is_empty()) {
        return Err(Error::new_spanned(variant, "a choice has no fields"));
    }
    let idents: Vec<_> = data.variants.iter().map(|variant| &variant.ident).collect();
    let words: Vec<_> = idents.iter().map(|ident| snake(&ident.to_string())).collect();
    let list = words.join(", ");
    Ok(quote! {
        fn schema() -> ::holdfast_extension::Value {
            ::holdfast_extension::json!({ "type": "string", "enum": [#(#words),*] })
        }
        fn read(
            value: ::holdfast_extension::Value,
        ) -> ::core::result::Result<Self, ::std::string::String> {
            match value.as_str() {
                #(::core::option::Option::Some(#words) => ::core::result::Result::Ok(Self::#idents),)*
                _ => ::core::result::Result::Err(::std::format!("it must be one of {}", #list)),
            }
        }
    })
}

/// `CamelCase` as `snake_case`.
fn snake(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}
