//! Attributes that export an interface with one function.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Error, ItemFn};

/// A hook's interface.
pub(crate) struct Hook {
    pub(crate) module: &'static str,
    pub(crate) function: &'static str,
    /// The parameters' names, separated by commas.
    pub(crate) parameters: &'static str,
}

/// Functions whose answer is not a result.
const PLAIN: &[&str] = &["health_check", "render_call", "render_result"];

pub(crate) fn expand(hook: &Hook, options: TokenStream, item: TokenStream) -> TokenStream {
    let function: ItemFn = match syn::parse2(item) {
        Ok(function) => function,
        Err(error) => return error.to_compile_error(),
    };
    if !options.is_empty() {
        let message =
            "it takes no options; priority, matcher and timeout stand in the manifest under `hooks`";
        return Error::new_spanned(options, message).to_compile_error();
    }
    let names: Vec<_> = hook.parameters.split(", ").filter(|name| !name.is_empty()).collect();
    if function.sig.inputs.len() != names.len() {
        let message = format!("this hook has {} parameters: ({})", names.len(), hook.parameters);
        return Error::new_spanned(&function.sig, message).to_compile_error();
    }
    let (module, export) = (format_ident!("{}", hook.module), format_ident!("export_{}", hook.module));
    let (method, name) = (format_ident!("{}", hook.function), &function.sig.ident);
    let names: Vec<_> = names.into_iter().map(|name| format_ident!("{name}")).collect();
    let types = parameter_types(hook);
    let (answer, call) = answer(hook, quote! { #name(#(::core::convert::Into::into(#names)),*) });
    quote! {
        #function
        const _: () = {
            use ::holdfast_extension::bindings::#module as module;
            struct Exported;
            impl module::exports::holdfast::extension::#module::Guest for Exported {
                fn #method(#(#names: #types),*) -> #answer {
                    #call
                }
            }
            module::#export!(Exported with_types_in module);
        };
    }
}

fn parameter_types(hook: &Hook) -> Vec<TokenStream> {
    let module = format_ident!("{}", hook.module);
    let of = |name: &str| match (hook.function, name) {
        ("on_event", _) => quote! { ::holdfast_extension::Event },
        (_, "delivery") => quote! { module::exports::holdfast::extension::#module::Delivery },
        ("send_question", "choices") => {
            quote! { ::std::vec::Vec<::holdfast_extension::Choice> }
        }
        ("send_question", _) => quote! { ::std::string::String },
        ("send_file", "user") => quote! { ::core::option::Option<::std::string::String> },
        ("send_file", "file") => quote! { ::holdfast_extension::File },
        ("send_to_user" | "send_message" | "execute_task", _) => quote! { ::std::string::String },
        ("turn_end", _) => quote! { ::core::option::Option<::holdfast_extension::Content> },
        (_, "call") => quote! { ::holdfast_extension::ToolCall },
        (_, "tool" | "arguments") => quote! { ::std::string::String },
        _ => quote! { ::holdfast_extension::Content },
    };
    hook.parameters.split(", ").filter(|name| !name.is_empty()).map(of).collect()
}

/// The answer's type and the expression that makes it.
fn answer(hook: &Hook, call: TokenStream) -> (TokenStream, TokenStream) {
    let option = |inner: TokenStream| quote! { ::core::option::Option<#inner> };
    let ok = match hook.function {
        "health_check" => quote! { bool },
        "render_call" | "render_result" | "get_context" | "compaction_provide" => {
            option(quote! { ::std::string::String })
        }
        "input_normalise" | "response_process" | "execute_task" => {
            option(quote! { ::holdfast_extension::Content })
        }
        "model_route" => option(quote! { ::holdfast_extension::Route }),
        "tool_modify" => option(quote! { ::holdfast_extension::Modification }),
        "tool_after" => option(quote! { ::holdfast_extension::Enrichment }),
        "compaction_before" => option(quote! { ::holdfast_extension::Plan }),
        "tool_gate" => quote! { ::holdfast_extension::Decision },
        name if name.starts_with("sanitize_") => quote! { ::holdfast_extension::Sanitized },
        name if name.starts_with("guard_") => quote! { ::holdfast_extension::Verdict },
        _ => quote! { () },
    };
    if PLAIN.contains(&hook.function) {
        return (ok, call);
    }
    (
        quote! { ::core::result::Result<#ok, ::holdfast_extension::Failure> },
        quote! { ::holdfast_extension::Outcome::<#ok>::outcome(#call) },
    )
}
