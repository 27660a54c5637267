/* What is asked of a display, one after the other.
 *
 * A task is a function that is called again and again: it says after how many milliseconds (0: at once), or
 * that it is done. What it asks of the X server it waits for, which takes no time that counts; for everything
 * else it comes back. */
#ifndef APPLETS_COMPUTER_TASK_H
#define APPLETS_COMPUTER_TASK_H

#include "desk.h"
#include "keyboard.h"
#include "rpc.h"
#include "screen.h"

struct task;
#define TASK_DONE (-1)   /* result holds the answer */
#define TASK_FAILED (-2) /* err does */
typedef int (*task_fn)(struct task *t);

/* The wait until the screen has come to rest. */
struct rest {
    bool begun;
    uint64_t *tiles;
    int across, down;
    long long changed_ms, until_ms;
    int quiet_ms;
    struct area within;
};

struct task {
    struct task *next;
    struct desk *desk;
    struct rpc_call *call; /* NULL: its client has gone */
    task_fn step;
    int phase;
    union {
        struct computer_action_params action;
        struct computer_shot_params shot;
    } params;
    const struct params_table *table; /* by which they are freed */
    char *request;                    /* what spans in them point into */
    struct buf result;
    struct err err;
    struct typing typing;
    struct rest rest;
};

/* Of action.c and picture.c. */
int task_action(struct task *t);
int task_screenshot(struct task *t);
int task_wait(struct task *t);

/* Waits for the screen to rest: milliseconds until it is to be asked again, or TASK_DONE (*stable says
 * whether it has), or TASK_FAILED. */
int rest_step(struct task *t, bool *stable);

/* Appends ,"mime_type":…,"data":…,"width":…,"height":… of the whole screen at the model's size. */
int picture_put_whole(struct task *t, bool cursor);
/* The same of an area of the screen, at that size. */
int picture_put(struct task *t, struct area area, int width, int height, bool cursor);
/* An area of the model's coordinates, x0 y0 x1 y1. -1 with err. */
int picture_area(struct task *t, const struct ints *region, struct area *area);

#endif
