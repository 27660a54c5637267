/** Every method by its name, typed. Written by `clients/generate` from `toolbox methods --json`. */

import type { Connection } from "./connection.ts";
import { type Abortable, given } from "./waiting.ts";
import type { Json, Message } from "./wire.ts";

/** The methods of docs/protocol.md. What isn't given isn't sent. */
export class Methods {
    #connection: Connection;

    constructor(connection: Connection) {
        this.#connection = connection;
    }

    /**
     * The version of the program.
     *
     * @param params._run_as_user A user that has to be there (default: the caller)
     * @returns a string: MAJOR.MINOR.PATCH
     */
    version(params: { _run_as_user?: string | undefined } = {}, options: Abortable = {}): Promise<string> {
        return this.#connection.call("version", given(params), options.signal);
    }

    /**
     * The server's path, version, build and pid.
     *
     * @returns a string
     */
    remote_version(params: Record<string, never> = {}, options: Abortable = {}): Promise<string> {
        return this.#connection.call("remote_version", given(params), options.signal);
    }

    /**
     * What the server is, and what it has counted.
     *
     * @returns {server, counters}
     */
    server_status(params: Record<string, never> = {}, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("server_status", given(params), options.signal);
    }

    /**
     * End everything, and the server.
     *
     * @returns null
     */
    sandbox_tools_shutdown(params: Record<string, never> = {}, options: Abortable = {}): Promise<null> {
        return this.#connection.call("sandbox_tools_shutdown", given(params), options.signal);
    }

    /**
     * Start a session: a shell on a terminal of its own.
     *
     * @param params.record Record what is shown and typed, for asciinema and bash_session replay (default: false)
     * @param params.user Whom it runs as; another user than its own takes a server of root (default: the server's user)
     * @param params.cwd Directory to begin in (default: the server's)
     * @param params.shell Path of the shell (default: bash, else sh)
     * @param params.program In the place of a shell: a program, such as an interpreter, and its arguments (default: none)
     * @param params.env Variables to add to the server's
     * @param params.rows Height of the terminal (default: 24)
     * @param params.cols Width of the terminal (default: 200)
     * @param params.term Kind of the terminal: TERM of the shell (default: that of env, else dumb)
     * @param params.ends_with A process with whose end it ends, however that comes (default: none)
     * @param params.confine What it may do, as of 'toolbox confine' (default: all that its user may)
     * @param params.limits What it may use up (default: none)
     * @param params.surroundings What it begins with in the place of the server's own (default: the server's)
     * @returns {session_name, shell, enforced?, recording?}
     */
    bash_session_new_session(params: { record?: boolean | string | { path?: string; version?: number; max_bytes?: number } | undefined; user?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined; cwd?: string | undefined; shell?: string | undefined; program?: readonly string[] | undefined; env?: Readonly<Record<string, string>> | undefined; rows?: number | undefined; cols?: number | undefined; term?: string | undefined; ends_with?: number | undefined; confine?: { preset?: string; read?: readonly string[]; write?: readonly string[]; execute?: readonly string[]; hide?: readonly string[]; network?: readonly string[]; private_tmp?: boolean; best_effort?: boolean } | undefined; limits?: { memory?: number; processes?: number; cpus?: number; cpu_seconds?: number; wall_seconds?: number; file_size?: number; open_files?: number } | undefined; surroundings?: { env: Readonly<Record<string, string>>; cwd?: string; umask: number; limits?: readonly number[] } | undefined } = {}, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("bash_session_new_session", given(params), options.signal);
    }

    /**
     * List the sessions.
     *
     * @returns an array of {session_name, pid, user, shell, cwd, state, foreground, idle_s, unread_bytes, age_s, processes, memory_kb, recording?, …}
     */
    bash_session_list(params: Record<string, never> = {}, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("bash_session_list", given(params), options.signal);
    }

    /**
     * Type into a session, and read what comes.
     *
     * @param params.session_name The session, as it was named when it began
     * @param params.input What to type (default: nothing)
     * @param params.wait_for_output Seconds to wait for the first output; needed unless restart is true
     * @param params.idle_timeout Seconds that output has to pause to be taken for complete; needed unless restart is true
     * @param params.max_output_bytes Most bytes of output; 0 and less mean the default (default: 10485760)
     * @param params.restart End everything in the session and start its shell anew (default: false)
     * @returns a string: the output
     */
    bash_session(params: { session_name: string; input?: string | undefined; wait_for_output?: number | undefined; idle_timeout?: number | undefined; max_output_bytes?: number | undefined; restart?: boolean | undefined }, options: Abortable = {}): Promise<string> {
        return this.#connection.call("bash_session", given(params), options.signal);
    }

