"""The call sites that no story reaches, with the reason: (what matches "call in function (file:line)", why).

A site that is neither reached nor matched here fails the run, and so does a line that matches none."""

UNREACHED = [
    # ---- other people's code ----
    (r"mbedtls", "the TLS of `release fetch` and its signatures: memory for numbers and certificates; libraries' own tests"),

    # ---- what another test does with real faults ----
    (r"applets/host/release/|core/(tls|net)\.c", "`release fetch` and `verify`: test_release_fetch.py cuts, fills and kills each step"),
    (r"in (make|clear|copy_xattrs|rename_with|beside_link|beside_release|entry_copy|is_same_file|journal_recover|take_back|write_in_place"
     r"|is_directory|refuse_missing|edit_path_resolve|edit_file_read|skip_hole|begin_writeback|write_pseudo) \(applets/tools/text_editor/",
     "edits on other file systems, full ones, and after a kill: test_text_editor_faults.py"),
    (r"applets/tools/web_browser/|applets/host/inject/pack\.c|in copy_files \(applets/host/inject/|applets/commands/settle/unpack\.c|core/dir_empty\.c"
     r"|in install_name \(applets/install_legacy\.c|in child \(core/spawn\.c", "takes a browser, and what is carried to a target for it"),

    # ---- hours, floods and odd machines, which a story of seconds can't wait for ----
    (r"in (clear_slot|put_in_file|next_page|sweep_\w+|shelf_sweep) \(applets/tools/exec_remote/job_",
     "the sweep of the hour, and records beyond the table"),
    (r"in (remove_old|write_file|open_private|search_user|search_others|count|make_room) \(rpc/chunk_store\.c", "answers an hour old, or of other users: test_chunk.c"),
    (r"in (loader_in_directory|make_file|refusal_to_execute|collect_\w+) \(applets/commands/probe/", "systems without a usual libc or place"),
    (r"in (close_range_slowly|add_all|proc_signal|is_running_child|signal_numbers|random_bytes|open_master|open_slave"
     r"|walk|self_open|started_as|terminal_is_raw|type_of|is_writable) \(", "what stands in for a call that this kernel has"),
    (r"in fork_beside \(applets/commands/server/", "a call from outside of a container: test_ends.py, test_inject_trace.py"),
    (r"in (io_fill_std|close_from_to|in_directory|enter_directory|set_descriptors|do_work) \(", "odd surroundings: closed descriptors, a directory that went away"),
    (r"in (wait_for|send_continue|write_key|drain|has_reader|begin_next|read_request|beat_is_refused) \(", "a peer that stalls, or leaves in one moment"),
    (r"in written \(rpc/http_conn\.c", "a client that says Connection: close"),
    (r"in (attach|forward_signals|input_is_interrupt) \((applets|test)/", "people at a terminal; the board of the faults itself"),

    # ---- terminals behind terminals, and kernels that say less of them ----
    (r"in (count_own|unix_peer|peer_is_another|tell_of_interrupt|hears_others|has_master|drop_unread) \(applets/tools/bash_session/",
     "programs that pass a terminal on, and interrupts of other shells: test_bash_session_nested.py, test_bash_session_interrupt.py"),
    (r"in (be_holder|hold|has_epoll|wait_for_stop) \(applets/tools/bash_session/|in (ask_foreground|pty_close|pty_lead) \(core/pty\.c", "gVisor: test_sandboxes.py"),
    (r"applets/tools/doctor/", "what doctor tries is what else fails: test_doctor.py has it fail for real"),
    (r"in (read_shared|words_file) \(applets/words\.c|in io_read_more \(core/io\.c", "params from files: test_command_params.py"),
    (r"in (on_stderr|end_remote) \(applets/host/connect/", "a runtime that complains, or won't end: test_connect.py"),

    # ---- paths, owners and limits ----
    (r"in (go_up|follow|is_trusted|safe_path_file|safe_path_find) \(core/safe_path\.c", "places that links and \"..\" lead to, or of owners that a user namespace hides: test_safe_path.c"),
    (r"in has_its_groups \(core/user\.c", "a user who is the one of the process, with his groups named exactly"),
    (r"in channel_mend \(|in message \(applets/tools/bash_session/", "commands that change their terminal's mode, and a signal while a line is parsed"),

    # ---- other builds ----
    (r"in become_program \(applets/commands/server/", "a call for what another build runs by a client of the server's socket: test_upgrade.py"),
    (r"in (give_back|take_name|refuse|build_of|settle_keep_other|each_aside|sweep|settle_mark|is_live|is_others_server|empty_ours|remove_place_as|remove_places_of_others|settle_remove_tree) \(applets/commands/settle/|in as_user \(core/as_user\.c",
     "a target that holds another build, or a second place: test_upgrade.py, test_inject.py"),

    # ---- the ends of what is stuck or killed by hand ----
    (r"in (wait_gone|server_shut_down|server_kill_tree|end_keeper|end_in|look|something_changed|fork_server|be_keeper|read_report|end"
     r"|look_at_signals|run_quietly|work_as_user|other_build_run|server_work_end|proc_kill_tree|serve) \(", "a process that is stuck, or told to end in the middle: test_server.py does both"),
    (r"in (arch_of|write_file|write_record|place|place_in|unmake|inject_dir_eject|write_at) \(applets/(host/inject|commands/model_proxy)/", "removing what failed before"),
    (r"in (prove|same_bytes|tidy|make_links|remove_links) \(applets/commands/settle/", "targets that were ready in part, or with --links: test_inject.py"),
    (r"in (ipc_listen_hidden|ipc_unlink_hidden|program_record|remove_file|remove_from|out_of_memory|go_back) \((core|applets/commands/(server|model_proxy))/", "after another fault only"),
]
