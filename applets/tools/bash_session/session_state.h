/* The shell of a session: its process, what it has told, and where it is. */
#ifndef APPLETS_BASH_SESSION_SESSION_STATE_H
#define APPLETS_BASH_SESSION_SESSION_STATE_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "bash_session_types.h"
#include "buf.h"
#include "session_channel.h"
#include "session_kind.h"
#include "session_terminal.h"
#include "session_wait.h"
#include "user.h"

struct confine;

struct session_options {
    const struct user *user; /* NULL: the server's own */
    const char *user_name;   /* for those who look; a uid that has no name in decimal */
    const char *cwd, *shell; /* NULL: the server's directory; bash, else sh */
    char **program;          /* in the place of a shell, with its arguments; NULL: none */
    const char *term;        /* NULL: dumb */
    char **env;              /* whole environment of the shell */
    bool keeps_history;      /* in a file, as it does by itself */
    int start_dir;
    struct confine *walls; /* NULL: none */
    unsigned short rows, cols;
};

enum shell_state {
    SHELL_ENDED,     /* none runs */
    SHELL_STARTING,  /* it has not told yet */
    SHELL_RUNNING,   /* it has been given something to do, and has not told since */
    SHELL_PROMPTING, /* it has told since it took the last input: its prompt comes */
    SHELL_WAITING,   /* that prompt was seen */
    SHELL_STATES
};

enum shell_event {
    SHELL_STARTS,
    SHELL_TELLS,       /* that it is about to prompt, and has taken all input */
    SHELL_TELLS_EARLY, /* with more input to come: between two commands */
    SHELL_ANSWERS,     /* a question of ours, or an interrupt: it is at its prompt */
    SHELL_IS_SEEN,     /* to wait, with its prompt shown */
    SHELL_RESTS,       /* it is seen to wait, and tells nothing */
    SHELL_IS_GIVEN,    /* something to do */
    SHELL_ENDS,
    SHELL_EVENTS
};

/* What it has told last, while it is not known yet that it was the shell (kind 0: nothing). */
struct told {
    struct channel_message message;
    int n;                   /* how many there were */
    long long since, looked; /* now_ms() */
    int stuck;               /* looks in a row at a shell that waits though nothing has come of it */
    bool doubted; /* it told, or wanted to, and was not believed: what it says when it is asked counts */
};

/* What is known from what it told, and was believed. */
struct known {
    char *cwd;
    int status;            /* of the last command */
    enum waiting waits;    /* for what, when it was last looked at for having settled */
    char *error;           /* that ended it (struct channel_message) */
    unsigned long prompts; /* how often it told */
    long long last_prompt; /* now_ms() when it told last */
    char *ps2;             /* the continuation prompt */
    struct buf prompt;     /* as it last showed; of a mute program: as it first did */
    int begun;             /* commands that it has begun since it told before; -1: not known */
    bool interrupted;      /* since it was given what it does, by us */
    bool struck;           /* so was the shell itself, and not only what it has begun */
    bool adopted;          /* exec bash has taken its place, and got our hook */
    bool seen;             /* to wait for its terminal, so the kernel tells of it */
    bool has_editor;       /* it had its line editor when it was last looked at */
    bool held;             /* an interrupt is to show before it counts as waiting */
};

/* Whose shell it is. */
struct shell_owner {
    /* It is about to prompt. `again`: it told so of the same run before. `counts`: this is no word between
     * two lines of what was typed. */
    bool (*prompts)(void *arg, bool counts);
    /* A message, which a run may wait for. */
    void (*message)(void *arg, const struct channel_message *m);
    /* The line editor waits, though it has been given a key and the code for it: somebody else has read that,
     * or what was typed before has made another key of it. */
    bool (*missed)(const void *arg);
    /* Then what is gone of both is given again, some times. */
    void (*give_again)(void *arg);
    /* What it has printed so far is of no interest to anybody. */
    void (*forget)(void *arg);
};

#define SHELL_INTERRUPTED (128 + SIGINT) /* its status */
#define STATUS_UNKNOWN (-1)              /* nobody can say it */

struct interrupt;

struct shell {
    const struct session_options *options;
    struct terminal *terminal;
    const struct shell_owner *owner;
    void *arg; /* the owner's */
    char path[256];
    const struct shell_kind *kind;
    bool taught;         /* it has been given the line that its kind has for it */
    const char *startup; /* the name of its start-up file */
    bool bare;           /* it was started without its user's own */
    char *notice;        /* why, until a run has told; NULL: nothing is to be told */
    struct channel channel;
    struct loop_source *channel_source, *child_source;
    pid_t pid; /* 0: none runs */
    enum shell_state state;
    int exit_status; /* as of waitpid, once it has ended */
    struct told told;
    struct known known;
    struct interrupt *interrupt; /* in progress; NULL: none */
};

