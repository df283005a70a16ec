//! Dialect of a server: the request fields on which OpenAI-compatible servers differ. The initial dialect depends on
//! the host. A rejected field is changed, and the fields of a successful retry are remembered.

use url::{Host, Url};

/// Setting that is either detected automatically or fixed by the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AutoSetting<T> {
    Auto,
    Fixed(T),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenLimitField {
    MaxTokens,
    MaxCompletionTokens,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerDialect {
    pub token_field: TokenLimitField,
    pub reasoning_effort: Option<String>,
    pub streaming: StreamTrust,
    pub stream_options: bool,
    /// True if requests may contain a reply schema.
    pub reply_schema: bool,
    /// Fields that the operator set, or that were changed once. These fields are not changed again.
    fixed_fields: Vec<DialectField>,
}

/// Level of trust in a server's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamTrust {
    Trusted,
    /// One streamed response was flawed and was requested again without streaming.
    Doubted,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DialectField {
    Tokens,
    Effort,
    Stream,
    StreamOptions,
    ReplySchema,
}

/// Parameter and message from the error response of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ParameterError<'a> {
    pub param: &'a str,
    pub message: &'a str,
}

impl ServerDialect {
    pub fn from_host(
        base: &Url,
        effort: &AutoSetting<String>,
        token_field: &AutoSetting<TokenLimitField>,
    ) -> Self {
        let is_openai = base.host() == Some(Host::Domain("api.openai.com"));
        let mut fixed_fields = Vec::new();
        let reasoning_effort = match effort {
            AutoSetting::Fixed(effort) => {
                fixed_fields.push(DialectField::Effort);
                Some(effort.clone())
            }
            AutoSetting::Auto => is_openai.then(|| "none".to_owned()),
        };
        let token_field = match token_field {
            AutoSetting::Fixed(field) => {
                fixed_fields.push(DialectField::Tokens);
                *field
            }
            AutoSetting::Auto if is_openai => TokenLimitField::MaxCompletionTokens,
            AutoSetting::Auto => TokenLimitField::MaxTokens,
        };
        Self {
            token_field,
            reasoning_effort,
            streaming: StreamTrust::Trusted,
            stream_options: true,
            reply_schema: true,
            fixed_fields,
        }
    }

    /// Returns the dialect for a retry, or `None` if the error is not about a field of the dialect or the field is
    /// fixed.
    pub fn adapt_to(&self, parameter_error: ParameterError<'_>) -> Option<Self> {
        let field = parameter_error.dialect_field()?;
        if self.fixed_fields.contains(&field) {
            return None;
        }
        let mut next = self.clone();
        next.fixed_fields.push(field);
        match field {
            DialectField::Tokens => {
                next.token_field = match self.token_field {
                    TokenLimitField::MaxTokens => TokenLimitField::MaxCompletionTokens,
                    TokenLimitField::MaxCompletionTokens => TokenLimitField::MaxTokens,
                };
            }
            // Some models reject the field, others reject tools without it.
            DialectField::Effort => {
                next.reasoning_effort = match self.reasoning_effort {
                    Some(_) => None,
                    None => Some("none".to_owned()),
                };
            }
            DialectField::Stream => next.streaming = StreamTrust::Off,
            DialectField::StreamOptions => next.stream_options = false,
            DialectField::ReplySchema => next.reply_schema = false,
        }
        Some(next)
    }
}

impl StreamTrust {
    pub fn after_flaw(self) -> Self {
        match self {
            Self::Trusted => Self::Doubted,
            Self::Doubted | Self::Off => Self::Off,
        }
    }
}

