/* The table of tools: what clients and models are told of each. */
#include "mcp_tool.h"

#include <stddef.h>

#include "mcp_tools.h"

/* An argument: its key, its type as of params.h, where it goes, what it means; and bounds and the like. */
#define ARG_WITH(key_, type_, member, about_, ...)                                                           \
    {                                                                                                        \
        .key = (key_), .type = PARAM_##type_, .offset = (short)offsetof(struct args, member),                \
        .about = (about_), __VA_ARGS__                                                                       \
    }
#define ARG(key_, type_, member, about_) ARG_WITH(key_, type_, member, about_, .words = NULL)
#define FIELDS(list) (list), sizeof(list) / sizeof *(list)

/* ---- arguments that several tools have ---- */

#define SESSION ARG("session", NAME, session, "Name of the shell; default: the first one")
#define MAX_OUTPUT                                                                                           \
    ARG_WITH("max_output_bytes", INT, max_bytes, "Of longer output the middle is left out", .min = 1,        \
             .max = 10485760, .otherwise = 30000)
#define MAX_READ                                                                                             \
    ARG_WITH("max_output_bytes", INT, max_bytes, "Of longer output the oldest is left out", .min = 1,        \
             .max = 10485760, .otherwise = 30000)
#define JOB                                                                                                  \
    ARG_WITH("job", INT, job, "Number that job_start gave", .required = true, .min = 1, .max = UNBOUNDED)
#define IGNORE ARG_WITH("ignore", BOOL, ignores, "Heed .gitignore, .ignore", .otherwise = true)
#define HIDDEN ARG("hidden", BOOL, hidden, "Names with a dot in front too")
#define EXCLUDE ARG("exclude", NAMES, exclude, "Patterns to leave out with all below, such as node_modules")
#define SECONDS                                                                                              \
    ARG_WITH("timeout", NUMBER, timeout, "Seconds until what was found is given", .min = 1, .max = 600,      \
             .otherwise = 20)

/* ---- shells ---- */

static const struct field run_fields[] = {
    ARG_WITH("command", TEXT, command, "One or more lines", .required = true),
    SESSION,
    ARG_WITH("timeout", NUMBER, timeout, "Seconds; then it runs on, for shell_wait", .max = 86400,
             .otherwise = 45),
    MAX_OUTPUT,
};
static const struct field wait_fields[] = {
    SESSION,
    ARG_WITH("timeout", NUMBER, timeout, "Seconds to wait", .max = 86400, .otherwise = 45),
    MAX_OUTPUT,
};
static const struct field input_fields[] = {
    ARG_WITH("text", TEXT, text, "What to type; \\u0003 is Ctrl-C, \\u0004 the end of input",
             .required = true),
    ARG_WITH("enter", BOOL, enter, "Type Enter behind it", .otherwise = 1),
    SESSION,
    ARG_WITH("timeout", INT, timeout_s, "Seconds to wait for output", .max = 86400, .otherwise = 5),
    MAX_READ,
};
static const struct field read_fields[] = {
    SESSION,
    ARG_WITH("timeout", INT, timeout_s, "Seconds to wait for output", .max = 86400, .otherwise = 5),
    MAX_READ,
};
static const struct field session_fields[] = {SESSION};
static const struct field close_fields[] = {
    ARG_WITH("session", NAME, session, "Name of the shell to end", .required = true),
};
static const struct field new_fields[] = {
    ARG("cwd", NAME, cwd, "Directory to start in"),
    ARG("env", ENV, env, "Variables to set, as NAME=VALUE"),
    ARG("user", NAME, user, "User to run as (takes root)"),
    ARG("shell", NAME, shell, "Its path; default: bash, else sh"),
    ARG("program", NAMES, program,
        "Instead of a shell an interpreter or debugger with arguments, such as [\"python3\", \"-q\"]"),
    ARG_WITH("rows", INT, rows, "Of its terminal; default: 24", .min = 1, .max = 32767),
    ARG_WITH("cols", INT, cols, "Of its terminal; default: 200", .min = 1, .max = 32767),
    ARG("term", NAME, term, "TERM; default: dumb"),
};

/* ---- jobs ---- */

