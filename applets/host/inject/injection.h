/* One injection under way: its state, and what more than one of its steps needs. The steps stand in
 * inject_steps.h; none of them knows another one, nor in which order they are taken (inject_one.c). */
#ifndef INJECT_INJECTION_H
#define INJECT_INJECTION_H

#include "host/inject/inject_request.h"
#include "host/inject/inject_types.h"
#include "host/inject/recon.h"
#include "host/inject/script.h"
#include "host/inject/transport.h"
#include "host/release/release.h"

#define INJECT_ANSWER_MAX (512u << 20) /* of a call; whatever the target prints */

/* What reconnaissance has found (inject_recon.c). */
struct looked {
    struct recon recon;
    struct transport_call seen; /* the call that has looked; its answer stays */
    size_t called;              /* where in that the answer to the request begins; 0: not come to */
    bool no_shell;              /* the target is there, and has none */
    struct buf place_script;    /* of an attempt to place that was part of it; len 0: none */
};

/* Which file is the right one. */
struct choice {
    const struct release_file *own; /* of this machine's architecture: its sum goes with the reconnaissance */
    struct release_file picked, other;
    long long picked_us;             /* what that took */
    const struct release_file *file; /* the one that was chosen; NULL: not yet */
    const char *arch;
};

struct injection {
    const struct inject_options *o;
    const struct target *t;
    struct transport *transport;
    struct inject_result *r;        /* r->ok: the target is ready */
    struct inject_request *request; /* that follows when the program was found; NULL: none */
    const char *user;               /* as whom, in the runtime's words; NULL: its default */
    char temporary[40];             /* the name that the file is written under */
    struct looked looked;
    struct choice choice;
    bool nowhere;    /* no directory that was tried can be written to and run from */
    bool everywhere; /* what is mounted is to be looked through too, whatever the usual places are like */
};

/* Runs a shell's script (with the call's further input behind it), or a command where there is no script. */
enum transport_end inject_call(struct injection *i, const struct buf *script, const struct argv *command,
                               struct transport_call *c, struct err *err);

/* For the scripts: what they are to do, with a file of one of these sums. */
struct script_options inject_script(const struct injection *i, const char *sums);
/* That of the first attempt to place the chosen file, and the directories that it tries. */
void inject_place_script(const struct injection *i, struct buf *script);
void inject_place_dirs(const struct injection *i, struct argv *dirs);

#define INJECT_TARGET_ADVICE "check that it exists and runs, and that the runtime can reach it from here"
/* A pattern that stands for nothing: takes that down; -1. */
int inject_unlisted(struct injection *i);

/* True when the runtime came in and found no shell to run. */
bool inject_no_shell(const struct transport_call *c);

/* Says what the runtime or the shell has said instead of an answer; -1. */
int inject_no_answer(const struct injection *i, struct err *err);

/* Chooses the file for an architecture. */
int inject_choose(struct injection *i, const char *arch);

/* A program that was there has settled; and it is this very one. */
bool inject_found(const struct injection *i);
bool inject_found_same(const struct injection *i);

/* Takes the path that the target names as its program's; false, with the failure taken down, where it is none
 * that could be shown and run. */
bool inject_take_path(struct injection *i, const char *path);

/* Takes the object that `settle` printed. 0: it is ready; -1: with the failure in i->r. */
int inject_take_verdict(struct injection *i, struct span verdict);

#endif
