//! Attributes that submit a function to a list: tools, commands, methods. And the agent, which there is one of.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, ItemFn, Lit, LitInt, LitStr, Meta, MetaNameValue, Pat, Token,
};

/// What a function is submitted as.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Role {
    Tool,
    Command,
    Method,
}

#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    id: Option<LitStr>,
    description: Option<LitStr>,
    effects: Option<LitStr>,
    integration: Option<LitStr>,
    timeout_ms: Option<LitInt>,
}

pub(crate) fn expand(role: Role, options: TokenStream, item: TokenStream) -> TokenStream {
    try_expand(role, options, item).unwrap_or_else(|error| error.to_compile_error())
}

fn try_expand(role: Role, options: TokenStream, item: TokenStream) -> Result<TokenStream, Error> {
    let allowed: &[&str] = match role {
        Role::Tool => &["name", "description", "effects", "timeout_ms"],
        Role::Command | Role::Method => &["name", "description"],
    };
    let options = read_options(options, allowed)?;
    let mut function: ItemFn = syn::parse2(item)?;
    let parameters = parameters(&mut function)?;
    let ident = function.sig.ident.clone();
    let name = options.name.as_ref().map_or_else(|| ident.to_string(), LitStr::value);
    let description = options.description.as_ref().map_or_else(|| doc(&function.attrs), LitStr::value);
    if description.is_empty() {
        return Err(Error::new_spanned(&ident, "say what it does: a doc comment, or `description = \"…\"`"));
    }
    let entry = match role {
        Role::Tool => tool(&ident, &name, &description, &options, &parameters, &function)?,
        Role::Command if parameters.len() != 1 => {
            return Err(Error::new_spanned(
                &function.sig,
                "a command has one parameter: the rest of the line",
            ));
        }
        Role::Command => quote! { ::holdfast_extension::private::Command {
            name: #name, description: #description,
            run: |line| ::holdfast_extension::Answer::content(#ident(::core::convert::Into::into(line))),
        } },
        Role::Method => {
            let call = call(&ident, &parameters);
            quote! { ::holdfast_extension::private::Method { name: #name, description: #description, call: #call } }
        }
    };
    Ok(quote! {
        #function
        ::holdfast_extension::private::inventory::submit! { #entry }
    })
}

struct Parameter {
    name: String,
    description: String,
    kind: syn::Type,
}

/// The parameters. Their doc comments are taken off: the compiler allows none there.
fn parameters(function: &mut ItemFn) -> Result<Vec<Parameter>, Error> {
    let mut found = Vec::new();
    for input in &mut function.sig.inputs {
        let FnArg::Typed(input) = input else {
            return Err(Error::new_spanned(input, "it must be a free function"));
        };
        let Pat::Ident(pattern) = &*input.pat else {
            return Err(Error::new_spanned(&input.pat, "a parameter needs a name"));
        };
        let description = doc(&input.attrs);
        input.attrs.retain(|attribute| !attribute.path().is_ident("doc"));
        let name = pattern.ident.to_string().trim_start_matches("r#").to_owned();
        found.push(Parameter { name, description, kind: (*input.ty).clone() });
    }
    Ok(found)
}

fn tool(
    ident: &syn::Ident,
    name: &str,
    description: &str,
    options: &Options,
    parameters: &[Parameter],
    function: &ItemFn,
) -> Result<TokenStream, Error> {
    let effects = effects(options)?;
    let timeout = match &options.timeout_ms {
        Some(timeout) => quote! { ::core::option::Option::Some(#timeout) },
        None => quote! { ::core::option::Option::None },
    };
    let names = parameters.iter().map(|parameter| &parameter.name);
    let kinds = parameters.iter().map(|parameter| &parameter.kind);
    let texts = parameters.iter().map(|parameter| &parameter.description);
    let call = call(ident, parameters);
    let output = match &function.sig.output {
        syn::ReturnType::Default => quote! { () },
        syn::ReturnType::Type(_, kind) => quote! { #kind },
    };
    Ok(quote! { ::holdfast_extension::private::Tool {
        name: #name,
        description: #description,
        effects: ::holdfast_extension::Effects::#effects,
        timeout_ms: #timeout,
        input_schema: || <::holdfast_extension::private::Object as ::core::default::Default>::default()
            #(.field::<#kinds>(#names, #texts))*.schema(),
        output_schema: || <#output as ::holdfast_extension::Answer>::schema(),
        call: #call,
    } })
}

/// A closure from JSON to the function's answer.
fn call(ident: &syn::Ident, parameters: &[Parameter]) -> TokenStream {
    let names = parameters.iter().map(|parameter| &parameter.name);
    let kinds = parameters.iter().map(|parameter| &parameter.kind);
    quote! {
        |mut arguments| {
            let _unused = &mut arguments;
            ::holdfast_extension::Answer::content(#ident(
                #(::holdfast_extension::private::take::<#kinds>(&mut arguments, #names)?),*
            ))
        }
    }
}

fn effects(options: &Options) -> Result<syn::Ident, Error> {
    let Some(effects) = &options.effects else { return Ok(format_ident!("Unknown")) };
    let name = match effects.value().as_str() {
        "unknown" => "Unknown",
        "pure" => "Pure",
        "read" => "Read",
        "write" => "Write",
        "exec" => "Exec",
        "network" => "Network",
        _ => {
            return Err(Error::new_spanned(effects, "one of unknown, pure, read, write, exec, network"));
        }
    };
    Ok(format_ident!("{name}"))
}

pub(crate) fn agent(options: TokenStream, item: TokenStream) -> TokenStream {
    try_agent(options, item).unwrap_or_else(|error| error.to_compile_error())
}

fn try_agent(options: TokenStream, item: TokenStream) -> Result<TokenStream, Error> {
    let options = read_options(options, &["id", "description", "integration"])?;
    let function: ItemFn = syn::parse2(item)?;
    let ident = &function.sig.ident;
    let id = options.id.as_ref().map_or_else(|| ident.to_string(), LitStr::value);
    let description = options.description.as_ref().map_or_else(|| doc(&function.attrs), LitStr::value);
    let integration = match options.integration.as_ref().map(LitStr::value).as_deref() {
        None | Some("tool") => format_ident!("Tool"),
        Some("handoff") => format_ident!("Handoff"),
        Some(_) => return Err(Error::new_spanned(options.integration, "`tool` or `handoff`")),
    };
    Ok(quote! {
        #function
        const _: () = {
            use ::holdfast_extension::bindings::agent as module;
            use module::exports::holdfast::extension::agent::{AgentSpec, Guest};
            struct Exported;
            impl Guest for Exported {
                fn descriptor() -> AgentSpec {
                    AgentSpec {
                        id: #id.into(),
                        description: #description.into(),
                        integration: ::holdfast_extension::Integration::#integration,
                    }
                }
                fn invoke(
                    task: ::std::string::String,
                ) -> ::core::result::Result<::holdfast_extension::Content, ::holdfast_extension::Failure> {
                    ::holdfast_extension::Answer::content(#ident(task))
                }
            }
            module::export_agent!(Exported with_types_in module);
        };
    })
}

fn read_options(options: TokenStream, allowed: &[&str]) -> Result<Options, Error> {
    let mut read = Options::default();
    for option in Punctuated::<MetaNameValue, Token![,]>::parse_terminated.parse2(options)? {
        let name = option.path.get_ident().map(ToString::to_string).unwrap_or_default();
        let Expr::Lit(ExprLit { lit, .. }) = &option.value else {
            return Err(Error::new_spanned(&option.value, "a literal is needed"));
        };
        if !allowed.contains(&name.as_str()) {
            return Err(Error::new_spanned(&option.path, format!("the options are {}", allowed.join(", "))));
        }
        match (name.as_str(), lit) {
            ("timeout_ms", Lit::Int(number)) => read.timeout_ms = Some(number.clone()),
            ("name", Lit::Str(text)) => read.name = Some(text.clone()),
            ("id", Lit::Str(text)) => read.id = Some(text.clone()),
            ("description", Lit::Str(text)) => read.description = Some(text.clone()),
            ("effects", Lit::Str(text)) => read.effects = Some(text.clone()),
            ("integration", Lit::Str(text)) => read.integration = Some(text.clone()),
            _ => return Err(Error::new_spanned(&option.value, "another kind of value is needed")),
        }
    }
    Ok(read)
}

/// Doc comments as one text.
pub(crate) fn doc(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(MetaNameValue {
            path,
            value: Expr::Lit(ExprLit { lit: Lit::Str(text), .. }),
            ..
        }) if path.is_ident("doc") => Some(text.value().trim().to_owned()),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}
