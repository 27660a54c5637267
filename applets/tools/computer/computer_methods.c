/* The methods of a display, in its keeper. */
#include "computer_keeper.h"
#include "computer_params.h"
#include "hosted.h"
#include "relocate.h"

int computer_start_in_keeper(struct keeper *k, void *arg, struct err *err)
{
    return code_unpack(CODE_computer, err) < 0 ? -1 : hosted_start(k, arg, err);
}

#define GONE DOC("no such session; the display has ended")

const struct rpc_method computer_keeper_methods[] = {
    {"computer_action", hosted_act, &computer_act_params,
     DOC("Do something on a desktop, as models ask for it: screenshot, zoom, cursor_position, mouse_move, "
         "left_click, "
         "right_click, middle_click, back_click, forward_click, double_click, triple_click, left_click_drag, "
         "left_mouse_down, left_mouse_up, scroll, key, hold_key, key_down, key_up, type, wait, "
         "open_web_browser, navigate; or OpenAI's "
         "click, "
         "double_click, drag, keypress, move, scroll, type, wait"),
     DOC("{output?, x?, y?}, and where there is a picture {mime_type, width, height, data}: a PNG in base64"),
     DOC("no such session; the display has ended; what can't be done, in the words of those tools"),
     DOC("computer"), NULL},
    {"computer_screenshot", hosted_screenshot, &computer_picture_params, DOC("Take a picture of a desktop"),
     DOC("{mime_type, width, height, data}: a PNG in base64; with a region or changed {x, y}; with changed "
         "{changed}"),
     GONE, NULL, NULL},
    {"computer_wait", hosted_wait, &computer_wait_params,
     DOC("Wait until nothing changes on a desktop's screen"), DOC("{stable, quiet_s}"), GONE, NULL, NULL},
    {"computer_close_session", hosted_close, &computer_only_name_params,
     DOC("End a desktop's session, with what it has started"), DOC("null"), DOC("no such session"), NULL,
     NULL},
    {0},
};
