/* Tables of the web methods' params (params.h). */
#ifndef APPLETS_WEB_BROWSER_WEB_PARAMS_H
#define APPLETS_WEB_BROWSER_WEB_PARAMS_H

#include "web_types.h"

extern const struct params_table web_new_session_params; /* struct web_session_params */

/* struct web_params: session_name, … */
extern const struct params_table web_session_params, web_url_params, web_click_params, web_text_params,
    web_direction_params, web_value_params, web_key_params, web_expression_params, web_picture_params,
    web_tabs_params, web_wait_params, web_find_params, web_read_params, web_dialog_params, web_network_params;
extern const struct params_table web_upload_params, web_state_params,
    web_devtools_params; /* struct web_list_params */
extern const struct params_table web_emulate_params;

/* Whose session it is, whatever else is asked. */
extern const struct params_table web_name_params;

/* Frees what any of these tables has allocated. */
void web_params_release(struct web_params *p);

#endif
