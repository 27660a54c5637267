/* The steps of an injection, each in a file of its own; inject_one.c says when which is taken. Each has 0
 * when it is done, or -1 with the failure taken down; the target is ready once i->r->ok is set. */
#ifndef INJECT_INJECT_STEPS_H
#define INJECT_INJECT_STEPS_H

#include "host/inject/injection.h"

/* inject_recon.c: finds out what is there. */
int inject_recon(struct injection *i);
/* inject_place.c: writes the file through a shell, by pieces where it has to be. */
int inject_place(struct injection *i);
/* inject_copy.c: by the runtime's own copying, where there is no shell. */
int inject_copy(struct injection *i);
/* inject_dir.c: into a directory where nothing runs; and out of it. */
int inject_dir(struct injection *i);
int inject_dir_eject(const struct inject_options *o, const struct target *t, enum inject_step *failed,
                     struct err *err);
#define INJECT_DIR_ADVICE "name the directory under which the root file system is mounted"
/* inject_with.c: sends the folder that is to come along to the target, which is ready. */
int inject_with(struct injection *i);
/* inject_doctor.c: has it try what the tools rest on there; nothing of that is a failure. */
int inject_doctor(struct injection *i);

#endif
