/* Tables of the session methods' params (params.h), one for each struct of bash_session_types.h. */
#ifndef APPLETS_BASH_SESSION_BASH_SESSION_PARAMS_H
#define APPLETS_BASH_SESSION_BASH_SESSION_PARAMS_H

#include "params.h"
#include "rpc.h"

extern const struct params_table session_new_params;
extern const struct params_table session_interact_params;
extern const struct params_table session_run_params;
extern const struct params_table session_resize_params;
extern const struct params_table session_signal_params;
extern const struct params_table session_name_params;
extern const struct params_table session_record_params, session_watch_params; /* struct tape_params */

#endif