impl ParameterError<'_> {
    fn dialect_field(self) -> Option<DialectField> {
        let by_param = match self.param {
            "max_tokens" | "max_completion_tokens" => Some(DialectField::Tokens),
            "reasoning_effort" | "reasoning" => Some(DialectField::Effort),
            "stream" => Some(DialectField::Stream),
            "stream_options" | "stream_options.include_usage" => Some(DialectField::StreamOptions),
            "response_format" | "response_format.type" | "response_format.json_schema" => {
                Some(DialectField::ReplySchema)
            }
            _ => None,
        };
        if by_param.is_some() {
            return by_param;
        }
        let message = self.message.to_ascii_lowercase();
        // Longer names come first, because "stream" is a substring of "stream_options".
        [
            (DialectField::ReplySchema, ["response_format", "json_schema", "structured output"].as_slice()),
            (DialectField::StreamOptions, &["stream_options", "include_usage"]),
            (DialectField::Effort, &["reasoning_effort", "reasoning effort"]),
            (DialectField::Tokens, &["max_completion_tokens", "max_tokens"]),
            (DialectField::Stream, &["'stream'", "\"stream\"", "`stream`", "streaming", "stream=true"]),
        ]
        .into_iter()
        .find(|(_, names)| names.iter().any(|name| message.contains(name)))
        .map(|(field, _)| field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn initial_dialect(base: &str) -> ServerDialect {
        ServerDialect::from_host(&Url::parse(base).unwrap(), &AutoSetting::Auto, &AutoSetting::Auto)
    }

    /// Checks the token field, effort, streaming and stream options after the parameter error. `None` means no retry.
    #[track_caller]
    fn check(
        dialect: &ServerDialect,
        param: &str,
        message: &str,
        expected: Option<(&str, Option<&str>, bool, bool)>,
    ) {
        let next = dialect.adapt_to(ParameterError { param, message });
        let sent = next.as_ref().map(|next| {
            let tokens = match next.token_field {
                TokenLimitField::MaxTokens => "max_tokens",
                TokenLimitField::MaxCompletionTokens => "max_completion_tokens",
            };
            let streams = next.streaming != StreamTrust::Off;
            (tokens, next.reasoning_effort.as_deref(), streams, next.stream_options)
        });
        assert_eq!(sent, expected, "{param}: {message}");
    }

    #[test]
    fn known_hosts_have_their_own_dialect() {
        let openai = initial_dialect("https://api.openai.com/v1");
        assert_eq!(
            (openai.token_field, openai.reasoning_effort.as_deref()),
            (TokenLimitField::MaxCompletionTokens, Some("none"))
        );
        for base in
            ["http://localhost:11434/v1", "https://openrouter.ai/api/v1", "https://api.openai.com.example/v1"]
        {
            let other = initial_dialect(base);
            assert_eq!(
                (other.token_field, other.reasoning_effort),
                (TokenLimitField::MaxTokens, None),
                "{base}"
            );
        }
    }

    #[test]
    fn rejected_field_is_changed() {
        let local = initial_dialect("http://localhost:8080/v1");
        let openai = initial_dialect("https://api.openai.com/v1");
        let completion = "max_completion_tokens";
        check(&local, "max_tokens", "Unsupported parameter", Some((completion, None, true, true)));
        check(&local, "", "Unsupported parameter: 'max_tokens'", Some((completion, None, true, true)));
        check(&openai, "max_completion_tokens", "", Some(("max_tokens", Some("none"), true, true)));
        check(&openai, "reasoning_effort", "Unsupported value: 'none'", Some((completion, None, true, true)));
        check(
            &local,
            "",
            "Function tools with reasoning_effort are not supported for this model",
            Some(("max_tokens", Some("none"), true, true)),
        );
        check(
            &local,
            "",
            "stream_options: Extra inputs are not permitted",
            Some(("max_tokens", None, true, false)),
        );
        check(&local, "stream", "Verify your organization", Some(("max_tokens", None, false, true)));
        check(
            &local,
            "",
            "Streaming is not supported by this model",
            Some(("max_tokens", None, false, true)),
        );
    }

    #[test]
    fn unrelated_errors_change_nothing() {
        let local = initial_dialect("http://localhost:8080/v1");
        for (param, message) in [("model", "no such model"), ("", "messages: too few items"), ("", "")] {
            check(&local, param, message, None);
        }
    }

    #[test]
    fn field_changes_once_and_never_if_configured() {
        let once = initial_dialect("http://localhost:8080/v1")
            .adapt_to(ParameterError { param: "max_tokens", message: "" })
            .unwrap();
        check(&once, "max_completion_tokens", "", None);
        let configured = ServerDialect::from_host(
            &Url::parse("https://api.openai.com/v1").unwrap(),
            &AutoSetting::Fixed("low".to_owned()),
            &AutoSetting::Fixed(TokenLimitField::MaxTokens),
        );
        check(&configured, "max_tokens", "", None);
        check(&configured, "reasoning_effort", "", None);
    }

    #[test]
    fn streaming_is_disabled_after_two_flaws() {
        let once = StreamTrust::Trusted.after_flaw();
        assert_eq!((once, once.after_flaw()), (StreamTrust::Doubted, StreamTrust::Off));
    }
}
