/* One target made ready: what is there is found out, the right binary is written, proves itself and serves.
 */
#ifndef INJECT_ONE_H
#define INJECT_ONE_H

#include "inject/inject_request.h"
#include "inject/inject_types.h"
#include "inject/recon.h"
#include "inject/transport.h"
#include "release/release.h"

#define INJECT_ANSWER_MAX (512u << 20) /* of a call; whatever the target prints */

/* One injection under way. */
struct injection {
    const struct inject_options *o;
    const struct target *t;
    struct transport *transport;
    struct inject_result *r;
    const char *user; /* as whom, in the runtime's words; NULL: its default */
    char temporary[40];
    struct inject_request *request; /* that follows when the program was found; NULL: none */
    size_t called;                  /* where the answer to it begins; 0: not come to */
    struct recon recon;
    struct transport_call seen;     /* the reconnaissance; its answer stays */
    const struct release_file *own; /* of this machine's architecture: its sum goes with the reconnaissance */
    struct release_file picked, other;
    long long picked_us;             /* what that took */
    const struct release_file *file; /* the one that was chosen */
    const char *arch;
    bool nowhere;    /* no directory that was tried can be written to and run from */
    bool everywhere; /* what is mounted is to be looked through too, whatever the usual places are like */
    struct buf place_script; /* of an attempt that was part of the reconnaissance; len 0: none */
};

/* Makes the target ready. 0, or -1 with the failure in *r. With a request (NULL: none), sent too where that
 * takes no call more. Where it was sent and not answered, -1 with the exit status alone. */
int inject_one(const struct inject_options *o, const struct target *t, struct transport *transport,
               struct inject_result *r, struct inject_request *request);

/* Exit status of a call whose request was sent: its time was over, or its answer got lost. */
enum { EXIT_UNANSWERED = 124, EXIT_LOST = 125 };

/* The command line that runs the program in a target that is ready, with these arguments. */
int inject_command(const struct target *t, const struct inject_result *r, const char *const *arguments,
                   struct argv *out, struct err *err);

/* ---- between the parts of an injection ---- */

/* Runs a shell's script (with the call's further input behind it), or a command where there is no script. */
enum transport_end inject_call(struct injection *i, const struct buf *script, const struct argv *command,
                               struct transport_call *c, struct err *err);

/* A pattern that stands for nothing: takes that down; -1. */
int inject_unlisted(struct injection *i);

/* True when the runtime came in and found no shell to run. */
bool inject_no_shell(const struct transport_call *c);

/* Chooses the file for an architecture: i->file. */
int inject_choose(struct injection *i, const char *arch);

/* Takes the path that the target names as its program's; false, with the failure taken down, where it is none
 * that could be shown and run. */
bool inject_take_path(struct injection *i, const char *path);

/* Takes the object that `settle` printed. 0: it is ready; -1: with the failure in i->r. */
int inject_take_verdict(struct injection *i, struct span verdict);

/* inject_place.c: the script of the first attempt to place the chosen file. */
void inject_place_script(const struct injection *i, struct buf *script);
/* Writes the file through a shell, by pieces where it has to be. */
int inject_place(struct injection *i);
/* inject_copy.c: by the runtime's own copying, where there is no shell. */
int inject_copy(struct injection *i);
/* inject_dir.c: into a directory where nothing runs; and out of it. */
int inject_dir(struct injection *i);
int inject_dir_eject(const struct inject_options *o, const struct target *t, enum inject_step *failed,
                     struct err *err);
#define INJECT_DIR_ADVICE "name the directory under which the root file system is mounted"

/* eject.c: the way out, with its result in *r. */
void eject_one(const struct inject_options *o, const struct target *t, struct transport *transport,
               struct inject_result *r);

#endif
