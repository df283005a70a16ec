// @generated automatically by Diesel CLI.

diesel::table! {
    additions (id) {
        id -> BigInt,
        user_id -> BigInt,
        kind -> Text,
        amount -> BigInt,
        tool_call_id -> Nullable<BigInt>,
        at -> BigInt,
    }
}

diesel::table! {
    agent_responses (id) {
        id -> BigInt,
        turn_id -> Nullable<BigInt>,
        source -> Text,
        scope -> Text,
        owner -> Text,
        user_id -> Nullable<BigInt>,
        group_id -> Nullable<BigInt>,
        agent -> Text,
        trigger_text -> Text,
        response_text -> Text,
        summary -> Text,
        topics -> Text,
        keywords -> Text,
        response_type -> Nullable<Text>,
        importance -> Float,
        extracted_by -> Nullable<Text>,
        for_everyone -> Text,
        times -> BigInt,
        likeness -> BigInt,
        state -> Text,
        attempts -> BigInt,
        not_before -> BigInt,
        embed_model -> Nullable<Text>,
        embed_attempts -> BigInt,
        embed_failed_by -> Nullable<Text>,
        revision -> BigInt,
        created_at -> BigInt,
        processed_at -> Nullable<BigInt>,
        trigger_vec -> Nullable<Binary>,
        response_vec -> Nullable<Binary>,
    }
}

diesel::table! {
    api_keys (id) {
        id -> BigInt,
        name -> Text,
        key_hash -> Binary,
        ending -> Text,
        created_at -> BigInt,
        last_used_at -> Nullable<BigInt>,
        revoked_at -> Nullable<BigInt>,
    }
}

diesel::table! {
    approvals (id) {
        id -> BigInt,
        kind -> Text,
        user_id -> BigInt,
        code -> Text,
        misses -> BigInt,
        tool_call_id -> Nullable<BigInt>,
        instance -> Nullable<Text>,
        item_kind -> Nullable<Text>,
        item_id -> Nullable<BigInt>,
        fingerprint -> Nullable<Text>,
        state -> Text,
        run_call_id -> Nullable<BigInt>,
        created_at -> BigInt,
        expires_at -> BigInt,
        settled_at -> Nullable<BigInt>,
        settled_by -> Nullable<BigInt>,
    }
}

diesel::table! {
    arr_cursors (instance) {
        instance -> Text,
        read_until -> BigInt,
    }
}

diesel::table! {
    arr_events (id) {
        id -> BigInt,
        instance -> Text,
        matter -> Text,
        event -> Text,
        received_at -> BigInt,
        handled_at -> Nullable<BigInt>,
    }
}

diesel::table! {
    audit_log (id) {
        id -> BigInt,
        at -> BigInt,
        epoch -> BigInt,
        user_id -> Nullable<BigInt>,
        kind -> Text,
        subject -> Text,
        detail -> Text,
    }
}

diesel::table! {
    blocks (turn_id, idx) {
        turn_id -> BigInt,
        idx -> BigInt,
        step -> BigInt,
        attempt -> BigInt,
        #[sql_name = "type"]
        type_ -> Text,
        content -> Text,
    }
}

diesel::table! {
    console_password (id) {
        id -> BigInt,
        hash -> Text,
        changed_at -> BigInt,
    }
}

diesel::table! {
    conversations (id) {
        id -> BigInt,
        user_id -> BigInt,
        name -> Text,
        started_at -> BigInt,
        last_activity_at -> BigInt,
        ended_at -> Nullable<BigInt>,
        end_reason -> Nullable<Text>,
        stream_floor -> BigInt,
    }
}

diesel::table! {
    delivery_events (provider_sid, status) {
        provider_sid -> Text,
        status -> Text,
        outbox_id -> Nullable<BigInt>,
        attempt -> Nullable<BigInt>,
        error_code -> Nullable<BigInt>,
        received_at -> BigInt,
    }
}

diesel::table! {
    follows (id) {
        id -> BigInt,
        user_id -> BigInt,
        instance -> Text,
        kind -> Text,
        catalog_id -> BigInt,
        season -> Nullable<BigInt>,
        created_at -> BigInt,
        ended_at -> Nullable<BigInt>,
        explicit -> BigInt,
    }
}

