//! Dialect of a server: its choice among the request fields on which servers differ. A dialect starts from the known
//! behavior of the host and changes after refusals. The fields of a successful retry are remembered.

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
    /// Support of the server for a reply schema in requests.
    pub reply_schema: bool,
    /// Fields that were changed or set by the operator and must not be changed again.
    settled: Vec<DialectField>,
}

/// Level of trust in a server's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamTrust {
    Trusted,
    /// One streamed response was flawed and had to be requested again as a whole.
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

/// Error details that a server sent when it refused a request.
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
        let openai = base.host() == Some(Host::Domain("api.openai.com"));
        let mut settled = Vec::new();
        let reasoning_effort = match effort {
            AutoSetting::Fixed(effort) => {
                settled.push(DialectField::Effort);
                Some(effort.clone())
            }
            AutoSetting::Auto => openai.then(|| "none".to_owned()),
        };
        let token_field = match token_field {
            AutoSetting::Fixed(field) => {
                settled.push(DialectField::Tokens);
                *field
            }
            AutoSetting::Auto if openai => TokenLimitField::MaxCompletionTokens,
            AutoSetting::Auto => TokenLimitField::MaxTokens,
        };
        Self {
            token_field,
            reasoning_effort,
            streaming: StreamTrust::Trusted,
            stream_options: true,
            reply_schema: true,
            settled,
        }
    }

    /// Returns the dialect to use after a refusal, or `None` if the refusal has another cause or its field was already
    /// changed.
    pub fn adapt_to(&self, complaint: ParameterError<'_>) -> Option<Self> {
        let field = complaint.dialect_field()?;
        if self.settled.contains(&field) {
            return None;
        }
        let mut next = self.clone();
        next.settled.push(field);
        match field {
            DialectField::Tokens => {
                next.token_field = match self.token_field {
                    TokenLimitField::MaxTokens => TokenLimitField::MaxCompletionTokens,
                    TokenLimitField::MaxCompletionTokens => TokenLimitField::MaxTokens,
                };
            }
            // Some models refuse the field, others refuse tools without it.
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
        // The longer names come first, because "stream" is a part of "stream_options".
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

    fn start(base: &str) -> ServerDialect {
        ServerDialect::from_host(&Url::parse(base).unwrap(), &AutoSetting::Auto, &AutoSetting::Auto)
    }

    /// Checks the fields that are sent after the parameter error, or that nothing changes.
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
        let openai = start("https://api.openai.com/v1");
        assert_eq!(
            (openai.token_field, openai.reasoning_effort.as_deref()),
            (TokenLimitField::MaxCompletionTokens, Some("none"))
        );
        for base in
            ["http://localhost:11434/v1", "https://openrouter.ai/api/v1", "https://api.openai.com.example/v1"]
        {
            let other = start(base);
            assert_eq!(
                (other.token_field, other.reasoning_effort),
                (TokenLimitField::MaxTokens, None),
                "{base}"
            );
        }
    }

    #[test]
    fn refused_field_is_sent_differently() {
        let local = start("http://localhost:8080/v1");
        let openai = start("https://api.openai.com/v1");
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
    fn other_refusals_change_nothing() {
        let local = start("http://localhost:8080/v1");
        for (param, message) in [("model", "no such model"), ("", "messages: too few items"), ("", "")] {
            check(&local, param, message, None);
        }
    }

    #[test]
    fn field_changes_once_and_never_against_the_configuration() {
        let once = start("http://localhost:8080/v1")
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
