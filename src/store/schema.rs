// @generated automatically by Diesel CLI.

diesel::table! {
    use crate::store::column_types::*;

    additions (id) {
        id -> BigInt,
        user_id -> BigInt,
        kind -> QuotaKind,
        amount -> BigInt,
        tool_call_id -> Nullable<BigInt>,
        at -> Timestamp,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    agent_calls (id) {
        id -> BigInt,
        ticket -> Text,
        key_id -> BigInt,
        user_id -> BigInt,
        client -> Text,
        tool -> Text,
        arguments -> Text,
        effect -> EffectLevel,
        created_at -> Timestamp,
        turn_id -> Nullable<BigInt>,
        tool_call_id -> Nullable<BigInt>,
        asked_at -> Nullable<Timestamp>,
        dropped -> Nullable<DropReason>,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    agent_responses (id) {
        id -> BigInt,
        turn_id -> Nullable<BigInt>,
        source -> Text,
        scope -> RecallScope,
        owner -> Text,
        user_id -> Nullable<BigInt>,
        group_id -> Nullable<BigInt>,
        agent -> Text,
        trigger_text -> Text,
        response_text -> Text,
        summary -> Text,
        topics -> Text,
        keywords -> Text,
        response_type -> Nullable<ResponseType>,
        importance -> Float,
        extracted_by -> Nullable<AnnotationSource>,
        for_everyone -> SharingState,
        times -> BigInt,
        likeness -> BigInt,
        state -> AnswerState,
        attempts -> BigInt,
        not_before -> Timestamp,
        embed_model -> Nullable<Text>,
        embed_attempts -> BigInt,
        embed_failed_by -> Nullable<Text>,
        revision -> BigInt,
        created_at -> Timestamp,
        processed_at -> Nullable<Timestamp>,
        trigger_vec -> Nullable<Binary>,
        response_vec -> Nullable<Binary>,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    alerts (id) {
        id -> BigInt,
        kind -> AlertKind,
        target -> AlertTarget,
        body -> Text,
        state -> AlertState,
        attempts -> BigInt,
        due_at -> Timestamp,
        created_at -> Timestamp,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    api_keys (id) {
        id -> BigInt,
        name -> Text,
        key_hash -> Binary,
        ending -> Text,
        created_at -> Timestamp,
        last_used_at -> Nullable<Timestamp>,
        revoked_at -> Nullable<Timestamp>,
        scope -> KeyScope,
        user_id -> Nullable<BigInt>,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    approvals (id) {
        id -> BigInt,
        kind -> StoredApprovalKind,
        user_id -> BigInt,
        code -> Text,
        misses -> BigInt,
        tool_call_id -> Nullable<BigInt>,
        instance -> Nullable<Text>,
        item_kind -> Nullable<MediaKind>,
        item_id -> Nullable<BigInt>,
        fingerprint -> Nullable<Text>,
        state -> ApprovalState,
        run_call_id -> Nullable<BigInt>,
        created_at -> Timestamp,
        expires_at -> Timestamp,
        settled_at -> Nullable<Timestamp>,
        settled_by -> Nullable<BigInt>,
        account_id -> Nullable<Text>,
        account_name -> Nullable<Text>,
        title -> Nullable<Text>,
        passed_on_at -> Nullable<Timestamp>,
        wanted -> Nullable<Text>,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    approved_titles (user_id, kind, catalog_id) {
        user_id -> BigInt,
        kind -> MediaKind,
        catalog_id -> BigInt,
        approved_at -> Timestamp,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    arr_cursors (instance) {
        instance -> Text,
        read_until -> Timestamp,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    arr_events (id) {
        id -> BigInt,
        instance -> Text,
        matter -> Text,
        event -> Text,
        received_at -> Timestamp,
        handled_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    audit_log (id) {
        id -> BigInt,
        at -> Timestamp,
        epoch -> BigInt,
        user_id -> Nullable<BigInt>,
        kind -> Text,
        subject -> Text,
        detail -> Text,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    ballots (id) {
        id -> BigInt,
        vote_id -> BigInt,
        user_id -> Nullable<BigInt>,
        guest -> Nullable<Text>,
        choice -> Nullable<BigInt>,
        update_id -> Nullable<BigInt>,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    blocks (turn_id, idx) {
        turn_id -> BigInt,
        idx -> BigInt,
        step -> BigInt,
        attempt -> BigInt,
        #[sql_name = "type"]
        type_ -> BlockKind,
        content -> Text,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    budget_blocks (day, epoch) {
        day -> Text,
        epoch -> BigInt,
        tokens -> BigInt,
        cost_micros -> BigInt,
        boot_id -> Nullable<Text>,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    connection_history (name) {
        name -> Text,
        last_quarter -> BigInt,
        states -> Text,
        loss_reported -> Bool,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    console_password (id) {
        id -> BigInt,
        hash -> Text,
        changed_at -> Timestamp,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    conversations (id) {
        id -> BigInt,
        user_id -> BigInt,
        name -> Text,
        started_at -> Timestamp,
        last_activity_at -> Timestamp,
        ended_at -> Nullable<Timestamp>,
        end_reason -> Nullable<EndReason>,
        agent_key_id -> Nullable<BigInt>,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    digest_lines (outbox_id, number) {
        outbox_id -> BigInt,
        number -> BigInt,
        kind -> DigestLineKind,
        reference -> BigInt,
        title -> Text,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    digest_settings (user_id) {
        user_id -> BigInt,
        weekday -> BigInt,
        hour -> BigInt,
        set_at -> Timestamp,
        last_due_at -> Nullable<Timestamp>,
        preview_event -> Nullable<BigInt>,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    follows (id) {
        id -> BigInt,
        user_id -> BigInt,
        instance -> Text,
        kind -> MediaKind,
        catalog_id -> BigInt,
        season -> Nullable<BigInt>,
        created_at -> Timestamp,
        ended_at -> Nullable<Timestamp>,
        explicit -> Bool,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    inbound_events (id) {
        id -> BigInt,
        channel -> Channel,
        external_id -> Text,
        user_id -> BigInt,
        to_addr -> Text,
        body -> Text,
        media -> Nullable<Text>,
        provider_at -> Timestamp,
        received_at -> Timestamp,
        via -> MessageSource,
        state -> InboundState,
        outcome -> Nullable<InboundOutcome>,
        outcome_reason -> Nullable<Text>,
        attempts -> BigInt,
        not_before -> Timestamp,
        turn_id -> Nullable<BigInt>,
        updated_at -> Timestamp,
        carrier_word -> Nullable<Text>,
        over_limit -> Bool,
        wants_answer -> Bool,
        conversation_id -> Nullable<BigInt>,
        authority -> FieldAuthority,
        address_id -> Nullable<BigInt>,
        pressed_message -> Nullable<BigInt>,
        room_id -> Nullable<BigInt>,
        addressed -> Bool,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    instance (id) {
        id -> BigInt,
        epoch -> BigInt,
        started_at -> Timestamp,
        clean_shutdown_at -> Nullable<Timestamp>,
        seen_at -> Nullable<Timestamp>,
        counted_start_at -> Nullable<Timestamp>,
        reserved_events -> BigInt,
        command_changes -> BigInt,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    kept_titles (kind, catalog_id, user_id) {
        kind -> MediaKind,
        catalog_id -> BigInt,
        user_id -> BigInt,
        title -> Text,
        year -> BigInt,
        kept_at -> Timestamp,
        kept_until_at -> Timestamp,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    library_samples (slot, identity, library_id) {
        slot -> Text,
        identity -> Text,
        library_id -> BigInt,
        catalog_id -> BigInt,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    invitations (id) {
        id -> BigInt,
        code_hash -> Text,
        name -> Text,
        invited_by -> Nullable<BigInt>,
        created_at -> Timestamp,
        expires_at -> Timestamp,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    link_codes (id) {
        id -> BigInt,
        user_id -> Nullable<BigInt>,
        code -> Text,
        new_address_id -> Nullable<BigInt>,
        misses -> BigInt,
        created_at -> Timestamp,
        expires_at -> Timestamp,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    llm_steps (turn_id, step, attempt) {
        turn_id -> BigInt,
        step -> BigInt,
        attempt -> BigInt,
        state -> AttemptState,
        epoch -> BigInt,
        brain -> Responder,
        model -> Text,
        provider_response_id -> Nullable<Text>,
        finish_reason -> Nullable<Text>,
        tokens_in -> Nullable<BigInt>,
        tokens_out -> Nullable<BigInt>,
        error -> Nullable<Text>,
        started_at -> Timestamp,
        finished_at -> Nullable<Timestamp>,
        tokens_cached -> Nullable<BigInt>,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    memory_group_members (user_id, group_id) {
        user_id -> BigInt,
        group_id -> BigInt,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    memory_groups (id) {
        id -> BigInt,
        members -> Text,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    notices (id) {
        id -> BigInt,
        user_id -> BigInt,
        matter -> Text,
        outbox_id -> Nullable<BigInt>,
        words -> Nullable<Text>,
        created_at -> Timestamp,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    offsets (source) {
        source -> Text,
        cursor_at -> Timestamp,
        updated_at -> Timestamp,
        mark -> Text,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    outbox (id) {
        id -> BigInt,
        dedupe_key -> Text,
        user_id -> BigInt,
        turn_id -> Nullable<BigInt>,
        kind -> OutboundKind,
        to_addr -> Text,
        from_addr -> Text,
        body -> Text,
        segments -> BigInt,
        state -> OutboxState,
        attempts -> BigInt,
        looks -> BigInt,
        attempt_at -> Nullable<Timestamp>,
        unknown_at -> Nullable<Timestamp>,
        deadline_at -> Timestamp,
        not_before -> Timestamp,
        provider_sid -> Nullable<Text>,
        provider_created_at -> Nullable<Timestamp>,
        delivery -> Nullable<DeliveryStatus>,
        error -> Nullable<Text>,
        epoch -> Nullable<BigInt>,
        created_at -> Timestamp,
        updated_at -> Timestamp,
        accepted_at -> Nullable<Timestamp>,
        media_url -> Nullable<Text>,
        conversation_id -> Nullable<BigInt>,
        callback_word -> Nullable<Text>,
        lookups_left -> BigInt,
        address_id -> Nullable<BigInt>,
        reacts_to -> Nullable<Text>,
        room_id -> Nullable<BigInt>,
        quotes -> Nullable<Text>,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    pauses (id) {
        id -> BigInt,
        begun_at -> Timestamp,
        begun_by -> BigInt,
        ended_at -> Nullable<Timestamp>,
        ended_by -> Nullable<BigInt>,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    pending_actions (id) {
        id -> BigInt,
        user_id -> BigInt,
        tool_call_id -> BigInt,
        conversation_id -> BigInt,
        summary -> Text,
        code -> Nullable<Text>,
        repeats -> BigInt,
        prompt_outbox_id -> BigInt,
        created_at -> Timestamp,
        armed_at -> Nullable<Timestamp>,
        expires_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    reactions (id) {
        id -> BigInt,
        user_id -> BigInt,
        author -> ReactionAuthor,
        event_id -> Nullable<BigInt>,
        outbox_id -> Nullable<BigInt>,
        said_in -> Nullable<BigInt>,
        emoji -> Nullable<Text>,
        created_at -> Timestamp,
        removed_at -> Nullable<Timestamp>,
        update_id -> Nullable<BigInt>,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    requests (id) {
        id -> BigInt,
        user_id -> BigInt,
        tool_call_id -> Nullable<BigInt>,
        instance -> Text,
        kind -> MediaKind,
        catalog_id -> BigInt,
        title -> Text,
        year -> BigInt,
        seasons -> Nullable<Text>,
        state -> RequestState,
        arguments -> Nullable<Text>,
        tries -> BigInt,
        next_try_at -> Nullable<Timestamp>,
        created_at -> Timestamp,
        settled_at -> Nullable<Timestamp>,
        seerr_request -> Nullable<BigInt>,
        seerr_state -> Nullable<SeerrState>,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    rooms (id) {
        id -> BigInt,
        mode -> RoomMode,
        remembers -> Bool,
        group_id -> BigInt,
        created_at -> Timestamp,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    service_identities (slot) {
        slot -> Text,
        identity -> Text,
        moved_after_turn -> BigInt,
        changed_at -> Timestamp,
        earlier_identity -> Nullable<Text>,
        earlier_moved_after_turn -> BigInt,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    sessions (token_hash) {
        token_hash -> Binary,
        created_at -> Timestamp,
        last_seen_at -> Timestamp,
        expires_at -> Timestamp,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    settings (name) {
        name -> Text,
        value -> Nullable<Text>,
        secret_version -> Nullable<BigInt>,
        version -> BigInt,
        changed_at -> Timestamp,
        changed_by -> Text,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    sign_in_links (token_hash) {
        token_hash -> Binary,
        created_at -> Timestamp,
        expires_at -> Timestamp,
        used_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    space_proposal_answers (proposal_id, number, user_id) {
        proposal_id -> BigInt,
        number -> BigInt,
        user_id -> BigInt,
        position -> Nullable<BigInt>,
        answer -> Nullable<ProposalAnswer>,
        answered_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    space_proposal_titles (proposal_id, number) {
        proposal_id -> BigInt,
        number -> BigInt,
        instance -> Text,
        kind -> MediaKind,
        item_id -> BigInt,
        catalog_id -> BigInt,
        title -> Text,
        year -> BigInt,
        size_bytes -> BigInt,
        reason -> GoReason,
        last_played_at -> Nullable<Timestamp>,
        state -> ProposedTitleState,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    space_proposals (id) {
        id -> BigInt,
        user_id -> Nullable<BigInt>,
        silence -> SilenceRule,
        phase -> ProposalPhase,
        opened_at -> Timestamp,
        answers_end_at -> Timestamp,
        review_ends_at -> Nullable<Timestamp>,
        closed_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    sweeps (name) {
        name -> Text,
        last_id -> BigInt,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    text_indexes (name) {
        name -> Text,
        indexed_up_to -> BigInt,
        rebuild_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    title_attributions (user_id, instance, kind, catalog_id) {
        user_id -> BigInt,
        instance -> Text,
        kind -> MediaKind,
        catalog_id -> BigInt,
        first_requested_at -> Timestamp,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    tool_call_items (tool_call_id, ord) {
        tool_call_id -> BigInt,
        ord -> BigInt,
        instance -> Text,
        kind -> MediaKind,
        item_id -> BigInt,
        delete_files -> Bool,
        fingerprint -> Text,
        state -> DeletionItemPhase,
        result -> Nullable<Text>,
        attempts -> BigInt,
        started_at -> Nullable<Timestamp>,
        extent -> Nullable<Text>,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    tool_calls (id) {
        id -> BigInt,
        turn_id -> BigInt,
        step -> BigInt,
        ord -> BigInt,
        call_id -> Text,
        tool_name -> Text,
        effect -> EffectLevel,
        state -> CallPhase,
        attempts -> BigInt,
        request -> Text,
        response -> Nullable<Text>,
        error -> Nullable<Text>,
        reconciled -> Bool,
        run_turn_id -> Nullable<BigInt>,
        confirmed_by -> Nullable<BigInt>,
        epoch -> Nullable<BigInt>,
        created_at -> Timestamp,
        started_at -> Nullable<Timestamp>,
        unknown_at -> Nullable<Timestamp>,
        updated_at -> Timestamp,
        finished_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    turns (id) {
        id -> BigInt,
        user_id -> BigInt,
        conversation_id -> BigInt,
        kind -> TurnKind,
        state -> StreamTurnState,
        error -> Nullable<Text>,
        attempts -> BigInt,
        step -> BigInt,
        prompt -> Text,
        response_text -> Nullable<Text>,
        cancel_requested_at -> Nullable<Timestamp>,
        deadline_at -> Timestamp,
        not_before -> Timestamp,
        created_at -> Timestamp,
        updated_at -> Timestamp,
        finished_at -> Nullable<Timestamp>,
        triage -> Nullable<TriageState>,
        runs -> BigInt,
        work_failures -> BigInt,
        about_viewing -> Bool,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    usage (day, user_id) {
        day -> Text,
        user_id -> BigInt,
        model_calls -> BigInt,
        tokens_in -> BigInt,
        tokens_cached -> BigInt,
        tokens_out -> BigInt,
        cost_micros -> BigInt,
        segments -> BigInt,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    user_addresses (id) {
        id -> BigInt,
        user_id -> BigInt,
        address -> Text,
        opted_out_at -> Nullable<Timestamp>,
        opt_word_at -> Nullable<Timestamp>,
        preferred_from -> Nullable<Text>,
        created_at -> Timestamp,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    user_facts (id) {
        id -> BigInt,
        user_id -> BigInt,
        kind -> FactKind,
        key -> Text,
        value -> Text,
        number -> Nullable<BigInt>,
        state -> FactState,
        source -> StoredFactSource,
        event_id -> Nullable<BigInt>,
        created_at -> Timestamp,
        ended_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    users (id) {
        id -> BigInt,
        display_name -> Nullable<Text>,
        status -> UserStatus,
        role -> UserRole,
        can_add -> Bool,
        can_delete -> Bool,
        can_4k -> Bool,
        created_at -> Timestamp,
        updated_at -> Timestamp,
        name_asks -> BigInt,
        waiting_since -> Nullable<Timestamp>,
        answered_at -> Nullable<Timestamp>,
        movie_limit -> Nullable<BigInt>,
        season_limit -> Nullable<BigInt>,
        forgotten_at -> Nullable<Timestamp>,
        notify -> Bool,
        quiet_from -> Nullable<BigInt>,
        quiet_to -> Nullable<BigInt>,
        test -> Bool,
        code_misses -> BigInt,
        code_misses_day -> Nullable<Text>,
        first_request -> Nullable<Text>,
        first_request_at -> Nullable<Timestamp>,
        movie_cap -> Nullable<BigInt>,
        show_cap -> Nullable<BigInt>,
        caps_turn -> Nullable<BigInt>,
        parent -> Bool,
        space_limit -> Nullable<BigInt>,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    viewer_accounts (server, account_id) {
        server -> MediaServerKind,
        account_id -> Text,
        account_name -> Text,
        user_id -> BigInt,
        linked_at -> Timestamp,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    vote_messages (outbox_id) {
        outbox_id -> BigInt,
        vote_id -> BigInt,
        part -> VotePart,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    vote_polls (poll) {
        poll -> Text,
        vote_id -> BigInt,
    }
}

diesel::table! {
    use crate::store::column_types::*;

    votes (id) {
        id -> BigInt,
        room_id -> Nullable<BigInt>,
        user_id -> BigInt,
        question -> Text,
        options -> Text,
        created_at -> Timestamp,
        closes_at -> Timestamp,
        closed_at -> Nullable<Timestamp>,
        reasons -> Nullable<Text>,
        checked_kind -> Nullable<MediaKind>,
        checked_cap -> Nullable<BigInt>,
        winner -> Nullable<BigInt>,
    }
}

diesel::joinable!(additions -> tool_calls (tool_call_id));
diesel::joinable!(additions -> users (user_id));
diesel::joinable!(agent_calls -> api_keys (key_id));
diesel::joinable!(agent_calls -> tool_calls (tool_call_id));
diesel::joinable!(agent_calls -> turns (turn_id));
diesel::joinable!(agent_calls -> users (user_id));
diesel::joinable!(agent_responses -> memory_groups (group_id));
diesel::joinable!(agent_responses -> turns (turn_id));
diesel::joinable!(agent_responses -> users (user_id));
diesel::joinable!(approved_titles -> users (user_id));
diesel::joinable!(audit_log -> users (user_id));
diesel::joinable!(ballots -> users (user_id));
diesel::joinable!(ballots -> votes (vote_id));
diesel::joinable!(blocks -> turns (turn_id));
diesel::joinable!(conversations -> users (user_id));
diesel::joinable!(digest_lines -> outbox (outbox_id));
diesel::joinable!(digest_settings -> inbound_events (preview_event));
diesel::joinable!(digest_settings -> users (user_id));
diesel::joinable!(follows -> users (user_id));
diesel::joinable!(inbound_events -> conversations (conversation_id));
diesel::joinable!(inbound_events -> turns (turn_id));
diesel::joinable!(inbound_events -> user_addresses (address_id));
diesel::joinable!(inbound_events -> users (user_id));
diesel::joinable!(invitations -> users (invited_by));
diesel::joinable!(kept_titles -> users (user_id));
diesel::joinable!(link_codes -> user_addresses (new_address_id));
diesel::joinable!(link_codes -> users (user_id));
diesel::joinable!(llm_steps -> turns (turn_id));
diesel::joinable!(memory_group_members -> memory_groups (group_id));
diesel::joinable!(memory_group_members -> users (user_id));
diesel::joinable!(notices -> outbox (outbox_id));
diesel::joinable!(notices -> users (user_id));
diesel::joinable!(outbox -> conversations (conversation_id));
diesel::joinable!(outbox -> turns (turn_id));
diesel::joinable!(outbox -> user_addresses (address_id));
diesel::joinable!(outbox -> users (user_id));
diesel::joinable!(pending_actions -> conversations (conversation_id));
diesel::joinable!(pending_actions -> outbox (prompt_outbox_id));
diesel::joinable!(pending_actions -> tool_calls (tool_call_id));
diesel::joinable!(pending_actions -> users (user_id));
diesel::joinable!(reactions -> outbox (outbox_id));
diesel::joinable!(reactions -> users (user_id));
diesel::joinable!(requests -> tool_calls (tool_call_id));
diesel::joinable!(requests -> users (user_id));
diesel::joinable!(rooms -> memory_groups (group_id));
diesel::joinable!(rooms -> users (id));
diesel::joinable!(space_proposal_answers -> users (user_id));
diesel::joinable!(space_proposal_titles -> space_proposals (proposal_id));
diesel::joinable!(space_proposals -> users (user_id));
diesel::joinable!(title_attributions -> users (user_id));
diesel::joinable!(tool_call_items -> tool_calls (tool_call_id));
diesel::joinable!(tool_calls -> inbound_events (confirmed_by));
diesel::joinable!(turns -> conversations (conversation_id));
diesel::joinable!(turns -> users (user_id));
diesel::joinable!(usage -> users (user_id));
diesel::joinable!(user_addresses -> users (user_id));
diesel::joinable!(user_facts -> inbound_events (event_id));
diesel::joinable!(user_facts -> users (user_id));
diesel::joinable!(viewer_accounts -> users (user_id));
diesel::joinable!(vote_messages -> outbox (outbox_id));
diesel::joinable!(vote_messages -> votes (vote_id));
diesel::joinable!(vote_polls -> votes (vote_id));
diesel::joinable!(votes -> rooms (room_id));
diesel::joinable!(votes -> users (user_id));

diesel::allow_tables_to_appear_in_same_query!(
    additions,
    agent_calls,
    agent_responses,
    alerts,
    api_keys,
    approvals,
    approved_titles,
    arr_cursors,
    arr_events,
    audit_log,
    ballots,
    blocks,
    budget_blocks,
    connection_history,
    console_password,
    conversations,
    digest_lines,
    digest_settings,
    follows,
    inbound_events,
    instance,
    invitations,
    kept_titles,
    library_samples,
    link_codes,
    llm_steps,
    memory_group_members,
    memory_groups,
    notices,
    offsets,
    outbox,
    pauses,
    pending_actions,
    reactions,
    requests,
    rooms,
    service_identities,
    sessions,
    settings,
    sign_in_links,
    space_proposal_answers,
    space_proposal_titles,
    space_proposals,
    sweeps,
    text_indexes,
    title_attributions,
    tool_call_items,
    tool_calls,
    turns,
    usage,
    user_addresses,
    user_facts,
    users,
    viewer_accounts,
    vote_messages,
    vote_polls,
    votes,
);
