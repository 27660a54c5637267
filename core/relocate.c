#include "relocate.h"

/* Where the program was started whole. */
__attribute__((weak)) void relocate_rest(void)
{
}
