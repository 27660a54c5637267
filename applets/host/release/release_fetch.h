/* Getting a release from the network into a folder. */
#ifndef RELEASE_FETCH_H
#define RELEASE_FETCH_H

#include <stdbool.h>

#include "fetch_get.h"

struct release_fetch {
    const char *url; /* of the release's folder, or of a file in it */
    const char *dir;
    const char *key;           /* text of the public key; "" or NULL: none */
    const char *const *arches; /* n_arches of them; none: all that there are */
    size_t n_arches;
    struct fetch_options options;
};

/* What is fetched is verified before it gets its name: SHA256SUMS by its signature where there is a key, the
 * files by their sums there; without a key, by the sums behind the program itself, and only its own version's
 * programs are fetched. Says on stdout what it placed. 0, or -1 with ERR_TOOL: what had been placed until
 * then stays. */
int release_fetch(const struct release_fetch *fetch, struct err *err);

#endif
