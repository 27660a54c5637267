/* Tables of the job methods' params (params.h). */
#ifndef APPLETS_EXEC_REMOTE_EXEC_REMOTE_PARAMS_H
#define APPLETS_EXEC_REMOTE_EXEC_REMOTE_PARAMS_H

#include "exec_remote_types.h"
#include "params.h"

extern const struct params_table job_start_params;  /* struct start_params */
extern const struct params_table job_ack_params;    /* struct job_params: pid, ack_seq */
extern const struct params_table job_wait_params;   /* … timeout */
extern const struct params_table job_follow_params; /* pid, ack_seq as cursor */
extern const struct params_table job_write_params;  /* … data */
extern const struct params_table job_signal_params; /* pid, signal */
extern const struct params_table job_resize_params; /* pid, rows, cols */
extern const struct params_table job_hold_params;   /* pid */
extern const struct params_table job_pid_params;    /* pid, and whatever else */

/* What the table can't say of a start: exactly one of command and argv, a known encoding. */
int job_start_check(const void *params, struct err *err);
bool job_start_is_latin1(const struct start_params *p);

#endif
