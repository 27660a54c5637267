"""Tests that can't pass within gVisor, whatever the tool does, and why (scripts/test-sandboxes)."""
import platform

# Why, and the tests (or beginnings of their names with parameters).
GVISOR = {
    "/proc tells less of a process: nothing of its signals, locked memory, private pages, peaks and terminal, nor of what its epoll waits for": (
        "test_a_bad_start_is_made_good", "test_so_it_is_for_unit_tests", "test_c096_blocked_and_ignored_signals", "test_memory_does_not_grow",
        "test_c057_long_lines", "test_at_rest_both_sides_are_small", "test_c024_clean_signals", "test_c024_whatever_the_starter_ignores",
        "test_c077_a_flood_that_nobody_reads", "test_c077_memory_at_the_worst", "test_c077_memory_of_a_job_that_is_read_as_it_writes",
        "test_c077_more_than_is_held_comes_whole", "test_c010_signal_keys_and_job_control", "test_a_question_and_an_interrupt_within[script]",
        "test_a_program_waits_for_input[python3 -c 'import select; p = select.epoll()"),
    "what was sent at once into a Unix socket is told as read (SIOCOUTQ) as soon as a part of it is, so that an answer counts as read too early": (
        "test_answer_that_was_not_read_to_its_end", "test_not_delivered_to_a_client_that_does_not_read", "test_nobody_reads_stdout_any_more",
        "test_an_answer_counts_when_it_is_confirmed", "test_a_client_that_closes_before_it_has_read_all", "test_a_person_who_does_not_look_holds_nobody_up",
        "test_a_connection_that_is_lost_after_the_request_went_out", "test_only_an_acknowledged_answer_is_delivered",
        "test_what_was_not_acknowledged_is_there_for_the_next_stream", "test_killed_while_it_prints",
        "test_c104_answer_that_cannot_be_stored_is_not_lost"),
    "nothing tells which signals a program handles, so a shell goes on behind one that was interrupted": (
        "test_nothing_behind_it_runs", "test_nor_at_any_other_moment", "test_nor_where_nobody_waits_any_more", "test_behind_a_subshell_with_a_trap_of_its_own"),
    "no container can be started within it, and its mounts, namespaces and descriptors of others are not those of Linux": (
        "test_without_proc_all_is_skipped", "test_what_is_taken_away_is_away", "test_shared_directory_of_two_containers", "test_room_for_one_terminal",
        "test_server_and_keepers_cannot_be_looked_into", "test_groups_are_reported_once", "test_a_file_that_may_be_run_but_not_read"),
    "what is removed under a program that is in it or watches it is seen otherwise": (
        "test_directory_vanishes", "test_start_directory_that_was_deleted"),
    "a process whose first thread has ended looks as if it had ended itself": (
        "test_mcp_kill_server_ends_a_process_without_its_first_thread", "test_a_killed_run_ends_a_process_without_its_first_thread",
        "test_nothing_survives[end_by_close-leaderless", "test_nothing_survives[end_by_restart-leaderless", "test_nothing_survives[end_by_kill",
        "test_nothing_survives[end_by_stop_server", "test_a_killed_mcp_serve_leaves_nothing", "test_another_places_processes_are_not_orphans"),
    "its files know no holes, leases, exchange of names, set-user-id bits and locks by two names, and /proc counts against a limit on their size": (
        "test_sparse_file", "test_old_file_that_is_still_written_to", "test_link_that_a_killed_edit_left", "test_what_survives_is_told",
        "test_edits_at_the_same_time[in place]", "test_where_no_file_may_be_written_the_keeper_stays"),
    "its terminals can't be locked, stopped or flushed by an ioctl": ("test_a_program_that_spoils_the_channel",),
    "it is slower: 100,000 keys and the end of a fork bomb take longer than is waited for": (
        "test_c012_lines_longer_than_the_terminal_holds", "test_a_fork_bomb_with_a_limit"),
}


def why_not(item):
    """The reason why a test is left out here; None: it is not."""
    if "gvisor" not in platform.release():
        return None
    return next((f"gVisor: {reason}" for reason, tests in GVISOR.items() if item.name.startswith(tests)), None)
