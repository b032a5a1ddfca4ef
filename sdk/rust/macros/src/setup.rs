//! The attribute for an `impl` of `Setup`: it exports the interface, whose functions belong together.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, ItemImpl};

pub(crate) fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    let implementation: ItemImpl = match syn::parse2(item) {
        Ok(implementation) => implementation,
        Err(error) => return error.to_compile_error(),
    };
    if !options.is_empty() {
        return Error::new_spanned(options, "it takes no options").to_compile_error();
    }
    let whose = &implementation.self_ty;
    quote! {
        #implementation
        const _: () = {
            use ::holdfast_extension::bindings::setup as module;
            struct Exported;
            impl module::exports::holdfast::extension::setup::Guest for Exported {
                fn schema() -> ::std::string::String {
                    ::std::string::ToString::to_string(&<#whose as ::holdfast_extension::Setup>::schema())
                }
                fn apply(
                    values: ::std::string::String,
                ) -> ::core::result::Result<(), ::holdfast_extension::Failure> {
                    <#whose as ::holdfast_extension::Setup>::apply(::holdfast_extension::private::json(&values)?)
                }
                fn complete() -> ::core::result::Result<::std::string::String, ::holdfast_extension::Failure> {
                    <#whose as ::holdfast_extension::Setup>::complete()
                }
            }
            module::export_setup!(Exported with_types_in module);
        };
    }
}