diesel::table! {
    inbound_events (id) {
        id -> BigInt,
        channel -> Text,
        external_id -> Text,
        user_id -> BigInt,
        to_addr -> Text,
        body -> Text,
        media -> Nullable<Text>,
        provider_at -> BigInt,
        received_at -> BigInt,
        via -> Text,
        state -> Text,
        outcome -> Nullable<Text>,
        outcome_reason -> Nullable<Text>,
        attempts -> BigInt,
        not_before -> BigInt,
        turn_id -> Nullable<BigInt>,
        updated_at -> BigInt,
        carrier_word -> Nullable<Text>,
        over_limit -> BigInt,
        wants_answer -> BigInt,
        conversation_id -> Nullable<BigInt>,
        authority -> Text,
    }
}

diesel::table! {
    instance (id) {
        id -> BigInt,
        epoch -> BigInt,
        started_at -> BigInt,
        clean_shutdown_at -> Nullable<BigInt>,
        seen_at -> Nullable<BigInt>,
        counted_start_at -> Nullable<BigInt>,
    }
}

diesel::table! {
    llm_steps (turn_id, step, attempt) {
        turn_id -> BigInt,
        step -> BigInt,
        attempt -> BigInt,
        state -> Text,
        epoch -> BigInt,
        brain -> Text,
        model -> Text,
        provider_response_id -> Nullable<Text>,
        finish_reason -> Nullable<Text>,
        tokens_in -> Nullable<BigInt>,
        tokens_out -> Nullable<BigInt>,
        error -> Nullable<Text>,
        started_at -> BigInt,
        finished_at -> Nullable<BigInt>,
        tokens_cached -> Nullable<BigInt>,
    }
}

diesel::table! {
    memory_group_members (user_id, group_id) {
        user_id -> BigInt,
        group_id -> BigInt,
    }
}

diesel::table! {
    memory_groups (id) {
        id -> BigInt,
        members -> Text,
    }
}

diesel::table! {
    notices (id) {
        id -> BigInt,
        user_id -> BigInt,
        matter -> Text,
        outbox_id -> Nullable<BigInt>,
        words -> Nullable<Text>,
        created_at -> BigInt,
    }
}

diesel::table! {
    offsets (source) {
        source -> Text,
        cursor_at -> BigInt,
        updated_at -> BigInt,
    }
}

diesel::table! {
    outbox (id) {
        id -> BigInt,
        dedupe_key -> Text,
        user_id -> BigInt,
        turn_id -> Nullable<BigInt>,
        kind -> Text,
        to_addr -> Text,
        from_addr -> Text,
        body -> Text,
        segments -> BigInt,
        state -> Text,
        attempts -> BigInt,
        looks -> BigInt,
        attempt_at -> Nullable<BigInt>,
        unknown_at -> Nullable<BigInt>,
        deadline_at -> BigInt,
        not_before -> BigInt,
        provider_sid -> Nullable<Text>,
        provider_created_at -> Nullable<BigInt>,
        delivery -> Nullable<Text>,
        error -> Nullable<Text>,
        epoch -> Nullable<BigInt>,
        created_at -> BigInt,
        updated_at -> BigInt,
        accepted_at -> Nullable<BigInt>,
        media_url -> Nullable<Text>,
        conversation_id -> Nullable<BigInt>,
        callback_word -> Nullable<Text>,
        lookups_left -> BigInt,
    }
}

diesel::table! {
    pauses (id) {
        id -> BigInt,
        begun_at -> BigInt,
        begun_by -> BigInt,
        ended_at -> Nullable<BigInt>,
        ended_by -> Nullable<BigInt>,
    }
}

diesel::table! {
    pending_actions (id) {
        id -> BigInt,
        user_id -> BigInt,
        tool_call_id -> BigInt,
        conversation_id -> BigInt,
        summary -> Text,
        code -> Nullable<Text>,
        repeats -> BigInt,
        prompt_outbox_id -> BigInt,
        created_at -> BigInt,
        armed_at -> Nullable<BigInt>,
        expires_at -> Nullable<BigInt>,
    }
}