    /**
     * Run a command in a session, and tell its exit status.
     *
     * @param params.session_name The session, as it was named when it began
     * @param params.command A command line, or several lines (default: the one that runs is waited for)
     * @param params.timeout Seconds to wait for the end; the command runs on then (default: no limit)
     * @param params.ready_timeout Seconds to wait until the session takes a command, a program other than a shell a minute at most; it is not given then (default: `timeout`, 10 at least)
     * @param params.max_output_bytes Most bytes of output, of which head and tail are kept; 0 and less mean the default (default: 10485760)
     * @param params.interrupt_abandoned Interrupt the command where the client goes away (default: false)
     * @returns {state, exit_code, error?, output, cwd, duration_ms, omitted_bytes, notice?}
     */
    bash_session_run(params: { session_name: string; command?: string | undefined; timeout?: number | undefined; ready_timeout?: number | undefined; max_output_bytes?: number | undefined; interrupt_abandoned?: boolean | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("bash_session_run", given(params), options.signal);
    }

    /**
     * End a session with all that runs in it.
     *
     * @param params.session_name The session, as it was named when it began
     * @returns null
     */
    bash_session_close(params: { session_name: string }, options: Abortable = {}): Promise<null> {
        return this.#connection.call("bash_session_close", given(params), options.signal);
    }

    /**
     * Change the size of the terminal.
     *
     * @param params.session_name The session, as it was named when it began
     * @param params.rows Height of the terminal
     * @param params.cols Width of the terminal
     * @returns null
     */
    bash_session_resize(params: { session_name: string; rows: number; cols: number }, options: Abortable = {}): Promise<null> {
        return this.#connection.call("bash_session_resize", given(params), options.signal);
    }

    /**
     * Signal the programs in the foreground.
     *
     * @param params.session_name The session, as it was named when it began
     * @param params.signal Name or number of a signal: INT, SIGTERM, 9
     * @returns null
     */
    bash_session_signal(params: { session_name: string; signal: string }, options: Abortable = {}): Promise<null> {
        return this.#connection.call("bash_session_signal", given(params), options.signal);
    }

    /**
     * Follow what a session shows and what is typed, and take nothing of it from anybody.
     *
     * @param params.session_name The session, as it was named when it began
     * @param params.cursor What comes behind this, as an answer gave it (default: what was shown last, at once)
     * @param params.timeout Seconds to wait for something (default: no limit)
     * @returns {cursor, rows, cols, events, omitted_bytes?, ended?}
     */
    bash_session_watch(params: { session_name: string; cursor?: number | undefined; timeout?: number | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("bash_session_watch", given(params), options.signal);
    }

    /**
     * Record what a session shows and what is typed.
     *
     * @param params.session_name The session, as it was named when it began
     * @param params.path Where to, an absolute path at which nothing is (default: a file in the server's directory)
     * @param params.version Of asciicast: 2 or 3 (default: 2)
     * @param params.max_bytes Most bytes of a file; what is older is in another one, of the same size at most (default: 67108864)
     * @param params.stop End the recording that there is (default: false)
     * @returns {path, failure?}
     */
    bash_session_record(params: { session_name: string; path?: string | undefined; version?: number | undefined; max_bytes?: number | undefined; stop?: boolean | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("bash_session_record", given(params), options.signal);
    }

    /**
     * Let a terminal take part in a session.
     *
     * @param params.session_name The session, as it was named when it began
     * @returns {socket}: a name in the server's directory, there for one viewer for five seconds
     */
    bash_session_attach(params: { session_name: string }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("bash_session_attach", given(params), options.signal);
    }

    /**
     * Start a job: a program in the background.
     *
     * @param params.command A command for /bin/sh -c; or argv
     * @param params.argv Program and arguments, run without a shell; or command
     * @param params.input Text for its stdin (default: none)
     * @param params.stdin_open Keep stdin open for exec_remote_write_stdin (default: false)
     * @param params.env Variables to add to the server's
     * @param params.cwd Directory to begin in (default: the server's)
     * @param params.user Whom it runs as; another user than its own takes a server of root (default: the server's user)
     * @param params.timeout Seconds after which it is killed (default: never)
     * @param params.umask Its umask, as a decimal number (default: the server's)
     * @param params.encoding utf-8, or latin-1: each byte is a character (default: utf-8)
     * @param params.pty Run it on a terminal, whose other end is stdin and stdout (default: false)
     * @param params.ends_with A process with whose end it ends, however that comes (default: none)
     * @param params.confine What it may do, as of 'toolbox confine' (default: all that its user may)
     * @param params.limits What it may use up (default: none)
     * @param params.surroundings What it begins with in the place of the server's own (default: the server's)
     * @returns {pid, enforced?}
     */
    exec_remote_start(params: { command?: string | undefined; argv?: readonly string[] | undefined; input?: string | undefined; stdin_open?: boolean | undefined; env?: Readonly<Record<string, string>> | undefined; cwd?: string | undefined; user?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined; timeout?: number | undefined; umask?: number | undefined; encoding?: string | undefined; pty?: boolean | { rows?: number; cols?: number } | undefined; ends_with?: number | undefined; confine?: { preset?: string; read?: readonly string[]; write?: readonly string[]; execute?: readonly string[]; hide?: readonly string[]; network?: readonly string[]; private_tmp?: boolean; best_effort?: boolean } | undefined; limits?: { memory?: number; processes?: number; cpus?: number; cpu_seconds?: number; wall_seconds?: number; file_size?: number; open_files?: number } | undefined; surroundings?: { env: Readonly<Record<string, string>>; cwd?: string; umask: number; limits?: readonly number[] } | undefined } = {}, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("exec_remote_start", given(params), options.signal);
    }

    /**
     * List the jobs that run, and those that ended less than an hour ago.
     *
     * @returns an array of {pid, state, exit_code, user, age_s, duration_s, command, …}
     */
    exec_remote_list(params: Record<string, never> = {}, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("exec_remote_list", given(params), options.signal);
    }

    /**
     * Take what a job has printed, and its state.
     *
     * @param params.pid The job, by the number that exec_remote_start gave
     * @param params.ack_seq The last seq that was received; 0: none
     * @returns {state, exit_code, seq, stdout, stderr}
     */
    exec_remote_poll(params: { pid: number; ack_seq: number }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("exec_remote_poll", given(params), options.signal);
    }

    /**
     * The same, once there is something to say.
     *
     * @param params.pid The job, by the number that exec_remote_start gave
     * @param params.ack_seq The last seq that was received; 0: none
     * @param params.timeout Seconds to wait (default: no limit)
     * @returns {state, exit_code, seq, stdout, stderr}
     */
    exec_remote_wait(params: { pid: number; ack_seq: number; timeout?: number | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("exec_remote_wait", given(params), options.signal);
    }

    /**
     * The same as it happens, over a stream each as an event.
     *
     * @param params.pid The job, by the number that exec_remote_start gave
     * @param params.cursor That of the last event that was received (default: none was)
     * @returns {cursor, ended, state, exit_code, seq, stdout, stderr}
     */
    exec_remote_follow(params: { pid: number; cursor?: number | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("exec_remote_follow", given(params), options.signal);
    }

    /**
     * End a job and all its descendants: TERM, after 5 seconds KILL.
     *
     * @param params.pid The job, by the number that exec_remote_start gave
     * @param params.ack_seq The last seq that was received; 0: none
     * @returns {seq, stdout, stderr}
     */
    exec_remote_kill(params: { pid: number; ack_seq: number }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("exec_remote_kill", given(params), options.signal);
    }

    /**
     * Write to its stdin.
     *
     * @param params.pid The job, by the number that exec_remote_start gave
     * @param params.ack_seq The last seq that was received; 0: none
     * @param params.data What to write
     * @returns {seq, stdout, stderr}, and stdin_discarded: bytes in all that nobody will read
     */
    exec_remote_write_stdin(params: { pid: number; ack_seq: number; data: string }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("exec_remote_write_stdin", given(params), options.signal);
    }

    /**
     * Close its stdin.
     *
     * @param params.pid The job, by the number that exec_remote_start gave
     * @param params.ack_seq The last seq that was received; 0: none
     * @returns {seq, stdout, stderr}
     */
    exec_remote_close_stdin(params: { pid: number; ack_seq: number }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("exec_remote_close_stdin", given(params), options.signal);
    }

    /**
     * Change the size of the terminal of a job that has one.
     *
     * @param params.pid The job, by the number that exec_remote_start gave
     * @param params.rows Height of the terminal
     * @param params.cols Width of the terminal
     * @returns null
     */
    exec_remote_resize(params: { pid: number; rows: number; cols: number }, options: Abortable = {}): Promise<null> {
        return this.#connection.call("exec_remote_resize", given(params), options.signal);
    }

    /**
     * Signal its process group.
     *
     * @param params.pid The job, by the number that exec_remote_start gave
     * @param params.signal Name or number of a signal: INT, SIGTERM, 15
     * @returns null
     */
    exec_remote_signal(params: { pid: number; signal: string }, options: Abortable = {}): Promise<null> {
        return this.#connection.call("exec_remote_signal", given(params), options.signal);
    }

    /**
     * Wait for the end of a job that ends with the caller.
     *
     * @param params.pid The job, by the number that exec_remote_start gave
     * @returns null
     */
    exec_remote_hold(params: { pid: number }, options: Abortable = {}): Promise<null> {
        return this.#connection.call("exec_remote_hold", given(params), options.signal);
    }

    /**
     * Start an MCP server that speaks on stdin and stdout.
     *
     * @param params.server_params What to start
     * @param params.ends_with A process with whose end it ends, however that comes (default: none)
     * @param params.user Whom it runs as; another user than its own takes a server of root (default: the server's user)
     * @param params.confine What it may do, as of 'toolbox confine' (default: all that its user may)
     * @param params.limits What it may use up (default: none)
     * @returns the number of its session, from 0
     */
    mcp_launch_server(params: { server_params: { command?: string; args?: readonly string[]; env?: Readonly<Record<string, string>>; cwd?: string; encoding?: string; encoding_error_handler?: string; url?: string; headers?: Readonly<Record<string, string>> }; ends_with?: number | undefined; user?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined; confine?: { preset?: string; read?: readonly string[]; write?: readonly string[]; execute?: readonly string[]; hide?: readonly string[]; network?: readonly string[]; private_tmp?: boolean; best_effort?: boolean } | undefined; limits?: { memory?: number; processes?: number; cpus?: number; cpu_seconds?: number; wall_seconds?: number; file_size?: number; open_files?: number } | undefined }, options: Abortable = {}): Promise<number> {
        return this.#connection.call("mcp_launch_server", given(params), options.signal);
    }

    /**
     * List the MCP servers.
     *
     * @returns an array of {session_id, pid, command, user, state, exit_code, initialized, open_requests, unread_notifications, dropped_lines, stderr, …}
     */
    mcp_list_servers(params: Record<string, never> = {}, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("mcp_list_servers", given(params), options.signal);
    }

    /**
     * Pass a request on to an MCP server.
     *
     * @param params.session_id The server, by the number that mcp_launch_server gave
     * @param params.request A JSON-RPC request
     * @param params.timeout Seconds to wait for the answer; then the server is told that it is cancelled (default: for ever)
     * @returns the server's response, whole
     */
    mcp_send_request(params: { session_id: number; request: Message; timeout?: number | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("mcp_send_request", given(params), options.signal);
    }

    /**
     * Take what a server asks for (sampling, elicitation, roots); from the first call on that waits for mcp_send_response, before it is refused.
     *
     * @param params.session_id The server, by the number that mcp_launch_server gave
     * @param params.max Most requests (default: all)
     * @param params.timeout Seconds to wait for one, where there is none (default: 0)
     * @returns {requests, dropped, remaining}
     */
    mcp_read_requests(params: { session_id: number; max?: number | undefined; timeout?: number | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("mcp_read_requests", given(params), options.signal);
    }

    /**
     * Answer what a server has asked for.
     *
     * @param params.session_id The server, by the number that mcp_launch_server gave
     * @param params.response A JSON-RPC response, with the id of the server's request
     * @returns null
     */
    mcp_send_response(params: { session_id: number; response: Message }, options: Abortable = {}): Promise<null> {
        return this.#connection.call("mcp_send_response", given(params), options.signal);
    }

    /**
     * Pass a notification on.
     *
     * @param params.session_id The server, by the number that mcp_launch_server gave
     * @param params.notification A JSON-RPC notification
     * @returns null
     */
    mcp_send_notification(params: { session_id: number; notification: Message }, options: Abortable = {}): Promise<null> {
        return this.#connection.call("mcp_send_notification", given(params), options.signal);
    }

    /**
     * End an MCP server.
     *
     * @param params.session_id The server, by the number that mcp_launch_server gave
     * @returns null
     */
    mcp_kill_server(params: { session_id: number }, options: Abortable = {}): Promise<null> {
        return this.#connection.call("mcp_kill_server", given(params), options.signal);
    }

    /**
     * Take what a server has said without being asked.
     *
     * @param params.session_id The server, by the number that mcp_launch_server gave
     * @param params.max Most notifications (default: all)
     * @returns {notifications, dropped, remaining}
     */
    mcp_read_notifications(params: { session_id: number; max?: number | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("mcp_read_notifications", given(params), options.signal);
    }

    /**
     * What a server says and asks for as it comes, over a stream each as an event; what it asks for was answered, with an error.
     *
     * @param params.session_id The server, by the number that mcp_launch_server gave
     * @param params.cursor That of the last event that was received (default: none was)
     * @returns {notifications, dropped, remaining, cursor, ended}
     */
    mcp_follow(params: { session_id: number; cursor?: number | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("mcp_follow", given(params), options.signal);
    }

    /**
     * Start a browser.
     *
     * @param params.headful With a window (default: false)
     * @param params.accept_dialogs Answer yes to dialogs (default: false)
     * @param params.ask_dialogs Leave dialogs to web_dialog (default: false)
     * @param params.accept_certificates Show pages whose certificate is not trusted (default: false)
     * @param params.devtools Let web_devtools work (default: false)
     * @param params.downloads Absolute path of a folder for what is downloaded, that the browser's user can write to (default: downloads are refused)
     * @param params.ends_with A process with whose end it ends, however that comes (default: none)
     * @param params.user Whom it runs as; another user than its own takes a server of root (default: the server's user)
     * @param params.surroundings What it begins with in the place of the server's own (default: the server's)
     * @returns {session_name}
     */
    web_new_session(params: { headful?: boolean | undefined; accept_dialogs?: boolean | undefined; ask_dialogs?: boolean | undefined; accept_certificates?: boolean | undefined; devtools?: boolean | undefined; downloads?: string | undefined; ends_with?: number | undefined; user?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined; surroundings?: { env: Readonly<Record<string, string>>; cwd?: string; umask: number; limits?: readonly number[] } | undefined } = {}, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_new_session", given(params), options.signal);
    }

    /**
     * List the browser sessions.
     *
     * @returns an array of {session_name, pid, state, user, tabs, url, browser, age_s, processes, memory_kb, …}
     */
    web_list_sessions(params: Record<string, never> = {}, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_list_sessions", given(params), options.signal);
    }

    /**
     * Open a page.
     *
     * @param params.session_name The session, as web_new_session named it
     * @param params.url Address; without a scheme it is http:// for localhost and its like, else https://
     * @returns a page
     */
    web_go(params: { session_name: string; url: string }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_go", given(params), options.signal);
    }

    /**
     * Click an element, hover over it or drag it.
     *
     * @param params.session_name The session, as web_new_session named it
     * @param params.element_id The number at the front of the element's line
     * @param params.how left, right, middle, double, hover or drag (default: left)
     * @param params.to The element to drag it to (default: none)
     * @param params.x Where in the element, from its left; of a drag without to by how much to the right (default: its middle)
     * @param params.y The same from its top (default: its middle)
     * @returns a page
     */
    web_click(params: { session_name: string; element_id: number; how?: string | undefined; to?: number | undefined; x?: number | undefined; y?: number | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_click", given(params), options.signal);
    }

    /**
     * Type into an element, behind what is there.
     *
     * @param params.session_name The session, as web_new_session named it
     * @param params.element_id The number at the front of the element's line
     * @param params.text What to type
     * @returns a page
     */
    web_type(params: { session_name: string; element_id: number; text: string }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_type", given(params), options.signal);
    }

    /**
     * Type in place of what is there, and press Enter.
     *
     * @param params.session_name The session, as web_new_session named it
     * @param params.element_id The number at the front of the element's line
     * @param params.text What to type
     * @returns a page
     */
    web_type_submit(params: { session_name: string; element_id: number; text: string }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_type_submit", given(params), options.signal);
    }

    /**
     * Scroll the page, or a part of it.
     *
     * @param params.session_name The session, as web_new_session named it
     * @param params.direction up or down, by the height of what is scrolled
     * @param params.element_id What to scroll, or something in it (default: what has the focus, was clicked or lies on top, or else the page)
     * @returns a page
     */
    web_scroll(params: { session_name: string; direction: string; element_id?: number | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_scroll", given(params), options.signal);
    }

    /**
     * Go back in the history.
     *
     * @param params.session_name The session, as web_new_session named it
     * @returns a page
     */
    web_back(params: { session_name: string }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_back", given(params), options.signal);
    }

    /**
     * Go forward in the history.
     *
     * @param params.session_name The session, as web_new_session named it
     * @returns a page
     */
    web_forward(params: { session_name: string }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_forward", given(params), options.signal);
    }

    /**
     * Load the page again.
     *
     * @param params.session_name The session, as web_new_session named it
     * @returns a page
     */
    web_refresh(params: { session_name: string }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_refresh", given(params), options.signal);
    }

    /**
     * Choose an option of a select.
     *
     * @param params.session_name The session, as web_new_session named it
     * @param params.element_id The number at the front of the element's line
     * @param params.value An option's value, or what it shows
     * @returns a page
     */
    web_select(params: { session_name: string; element_id: number; value: string }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_select", given(params), options.signal);
    }

    /**
     * Press a key.
     *
     * @param params.session_name The session, as web_new_session named it
     * @param params.key Enter, Control+A, é, …
     * @returns a page
     */
    web_press(params: { session_name: string; key: string }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_press", given(params), options.signal);
    }

    /**
     * Take a picture of the page.
     *
     * @param params.session_name The session, as web_new_session named it
     * @param params.full_page All of the page rather than what is visible (default: false)
     * @param params.element_id An element alone, also where it is out of view (default: none)
     * @returns {mime_type, data}: a PNG in base64
     */
    web_screenshot(params: { session_name: string; full_page?: boolean | undefined; element_id?: number | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_screenshot", given(params), options.signal);
    }

    /**
     * Evaluate a JavaScript expression.
     *
     * @param params.session_name The session, as web_new_session named it
     * @param params.expression JavaScript; a promise is waited for
     * @returns {type, value}, or {type, description} of what JSON can't say
     */
    web_evaluate(params: { session_name: string; expression: string }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_evaluate", given(params), options.signal);
    }

    /**
     * Wait for something on the page.
     *
     * @param params.session_name The session, as web_new_session named it
     * @param params.text A text that is to come into sight (default: none)
     * @param params.gone A text that is to go (default: none)
     * @param params.url A part of the address to come (default: none)
     * @param params.element_id An element that is to be seen and enabled (default: none)
     * @param params.network_idle Until nothing is loaded or asked for (default: false)
     * @param params.timeout Seconds (default: 30)
     * @returns a page
     */
    web_wait(params: { session_name: string; text?: string | undefined; gone?: string | undefined; url?: string | undefined; element_id?: number | undefined; network_idle?: boolean | undefined; timeout?: number | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_wait", given(params), options.signal);
    }

    /**
     * Find a text on the page, and scroll to it.
     *
     * @param params.session_name The session, as web_new_session named it
     * @param params.text What to look for; capitals don't matter
     * @returns a page
     */
    web_find(params: { session_name: string; text: string }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_find", given(params), options.signal);
    }

    /**
     * Read the whole text of the page.
     *
     * @param params.session_name The session, as web_new_session named it
     * @param params.format text, markdown (of the main region, where there is one) or html (default: text)
     * @param params.offset First character, to go on with (default: 0)
     * @param params.max Characters at most; 0: all (default: 0)
     * @returns {web_url, title, text}; with max also {total, next_offset}
     */
    web_text(params: { session_name: string; format?: string | undefined; offset?: number | undefined; max?: number | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_text", given(params), options.signal);
    }

    /**
     * List the tabs; show, open or close one.
     *
     * @param params.session_name The session, as web_new_session named it
     * @param params.tab Show this tab (default: list them)
     * @param params.new Open a tab (default: false)
     * @param params.close Close the tab instead (default: false)
     * @returns an array of {tab, url, title, current}; with other params a page
     */
    web_tabs(params: { session_name: string; tab?: number | undefined; new?: boolean | undefined; close?: boolean | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_tabs", given(params), options.signal);
    }

    /**
     * Choose files for an input.
     *
     * @param params.session_name The session, as web_new_session named it
     * @param params.element_id An input for files, its label, or what asks for files when it is clicked
     * @param params.paths Absolute paths of files that the browser's user can read
     * @returns a page
     */
    web_upload(params: { session_name: string; element_id: number; paths: readonly Message[] }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_upload", given(params), options.signal);
    }

    /**
     * List what was downloaded.
     *
     * @param params.session_name The session, as web_new_session named it
     * @returns an array of {name, state, bytes, total, folder, url}; state is running, done, canceled, or what is wrong
     */
    web_downloads(params: { session_name: string }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_downloads", given(params), options.signal);
    }

    /**
     * Answer the dialog that a page shows.
     *
     * @param params.session_name The session, as web_new_session named it
     * @param params.accept Yes, or no (default: true)
     * @param params.text What to answer a prompt with (default: what stands there)
     * @returns a page
     */
    web_dialog(params: { session_name: string; accept?: boolean | undefined; text?: string | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_dialog", given(params), options.signal);
    }

    /**
     * Print the page as PDF.
     *
     * @param params.session_name The session, as web_new_session named it
     * @returns {mime_type, data}: in base64
     */
    web_pdf(params: { session_name: string }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_pdf", given(params), options.signal);
    }

    /**
     * Tell what the page has written to its console.
     *
     * @param params.session_name The session, as web_new_session named it
     * @returns an array of {level, text, url, line}
     */
    web_console(params: { session_name: string }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_console", given(params), options.signal);
    }

    /**
     * List the newest requests of pages.
     *
     * @param params.session_name The session, as web_new_session named it
     * @param params.url A part of the address (default: all)
     * @param params.body Instead of the list, what was sent and what came of the request with this id (default: none)
     * @returns an array of {id, method, url, type, status, mime_type, bytes, error}, 200 at most; with body {id, request_body, base64, body}
     */
    web_network(params: { session_name: string; url?: string | undefined; body?: number | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_network", given(params), options.signal);
    }

    /**
     * Be another browser: size, language, place, ….
     *
     * @param params.session_name The session, as web_new_session named it
     * @param params.width Of the window, in CSS pixels; with height (default: 1280)
     * @param params.height Its height (default: 1080)
     * @param params.scale Pixels of the device for each of these (default: 1)
     * @param params.touch With the size: a touch screen (default: false)
     * @param params.user_agent What the browser calls itself (default: as it is)
     * @param params.language Languages that pages are asked for: de-DE,de (default: as they are)
     * @param params.timezone Europe/Berlin (default: as it is)
     * @param params.latitude Where the browser is, with longitude; pages may ask for it then (default: not told)
     * @param params.longitude Degrees to the east (default: not told)
     * @param params.color_scheme dark or light (default: as it is)
     * @param params.network offline, or online again (default: as it is)
     * @param params.permissions What pages may do without asking: clipboardReadWrite, notifications, … (default: as it is)
     * @returns a page
     */
    web_emulate(params: { session_name: string; width?: number | undefined; height?: number | undefined; scale?: number | undefined; touch?: boolean | undefined; user_agent?: string | undefined; language?: string | undefined; timezone?: string | undefined; latitude?: number | undefined; longitude?: number | undefined; color_scheme?: string | undefined; network?: string | undefined; permissions?: readonly string[] | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_emulate", given(params), options.signal);
    }

    /**
     * Tell cookies and local storage, or take them over.
     *
     * @param params.session_name The session, as web_new_session named it
     * @param params.load {cookies, origins}, as this method or Playwright has given it: to be had from now on (default: what there is is told)
     * @returns {cookies, origins}; with load a page
     */
    web_state(params: { session_name: string; load?: Message | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_state", given(params), options.signal);
    }

    /**
     * Call a method of the DevTools protocol.
     *
     * @param params.session_name The session, as web_new_session named it
     * @param params.method Of the DevTools protocol: Page.getLayoutMetrics
     * @param params.params Its params (default: none)
     * @param params.browser Ask the browser itself rather than the page (default: false)
     * @returns its result
     */
    web_devtools(params: { session_name: string; method: string; params?: Message | undefined; browser?: boolean | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("web_devtools", given(params), options.signal);
    }

    /**
     * End a browser session.
     *
     * @param params.session_name The session, as web_new_session named it
     * @returns null
     */
    web_close_session(params: { session_name: string }, options: Abortable = {}): Promise<null> {
        return this.#connection.call("web_close_session", given(params), options.signal);
    }

    /**
     * Connect to a display, or start Xvfb with a window manager.
     *
     * @param params.display A display that is there, as :0 or HOST:0 (default: $DISPLAY; or an Xvfb that is started)
     * @param params.width Of an Xvfb that is started, in pixels (default: 1366)
     * @param params.height Its height (default: 768)
     * @param params.depth Its bits for a pixel: 16, 24 or 30 (default: 24)
     * @param params.dpi Its pixels for an inch (default: 96)
     * @param params.window_manager The program of one that is started with it, or none (default: openbox, or another one that is known)
     * @param params.unscaled Pictures and coordinates are the screen's own also where it is larger than 1366x768, 1280x800 or 1024x768 (default: false)
     * @param params.ends_with A process with whose end it ends, however that comes (default: none)
     * @param params.user Whom it runs as; another user than its own takes a server of root (default: the server's user)
     * @param params.surroundings What it begins with in the place of the server's own (default: the server's)
     * @returns {session_name, display, width, height}
     */
    computer_new_session(params: { display?: string | undefined; width?: number | undefined; height?: number | undefined; depth?: number | undefined; dpi?: number | undefined; window_manager?: string | undefined; unscaled?: boolean | undefined; ends_with?: number | undefined; user?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined; surroundings?: { env: Readonly<Record<string, string>>; cwd?: string; umask: number; limits?: readonly number[] } | undefined } = {}, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("computer_new_session", given(params), options.signal);
    }

    /**
     * List the desktops' sessions.
     *
     * @returns an array of {session_name, pid, state, user, display, width, height, depth, window_manager, age_s, processes, memory_kb, …}
     */
    computer_list_sessions(params: Record<string, never> = {}, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("computer_list_sessions", given(params), options.signal);
    }

    /**
     * Do something on a desktop, as models ask for it: screenshot, zoom, cursor_position, mouse_move, left_click, right_click, middle_click, back_click, forward_click, double_click, triple_click, left_click_drag, left_mouse_down, left_mouse_up, scroll, key, hold_key, key_down, key_up, type, wait, open_web_browser, navigate; or OpenAI's click, double_click, drag, keypress, move, scroll, type, wait.
     *
     * @param params.session_name The session, as computer_new_session named it
     * @param params.action As Anthropic's tools and inspect_ai's computer() name it: left_click, type, … (default: type)
     * @param params.type The same as OpenAI's tool names it: click, keypress, … (default: action)
     * @param params.text What to type; keys to press, or to hold during a click (default: none)
     * @param params.key Keys to hold during a click or scroll (default: none)
     * @param params.keys Keys that are pressed together (default: none)
     * @param params.url Of navigate, in the place of text (default: text)
     * @param params.coordinate [x, y] in the picture (default: where the pointer is)
     * @param params.start_coordinate Where a drag begins (default: where the pointer is)
     * @param params.region [x0, y0, x1, y1] of a zoom (default: none)
     * @param params.x The same as coordinate, in OpenAI's form (default: where the pointer is)
     * @param params.y With x (default: where the pointer is)
     * @param params.button Of click: left, right, wheel, back or forward (default: left)
     * @param params.path Of drag: points {x, y} (default: from start_coordinate to coordinate)
     * @param params.scroll_x Pixels to the right, 100 a click of the wheel (default: 0)
     * @param params.scroll_y Pixels down (default: 0)
     * @param params.scroll_amount Clicks of the wheel (default: none)
     * @param params.scroll_direction up, down, left or right (default: none)
     * @param params.duration Seconds to wait or to hold, 100 at most (default: 1 of wait)
     * @param params.press_enter Press Return when all is typed (default: false)
     * @param params.screenshot Answer with a picture, once the screen has come to rest (default: of screenshot and wait)
     * @param params.settle_ms Wait for that no longer than so many milliseconds (default: 2000)
     * @returns {output?, x?, y?}, and where there is a picture {mime_type, width, height, data}: a PNG in base64
     */
    computer_action(params: { session_name: string; action?: string | undefined; type?: string | undefined; text?: string | undefined; key?: string | undefined; keys?: readonly string[] | undefined; url?: string | undefined; coordinate?: readonly number[] | undefined; start_coordinate?: readonly number[] | undefined; region?: readonly number[] | undefined; x?: number | undefined; y?: number | undefined; button?: string | undefined; path?: readonly Message[] | undefined; scroll_x?: number | undefined; scroll_y?: number | undefined; scroll_amount?: number | undefined; scroll_direction?: string | undefined; duration?: number | undefined; press_enter?: boolean | undefined; screenshot?: boolean | undefined; settle_ms?: number | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("computer_action", given(params), options.signal);
    }

    /**
     * Take a picture of a desktop.
     *
     * @param params.session_name The session, as computer_new_session named it
     * @param params.region [x0, y0, x1, y1] (default: all of the screen)
     * @param params.changed Only the part that has changed since the last one (default: false)
     * @param params.full With every pixel of the screen; a region always has them (default: false)
     * @param params.no_cursor Without the pointer (default: false)
     * @returns {mime_type, width, height, data}: a PNG in base64; with a region or changed {x, y}; with changed {changed}
     */
    computer_screenshot(params: { session_name: string; region?: readonly number[] | undefined; changed?: boolean | undefined; full?: boolean | undefined; no_cursor?: boolean | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("computer_screenshot", given(params), options.signal);
    }

    /**
     * Wait until nothing changes on a desktop's screen.
     *
     * @param params.session_name The session, as computer_new_session named it
     * @param params.region [x0, y0, x1, y1] (default: all of the screen)
     * @param params.quiet Seconds for which nothing has changed; a caret may blink (default: 0.5)
     * @param params.timeout Seconds to wait for that at most (default: 30)
     * @returns {stable, quiet_s}
     */
    computer_wait(params: { session_name: string; region?: readonly number[] | undefined; quiet?: number | undefined; timeout?: number | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("computer_wait", given(params), options.signal);
    }

    /**
     * End a desktop's session, with what it has started.
     *
     * @param params.session_name The session, as computer_new_session named it
     * @returns null
     */
    computer_close_session(params: { session_name: string }, options: Abortable = {}): Promise<null> {
        return this.#connection.call("computer_close_session", given(params), options.signal);
    }

    /**
     * View and edit files, exactly.
     *
     * @param params.command view, create, str_replace, insert, undo_edit, apply_patch or edit_many, each with params of its own
     * @param params._run_as_user As whom the work is done, by name; another user takes root (default: the caller)
     * @param params._run_as The same, by name or by numbers (default: the caller)
     * @param params.path The file; a relative one is taken from the caller's directory
     * @param params.view_range First and last line, from 1; last -1: to the end (default: all)
     * @param params.encoding Of the file: utf-8, utf-16, utf-16le, utf-16be, cp1252 or latin-1 (default: utf-8, or utf-16 where a byte order mark says so)
     * @param params.file_text Its content
     * @param params.overwrite Also in the place of a file that is there, which can be undone (default: false)
     * @param params.parents Make the directories that are missing on the way (default: false)
     * @param params.old_str What is replaced; it has to occur once, unless one of the next two says otherwise
     * @param params.new_str What stands there then (default: nothing)
     * @param params.replace_all Wherever it occurs (default: false)
     * @param params.expected_count Replace so many, and nothing where it occurs more or less often (default: any with replace_all, else 1)
     * @param params.insert_line The line behind which to insert; 0: in front of the first
     * @param params.insert_text Another name of new_str
     * @param params.patch A unified diff, git's too, or a text from *** Begin Patch to *** End Patch
     * @param params.edits The edits, in their order: objects with the params of str_replace, insert or create
     * @returns a string: what was done or is there, in words
     */
    text_editor(params: { command: string; _run_as_user?: string | undefined; _run_as?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined; path?: string | undefined; view_range?: readonly number[] | undefined; encoding?: string | undefined; file_text?: string | undefined; overwrite?: boolean | undefined; parents?: boolean | undefined; old_str?: string | undefined; new_str?: string | undefined; replace_all?: boolean | undefined; expected_count?: number | undefined; insert_line?: number | undefined; insert_text?: string | undefined; patch?: string | undefined; edits?: readonly Message[] | undefined }, options: Abortable = {}): Promise<string> {
        return this.#connection.call("text_editor", given(params), options.signal);
    }

    /**
     * Sessions, jobs, MCP servers and browsers as they begin and end, over a stream each as an event.
     *
     * @param params.cursor That of the last event that was received (default: from now on, and the first answer comes at once)
     * @returns {cursor, ended, dropped, events}
     */
    server_watch(params: { cursor?: number | undefined } = {}, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("server_watch", given(params), options.signal);
    }

    /**
     * Read a file, or a part of it.
     *
     * @param params.path The file
     * @param params.offset The first byte (default: 0)
     * @param params.length How many bytes at most (default: 1048576)
     * @param params.encoding Of data: base64, utf-8, utf-16, utf-16le, utf-16be, cp1252 or latin-1 (default: utf-8)
     * @param params.sha256 Also the sha256 of all of it (default: false)
     * @param params.user As whom it is done; another user takes root (default: the caller)
     * @returns {data, offset, length, end, sha256?, type, size, mode, mtime, uid, gid, user, group, links, inode, disk_bytes, target?}
     */
    file_read(params: { path: string; offset?: number | undefined; length?: number | undefined; encoding?: string | undefined; sha256?: boolean | undefined; user?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("file_read", given(params), options.signal);
    }

    /**
     * Write a file: whole and at once, or a part of it.
     *
     * @param params.path The file
     * @param params.data Its content, or a part of it
     * @param params.encoding Of data: base64, utf-8, utf-16, utf-16le, utf-16be, cp1252 or latin-1 (default: utf-8)
     * @param params.offset Write there, and leave the rest as it is (default: the whole content is replaced, at once)
     * @param params.append Write behind what is there (default: false)
     * @param params.mode Its permission bits, as a decimal number (0644 is 420) (default: as it was; of a new file by the umask)
     * @param params.owner Whose it is to be, as of file_chown (default: as it was; a new file is its writer's)
     * @param params.parents Make the directories that lead there (default: false)
     * @param params.exclusive Make it; one that is there is an error (default: false)
     * @param params.if_sha256 Only where what is there has this sha256, in lower-case hexadecimal digits (default: in any case)
     * @param params.user As whom it is done; another user takes root (default: the caller)
     * @returns {written, created, atomic, type, size, mode, mtime, uid, gid, user, group, links, inode, disk_bytes, target?}
     */
    file_write(params: { path: string; data: string; encoding?: string | undefined; offset?: number | undefined; append?: boolean | undefined; mode?: number | undefined; owner?: string | undefined; parents?: boolean | undefined; exclusive?: boolean | undefined; if_sha256?: string | undefined; user?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("file_write", given(params), options.signal);
    }

    /**
     * What is known of a file, directory or link.
     *
     * @param params.path What is asked about
     * @param params.follow Where it is a link: what it leads to (default: true)
     * @param params.sha256 Also the sha256 of all of it (default: false)
     * @param params.user As whom it is done; another user takes root (default: the caller)
     * @returns {type, size, mode, mtime, uid, gid, user, group, links, inode, disk_bytes, target?, sha256?}
     */
    file_stat(params: { path: string; follow?: boolean | undefined; sha256?: boolean | undefined; user?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("file_stat", given(params), options.signal);
    }

    /**
     * What is in a directory, in the order of bytes.
     *
     * @param params.path The directory
     * @param params.depth How many levels (default: 1)
     * @param params.glob Only paths, from the directory on, that match: *, ?, **, [a-z], {a,b} (default: all)
     * @param params.hidden Also names that begin with a dot (default: true)
     * @param params.limit How many entries at most (default: 1000)
     * @param params.sort name (of bytes), size (the largest first) or mtime (the newest first) (default: name)
     * @param params.after Go on behind this path: `next` of the answer before (default: from the first one)
     * @param params.user As whom it is done; another user takes root (default: the caller)
     * @returns {entries, next?, incomplete}; an entry has path, type, size, mode, mtime, uid, gid, user, group, links, inode, disk_bytes, target?
     */
    file_list(params: { path: string; depth?: number | undefined; glob?: string | undefined; hidden?: boolean | undefined; limit?: number | undefined; sort?: string | undefined; after?: string | undefined; user?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("file_list", given(params), options.signal);
    }

    /**
     * Make a directory.
     *
     * @param params.path The directory
     * @param params.parents Make the directories that lead there (default: false)
     * @param params.mode Its permission bits, as a decimal number (0644 is 420) (default: 0777 as the umask allows)
     * @param params.user As whom it is done; another user takes root (default: the caller)
     * @returns null
     */
    file_make_dir(params: { path: string; parents?: boolean | undefined; mode?: number | undefined; user?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined }, options: Abortable = {}): Promise<null> {
        return this.#connection.call("file_make_dir", given(params), options.signal);
    }

    /**
     * Remove a file, a link or a directory.
     *
     * @param params.path What is removed; of a link the link itself
     * @param params.recursive A directory with all that is in it (default: false)
     * @param params.user As whom it is done; another user takes root (default: the caller)
     * @returns null
     */
    file_remove(params: { path: string; recursive?: boolean | undefined; user?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined }, options: Abortable = {}): Promise<null> {
        return this.#connection.call("file_remove", given(params), options.signal);
    }

    /**
     * Move or rename within a file system.
     *
     * @param params.path What is moved
     * @param params.to Its new path
     * @param params.overwrite Replace a file that is there (default: false)
     * @param params.user As whom it is done; another user takes root (default: the caller)
     * @returns null
     */
    file_move(params: { path: string; to: string; overwrite?: boolean | undefined; user?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined }, options: Abortable = {}): Promise<null> {
        return this.#connection.call("file_move", given(params), options.signal);
    }

    /**
     * Copy a file, or a tree with its links, modes and times.
     *
     * @param params.path What is copied
     * @param params.to The path of the copy
     * @param params.overwrite Replace a file that is there (default: false)
     * @param params.recursive A directory with all that is in it (default: false)
     * @param params.user As whom it is done; another user takes root (default: the caller)
     * @returns {files, bytes}
     */
    file_copy(params: { path: string; to: string; overwrite?: boolean | undefined; recursive?: boolean | undefined; user?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("file_copy", given(params), options.signal);
    }

    /**
     * Make a link.
     *
     * @param params.path The link to make
     * @param params.to What it leads to
     * @param params.hard Another name of the same file (default: false: a symbolic link)
     * @param params.user As whom it is done; another user takes root (default: the caller)
     * @returns null
     */
    file_link(params: { path: string; to: string; hard?: boolean | undefined; user?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined }, options: Abortable = {}): Promise<null> {
        return this.#connection.call("file_link", given(params), options.signal);
    }

    /**
     * Set permission bits.
     *
     * @param params.path The file
     * @param params.mode Its permission bits, as a decimal number (0644 is 420)
     * @param params.user As whom it is done; another user takes root (default: the caller)
     * @returns null
     */
    file_chmod(params: { path: string; mode: number; user?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined }, options: Abortable = {}): Promise<null> {
        return this.#connection.call("file_chmod", given(params), options.signal);
    }

    /**
     * Set owner and group.
     *
     * @param params.path The file
     * @param params.owner Whose it is to be, by names or numbers: user, user:group or :group (default: as it is)
     * @param params.gid The number of its group (default: as it is)
     * @param params.follow Where it is a link: what it leads to (default: true)
     * @param params.user As whom it is done; another user takes root (default: the caller)
     * @returns null
     */
    file_chown(params: { path: string; owner?: string | undefined; gid?: number | undefined; follow?: boolean | undefined; user?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined }, options: Abortable = {}): Promise<null> {
        return this.#connection.call("file_chown", given(params), options.signal);
    }

    /**
     * Set the time of change.
     *
     * @param params.path The file; made where it is missing
     * @param params.mtime When it was changed, seconds since 1970 (default: now)
     * @param params.user As whom it is done; another user takes root (default: the caller)
     * @returns null
     */
    file_touch(params: { path: string; mtime?: number | undefined; user?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined }, options: Abortable = {}): Promise<null> {
        return this.#connection.call("file_touch", given(params), options.signal);
    }

    /**
     * How much lies there, with all that is below it.
     *
     * @param params.path A path there
     * @param params.user As whom it is done; another user takes root (default: the caller)
     * @returns {entries, bytes, disk_bytes, incomplete}
     */
    file_disk_usage(params: { path: string; user?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("file_disk_usage", given(params), options.signal);
    }

    /**
     * What its file system has.
     *
     * @param params.path A path there
     * @param params.user As whom it is done; another user takes root (default: the caller)
     * @returns {total_bytes, free_bytes, available_bytes, total_inodes, free_inodes, read_only}
     */
    file_space(params: { path: string; user?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("file_space", given(params), options.signal);
    }

    /**
     * Find what has such a name, kind, size or time, sorted by path.
     *
     * @param params.path Where to begin (default: where toolbox runs)
     * @param params.pattern A glob, for names anywhere below, or with a slash for paths from there on: src/**\/*.c (default: *)
     * @param params.type Only what is a file, directory, symlink or other (default: all)
     * @param params.min_size Only files of so many bytes at least
     * @param params.max_size Only files of so many bytes at most
     * @param params.newer Only what was changed later, seconds since 1970
     * @param params.older Only what was changed before that
     * @param params.hidden Also names that begin with a dot (default: false)
     * @param params.ignore Leave out what .gitignore and .ignore there say, and .git (default: true)
     * @param params.exclude Patterns as of glob: of names, or with a slash of paths (default: none)
     * @param params.limit How many at most (default: 1000)
     * @param params.timeout How many seconds at most (default: 10)
     * @param params.user As whom it is done; another user takes root (default: the caller)
     * @returns {paths, truncated, timed_out, unreadable_directories}
     */
    file_find(params: { path?: string | undefined; pattern?: string | undefined; type?: string | undefined; min_size?: number | undefined; max_size?: number | undefined; newer?: number | undefined; older?: number | undefined; hidden?: boolean | undefined; ignore?: boolean | undefined; exclude?: readonly string[] | undefined; limit?: number | undefined; timeout?: number | undefined; user?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined } = {}, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("file_find", given(params), options.signal);
    }

    /**
     * Find lines in text files.
     *
     * @param params.pattern A regular expression (POSIX extended, and \w \d \s \b) for single lines
     * @param params.path Where to begin (default: where toolbox runs)
     * @param params.literal The pattern is a text (default: false)
     * @param params.ignore_case Large and small letters are the same (default: false)
     * @param params.multiline A match may go over several lines; \n is a line end, and . none (default: false)
     * @param params.count How many lines match in each file, rather than which (default: false)
     * @param params.glob Only files like that, as the pattern of file_find (default: all)
     * @param params.context Lines to give around each match (default: 0)
     * @param params.hidden Also names that begin with a dot (default: false)
     * @param params.ignore Leave out what .gitignore and .ignore there say, and .git (default: true)
     * @param params.exclude Patterns as of glob: of names, or with a slash of paths (default: none)
     * @param params.limit How many at most (default: 200)
     * @param params.timeout How many seconds at most (default: 10)
     * @param params.user As whom it is done; another user takes root (default: the caller)
     * @returns {matches, files_searched, files_binary, files_too_large, unreadable, truncated, timed_out}; a match has path, line, text, line_cut?, before?, after?, or path, count
     */
    file_search(params: { pattern: string; path?: string | undefined; literal?: boolean | undefined; ignore_case?: boolean | undefined; multiline?: boolean | undefined; count?: boolean | undefined; glob?: string | undefined; context?: number | undefined; hidden?: boolean | undefined; ignore?: boolean | undefined; exclude?: readonly string[] | undefined; limit?: number | undefined; timeout?: number | undefined; user?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined }, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("file_search", given(params), options.signal);
    }

    /**
     * What changes in a tree, as it changes, over a stream each time as an event.
     *
     * @param params.path A directory, or a file: a watch begins. One that is relative begins where the server was started (default: cursor says it)
     * @param params.cursor That of the answer before: what it told is not told again (default: none: the answer comes at once)
     * @param params.exclude Patterns as of file_find: of names, or with a slash of paths from there on (default: none)
     * @param params.recursive Also what is in the directories there (default: true)
     * @param params.timeout How many seconds to wait for a change; then changes is empty (default: until there is one)
     * @param params.stop End the watch (default: false)
     * @param params.ends_with A process with whose end it ends, however that comes (default: none)
     * @param params.user With whose rights; another user takes root (default: the server's own)
     * @returns {cursor, changes, ended, incomplete}; a change has path, change (created, changed, deleted, overflow, dropped), directory
     */
    file_watch(params: { path?: string | undefined; cursor?: string | undefined; exclude?: readonly string[] | undefined; recursive?: boolean | undefined; timeout?: number | undefined; stop?: boolean | undefined; ends_with?: number | undefined; user?: string | { uid: number; gid: number; groups: readonly number[]; home?: string } | undefined } = {}, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("file_watch", given(params), options.signal);
    }

    /**
     * Try what the tools rest on, where they run.
     *
     * @returns {ok, checks}; a check is {name, state, tools, seen, instead, change}, its state works, falls_back or fails
     */
    doctor(params: Record<string, never> = {}, options: Abortable = {}): Promise<Json> {
        return this.#connection.call("doctor", given(params), options.signal);
    }
}