/* The one place that changes its state. */
void shell_happened(struct shell *sh, enum shell_event event);
/* What it tells of itself is believed. */
void shell_learn(struct shell *sh, const struct channel_message *m, enum shell_event event);
/* It has told since it took the last input. */
bool shell_is_back(const struct shell *sh);

enum waiting shell_look(const struct shell *sh, enum look how);
/* With WAITING_FAR_END: what was printed since something was typed ends in the middle of a line, as a prompt
 * or a question does, and nothing has come for a while. More can't be known of who isn't here. */
bool shell_is_asked(const struct shell *sh);
/* It is back at a prompt, or a program waits for input on the terminal, and everything written has been read.
 */
bool shell_settled(struct shell *sh);
/* For what it waits, once it has. */
enum waiting shell_waits(const struct shell *sh);
/* Back at its own prompt, as opposed to a program, a `read` or an unfinished command that waits for input.
 * `shown`: its prompt is known to have been printed. */
bool shell_at_prompt(const struct shell *sh, enum waiting waiting, bool shown);
/* Of one that tells nothing. */
enum unsure shell_is_unsure(const struct shell *sh, enum look how);
/* How much of the line, at its end, is its prompt, which may count, or that for what continues. */
size_t shell_count_prompt(const struct shell *sh, struct span line);
/* It tells nothing, as programs do that nobody has taught to: where it waits for its terminal, that is all.
 */
bool shell_is_mute(const struct shell *sh);
/* Whoever has set its prompt has taken the hook away: it reads a command, and not the rest of one (shells of
 * which the kernel tells that). */
bool shell_lost_hook(const struct shell *sh);
/* The line editor shows the continuation prompt. Text is all there is to tell it from the first one when the
 * hook is gone, and asking the shell would break bash's parser in the middle of a command (5.2). */
bool shell_continues(const struct shell *sh);
/* Its own line editor waits, not a program in the foreground. */
bool shell_edits(const struct shell *sh);

/* "exit status 1", "signal 9, Killed". */
void shell_describe_exit(const struct shell *sh, struct buf *out);
/* Exit status; -N for signal N. */
int shell_exit_code(const struct shell *sh);

/* What it has to say in notes to the terminal is said; but for a hook that it shows (shell_is_shown). */
void shell_end_notes(struct shell *sh);

/* It has not got the line yet that has it read its start-up file: what else is typed has to wait. */
bool shell_teach(struct shell *sh);

/* ---- session_told.c ---- */

/* Reads what it tells; true when something has come of it. */
bool shell_hear(struct shell *sh);
/* Its prompt shows the hook, which it could not run for want of a process: it is back, and tells no more. */
void shell_is_shown(struct shell *sh);
/* Forgets what was heard and not believed yet. */
void shell_hear_afresh(struct shell *sh);
/* It waits for code, which it has not got all of. */
bool shell_reads_code(const struct shell *sh);
/* Lets a shell go on that waits for an answer to what has not been heard. */
void shell_release_stuck(struct shell *sh);

/* ---- session_start.c ---- */

/* Opens a terminal and starts the shell on it. -1: nothing is left of it. */
int shell_start(struct shell *sh, struct err *err);
/* In the place of a shell whose start has come to nothing because its user's start-up files wait for
 * somebody, or have put another program there: ends that, and starts the shell without them. (So it is by
 * itself where they have ended it.) False: it has none, or was started without. */
bool shell_start_bare(struct shell *sh);
/* `exec` has put a program of another kind in its place. */
bool shell_is_replaced(const struct shell *sh);
/* `exec` has put another program in the place of our shell, or another shell of its kind. */
bool shell_is_another(const struct shell *sh);
/* By its path, and what it is to do. */
void shell_choose_kind(struct shell *sh);
/* It is a shell that would tell, and can't: there is no channel. Nobody would know what a command's status
 * is, so that none is run. */
bool shell_lacks_channel(const struct shell *sh);
/* Everything that a loop has to do with one that was started elsewhere. */
void shell_watch(struct shell *sh);
/* Closes the terminal. */
void shell_close(struct shell *sh);

/* ---- session_interrupt.c ---- */

/* Called before an interrupt is sent: sees to it that it is not lost. When it is over, what stands behind it
 * is typed. */
void shell_interrupt_follow(struct shell *sh, const char *behind, size_t n);
/* The same; true: it was sent, as it had to be to know whether the shell is to be interrupted as well. */
bool shell_interrupt_now(struct shell *sh);
/* Interrupts what it was given to do, in a moment when it can be. */
void shell_interrupt_run(struct shell *sh);
/* It waits, and has not told since it was interrupted, or has lost its hook: has it do that. */
void shell_wake(struct shell *sh);
/* Watches no longer, if it did. */
void shell_interrupt_end(struct shell *sh);

#endif
