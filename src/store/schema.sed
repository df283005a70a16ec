# Column types that `diesel print-schema` cannot know: see diesel.toml.

# SQLite's INTEGER holds 64 bits; diesel takes it for 32.
s/Integer/BigInt/g
s/^diesel::table! {$/&\n    use crate::store::column_types::*;\n/

/^    users (/,/^    }/ {
  s/ status -> Text/ status -> UserStatus/
  s/ role -> Text/ role -> UserRole/
  s/\( can_[a-z0-9]* ->\| notify ->\| test ->\) BigInt/\1 Bool/
}

/^    inbound_events (/,/^    }/ {
  s/ channel -> Text/ channel -> Channel/
  s/ via -> Text/ via -> MessageSource/
  s/ state -> Text/ state -> InboundState/
  s/ outcome -> Nullable<Text>/ outcome -> Nullable<InboundOutcome>/
  s/ authority -> Text/ authority -> FieldAuthority/
  s/\( over_limit ->\| wants_answer ->\| addressed ->\) BigInt/\1 Bool/
}
/^    rooms (/,/^    }/ {
  s/ mode -> Text/ mode -> RoomMode/
  s/ remembers -> BigInt/ remembers -> Bool/
}
/^    outbox (/,/^    }/ {
  s/ kind -> Text/ kind -> OutboundKind/
  s/ state -> Text/ state -> OutboxState/
  s/ delivery -> Nullable<Text>/ delivery -> Nullable<DeliveryStatus>/
}

/^    follows (/,/^    }/ {
  s/ kind -> Text/ kind -> MediaKind/
  s/ explicit -> BigInt/ explicit -> Bool/
}
/^    requests (/,/^    }/ {
  s/ kind -> Text/ kind -> MediaKind/
  s/ state -> Text/ state -> RequestState/
  s/ seerr_state -> Nullable<Text>/ seerr_state -> Nullable<SeerrState>/
}
/^    digest_lines (/,/^    }/ s/ kind -> Text/ kind -> DigestLineKind/
/^    title_attributions (/,/^    }/ s/ kind -> Text/ kind -> MediaKind/
/^    kept_titles (/,/^    }/ s/ kind -> Text/ kind -> MediaKind/
/^    space_proposals (/,/^    }/ {
  s/ silence -> Text/ silence -> SilenceRule/
  s/ phase -> Text/ phase -> ProposalPhase/
}
/^    space_proposal_titles (/,/^    }/ {
  s/ kind -> Text/ kind -> MediaKind/
  s/ reason -> Text/ reason -> GoReason/
  s/ state -> Text/ state -> ProposedTitleState/
}
/^    space_proposal_answers (/,/^    }/ s/ answer -> Nullable<Text>/ answer -> Nullable<ProposalAnswer>/
/^    additions (/,/^    }/ s/ kind -> Text/ kind -> QuotaKind/
/^    alerts (/,/^    }/ {
  s/ kind -> Text/ kind -> AlertKind/
  s/ target -> Text/ target -> AlertTarget/
  s/ state -> Text/ state -> AlertState/
}
/^    agent_calls (/,/^    }/ {
  s/ effect -> Text/ effect -> EffectLevel/
  s/ dropped -> Nullable<Text>/ dropped -> Nullable<DropReason>/
}
/^    api_keys (/,/^    }/ s/ scope -> Text/ scope -> KeyScope/
/^    approvals (/,/^    }/ {
  s/ kind -> Text/ kind -> StoredApprovalKind/
  s/ item_kind -> Nullable<Text>/ item_kind -> Nullable<MediaKind>/
  s/ state -> Text/ state -> ApprovalState/
}
/^    conversations (/,/^    }/ s/ end_reason -> Nullable<Text>/ end_reason -> Nullable<EndReason>/
/^    reactions (/,/^    }/ s/ author -> Text/ author -> ReactionAuthor/
/^    user_facts (/,/^    }/ {
  s/ kind -> Text/ kind -> FactKind/
  s/ state -> Text/ state -> FactState/
  s/ source -> Text/ source -> StoredFactSource/
}
/^    agent_responses (/,/^    }/ {
  s/ scope -> Text/ scope -> RecallScope/
  s/ response_type -> Nullable<Text>/ response_type -> Nullable<ResponseType>/
  s/ extracted_by -> Nullable<Text>/ extracted_by -> Nullable<AnnotationSource>/
  s/ for_everyone -> Text/ for_everyone -> SharingState/
  s/ state -> Text/ state -> AnswerState/
}

/^    turns (/,/^    }/ {
  s/ kind -> Text/ kind -> TurnKind/
  s/ state -> Text/ state -> StreamTurnState/
  s/ triage -> Nullable<Text>/ triage -> Nullable<TriageState>/
  s/ about_viewing -> BigInt/ about_viewing -> Bool/
}
/^    viewer_accounts (/,/^    }/ s/ server -> Text/ server -> MediaServerKind/
/^    tool_call_items (/,/^    }/ {
  s/ kind -> Text/ kind -> MediaKind/
  s/ state -> Text/ state -> DeletionItemPhase/
  s/ delete_files -> BigInt/ delete_files -> Bool/
}

/^    llm_steps (/,/^    }/ {
  s/ state -> Text/ state -> AttemptState/
  s/ brain -> Text/ brain -> Responder/
}
/^    blocks (/,/^    }/ s/ type_ -> Text/ type_ -> BlockKind/
/^    tool_calls (/,/^    }/ {
  s/ effect -> Text/ effect -> EffectLevel/
  s/ state -> Text/ state -> CallPhase/
  s/ reconciled -> BigInt/ reconciled -> Bool/
}

# Times end with `_at`, with few exceptions.
s/\( [a-z_]*_at\| at\| not_before\| read_until\| waiting_since\) -> BigInt/\1 -> Timestamp/
s/\( [a-z_]*_at\| waiting_since\) -> Nullable<BigInt>/\1 -> Nullable<Timestamp>/