static const struct field start_fields[] = {
    ARG("command", TEXT, command, "For /bin/sh -c; or give argv"),
    ARG("argv", NAMES, argv, "Program and arguments, without a shell"),
    ARG("cwd", NAME, cwd, "Directory to start in"),
    ARG("env", ENV, env, "Variables to add, as NAME=VALUE"),
    ARG("user", NAME, user, "User to run as (takes root)"),
    ARG("input", TEXT, text, "Text for its stdin"),
    ARG("stdin_open", BOOL, open, "Keep it open for job_write"),
    ARG("pty", BOOL, pty, "On a terminal of its own"),
    ARG_WITH("timeout", NUMBER, timeout, "Seconds until it is killed; default: never", .max = 31536000),
};
static const struct field job_wait_fields[] = {
    JOB,
    ARG_WITH("for", TEXT, until, "Its end, or any new output", .words = "end|output"),
    ARG_WITH("timeout", NUMBER, timeout, "Seconds to wait; 0 only looks", .max = 86400, .otherwise = 30),
};
static const struct field job_write_fields[] = {
    JOB,
    ARG("text", TEXT, text, "For its stdin; end lines with \\n"),
    ARG("close", BOOL, close, "Close stdin behind it"),
};
static const struct field job_fields[] = {JOB};

/* ---- the browser ---- */

#define ELEMENT                                                                                              \
    ARG_WITH("element_id", INT, element, "The number in brackets at the front of its line", .required = true)

static const struct field web_go_fields[] = {
    ARG_WITH("url", NAME, url,
             "Address; without a scheme it is http:// for localhost and its like, else https://",
             .required = true),
};
static const struct field web_click_fields[] = {
    ELEMENT,
    ARG_WITH("how", TEXT, value, "Default: left", .words = "left|right|middle|double|hover|drag"),
    ARG_WITH("to", INT, tab, "Element to drag it to", .max = UNBOUNDED, .otherwise = -1),
    ARG("x", INT, rows, "Where in the element, from its left, instead of its middle; with y"),
    ARG("y", INT, cols, "From its top"),
};
static const struct field web_type_fields[] = {
    ELEMENT,
    ARG_WITH("text", TEXT, text, "What to type", .required = true),
    ARG("submit", BOOL, enter, "Empty the field first, and press Enter behind it"),
};
static const struct field web_select_fields[] = {
    ELEMENT,
    ARG_WITH("value", TEXT, value, "An option's value, or what it shows", .required = true),
};
static const struct field web_press_fields[] = {
    ARG_WITH("key", NAME, key, "A key: Enter, Escape, ArrowDown, Control+A, ...", .required = true),
};
static const struct field web_scroll_fields[] = {
    ARG_WITH("direction", TEXT, direction, "Where to, by one screen", .words = "up|down", .required = true),
    ARG("element_id", INT, element, "What to scroll, or something in it; default: what is in front"),
};
static const struct field web_wait_fields[] = {
    ARG("text", TEXT, text, "A text that is to come into sight"),
    ARG("gone", TEXT, gone, "A text that is to go"),
    ARG("url", NAME, url, "A part of the address to come"),
    ARG("element_id", INT, element, "An element that is to be seen and enabled"),
    ARG("network_idle", BOOL, idle, "Until nothing is loaded or asked for"),
    ARG_WITH("timeout", INT, timeout_s, "Seconds", .min = 1, .max = 600, .otherwise = 30),
};
static const struct field web_find_fields[] = {
    ARG_WITH("text", TEXT, text, "What to look for", .required = true),
};
static const struct field web_text_fields[] = {
    ARG_WITH("format", TEXT, format, "markdown: of the main region; default: text",
             .words = "text|markdown|html"),
    ARG_WITH("offset", INT, offset, "First character, to go on with", .max = UNBOUNDED),
    ARG_WITH("max", INT, limit, "Characters at most", .min = 1, .max = 10000000, .otherwise = 100000),
};
static const struct field web_history_fields[] = {
    ARG_WITH("direction", TEXT, direction, "Where to in the history; refresh loads the page again",
             .words = "back|forward|refresh", .required = true),
};
static const struct field web_tabs_fields[] = {
    ARG_WITH("tab", INT, tab, "Show this one", .max = UNBOUNDED, .otherwise = -1),
    ARG("close", BOOL, close, "Close it instead"),
    ARG("new", BOOL, new_tab, "Open an empty one"),
};
static const struct field web_screenshot_fields[] = {
    ARG("full_page", BOOL, full_page, "All of the page rather than what is in view"),
    ARG("element_id", INT, element, "An element alone"),
};
static const struct field web_evaluate_fields[] = {
    ARG_WITH("expression", TEXT, expression, "JavaScript; a promise is waited for", .required = true),
};

