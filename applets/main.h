/* What the dispatcher knows about this call. */
#ifndef APPLETS_MAIN_H
#define APPLETS_MAIN_H

#include <stdbool.h>

/* True when the program was called by one of the names of the tool server that it stands in for. */
bool called_as_inspect(void);

#endif