diesel::table! {
    reactions (id) {
        id -> BigInt,
        user_id -> BigInt,
        author -> Text,
        event_id -> Nullable<BigInt>,
        outbox_id -> Nullable<BigInt>,
        said_in -> Nullable<BigInt>,
        emoji -> Nullable<Text>,
        created_at -> BigInt,
        removed_at -> Nullable<BigInt>,
    }
}

diesel::table! {
    requests (id) {
        id -> BigInt,
        user_id -> BigInt,
        tool_call_id -> Nullable<BigInt>,
        instance -> Text,
        kind -> Text,
        catalog_id -> BigInt,
        title -> Text,
        year -> BigInt,
        seasons -> Nullable<Text>,
        state -> Text,
        arguments -> Nullable<Text>,
        tries -> BigInt,
        next_try_at -> Nullable<BigInt>,
        created_at -> BigInt,
        settled_at -> Nullable<BigInt>,
    }
}

diesel::table! {
    reservations (turn_id) {
        turn_id -> BigInt,
        day -> Text,
        user_id -> BigInt,
        tokens_in -> BigInt,
        tokens_out -> BigInt,
        cost_in_micros -> BigInt,
        cost_out_micros -> BigInt,
    }
}

diesel::table! {
    sessions (token_hash) {
        token_hash -> Binary,
        created_at -> BigInt,
        last_seen_at -> BigInt,
        expires_at -> BigInt,
    }
}

diesel::table! {
    sign_in_links (token_hash) {
        token_hash -> Binary,
        created_at -> BigInt,
        expires_at -> BigInt,
        used_at -> Nullable<BigInt>,
    }
}

diesel::table! {
    stream_events (seq) {
        seq -> BigInt,
        conversation_id -> BigInt,
        turn_id -> Nullable<BigInt>,
        kind -> Text,
        subject_id -> Nullable<BigInt>,
        state -> Nullable<Text>,
        step -> Nullable<BigInt>,
        attempt -> Nullable<BigInt>,
        block_type -> Nullable<Text>,
        ord -> Nullable<BigInt>,
        delta -> Nullable<Text>,
        created_at -> BigInt,
    }
}

diesel::table! {
    sweeps (name) {
        name -> Text,
        last_id -> BigInt,
        updated_at -> BigInt,
    }
}

diesel::table! {
    tool_call_items (tool_call_id, ord) {
        tool_call_id -> BigInt,
        ord -> BigInt,
        instance -> Text,
        kind -> Text,
        item_id -> BigInt,
        delete_files -> BigInt,
        fingerprint -> Text,
        state -> Text,
        result -> Nullable<Text>,
        attempts -> BigInt,
        started_at -> Nullable<BigInt>,
        extent -> Nullable<Text>,
    }
}

diesel::table! {
    tool_calls (id) {
        id -> BigInt,
        turn_id -> BigInt,
        step -> BigInt,
        ord -> BigInt,
        call_id -> Text,
        tool_name -> Text,
        effect -> Text,
        state -> Text,
        attempts -> BigInt,
        request -> Text,
        response -> Nullable<Text>,
        error -> Nullable<Text>,
        reconciled -> BigInt,
        run_turn_id -> Nullable<BigInt>,
        confirmed_by -> Nullable<BigInt>,
        epoch -> Nullable<BigInt>,
        created_at -> BigInt,
        started_at -> Nullable<BigInt>,
        unknown_at -> Nullable<BigInt>,
        updated_at -> BigInt,
        finished_at -> Nullable<BigInt>,
    }
}

diesel::table! {
    turns (id) {
        id -> BigInt,
        user_id -> BigInt,
        conversation_id -> BigInt,
        kind -> Text,
        state -> Text,
        error -> Nullable<Text>,
        attempts -> BigInt,
        step -> BigInt,
        prompt -> Text,
        response_text -> Nullable<Text>,
        cancel_requested_at -> Nullable<BigInt>,
        deadline_at -> BigInt,
        not_before -> BigInt,
        created_at -> BigInt,
        updated_at -> BigInt,
        finished_at -> Nullable<BigInt>,
        triage -> Nullable<Text>,
        runs -> BigInt,
        work_failures -> BigInt,
    }
}