/* ---- the desktop ---- */

/* The method takes them as they came: the members tell their types alone, and several share one. */
static const struct field computer_fields[] = {
    ARG_WITH("action", TEXT, command, "What to do", .required = true,
             .words = "screenshot|zoom|cursor_position|mouse_move|left_click|right_click|middle_click|"
                      "back_click|forward_click|double_click|triple_click|left_click_drag|left_mouse_down|"
                      "left_mouse_up|scroll|key|hold_key|key_down|key_up|type|wait|open_web_browser|navigate|"
                      "click|move|drag|keypress"),
    ARG("text", TEXT, text,
        "Of type: the text; of key: keys such as ctrl+s; of a click or scroll: keys to hold; of navigate: "
        "the address"),
    ARG("coordinate", INTS, view_range, "[x, y] in the picture; default: where the pointer is"),
    ARG("start_coordinate", INTS, view_range, "Where left_click_drag begins"),
    ARG("region", INTS, view_range, "[x0, y0, x1, y1] to zoom"),
    ARG_WITH("scroll_direction", TEXT, direction, "Of scroll", .words = "up|down|left|right"),
    ARG("scroll_amount", INT, rows, "Clicks of the wheel"),
    ARG("duration", NUMBER, timeout, "Seconds, of wait and hold_key"),
    ARG("key", NAME, key, "Keys to hold during a click or scroll"),
    ARG("x", INT, rows, "With y in the place of coordinate"),
    ARG("y", INT, rows, "With x"),
    ARG_WITH("button", TEXT, value, "Of click", .words = "left|right|wheel|middle|back|forward"),
    ARG("keys", NAMES, argv, "Of keypress: pressed together"),
    ARG("path", LIST, points, "Of drag: points {x, y}"),
    ARG("scroll_x", INT, rows, "Pixels to the right, in the place of scroll_direction"),
    ARG("scroll_y", INT, rows, "Pixels down"),
    ARG("press_enter", BOOL, enter, "Press Return behind what is typed"),
    ARG_WITH("screenshot", BOOL, open, "Answer with a picture, once the screen has come to rest",
             .otherwise = true),
};

#define PAGE_RESULT NULL /* text */
#define WEB_HINTS (TOOL_DESTROYS | TOOL_OPEN_WORLD)

/* ---- files ---- */

