/* The texts of --help: each stands as NAME.usage in its applet's folder, and the build packs them together
 * (usage_packed.h, gzip, one behind the other; a line @FILE stands for a part that several have), for as they
 * are they would be a fortieth of the binary. */
#ifndef APPLETS_USAGE_TEXT_H
#define APPLETS_USAGE_TEXT_H

#include <stdbool.h>

#include "buf.h"

/* Appends the one that begins with "Usage: toolbox WORDS". Whether there is one. */
bool usage_text(const char *words, struct buf *out);

#endif
