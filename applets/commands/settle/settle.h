/* Installing itself: the half of `toolbox inject` that runs inside the target. The binary that has just been
 * written verifies its own sum, takes its name and starts its server; and later removes itself again.
 *
 * Beside the program DIR/NAME stands a record, DIR/.NAME.inject, where something has been made that the
 * program's removal has to undo: a line "made DIR" for each directory that was made for it or for its
 * server, the deepest first, and "links DIR" for one with links to it. */
#ifndef APPLETS_SETTLE_H
#define APPLETS_SETTLE_H

#include <stdbool.h>

#include "applet.h"
#include "err.h"

extern const struct applet settle_applet;

#define SETTLE_DIR ".toolbox-bin"        /* begins the names of directories that are for the program alone */
#define SETTLE_MARK ".placed-"           /* begins the names of marks in the server's directory */
#define SETTLE_TEMPORARY ".toolbox-tmp-" /* begins the names of files that have not settled yet */

/* Exit statuses beside EXIT_OK and EXIT_USAGE. */
enum {
    SETTLE_REFUSED = 3,   /* for good; standard output says why */
    SETTLE_ELSEWHERE = 4, /* not in this directory */
};

/* settle_server.c: starts the server where none runs, in the directory `from` (NULL: here), and has it say
 * who it is. It keeps the environment of its starter, which is to be that of any program here: what the shell
 * that started us has put in goes. -1 with ERR_TOOL. */
struct buf;
int settle_start_server(const char *from, struct buf *server, struct err *err);
/* Whether it answers again, the same one: -1 where there never is one that does so twice. */
int settle_check_server(struct buf *server, struct err *err);
/* A server that was started here is an orphan once we end. Where process 1 would keep it as a zombie, it ends
 * again while we can wait for it, if nobody uses it yet: the first call from outside starts the one that
 * stays (server_start.c). */
void settle_leave_no_orphan(void);

/* settle_remove.c: stops the server and removes what the program has kept, unless another placement uses
 * them; its links, its record, itself, and the directories that were made for it. `dir` is the opened
 * directory of `path`, in which nobody else can change anything. -1 with ERR_TOOL when something is left. */
int settle_remove(int dir, const char *path, struct err *err);

/* placement.c: takes down that the program has settled and uses the server. */
void settle_mark(int dir, const char *program);

/* Who else has settled where the server keeps its files. */
enum settled { SETTLED_NOBODY, SETTLED_OTHER_BUILD, SETTLED_SAME_BUILD };

/* Takes that back. What is left: another build has a server of its own beside the same files, with the same
 * build the server is shared as well. */
enum settled settle_leave(int dir, const char *program);

/* Appends the lines for a directory and those above it, up to the topmost one that was made. */
void settle_made(struct buf *record, const char *dir, const char *topmost);

/* settle_record.c: path of the record of a program; free() it. */
char *settle_record_path(const char *program);

#define SETTLE_RECORD_MAX ((size_t)1 << 20) /* bytes */

/* Adds lines to the record of the program, whose opened directory is `dir`; what stands there already is not
 * added again: it is the same program that has been here before. -1 with ERR_TOOL. */
int settle_record_add(int dir, const char *program, const struct buf *lines, struct err *err);

/* Reads it into `text` (with that as its max). False: there is none, or it isn't ours. */
bool settle_record_read(int dir, const char *program, struct buf *text);

/* For each line that begins so, what stands behind that. */
void settle_record_each(char *text, const char *key, void (*fn)(void *arg, const char *value), void *arg);

/* Path of the folder that was brought along with a program (`inject --with`): a browser, say; free() it. */
char *settle_with_path(const char *program);

/* unpack.c: takes that folder from `fd`, whole or not at all, in the place of one that is there; the same one
 * is left alone. What comes is
 *
 *     "folder " SHA256 "\n", the sum of all that follows;
 *     for each entry "d MODE NAME_LEN 0\n", "f MODE NAME_LEN SIZE\n" or "l 0 NAME_LEN SIZE\n", all numbers
 *     decimal; then the name, relative, and SIZE bytes of content or of the link's target;
 *     "e 0 0 0\n" at the end.
 *
 * `dir` as for settle_remove. Returns the state ("placed", "replaced", "identical"), NULL with ERR_TOOL. */
const char *settle_unpack(int fd, int dir, const char *program, struct err *err);

/* Removes a folder with all that is in it, without following a link or leaving its file system. -1 with errno
 * when something is left; one that isn't there is no failure. */
int settle_remove_tree(int dir, const char *name);

#endif