static const struct field editor_fields[] = {
    ARG_WITH("command", TEXT, command, "What to do",
             .words = "view|create|str_replace|insert|undo_edit|apply_patch", .required = true),
    ARG_WITH("path", NAME, path, "File; view: also a directory; apply_patch: the directory of its names",
             .required = true),
    ARG("view_range", INTS, view_range, "view: first and last line; -1 is the end"),
    ARG("file_text", TEXT, file_text, "create: the content"),
    ARG("old_str", TEXT, old_str, "str_replace: text that is there exactly once"),
    ARG("replace_all", BOOL, literal, "str_replace: everywhere"),
    ARG("new_str", TEXT, new_str, "str_replace: the new text; insert: the lines"),
    ARG("insert_line", INT, insert_line, "insert: behind this line; 0 is the front"),
    ARG("patch", TEXT, content, "apply_patch: unified diff, or *** Begin Patch ... *** End Patch"),
    ARG("encoding", NAME, encoding, "Of a file that isn't UTF-8: utf-16, cp1252, latin-1"),
};
static const struct field read_file_fields[] = {
    ARG_WITH("path", NAME, path, "File", .required = true),
    ARG_WITH("offset", INT, offset, "First byte", .max = UNBOUNDED),
    ARG_WITH("max_bytes", INT, max_bytes, "Longest piece", .min = 1, .max = 10485760, .otherwise = 30000),
    ARG_WITH("encoding", TEXT, encoding, "Default: images as such, else utf-8", .words = "utf-8|base64"),
};
static const struct field write_file_fields[] = {
    ARG_WITH("path", NAME, path, "File", .required = true),
    ARG_WITH("content", TEXT, content, "What to write", .required = true),
    ARG_WITH("mode", TEXT, mode, "Default: replace; create: only where nothing is",
             .words = "replace|create|append"),
    ARG_WITH("encoding", TEXT, encoding, "Of the content", .words = "utf-8|base64"),
    ARG("parents", BOOL, parents, "Make directories"),
};
static const struct field list_files_fields[] = {
    ARG("path", NAME, path, "Default: the server's"),
    ARG_WITH("depth", INT, depth, "Levels", .min = 1, .max = 100, .otherwise = 1),
    HIDDEN,
    IGNORE,
    EXCLUDE,
    ARG_WITH("limit", INT, limit, "Most entries", .min = 1, .max = 10000, .otherwise = 1000),
    SECONDS,
};
static const struct field find_fields[] = {
    ARG_WITH(
        "pattern", NAME, pattern,
        "Glob with * ? [a-z] {a,b} **; without a slash for names, with one for paths, such as src/**/*.c",
        .required = true),
    ARG("path", NAME, path, "Directory; default: the server's"),
    ARG_WITH("type", TEXT, type, "Only what is this", .words = "file|directory|symlink|other"),
    HIDDEN,
    EXCLUDE,
    ARG_WITH("limit", INT, limit, "Most paths", .min = 1, .max = 10000, .otherwise = 1000),
    SECONDS,
};
static const struct field search_fields[] = {
    ARG_WITH("pattern", NAME, pattern, "POSIX extended regular expression, for lines", .required = true),
    ARG("literal", BOOL, literal, "The pattern is plain text"),
    ARG("ignore_case", BOOL, ignore_case, "Upper and lower case alike"),
    ARG("path", NAME, path, "File or directory; default: the server's"),
    ARG("glob", NAME, glob, "Only these files, as of find_files"),
    ARG_WITH("context", INT, context, "Lines around each match", .max = 20),
    HIDDEN,
    IGNORE,
    EXCLUDE,
    ARG_WITH("limit", INT, limit, "Most matches", .min = 1, .max = 10000, .otherwise = 200),
    SECONDS,
};

/* ---- results ---- */

#define RUN_RESULT                                                                                           \
    "session:s state:w(completed|timeout|awaiting_input|exited) exit_code:i? error?:o output:s cwd:s? "      \
    "duration_ms:i omitted_bytes:i notice?:s"
#define READ_RESULT "session:s output:s"
#define SESSION_RESULT "session:s"
#define JOB_RESULT                                                                                           \
    "job:i state:w(running|completed|killed) exit_code:i? timed_out?:b oom_killed?:b stdout:s stderr:s "     \
    "omitted_bytes:i"

/* ---- the tools ---- */

