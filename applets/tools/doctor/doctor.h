/* What the tools rest on, tried out where they would run: what works, what a tool falls back to, what doesn't
 * work, and what to change. Each thing is tried in a process of its own, so that one that kills or hangs it
 * is a finding as well; nothing is left but the private directory, which any call makes. */
#ifndef APPLETS_DOCTOR_DOCTOR_H
#define APPLETS_DOCTOR_DOCTOR_H

#include <stdbool.h>

#include "applet.h"
#include "err.h"
#include "tool.h"

struct check {
    const char *name;
    const char *tools;           /* that rest on it, with ", " between them */
    int (*try)(struct err *err); /* -1 with what was seen */
    const char *otherwise; /* what is done where it isn't to be had; NULL: then those tools don't work */
    const char *change;    /* what somebody could do about it */
};

/* In the order of the report; each ends with one without a name. */
extern const struct check doctor_kernel_checks[], doctor_device_checks[];
/* Without the first of these there is nothing to try the others in. */
extern const struct check doctor_place_checks[], doctor_terminal_checks[];

/* Runs a program to its end, with nothing to read and nowhere to print (where there is no /dev/null it may
 * say so by its status). Its status as of waitpid; -1 with what stands in the way of its start. */
int doctor_run_program(const char *path, char *const *argv, struct err *err);

/* Whether that program can be started and says 7 when it is asked to: a shell; else what stands in the way.
 */
int doctor_try_shell(const char *path, struct err *err);

extern const struct applet doctor_applet;
extern const struct tool doctor_tool;

#endif
