//! The attribute for an `impl` of `StreamingChannel`: it exports both interfaces, whose functions belong together.

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
    let whose = quote! { <#whose as ::holdfast_extension::StreamingChannel> };
    let answer = quote! { ::core::result::Result<(), ::holdfast_extension::Failure> };
    let text = quote! { ::std::string::String };
    quote! {
        #implementation
        const _: () = {
            use ::holdfast_extension::bindings::streaming_channel as module;
            use module::exports::holdfast::extension::streaming_channel as interface;
            struct Exported;
            impl interface::Guest for Exported {
                fn stream_start(user: #text, id: #text) -> #answer {
                    #whose::start(user, id)
                }
                fn stream_chunk(user: #text, id: #text, text: #text) -> #answer {
                    #whose::chunk(user, id, text)
                }
                fn stream_end(user: #text, id: #text, text: #text, delivery: interface::Delivery) -> #answer {
                    #whose::end(user, id, text, ::core::convert::Into::into(delivery))
                }
            }
            module::export_streaming_channel!(Exported with_types_in module);
            use ::holdfast_extension::bindings::streaming_status as other;
            impl other::exports::holdfast::extension::streaming_status::Guest for Exported {
                fn stream_status(user: #text, id: #text, status: #text) -> #answer {
                    #whose::status(user, id, status)
                }
            }
            other::export_streaming_status!(Exported with_types_in other);
        };
    }
}