const struct mcp_tool mcp_tools[] = {
    {"shell_run", "Run a command in a shell",
     "Runs a command in a shell that stays (directory, variables, background programs) and returns output "
     "and exit code. state: completed; timeout: it runs on; awaiting_input: shell_input answers it; exited: "
     "shell_restart.",
     FIELDS(run_fields), TOOL_DESTROYS | TOOL_OPEN_WORLD, TURN_SHELL, RUN_RESULT, mcp_shell_run},
    {"shell_wait", "Wait for a command in a shell",
     "Waits on for what shell_run left running: the rest of the output, the exit code.", FIELDS(wait_fields),
     TOOL_READS | TOOL_OPEN_WORLD, TURN_SHELL, RUN_RESULT, mcp_shell_wait},
    {"shell_input", "Type into a shell",
     "Types into the terminal of a shell, for programs that ask, and returns what comes.",
     FIELDS(input_fields), TOOL_DESTROYS | TOOL_OPEN_WORLD, TURN_NONE, READ_RESULT, mcp_shell_input},
    {"shell_read", "Read from a shell", "Returns what a shell has printed since the last call.",
     FIELDS(read_fields), TOOL_READS, TURN_NONE, READ_RESULT, mcp_shell_read},
    {"shell_interrupt", "Interrupt a program in a shell", "Types Ctrl-C into a shell and returns what comes.",
     FIELDS(read_fields), TOOL_DESTROYS, TURN_NONE, READ_RESULT, mcp_shell_interrupt},
    {"shell_restart", "Restart a shell", "Ends all that is in a shell and starts it anew.",
     FIELDS(session_fields), TOOL_DESTROYS, TURN_NONE, SESSION_RESULT, mcp_shell_restart},
    {"shell_new", "Start another shell", "Starts one more shell; its name is in session.", FIELDS(new_fields),
     TOOL_OPEN_WORLD, TURN_NONE, "session:s shell:s", mcp_shell_new},
    {"shell_list", "List shells", "Lists all shells, also those of others.", NULL, 0, TOOL_READS, TURN_NONE,
     "default_session:s? sessions:[session_name:s pid:i user:s shell:s cwd:s? "
     "state:w(prompt|running|awaiting_input|ended) "
     "foreground:s? idle_s:n unread_bytes:i]",
     mcp_shell_list},
    {"shell_close", "End a shell", "Ends a shell and all in it.", FIELDS(close_fields),
     TOOL_DESTROYS | TOOL_IDEMPOTENT, TURN_NONE, SESSION_RESULT, mcp_shell_close},

    {"job_start", "Start a background job",
     "Starts a program in the background, stdout and stderr apart, and returns its number for job_wait.",
     FIELDS(start_fields), TOOL_DESTROYS | TOOL_OPEN_WORLD, TURN_NONE, "job:i", mcp_job_start},
    {"job_wait", "Wait for a job",
     "Waits for a job's end or output: what it printed since the last call, state, exit code (-N: signal N). "
     "After timeout it runs on.",
     FIELDS(job_wait_fields), TOOL_READS | TOOL_OPEN_WORLD, TURN_NONE, JOB_RESULT, mcp_job_wait},
    {"job_write", "Write to a job", "Writes to the stdin of a job with stdin_open.", FIELDS(job_write_fields),
     TOOL_DESTROYS | TOOL_OPEN_WORLD, TURN_NONE, "job:i", mcp_job_write},
    {"job_kill", "Kill a job", "Ends a job with all below it; returns the rest of its output.",
     FIELDS(job_fields), TOOL_DESTROYS | TOOL_IDEMPOTENT, TURN_NONE, JOB_RESULT, mcp_job_kill},
    {"job_list", "List jobs", "Lists jobs that run or ended within the hour.", NULL, 0, TOOL_READS, TURN_NONE,
     "jobs:[job:i state:w(running|completed|killed) exit_code:i? command?:s user?:s age_s?:n duration_s?:n "
     "unread_stdout?:i unread_stderr?:i "
     "timed_out?:b oom_killed?:b]",
     mcp_job_list},

    {"text_editor", "View and edit files",
     "Views and edits text files exactly. view numbers lines (and shows images, directories); create makes a "
     "file; str_replace replaces one text; insert adds lines; undo_edit takes the last edit back; "
     "apply_patch changes several files, all or none.",
     FIELDS(editor_fields), TOOL_DESTROYS, TURN_NONE, NULL, mcp_text_editor},
    {"read_file", "Read a file",
     "Returns a file as it is: text, an image (PNG, JPEG, GIF, WebP), or bytes as base64.",
     FIELDS(read_file_fields), TOOL_READS, TURN_NONE, NULL, mcp_read_file},
    {"write_file", "Write a file", "Writes a whole file, or appends; undo_edit takes it back.",
     FIELDS(write_file_fields), TOOL_DESTROYS, TURN_NONE, "path:s created:b size:i can_be_undone:b",
     mcp_write_file},
    {"list_files", "List a directory", "Lists a directory, sorted, with types and sizes.",
     FIELDS(list_files_fields), TOOL_READS, TURN_NONE,
     "entries:[path:s type:w(file|directory|symlink|other) size?:i target?:s] truncated:b timed_out:b "
     "unreadable_directories:i",
     mcp_list_files},
    {"find_files", "Find files by name", "Finds files by name or path, sorted; links are not followed.",
     FIELDS(find_fields), TOOL_READS, TURN_NONE, "paths:[s] truncated:b timed_out:b unreadable_directories:i",
     mcp_find_files},
    {"search_files", "Search in files",
     "Finds lines in files by a regular expression; binary files and those above 32 MiB are skipped and "
     "counted.",
     FIELDS(search_fields), TOOL_READS, TURN_NONE,
     "matches:[path:s line:i text:s line_cut?:b before?:s after?:s] files_searched:i files_binary:i "
     "files_too_large:i "
     "unreadable:i truncated:b timed_out:b note?:s",
     mcp_search_files},

    {"web_go", "Open a web page",
     "Opens a page in a browser in the container and returns what is visible: the accessibility tree, one "
     "element a line. The number in brackets in front is its id; [*] can't be used.",
     FIELDS(web_go_fields), TOOL_DESTROYS | TOOL_IDEMPOTENT | TOOL_OPEN_WORLD, TURN_BROWSER, PAGE_RESULT,
     mcp_web_go},
    {"web_click", "Click an element", "Clicks an element and returns the page then.",
     FIELDS(web_click_fields), WEB_HINTS, TURN_BROWSER, PAGE_RESULT, mcp_web_click},
    {"web_type", "Type into a field", "Types into a text field, and returns the page. submit sends the form.",
     FIELDS(web_type_fields), WEB_HINTS, TURN_BROWSER, PAGE_RESULT, mcp_web_type},
    {"web_select", "Choose an option", "Chooses an option of a select element, and returns the page.",
     FIELDS(web_select_fields), WEB_HINTS, TURN_BROWSER, PAGE_RESULT, mcp_web_select},
    {"web_press", "Press a key", "Presses a key where the focus is, and returns the page.",
     FIELDS(web_press_fields), WEB_HINTS, TURN_BROWSER, PAGE_RESULT, mcp_web_press},
    {"web_scroll", "Scroll the page", "Scrolls by one screen, and returns what is visible then.",
     FIELDS(web_scroll_fields), TOOL_READS | TOOL_OPEN_WORLD, TURN_BROWSER, PAGE_RESULT, mcp_web_scroll},
    {"web_history", "Go back, forward, or reload", "Moves in the history of the tab, and returns the page.",
     FIELDS(web_history_fields), WEB_HINTS, TURN_BROWSER, PAGE_RESULT, mcp_web_history},
    {"web_tabs", "Tabs of the browser",
     "Lists the tabs; with tab shows or closes one, with new opens one, and returns the page then.",
     FIELDS(web_tabs_fields), TOOL_DESTROYS, TURN_BROWSER, NULL, mcp_web_tabs},
    {"web_wait", "Wait for the page", "Waits for one thing, and returns the page then.",
     FIELDS(web_wait_fields), TOOL_READS | TOOL_OPEN_WORLD, TURN_BROWSER, PAGE_RESULT, mcp_web_wait},
    {"web_find", "Find a text", "Scrolls to the next place where a text is, and returns the page then.",
     FIELDS(web_find_fields), TOOL_READS | TOOL_OPEN_WORLD, TURN_BROWSER, PAGE_RESULT, mcp_web_find},
    {"web_text", "Read a whole page", "Returns all text of the page, also what is out of view.",
     FIELDS(web_text_fields), TOOL_READS | TOOL_OPEN_WORLD, TURN_BROWSER, NULL, mcp_web_text},
    {"web_screenshot", "See the page", "Returns a picture of the page.", FIELDS(web_screenshot_fields),
     TOOL_READS | TOOL_OPEN_WORLD, TURN_BROWSER, NULL, mcp_web_screenshot},
    {"web_evaluate", "Run JavaScript in the page", "Returns the value of a JavaScript expression.",
     FIELDS(web_evaluate_fields), WEB_HINTS, TURN_BROWSER, "type:s value?:a description?:s",
     mcp_web_evaluate},
    {"web_close", "Close the browser", "Closes the browser with all its tabs; the next web_go starts anew.",
     NULL, 0, TOOL_DESTROYS | TOOL_IDEMPOTENT, TURN_BROWSER, "closed:b", mcp_web_close},

    {"computer", "Use the desktop",
     "Works on a desktop as a person does: pictures of its screen, pointer and keyboard. Each action is "
     "answered with a picture; coordinates are its pixels. Programs are started from it, or on its DISPLAY.",
     FIELDS(computer_fields), TOOL_DESTROYS | TOOL_OPEN_WORLD, TURN_COMPUTER, NULL, mcp_computer},

    {"probe", "Describe the container", "Tells distribution, kernel, user, shells, limits of the container.",
     NULL, 0, TOOL_READS, TURN_NONE,
     "version:s arch:s kernel:s distribution:o libc:o uid:i user:s? home:s shells:[s] limits:o", mcp_probe},
    {0},
};
