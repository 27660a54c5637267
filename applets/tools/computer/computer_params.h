/* The tables of params of the methods of computer. */
#ifndef APPLETS_COMPUTER_COMPUTER_PARAMS_H
#define APPLETS_COMPUTER_COMPUTER_PARAMS_H

#include "computer_types.h"

extern const struct params_table computer_new_session_params, computer_name_params, computer_only_name_params,
    computer_act_params, computer_picture_params, computer_wait_params;

#define KEYED(type_, key_, offset_, ...)                                                                     \
    {                                                                                                        \
        .key = (key_), .type = (type_), .offset = (offset_), __VA_ARGS__                                     \
    }
#define COMPUTER_NAME                                                                                        \
    KEYED(PARAM_NAME, "session_name", 0, .required = true,                                                   \
          PARAM_DOC("The session, as computer_new_session named it", NULL))

#endif
