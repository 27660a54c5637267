/* The keyboard: keys by their names, and texts. */
#ifndef APPLETS_COMPUTER_KEYS_H
#define APPLETS_COMPUTER_KEYS_H

#include "desk.h"

/* The number of a key's name, as xdotool takes it and models write it ("Return", "enter", "ctrl", "é",
 * "U20AC"), or 0. */
uint32_t key_symbol(const char *name, size_t n);
/* That of a character. */
uint32_t key_of_character(unsigned code_point);
/* And the character of one that a keyboard has; 0: none. */
unsigned key_character(uint32_t symbol);

#endif
