/* A display that is worked on: one that is there, or an Xvfb that is started for it. */
#ifndef APPLETS_COMPUTER_DESK_H
#define APPLETS_COMPUTER_DESK_H

#include <stdbool.h>
#include <sys/types.h>

#include "computer_types.h"
#include "keeper.h"
#include "user.h"
#include "x11.h"

/* What of the server's extensions is there: the codes of their requests; 0: it isn't. */
struct extensions {
    unsigned char xtest, xfixes, xkb, resources;
};

/* What was started for it. */
struct own_display {
    pid_t pid, manager; /* of Xvfb and of the window manager; 0: none, or it has ended */
    bool started;
    int status; /* of Xvfb, once it has ended */
    char *manager_name;
};

struct keyboard;

struct desk {
    struct loop *loop;
    struct x11 x;
    struct extensions has;
    struct own_display own;
    uint32_t window;               /* ours, which is never seen */
    int model_width, model_height; /* of the pictures that are asked for, and of coordinates */
    struct keyboard *keyboard;
    uint64_t *tiles; /* of the last picture that was given */
    int tiles_width, tiles_height;
    char **env; /* of what is started on it */
    const struct user *user;
};

/* Connects to the display that `wish` names, or $DISPLAY; or, where neither is there or a size is asked for,
 * starts Xvfb. -1 with ERR_TOOL, and nothing is left. */
int desk_open(struct desk *d, struct keeper *k, const struct computer_session_params *wish,
              const struct user *user, struct err *err);

/* Starts a program on it, of which nothing is heard any more. Its pid, or -1. */
pid_t desk_run(struct desk *d, char *const *argv, struct err *err);

/* Looks how large the screen is now, and the model's picture of it. */
int desk_measure(struct desk *d, struct err *err);

/* ---- what is asked often (ask.c) ---- */

/* The number of a name; 0: nobody has ever used it, and `make` is false. */
uint32_t desk_atom(struct desk *d, const char *name, bool make);
/* Appends the value of a window's property, as it came; false: there is none. `type` 0: of any. */
bool desk_property(struct desk *d, uint32_t window, uint32_t property, uint32_t type, struct buf *value);
/* Its first number; 0: there is none. */
uint32_t desk_property_number(struct desk *d, uint32_t window, const char *property);
/* The process that the window is one of, where that is on this machine; 0: it isn't known. */
pid_t desk_process(struct desk *d, uint32_t window);
/* Whether WM_PROTOCOLS of the window has it. */
bool desk_speaks(struct desk *d, uint32_t window, const char *protocol);
/* Sends a client message about the window to `to`: five numbers. */
void desk_tell(struct desk *d, uint32_t to, uint32_t window, const char *type, const uint32_t *five,
               uint32_t mask);
/* Where the pointer is. */
int desk_pointer(struct desk *d, int *x, int *y, struct err *err);
/* An event of XTEST, `after` ms: a key or a button that goes down or up; or the pointer moves. */
enum fake { FAKE_KEY_DOWN = 2, FAKE_KEY_UP, FAKE_BUTTON_DOWN, FAKE_BUTTON_UP, FAKE_MOVE };
void desk_fake(struct desk *d, enum fake type, int detail, int x, int y, int after);

#endif
