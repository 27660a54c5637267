/* Pictures as PNG (ISO/IEC 15948). */
#ifndef APPLETS_COMPUTER_PNG_H
#define APPLETS_COMPUTER_PNG_H

#include "buf.h"

/* Appends a picture of three bytes (red, green, blue) a pixel: with a palette where it has no more than 256
 * colours.*/
void png_put(struct buf *out, const unsigned char *pixels, int width, int height);

#endif