diesel::table! {
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
    user_facts (id) {
        id -> BigInt,
        user_id -> BigInt,
        kind -> Text,
        key -> Text,
        value -> Text,
        number -> Nullable<BigInt>,
        state -> Text,
        source -> Text,
        event_id -> Nullable<BigInt>,
        created_at -> BigInt,
        ended_at -> Nullable<BigInt>,
    }
}

diesel::table! {
    users (id) {
        id -> BigInt,
        phone -> Text,
        display_name -> Nullable<Text>,
        status -> Text,
        role -> Text,
        can_add -> BigInt,
        can_delete -> BigInt,
        can_4k -> BigInt,
        opted_out_at -> Nullable<BigInt>,
        created_at -> BigInt,
        updated_at -> BigInt,
        name_asks -> BigInt,
        waiting_since -> Nullable<BigInt>,
        answered_at -> Nullable<BigInt>,
        movie_limit -> Nullable<BigInt>,
        season_limit -> Nullable<BigInt>,
        forgotten_at -> Nullable<BigInt>,
        opt_word_at -> Nullable<BigInt>,
        notify -> BigInt,
        quiet_from -> Nullable<BigInt>,
        quiet_to -> Nullable<BigInt>,
        test -> BigInt,
        code_misses -> BigInt,
        code_misses_day -> Nullable<Text>,
        first_request -> Nullable<Text>,
        first_request_at -> Nullable<BigInt>,
    }
}

diesel::joinable!(additions -> tool_calls (tool_call_id));
diesel::joinable!(additions -> users (user_id));
diesel::joinable!(agent_responses -> memory_groups (group_id));
diesel::joinable!(agent_responses -> turns (turn_id));
diesel::joinable!(agent_responses -> users (user_id));
diesel::joinable!(audit_log -> users (user_id));
diesel::joinable!(blocks -> turns (turn_id));
diesel::joinable!(conversations -> users (user_id));
diesel::joinable!(follows -> users (user_id));
diesel::joinable!(inbound_events -> conversations (conversation_id));
diesel::joinable!(inbound_events -> turns (turn_id));
diesel::joinable!(inbound_events -> users (user_id));
diesel::joinable!(llm_steps -> turns (turn_id));
diesel::joinable!(memory_group_members -> memory_groups (group_id));
diesel::joinable!(memory_group_members -> users (user_id));
diesel::joinable!(notices -> outbox (outbox_id));
diesel::joinable!(notices -> users (user_id));
diesel::joinable!(outbox -> conversations (conversation_id));
diesel::joinable!(outbox -> turns (turn_id));
diesel::joinable!(outbox -> users (user_id));
diesel::joinable!(pending_actions -> conversations (conversation_id));
diesel::joinable!(pending_actions -> outbox (prompt_outbox_id));
diesel::joinable!(pending_actions -> tool_calls (tool_call_id));
diesel::joinable!(pending_actions -> users (user_id));
diesel::joinable!(reactions -> outbox (outbox_id));
diesel::joinable!(reactions -> users (user_id));
diesel::joinable!(requests -> tool_calls (tool_call_id));
diesel::joinable!(requests -> users (user_id));
diesel::joinable!(reservations -> turns (turn_id));
diesel::joinable!(reservations -> users (user_id));
diesel::joinable!(tool_call_items -> tool_calls (tool_call_id));
diesel::joinable!(tool_calls -> inbound_events (confirmed_by));
diesel::joinable!(turns -> conversations (conversation_id));
diesel::joinable!(turns -> users (user_id));
diesel::joinable!(usage -> users (user_id));
diesel::joinable!(user_facts -> inbound_events (event_id));
diesel::joinable!(user_facts -> users (user_id));

diesel::allow_tables_to_appear_in_same_query!(
    additions,
    agent_responses,
    api_keys,
    approvals,
    arr_cursors,
    arr_events,
    audit_log,
    blocks,
    console_password,
    conversations,
    delivery_events,
    follows,
    inbound_events,
    instance,
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
    reservations,
    sessions,
    sign_in_links,
    stream_events,
    sweeps,
    tool_call_items,
    tool_calls,
    turns,
    usage,
    user_facts,
    users,
);
