/* Pictures of the screen. */
#ifndef APPLETS_COMPUTER_SCREEN_H
#define APPLETS_COMPUTER_SCREEN_H

#include "desk.h"

struct area {
    int x, y, width, height;
};

/* Appends the PNG of an area of the screen, of that size. */
int screen_png(struct desk *d, struct area area, int width, int height, bool cursor, struct buf *png,
               struct err *err);

/* Sums of the squares of 16 pixels that the screen is divided into; a new array of them. */
#define SCREEN_TILE 16
uint64_t *screen_tiles(struct desk *d, int *across, int *down, struct err *err);

/* Where two of them differ, in pixels, within an area; false: nowhere. */
bool screen_difference(const struct desk *d, const uint64_t *a, const uint64_t *b, int across, int down,
                       struct area within, struct area *changed);

/* The model's coordinates as the screen's, and the other way round. */
int screen_from_model(const struct desk *d, long long v, bool vertical);
int screen_to_model(const struct desk *d, int v, bool vertical);

#endif
